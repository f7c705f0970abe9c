"""Predicted steps, bytes and memory of a run, against runs and the arrays that they keep."""

import json
import math
import warnings
from dataclasses import fields

import numpy as np
import pytest
from typer.testing import CliRunner

import relboltz as rb
from relboltz.backends.cpu.collider import EVENT_BYTES
from relboltz.checks.matter import CELL_BYTES, HOST_COPIES, NODE_BYTES, THREAD_BYTES, host_memory
from relboltz.cli import app as cli
from relboltz.run import input_file
from relboltz.run.setup import Case
from relboltz.studies import cost_estimate as estimating
from relboltz.studies.cost_estimate import CostEstimate, estimate, steps_left

SMALL = """
[model]
name = "gluons"
alpha_s = 0.3
[grid]
momentum_cells = 5
momentum_max = 2.0
[initial.g]
shape = "step"
height = 0.5
edge = 1.5
[collisions]
samples = 4
[time]
end = 0.1
[run]
backend = "cpu"
threads = 1
[output]
every = 0.025
snapshots = [0.0, 0.05, 0.1]
"""
SPOT = """
import numpy as np
def spot(x, y, z, px, py, pz):
    return np.exp(-x**2) * np.exp(-np.sqrt(px**2 + py**2 + pz**2) / 0.5)
"""


@pytest.fixture(autouse=True)
def quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@pytest.fixture
def small(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "small.toml").write_text(SMALL)
    (tmp_path / "own.py").write_text(SPOT)
    return tmp_path / "small.toml"


def case_of(file, *changes):
    return Case.of_config(input_file.load(file, changes))


def in_space(file, *changes):
    given = ("grid.space_cells=[6, 1, 1]", "initial.g={shape='own.py:spot'}", "output.snapshots=[]")
    return case_of(file, *given, *changes)


# --- steps --------------------------------------------------------------------------------------


@pytest.mark.parametrize("step", ["auto", "0.02", "0.03"])
def test_steps_of_a_small_run_are_those_that_it_takes(small, step):
    """The coarse trial of so few nodes is the run itself; given steps are counted."""
    case = case_of(small, f"time.step={step}")
    found = estimate(case, 5.0)
    assert found.finished and found.steps == case.done(None).attrs["steps"]
    assert (found.records, found.snapshots) == (5, 3)


def test_steps_that_stay_as_they_are_go_on_so():
    marks = [(0.1 * i, i) for i in range(11)]
    assert steps_left(marks, 11.0, math.inf) == pytest.approx(100, rel=1e-3)


def test_steps_that_grow_with_time_go_on_growing():
    """Lengths that are a tenth of the time: as many steps for every factor e."""
    times = [0.01 * 1.1**i for i in range(50)]
    marks = [(0.0, 0), *((t, i + 1) for i, t in enumerate(times))]
    found = steps_left(marks, 100 * times[-1], math.inf)
    assert found == pytest.approx(math.log(100) / math.log(1.1), rel=0.1)


def test_no_step_is_longer_than_records_and_cells_allow():
    marks = [(0.0, 0), *((0.01 * 1.5**i, i + 1) for i in range(10))]
    now = marks[-1][0]
    assert steps_left(marks, now + 10.0, 0.1) == pytest.approx(100, rel=1e-3)


def test_a_coarse_trial_keeps_what_decides_on_steps(small, monkeypatch):
    """Box, parity of nodes, width of space cells, and the middle of the box."""
    monkeypatch.setattr(estimating, "COARSE_EVENTS", 60_000)
    case = in_space(small, "grid.momentum_cells=10", "grid.space_cells=[12, 5, 1]")
    fine, coarse = case.grid, estimating._coarse(case).grid
    assert coarse.momentum_cells == (8, 8, 8) and coarse.momentum_max == fine.momentum_max
    np.testing.assert_allclose(coarse.space_spacing, fine.space_spacing)
    events = coarse.sites * coarse.size * 4
    assert 0.5 * estimating.COARSE_EVENTS < events <= estimating.COARSE_EVENTS
    for axis in (0, 1):
        near = np.abs(fine.space_axis(axis)[:, None] - coarse.space_axis(axis)).min(axis=0)
        assert near.max() < 1e-12  # cells are where they were
    box = estimating._coarse(case_of(small, "grid.momentum_cells=21")).grid
    assert box.momentum_cells == (11, 11, 11)


# --- time ---------------------------------------------------------------------------------------


def test_seconds_are_those_of_beginning_steps_and_records():
    known = dict.fromkeys((f.name for f in fields(CostEstimate)), 0.0)
    one = CostEstimate(**known | {
        "steps": 100.0, "seconds_to_begin": 4.0, "seconds_per_step": 0.5, "records": 20,
        "seconds_per_record": 0.1, "busy": 1.5,
    })  # fmt: skip
    assert one.seconds == pytest.approx(4 + 50 + 2)
    assert one.core_seconds == pytest.approx(4 + 1.5 * 52)


def test_a_part_of_the_space_cells_stands_for_all(small, monkeypatch):
    monkeypatch.setattr(estimating, "TRIAL_CELLS", 125 * 64)
    case = in_space(small, "grid.space_cells=[200, 1, 1]")
    trial, share = estimating._smaller(case)
    assert trial.grid.sites == 64 and share == pytest.approx(200 / 64)
    assert trial.grid.momentum_cells == case.grid.momentum_cells


# --- bytes --------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [case_of, in_space])
def test_a_record_has_the_bytes_that_were_counted(small, make):
    """The count includes all variables that grow with time, and f."""
    more = ("output.marginals=['x px']",) if make is in_space else ()
    case = make(small, "time.step=0.05", *more)
    ds, (of_record, of_f) = case.done(None), estimating._bytes(case)
    grows = [ds[name].nbytes for name in ds.data_vars if "time" in ds[name].dims]
    assert sum(grows) == ds.sizes["time"] * of_record
    if make is case_of:
        assert ds.f.nbytes == 3 * of_f


def test_the_file_is_about_as_large_as_predicted(small, tmp_path):
    case = case_of(small, "grid.momentum_cells=9", "output.every=0.01", "time.step=0.05")
    found = estimate(case, 0.1)
    case.done(tmp_path / "run.nc")
    assert (tmp_path / "run.nc").stat().st_size == pytest.approx(found.file_size, rel=0.35)
    kept = list(tmp_path.glob("run.checkpoint-*"))
    assert len(kept) == 2
    largest = max(path.stat().st_size for path in kept)
    assert largest == pytest.approx(found.checkpoint_size / 2, rel=0.2)


# --- memory -------------------------------------------------------------------------------------


def test_memory_grows_by_what_a_node_and_a_cell_take():
    """Copies of f on all sites, work of a site for every thread, stored events."""
    model = rb.qcd(0.3)
    species, processes = len(model.species), len(model.processes)
    one, two = rb.PhaseSpace(10, 2.0, [8, 1, 1]), rb.PhaseSpace(10, 2.0, [24, 1, 1])
    of_site = host_memory(two, model, 2, 2) - host_memory(one, model, 2, 2)
    assert of_site == 16 * HOST_COPIES * 8 * 1000 * species
    more = host_memory(one, model, 3, 2) - host_memory(one, model, 2, 2)
    assert more == 2 * 1000 * processes * EVENT_BYTES  # two threads, each at a site of its own
    thread = host_memory(one, model, 2, 2) - host_memory(one, model, 2, 1)
    events = 2 * 1000 * processes * EVENT_BYTES
    assert thread == events + CELL_BYTES * 1000 * species + THREAD_BYTES
    alone = host_memory(rb.PhaseSpace(10, 2.0), model)
    assert alone == (HOST_COPIES * 8 + CELL_BYTES) * 1000 * species + NODE_BYTES * 1000 + 2**20


def test_the_state_itself_is_one_of_the_copies_that_are_counted(small):
    """The quanta that a run holds take the memory of f."""
    case = in_space(small)
    run = estimating._begun(case)
    try:
        held = run.backend.get()
        assert held.nbytes == 8 * case.grid.sites * case.grid.size * len(case.model.species)
    finally:
        run.backend.close()
    found = estimate(in_space(small, "time.step=0.05"), 0.1)
    assert found.memory - estimating.PROGRAM == host_memory(case.grid, case.model, 4, 1)
    one = held.nbytes * (1 + 1 / case.grid.sites) + estimating.CHECKPOINT
    assert found.checkpoint_size == 2 * one


# --- the command --------------------------------------------------------------------------------


def test_check_tells_the_figures_and_writes_nothing_else(small):
    arguments = [
        "check",
        str(small),
        "--seconds",
        "0.1",
        "--set",
        "time.step=0.05",
        "--json",
        "a.json",
    ]
    told = CliRunner().invoke(cli.app, arguments, env={"COLUMNS": "200"})
    assert told.exit_code == 0, told.output
    found = json.loads((small.parent / "a.json").read_text())
    assert found["steps"] == 4 and found["finished"] and found["records"] == 5
    assert 0 < found["seconds_per_step"] < found["seconds"]
    assert found["seconds_to_begin"] > estimating.START
    for word in (
        "all keys are legal", "5 x 5 x 5 nodes to (2, 2, 2) GeV", "homogeneous", "steps, about",
        "time of the run, about", "5 records, 3 snapshots of f", "predicted final temperature",
    ):  # fmt: skip
        assert word in told.output, word
    assert not list(small.parent.glob("run*"))


def test_workers_are_not_estimated(small):
    with pytest.raises(rb.InputError, match=r"run.workers = 2: one process can be estimated"):
        estimate(case_of(small, "run.workers=2"), 0.1)
