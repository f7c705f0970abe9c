"""converge: which runs it does, and what it makes of them."""

import json
import warnings
from io import StringIO

import numpy as np
import pytest
import xarray as xr
from rich.console import Console
from typer.testing import CliRunner

import relboltz as rb
from relboltz.cli import app as cli
from relboltz.cli import convergence_table
from relboltz.io.comparable import comparable
from relboltz.run import setup as cases
from relboltz.run.setup import Case
from relboltz.studies.convergence import driver as converging
from relboltz.studies.convergence import plan as variations
from relboltz.studies.convergence.plan import ConvergenceEffort, plan_of, scaled
from relboltz.visualization import plots

MODEL = rb.gluons(0.3)
GRID = rb.PhaseSpace(7, 2.5)
START = {"g": rb.initial.step(0.5, 1.5)}
OPTIONS = {"end": 0.2, "every": 0.1, "samples": 4, "backend": "cpu", "threads": 1}


@pytest.fixture(autouse=True)
def _quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def case_of(grid=GRID, start=START, **more):
    return Case.of_options(MODEL, grid, start, OPTIONS | more)


# --- which runs ---------------------------------------------------------------------------------


@pytest.mark.parametrize("factor", [1 / 1.5, 1.5, 2.0])
def test_odd_numbers_of_cells_stay_odd_and_even_ones_even(factor):
    for n in range(5, 60):
        assert scaled(n, factor) % 2 == n % 2
        assert abs(scaled(n, factor) - factor * n) <= 2


def test_knobs_are_turned_one_at_a_time():
    """Spacing keeps the box, the box keeps the spacing; all have seeds of their own."""
    case = case_of(rb.PhaseSpace(31, 4.85))
    plan = plan_of(case, ConvergenceEffort())
    spacing, box, step, samples = plan.knobs
    assert spacing.fine.case.grid.momentum_cells == (61,) * 3
    assert spacing.coarse.case.grid.momentum_cells == (21,) * 3
    assert spacing.fine.case.grid.momentum_max == case.grid.momentum_max
    assert spacing.ratios == pytest.approx((31 / 61, 31 / 21))
    assert box.fine.case.grid.momentum_cells == (39,) * 3
    assert box.fine.case.grid.spacing == pytest.approx(case.grid.spacing)
    assert step.fine.case.settings.time.tolerance == pytest.approx(2.5e-4)
    assert step.coarse.case.settings.time.tolerance == pytest.approx(4e-3)
    assert step.ratios == (0.5, 2.0)  # steps go with the square root of the tolerance
    assert samples.fine.case.settings.collisions.samples == 16
    seeds = [job.case.seed for job in plan.jobs]
    assert len(set(seeds)) == len(seeds) == 14 and seeds[0] == 1


def test_a_fixed_step_is_halved_and_doubled():
    step = next(
        k for k in plan_of(case_of(step=0.05), ConvergenceEffort()).knobs if k.name == "step"
    )
    assert step.fine.case.settings.time.step == 0.025
    assert step.coarse.case.settings.time.step == 0.1


def test_starts_that_live_on_their_nodes_keep_their_grid():
    values = np.full((7, 7, 7), 0.1)
    plan = plan_of(case_of(start={"g": values}), ConvergenceEffort())
    assert [knob.name for knob in plan.knobs] == ["step", "samples"]
    assert set(plan.left_out) == {"spacing", "box"}
    assert "nodes" in plan.left_out["spacing"]


def test_in_space_cells_are_halved_and_open_walls_moved_away():
    def spot(x, y, z, px, py, pz):
        return np.exp(-(x**2)) * np.exp(-np.sqrt(px**2 + py**2 + pz**2) / 0.4)

    grid = rb.PhaseSpace(6, 2.5, space_cells=[8, 1, 1], space_max=2.0, boundary="open")
    plan = plan_of(case_of(grid, {"g": spot}), ConvergenceEffort())
    knobs = {knob.name: knob for knob in plan.knobs}
    assert knobs["cells"].fine.case.grid.space_cells == (16, 1, 1)
    wider = knobs["walls"].fine.case.grid
    assert wider.space_cells == (10, 1, 1)
    assert wider.space_spacing[0] == pytest.approx(grid.space_spacing[0])
    closed = rb.PhaseSpace(6, 2.5, space_cells=[8, 1, 1], space_max=2.0)
    names = [knob.name for knob in plan_of(case_of(closed, {"g": spot}), ConvergenceEffort()).knobs]
    assert "walls" not in names and "cells" in names


def test_smaller_efforts_cost_less():
    case = case_of(rb.PhaseSpace(31, 4.85))
    costs = [
        sum(j.cost for j in plan_of(case, e).jobs) for e in variations.efforts(ConvergenceEffort())
    ]
    assert costs == sorted(costs, reverse=True) and len(costs) >= 3 and costs[-1] < 0.6 * costs[0]


# --- what is compared ---------------------------------------------------------------------------


def result(**more):
    return rb.solve(MODEL, more.pop("grid", GRID), START, progress=False, **OPTIONS | more)


def test_spectra_of_other_grids_are_compared_at_the_same_momenta():
    """ln f of a Boltzmann spectrum is linear in p: interpolation is exact."""
    p, other = np.linspace(0, 2, 9), np.linspace(0, 3, 21)
    made = [
        xr.Dataset(
            {"spectrum": (("time", "species", "p"), np.exp(-x / 0.4)[None, None])},
            coords={"p": x, "time": [0.0], "species": ["g"]}, attrs={"momentum_max": [x[-1]] * 3},
        )
        for x in (p, other)
    ]  # fmt: skip
    found = comparable(made[1], made[0])["spectrum"]
    assert found == pytest.approx(made[0].spectrum.values, rel=1e-12)


# --- what comes of it ---------------------------------------------------------------------------


def invented(law, noise, seed=3):
    """In place of a run: T from a law of (h^2, box, tolerance, 1/samples), with noise."""
    draw = np.random.default_rng(seed).normal

    def done(self, path, progress=None, announce=None):
        grid, settings = self.grid, self.settings
        h2 = (grid.spacing[0] / GRID.spacing[0]) ** 2
        nodes = (grid.momentum_cells[0] / 7) ** 3 if grid.momentum_max == GRID.momentum_max else 1
        more = settings.collisions.samples / OPTIONS["samples"]
        value = law(h2, grid.momentum_max[0] / 2.5, settings.time.tolerance / 1e-3, 1 / more)
        scale = noise / np.sqrt(more * nodes)
        return xr.Dataset(
            {
                "temperature": ("time", value + scale * draw(size=2), {"units": "GeV"}),
                "noise": ("time", np.full(2, 0.1)), "equilibrium_temperature": ((), 0.2),
            },
            coords={"time": [0.0, 0.2]},
            attrs={
                "wall_seconds": 1.0, "title": "", "model": "", "configuration": "", "device": "",
                "warnings": "", "status": "done", "momentum_max": list(grid.momentum_max),
            },
        )  # fmt: skip

    return done


def test_laws_of_all_knobs_are_seen_through(monkeypatch):
    """T = 0.4 at the end of all knobs, 0.1 in the set-up: no noise, so only bars.

    The spacing has order 2, with 13 nodes for 7: its bar reaches from the limit to that of first
    order and half as far again; the bar of the box is half of what it changes.
    """

    def law(h2, box, tolerance, samples):
        return 0.4 - 0.2 * h2 - 0.1 * np.exp(-2.5 * (box - 1) / 0.2) + 0.0 * tolerance

    monkeypatch.setattr(Case, "done", invented(law, 0.0))
    ds = rb.converge(MODEL, GRID, START, progress=False, **OPTIONS)
    assert ds.temperature_run.values == pytest.approx(0.1)
    assert (abs(ds.temperature - 0.4) <= ds.temperature_error).all()
    change = ds.temperature_change.sel(knob="box").values
    assert change == pytest.approx(0.1 * (1 - np.exp(-2.5 * (9 / 7 - 1) / 0.2)))  # nine nodes
    first = 0.2 * (1 - (7 / 13) ** 2) * 7 / 6  # what F leaves at first order, r/(1 - r) = 7/6
    spacing = first - 0.2 * (7 / 13) ** 2 + 0.5 * first
    assert ds.temperature_error.values == pytest.approx(spacing + 0.5 * change)
    assert ds.temperature_shown.sel(knob="spacing").all()
    assert ds.temperature_order.sel(knob="spacing").values == pytest.approx(2.0)
    assert (ds.temperature_order_uncertainty.sel(knob="spacing") < 1.5).all()
    assert ds.temperature_order.sel(knob="box").isnull().all()
    assert not ds.temperature_change.sel(knob="samples").any()


def test_a_first_order_error_is_told_as_such(monkeypatch):
    """T = 0.4 - 0.1 h: measured, extrapolated in h and not in h^2, and printed."""
    monkeypatch.setattr(Case, "done", invented(lambda h2, *_: 0.4 - 0.1 * h2**0.5, 0.0))
    ds = rb.converge(MODEL, rb.PhaseSpace(21, 2.5), START, progress=False, **OPTIONS)
    assert ds.temperature_order.sel(knob="spacing").values == pytest.approx(1.0)
    assert ds.temperature.values == pytest.approx(0.4)
    text = "\n".join(remarks_and_tables(ds))
    assert "order" in text and " 1.0 " in text


def remarks_and_tables(ds):
    """Return the lines that the command prints."""
    console = Console(width=200, file=StringIO())
    for table in convergence_table.tables(ds, (), 200):
        console.print(table)
    return [console.file.getvalue(), *convergence_table.remarks(ds)]


def test_noise_of_runs_is_in_the_error_bar(monkeypatch):
    """Nothing depends on any knob: 200 made-up set-ups, and 99 % hold the truth (97 %: 3 sigma)."""
    held = []
    for seed in range(100):
        monkeypatch.setattr(Case, "done", invented(lambda *_: 0.4, 0.01, seed))
        ds = rb.converge(MODEL, GRID, START, progress=False, seeds=4, **OPTIONS)
        held += (abs(ds.temperature - 0.4) <= ds.temperature_error).values.tolist()
    assert np.mean(held) >= 0.97


def test_a_finished_run_is_not_done_again_and_the_numbers_are_those_of_the_runs(tmp_path):
    """A real one, small: the set-up is the mean of its seeds, changes are differences to it."""
    given = dict(seeds=3, progress=False, folder=tmp_path, **OPTIONS)
    lines = []
    ds = rb.converge(MODEL, GRID, START, tell=lines.append, **given)
    runs = {path.name.rpartition("-")[0]: rb.load(path) for path in tmp_path.glob("*-*.nc")}
    assert len(runs) == 9 and any("8 more runs" in line for line in lines)
    seeds = np.stack([runs[f"seed-{k}"].temperature.values for k in (1, 2, 3)])
    assert np.array_equal(ds.temperature_run, seeds.mean(axis=0))
    assert ds.temperature_noise.values == pytest.approx(seeds.std(axis=0, ddof=1))
    for knob, name in {"spacing": "spacing-finer", "box": "box-larger"}.items():
        change = runs[name].temperature.values - seeds.mean(axis=0)
        assert np.array_equal(ds.temperature_change.sel(knob=knob), change)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.glob("*-*.nc")}
    again = rb.converge(MODEL, GRID, START, **given)
    assert before == {path: path.stat().st_mtime_ns for path in tmp_path.glob("*-*.nc")}
    assert again.equals(ds)
    assert rb.load(tmp_path / converging.RESULT).temperature.equals(ds.temperature)
    for name in ("temperature", "spectrum", "number", "equilibrium_distance", "rate"):
        assert ds[name].attrs["units"] and ds[f"{name}_error"].attrs["long_name"]


def test_an_equilibrium_of_the_nodes_is_exact_whatever_is_turned():
    """A thermal state on the nodes does not move: T and mu as given, up to rounding and fits."""
    start = {"g": rb.initial.thermal(0.4, 0.1, sampling="node")}
    ds = rb.converge(MODEL, rb.PhaseSpace(7, 4.0), start, seeds=3, progress=False, **OPTIONS)
    assert ds.temperature.values == pytest.approx(0.4, abs=1e-9)
    assert ds.chemical_potential.values == pytest.approx(0.1, abs=1e-9)
    assert (ds.temperature_error < 1e-8).all()
    assert float(ds.energy_total_change.sel(knob="box").values[-1]) > 0.01  # of what was cut off


# --- the command --------------------------------------------------------------------------------

TOML = """
[model]
name = "gluons"
alpha_s = 0.3
[grid]
momentum_cells = 7
momentum_max = 2.5
[initial.g]
shape = "step"
height = 0.5
edge = 1.5
[time]
end = 0.2
[output]
every = 0.1
file = "{}"
"""


def test_the_command_prints_draws_and_writes(tmp_path, monkeypatch):
    toml, path = tmp_path / "a.toml", tmp_path / "a.json"
    toml.write_text(TOML.format(tmp_path / "a.nc"))
    monkeypatch.setattr(Case, "done", invented(lambda h2, *_: 0.4 + 0.1 * h2, 1e-4))
    told = CliRunner().invoke(
        cli.app, ["converge", str(toml), "--json", str(path), "--set", "run.threads=1"]
    )
    assert told.exit_code == 0, told.output
    assert "temperature" in told.output and "more runs" in told.output
    found = json.loads(path.read_text(), parse_constant=pytest.fail)
    assert found["quantities"]["temperature"]["value"][-1] == pytest.approx(0.4, abs=0.02)
    assert set(found["knobs"]) == {"spacing", "box", "step", "samples"}
    assert (tmp_path / "a.converge" / "converge.png").stat().st_size > 1000
    assert plots.changes(rb.load(tmp_path / "a.converge" / "converge.nc")) is not None


def test_a_budget_makes_the_plan_smaller_or_says_what_it_takes(monkeypatch):
    monkeypatch.setattr(Case, "done", invented(lambda *_: 0.4, 0.0))  # one second each
    lines = []
    given = dict(progress=False, tell=lines.append, **OPTIONS)
    rb.converge(MODEL, GRID, START, budget=0.3, **given)
    assert any("10 of" not in line and "more runs" in line for line in lines)
    few = [line for line in lines if "seed-" in line]
    assert len(few) < 7
    with pytest.raises(rb.InputError, match="budget = 0.01: .* minutes"):
        rb.converge(MODEL, GRID, START, budget=0.01, **given)


@pytest.mark.parametrize(
    ("given", "words"),
    [({"seeds": 2}, "seeds = 2"), ({"budget": -1.0}, "budget = -1"), ({"end": None}, "needs grid")],
)
def test_bad_input_is_refused_before_anything_runs(given, words, monkeypatch):
    monkeypatch.setattr(Case, "done", lambda *_: pytest.fail("it ran"))
    with pytest.raises(rb.InputError, match=words):
        rb.converge(MODEL, GRID, START, progress=False, **OPTIONS | given)


def test_an_interrupt_says_what_is_done(tmp_path, monkeypatch):
    done, count = invented(lambda *_: 0.4, 0.0), []

    def some(self, path, *rest):
        count.append(path)
        if len(count) == 4:
            raise rb.Interrupted("interrupted by SIGINT", None, 2)
        return done(self, path, *rest)

    monkeypatch.setattr(Case, "done", some)
    toml = tmp_path / "a.toml"
    toml.write_text(TOML.format(tmp_path / "a.nc"))
    told = CliRunner().invoke(cli.app, ["converge", str(toml)])
    assert told.exit_code == 130 and "3 of 14 runs are done" in " ".join(told.output.split())


def test_a_knob_whose_run_fails_is_left_out_and_told(monkeypatch):
    done = invented(lambda *_: 0.4, 0.0)

    def some(self, path, *rest):
        if self.grid.momentum_cells[0] > 9:
            raise rb.InputError("too large for this machine")
        return done(self, path, *rest)

    monkeypatch.setattr(Case, "done", some)
    ds = rb.converge(MODEL, GRID, START, progress=False, **OPTIONS)
    assert "spacing" not in ds.knob and "spacing" in ds.attrs["not_varied"]
    assert cases.LETTERS == 12
