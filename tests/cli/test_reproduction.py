"""The paper's figures: scripts, their laws at tiny sizes, the command, and its page."""

import importlib
import json
import shutil
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import xarray as xr
from typer.testing import CliRunner

import relboltz as rb
from relboltz.cli import reproduce as command
from relboltz.cli import reproduction_page as page
from relboltz.cli.app import app
from relboltz.util.errors import InputError

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture
def scripts(monkeypatch):
    """The folder of the scripts on the path, and none of them left behind."""
    monkeypatch.syspath_prepend(command.folder())
    before = set(sys.modules)
    yield importlib.import_module
    for name in set(sys.modules) - before:
        if name.startswith(("fig", "paper_runs", "thermal")):
            del sys.modules[name]


@pytest.fixture
def job(scripts, tmp_path):
    return scripts("paper_runs").Job(backend="cpu", out=tmp_path, threads=1, watch=False)


# --- scripts ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", command.NAMES)
def test_every_figure_has_a_script_that_says_what_it_does(scripts, job, name):
    module = scripts(name)
    number = name.removeprefix("fig")
    assert module.__doc__.startswith(f"Fig. {number}: ") and callable(module.draw)
    small = module.setup(job)
    full = module.setup(SimpleNamespace(pick=lambda small, full: full))
    assert small and full


def test_symmetrical_sampling_keeps_the_number_and_sampling_without_does_not(scripts, job):
    """One step of Fig. 3. A sum of 7 x 216 doubles rounds by less than 1e-12 of itself."""
    paper = scripts("paper_runs")
    model, grid = rb.qcd(0.3), rb.PhaseSpace(6, 2.0)
    f = paper.random_gluons(model, grid)
    before = paper.number(model, grid, f)
    assert before["g"] == pytest.approx(
        216 * 16 * f[0].sum() * (4 / 6) ** 3 / (2 * np.pi * 0.1973269804) ** 3
    )
    changes = {}
    for symmetrical in (True, False):
        after = paper.stepped(job, model, grid, f, 0.01, 4, seed=3, symmetrical=symmetrical)
        changes[symmetrical] = abs(sum(after.values()) / sum(before.values()) - 1)
        assert all(after[name] > 0 for name in ("u", "ubar"))  # gluons turn into quarks
    assert changes[True] < 1e-12 and changes[False] > 1e-5


def test_the_nearest_cell_heats_and_the_conserving_scheme_does_not(scripts, job):
    """Fig. 5 on 10^3 nodes to 0.1 fm: rounding of a few thousand additions against per cents."""
    fig5 = scripts("fig5")
    errors = {scheme: fig5.error(fig5.solve(job, 10, scheme, end=0.1)) for scheme in fig5.SCHEMES}
    assert errors["conserving"] < 1e-12
    assert errors[fig5.K2] > 1e-3 and errors[fig5.CM] > 1e-3
    assert len(job.kept) == 3
    again = fig5.solve(job, 10, "conserving", end=0.1)
    assert again is next(ds for name, ds in job.kept.items() if "conserving" in name)


def test_a_stretch_with_other_steps_gives_the_same_masses(scripts, job):
    thermal, sheet = scripts("thermal"), scripts("paper_runs").Sheet("fig9", "", "", False)
    thermal.short_steps(job, sheet, "gluons", 2e-3, 0.04, 8)
    assert [line["passed"] for line in sheet.lines] == [True, True]
    assert "20 steps of 0.002 fm" in sheet.lines[0]["remark"]


def test_number_and_energy_fix_mu_above_0(scripts, job):
    """Against a calculation of its own: sums over 16^3 nodes and Gauss points, roots by scipy."""
    thermal, sheet = scripts("thermal"), scripts("paper_runs").Sheet("fig9", "", "", False)
    found = thermal.fixed(job, "gluons", "g")
    assert found.limited == pytest.approx((0.438953, 0.649649), abs=2e-6)
    assert found.unlimited == pytest.approx((0.383782, 0.701522), abs=2e-6)
    assert found.at_zero == pytest.approx(1.26012, abs=2e-5)
    thermal.unlimited_masses(sheet, "gluons", "g")  # K 16/(2 pi^2) 1.5^2/4 = 0.64458 with E = |p|
    assert "0.645 GeV² at the start" in sheet.findings[0]
    assert "0.498 GeV² from the gap equation; 0.545 GeV² in equilibrium" in sheet.findings[0]


def test_gluons_accumulate_early_only_if_their_largest_number_is_early(scripts):
    thermal, sheet = scripts("thermal"), scripts("paper_runs").Sheet("fig9", "", "", False)
    times = np.linspace(0, 50, 11)
    for values in (np.minimum(1 + times, 3.0) - 0.001 * times, 1 + times):
        spectrum = xr.DataArray(
            values[:, None, None], dims=("time", "species", "p"),
            coords={"time": times, "species": ["g"], "p": [0.1]},
        )  # fmt: skip
        thermal.piling_up(sheet, xr.Dataset({"spectrum": spectrum}), "gluons", "conserving")
    early = [line["same"] for line in sheet.lines if line["paper"] == "accumulate early"]
    assert early == [True, False]


# --- the command --------------------------------------------------------------------------------

SCRIPT = '''"""Fig. {n}: a line. With words."""
import xarray as xr
import paper_runs as paper
def setup(job):
    return "nothing"
def draw(job, sheet):
    {before}
    figure, axes = paper.panels(1, 1)
    sheet.compare("a number", {value}, "about 1", "GeV", between=(0.5, 1.5), same=True)
    return figure, xr.Dataset({{"a": 1.0}})
'''


@pytest.fixture
def other_scripts(tmp_path, monkeypatch, scripts):
    """A folder of scripts that take no time: fig2 is right, fig3 wrong, fig4 interrupted."""
    place = tmp_path / "scripts"
    place.mkdir()
    shutil.copy(command.folder() / "paper_runs.py", place)
    for n, value, before in ((2, 1.0, ""), (3, 2.0, ""), (4, 1.0, "raise KeyboardInterrupt")):
        (place / f"fig{n}.py").write_text(SCRIPT.format(n=n, value=value, before=before))
    monkeypatch.setattr(command, "folder", lambda: place)
    monkeypatch.setattr(command, "NAMES", ("fig2", "fig3", "fig4"))
    return tmp_path / "out"


def run(*words):
    return CliRunner().invoke(app, ["reproduce", *map(str, words)])


def test_a_figure_is_a_picture_data_and_numbers(other_scripts):
    result = run("fig2", "--out", other_scripts)
    assert result.exit_code == 0 and "a number" in result.stdout
    assert {p.name for p in other_scripts.iterdir()} == {"fig2.png", "fig2.nc", "fig2.json"}
    sheet = json.loads((other_scripts / "fig2.json").read_text())
    line = {"what": "a number", "paper": "about 1", "ours": 1.0, "unit": "GeV", "remark": ""}
    assert sheet["lines"][0].items() >= line.items()


def test_a_check_that_fails_is_an_exit_code(other_scripts):
    assert run("fig3", "--out", other_scripts).exit_code == 1
    assert (other_scripts / "fig3.png").exists()


def test_an_interrupt_keeps_what_is_done(other_scripts):
    result = run("all", "--out", other_scripts)
    assert result.exit_code == 130
    assert (other_scripts / "fig3.json").exists() and not (other_scripts / "fig4.json").exists()
    assert "a number" in result.stdout


@pytest.mark.parametrize("words", [["fig13"], [], ["fig2", "--backend", "tpu"]])
def test_what_is_not_known_is_an_error(words):
    error = run(*words).exception
    assert isinstance(error, InputError)
    if "--backend" not in words:
        assert "fig2, fig3" in str(error) and "all" in str(error)


# --- the page -----------------------------------------------------------------------------------


def test_the_page_is_what_the_recorded_numbers_make_it():
    records = page.recorded(DOCS / "reproduction")
    assert set(records) == set(command.NAMES)
    assert (DOCS / "reproduction.md").read_text() == page.written(records)
    for name in command.NAMES:
        assert (DOCS / "reproduction" / f"{name}.png").stat().st_size <= 150_000


def test_every_recorded_check_holds():
    """And runs of the paper's size end where another program predicts it (30^3, 2 GeV)."""
    records = page.recorded(DOCS / "reproduction")
    lines = [line for sheets in records.values() for s in sheets.values() for line in s["lines"]]
    assert all(line["passed"] is not False for line in lines)
    assert sum(line["passed"] is True for line in lines) > 20
    published = {
        ("fig9", "T at 50 fm: gluons, conserving"): 0.43514,
        ("fig9", "μ at 50 fm: gluons, conserving"): 0.64688,
    }
    for (figure, what), value in published.items():
        for line in records[figure].get("full", {"lines": []})["lines"]:
            if line["what"] == what:
                assert line["ours"] == pytest.approx(value, abs=2e-5)  # its last digit


def test_comparisons_are_counted_by_what_they_test():
    line = {"what": "a", "paper": "> 0", "ours": 1.0, "unit": "", "remark": "", "between": None,
            "passed": None, "same": True}  # fmt: skip
    lines = [
        line, line | {"what": "b", "same": False}, line | {"what": "c: nearest cells"},
        line | {"what": "d", "paper": "not 0"}, line | {"what": "grid error of e", "same": None},
    ]  # fmt: skip
    sheet = {"figure": "fig9", "words": "Fig. 9: a line. Words.", "setup": "s", "machine": "m",
             "seconds": 1.0, "runs": [], "findings": [], "lines": lines}  # fmt: skip
    text = page.written({"fig9": {"small": sheet}, "fig7": {"small": sheet}})
    assert "1 of 2 statements of the paper about the physics" in text
    assert (
        "nearest-cell runs, 3 of 4 are reproduced" in text and "2 of 2 hold by construction" in text
    )
    assert text.count("| Fig. 9 | e | 1 |") == 1 and "| grid error" not in text


def test_the_paper_s_size_is_shown_where_there_is_one(tmp_path):
    line = {"what": "a", "paper": "", "ours": 1.0, "unit": "", "remark": "", "between": None,
            "passed": None, "same": False}  # fmt: skip
    sheet = {
        "figure": "fig2", "words": "Fig. 2: a line. Words.", "setup": "s", "machine": "m",
        "seconds": 1.0, "runs": [], "findings": [],
    }  # fmt: skip
    small, large, docs = tmp_path / "small", tmp_path / "large", tmp_path / "docs"
    for folder, full in ((small, False), (large, True)):
        folder.mkdir()
        numbers = sheet | {"full": full, "lines": [line | {"ours": 1.0 + full}]}
        (folder / "fig2.json").write_text(json.dumps(numbers))
        (folder / "fig2.png").write_bytes(b"full" if full else b"small")
    for folder in (large, small):  # the small one comes last and does not replace the picture
        path = page.update(docs, folder)
    assert (docs / "reproduction" / "fig2.png").read_bytes() == b"full"
    assert "| a | – | 1 | 2 | differs |  |" in path.read_text()
