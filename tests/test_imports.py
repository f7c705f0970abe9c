"""Imports: nothing heavy is imported before it is needed."""

import subprocess
import sys

import pytest

import relboltz as rb

HEAVY = ("numpy", "numba", "xarray", "pandas", "pydantic", "matplotlib", "h5py", "ray", "mpi4py")
LOADED = f"import sys; print([m for m in {HEAVY!r} if m in sys.modules])"


def told(program):
    """Return what a fresh Python prints."""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()[-1]


@pytest.mark.parametrize(
    "program",
    [
        "import relboltz",
        "import relboltz; dir(relboltz), relboltz.InputError, relboltz.__version__",
        "import relboltz.cli.app, typer.testing\n"
        "app = relboltz.cli.app.app\n"
        "assert 'resume' in typer.testing.CliRunner().invoke(app, ['--help']).output",
    ],
)
def test_nothing_heavy_is_imported_before_it_is_needed(program):
    assert told(f"{program}\n{LOADED}") == "[]"


def test_all_names_are_there_and_each_has_a_home():
    for name in rb.__all__:
        assert getattr(rb, name) is not None and name in dir(rb)
    assert set(rb.HOMES) < set(rb.__all__)
    with pytest.raises(AttributeError, match="no attribute 'solv'"):
        rb.solv  # noqa: B018


def test_qcd_is_the_model_whoever_imports_its_module_first():
    for first in ("relboltz.model.qcd", "relboltz.run.input_file", "relboltz.studies.validation"):
        assert told(f"import {first}, relboltz; print(relboltz.qcd(0.3).name)") == "qcd"


@pytest.mark.parametrize(
    "first",
    [
        "import xarray, relboltz",
        "import relboltz, xarray",
        "import relboltz, xarray; relboltz.load",
        "import relboltz, importlib.util; importlib.util.find_spec('xarray'); import xarray",
        "import relboltz.analysis, xarray",
    ],
)
def test_results_that_xarray_opens_have_rb_whichever_is_imported_first(first):
    """Without a warning, and with nothing else imported until rb is asked for."""
    program = f"""
import warnings; warnings.simplefilter("error")
{first}
ds = xarray.Dataset({{"a": (("time", "species"), [[1.0]])}}, attrs={{"kind": "run"}})
import sys; early = "relboltz.analysis.accessor" in sys.modules
assert ds.rb is ds.rb and isinstance(ds.rb, xarray.Dataset.rb)
print(early, type(ds.rb).__module__, [type(one).__name__ for one in sys.meta_path].count("Watch"))
"""
    early = "relboltz.analysis" in first
    assert told(program) == f"{early} relboltz.analysis.accessor 0"
