"""The site builds without a warning, and its links lead somewhere; notebooks run."""

import re
import socket
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import pytest

pytestmark = pytest.mark.docs
ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
NOTEBOOKS = sorted((DOCS / "notebooks").glob("*.ipynb"))


def sphinx(builder, out, *options):
    pytest.importorskip("sphinx", reason="no sphinx here: pip install -e '.[docs]'")
    pytest.importorskip("myst_nb", reason="no myst-nb here: pip install -e '.[docs]'")
    arguments = ["-m", "sphinx", "-q", "-W", "--keep-going", "-b", builder, *options]
    return subprocess.run(
        [sys.executable, *arguments, "-d", f"{out}-trees", str(DOCS), str(out)], cwd=ROOT,
        text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
    )  # fmt: skip


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The pages of the site, notebooks run; warnings are errors."""
    out = tmp_path_factory.mktemp("site") / "html"
    done = sphinx("html", out)
    assert done.returncode == 0, done.stdout[-5000:]
    return out


class Page(HTMLParser):
    """Links, names to link to, pictures and scripts of a page."""

    def __init__(self, path):
        super().__init__()
        self.links, self.names, self.files, self.alone = [], set(), [], []
        self.feed(path.read_text())

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.names.add(given.get("id"))
        if tag == "a" and given.get("href"):
            self.links.append(given["href"])
        if tag in ("img", "script", "source") and given.get("src"):
            self.files.append(given["src"])
        if tag == "link" and given.get("rel") == "stylesheet":
            self.files.append(given["href"])
        if tag == "img" and not given.get("alt"):
            self.alone.append(given.get("src"))


def outside(link):
    return re.match(r"[a-z]+:", link) is not None


def test_links_within_the_site_lead_somewhere(site):
    """Pages and the places on them."""
    pages = {path: Page(path) for path in site.rglob("*.html")}
    assert len(pages) > 25
    for path, page in pages.items():
        for link in [link for link in page.links if not outside(link)]:
            file, _, name = unquote(link).partition("#")
            there = (path.parent / file).resolve() if file else path
            assert there.exists(), (path.name, link)
            if name and there.suffix == ".html":
                assert name in pages[there].names, (path.name, link)


def test_pages_need_no_network(site):
    """Styles, scripts, pictures and formulas are all there."""
    for path in site.rglob("*.html"):
        page = Page(path)
        for file in page.files:
            assert not outside(file) and not file.startswith("//"), (path.name, file)
            assert (path.parent / unquote(file.split("?")[0])).exists(), (path.name, file)
    assert "<math" in (site / "how_it_works.html").read_text()


def test_pictures_have_words(site):
    """For those who do not see them; those of notebooks stand below what they show."""
    for path in site.glob("*.html"):
        assert Page(path).alone == [], path.name


def test_notebooks_on_the_site_have_their_outputs(site):
    for path in NOTEBOOKS:
        page = (site / "notebooks" / f"{path.stem}.html").read_text()
        assert page.count("<img") >= 1 and "cell_output" in page


def test_links_out_of_the_site_lead_somewhere(tmp_path):
    """Only where there is a network."""
    try:
        socket.create_connection(("doi.org", 443), timeout=3).close()
    except OSError:
        pytest.skip("no network here")
    done = sphinx("linkcheck", tmp_path / "links", "-D", "nb_execution_mode=off")
    assert done.returncode == 0, done.stdout[-3000:]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_run_and_check_their_physics(path, tmp_path):
    """They are kept without outputs, and hold asserts, which the run passes."""
    nbformat = pytest.importorskip("nbformat", reason="no nbformat here")
    nbclient = pytest.importorskip("nbclient", reason="no nbclient here")
    notebook = nbformat.read(path, as_version=4)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert all(not cell.outputs and cell.execution_count is None for cell in code)
    assert sum(cell.source.count("assert ") for cell in code) >= 4
    where = {"metadata": {"path": str(tmp_path)}}
    nbclient.NotebookClient(notebook, timeout=600, resources=where).execute()
    pictures = [o for cell in code for o in cell.outputs if "image/png" in o.get("data", {})]
    assert pictures


def test_all_notebooks_are_known():
    known = ["bjorken", "exact_solution", "hot_spot", "thermalisation"]
    assert [path.stem for path in NOTEBOOKS] == known
