"""What is imported, and when: nothing heavy before it is needed."""

import subprocess
import sys

import pytest

import relboltz as rb

HEAVY = ("numpy", "numba", "xarray", "pandas", "pydantic", "matplotlib", "h5py", "ray", "mpi4py")
LOADED = f"import sys; print([m for m in {HEAVY!r} if m in sys.modules])"


def told(program):
    """What a fresh Python prints."""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()[-1]


@pytest.mark.parametrize(
    "program",
    [
        "import relboltz",
        "import relboltz; dir(relboltz), relboltz.InputError, relboltz.__version__",
        "import relboltz.cli, typer.testing\n"
        "assert 'resume' in typer.testing.CliRunner().invoke(relboltz.cli.app, ['--help']).output",
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
    for first in ("relboltz.qcd", "relboltz.config", "relboltz.validation"):
        assert told(f"import {first}, relboltz; print(relboltz.qcd(0.3).name)") == "qcd"


def test_results_that_xarray_opens_have_rb_if_it_came_first_or_a_result_was_asked_for():
    assert told("import xarray, relboltz; print(hasattr(xarray.Dataset, 'rb'))") == "True"
    assert told("import relboltz, xarray; relboltz.load; print(hasattr(xarray.Dataset, 'rb'))") == (
        "True"
    )
