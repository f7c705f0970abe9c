"""The pages of the site: what they show is what happens."""

import re

import matplotlib
import pytest
from blocks import DOCS, PICTURES, ROOT, blocks_of, difference, pictures_of, run_page, unlike

import relboltz as rb

pytestmark = pytest.mark.docs
matplotlib.use("Agg")
PAGES = [path for path in (ROOT / "README.md", *sorted(DOCS.glob("*.md"))) if blocks_of(path)]
RUN = {"python", "sh", "toml", "output"}


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_the_blocks_of_a_page_run_and_print_what_it_shows(path, tmp_path):
    """Also its pictures: they are made by its blocks, and look as those in the repository."""
    run_page(path, tmp_path)
    for name in pictures_of(path):
        kept = PICTURES / path.stem / name
        assert unlike(kept, tmp_path / name) < 0.03, f"{kept}: python tests/blocks.py {path.name}"


def test_no_block_escapes():
    """Languages that are neither run nor compared are not used."""
    found = {block.language for path in PAGES for block in blocks_of(path)}
    assert found <= RUN
    for path in PAGES:  # every fence is found: none is indented or of another kind
        fences = re.findall(r"^ *(?:```|~~~)\S", path.read_text(), flags=re.M)
        directives = re.findall(r"^```\{", path.read_text(), flags=re.M)
        assert len(fences) - len(directives) == len(blocks_of(path)), path


def test_every_picture_in_the_repository_is_shown():
    shown = {PICTURES / path.stem / name for path in PAGES for name in pictures_of(path)}
    assert shown == set(PICTURES.rglob("*.png"))


def test_outputs_are_compared_by_words_and_numbers():
    """A number that is off, a word that is missing: the comparison notices."""
    printed = "T = 0.3883 GeV, 11 %\nwritten: run.nc"
    assert difference("T = 0.388 GeV, 11 %\n...\nrun.nc", printed) is None
    assert difference("T = 0.40 GeV, ...", printed) is not None
    assert difference("T = 0.388 GeV, ...\nwritten: other.nc", printed) is not None
    assert difference("T = 0.388 GeV, 11 % written: run.nc more", printed) is not None


@pytest.fixture(scope="module")
def tables():
    import importlib.util

    spec = importlib.util.spec_from_file_location("tables", DOCS / "tables.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", ["output.md", "commands.md", "configuration.md"])
def test_tables_are_those_of_the_code(tables, name):
    """make docs renews them."""
    page = (DOCS / name).read_text()
    assert "<!-- table:" in page
    assert tables.written(page) == page


def test_every_variable_of_a_result_is_on_its_page(tables):
    """In homogeneous matter and in space; total_NAME stands for all averages."""
    page = (DOCS / "output.md").read_text()
    listed = set(re.findall(r"^\| `(\w+)`", page, flags=re.M))
    for ds in tables.datasets():
        missing = {n for n in ds.variables if n.removeprefix("total_") not in listed}
        assert missing == set()
        assert {n for n in ds.attrs if f"`{n}`" not in page} <= {
            "relboltz_version", "python_version", "numpy_version", "numba_version", "run"
        }  # fmt: skip


def test_every_command_and_every_public_name_has_its_entry():
    commands, api = (DOCS / "commands.md").read_text(), (DOCS / "api.md").read_text()
    from relboltz.cli.app import app

    names = {c.name or c.callback.__name__ for c in app.registered_commands}
    assert names == set(re.findall(r"^### relboltz (\w+)$", commands, flags=re.M))
    modules = {"initial", "equilibrium", "analysis", "__version__"}
    assert {n for n in rb.__all__ if not re.search(rf":: {n}\b", api)} <= modules
    assert all(f"relboltz.{module}" in api for module in modules - {"__version__"})


def test_the_citation_is_of_this_version():
    yaml = pytest.importorskip("yaml")
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert cited["cff-version"] == "1.2.0" and cited["version"] == rb.__version__
    assert cited["references"][0]["doi"] == "10.1103/PhysRevD.102.074011"
    assert f"## [{rb.__version__}]" in (ROOT / "CHANGELOG.md").read_text()
