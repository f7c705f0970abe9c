"""solve(): starts, times, interruptions, NaN, and the same bits whoever computes."""

import os
import signal
import subprocess
import sys
import tomllib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import relboltz as rb
from relboltz import thermodynamics as equilibrium
from relboltz.backends.cpu.backend import CpuBackend
from relboltz.backends.cpu.collider import Collider
from relboltz.io import journal
from relboltz.run import input_file as config
from relboltz.run import solve as simulation

ROOT = Path(__file__).parents[2]
GRID = rb.PhaseSpace(7, 2.0)
STEP = rb.initial.step(height=0.5, edge=1.5)
GLUONS = rb.gluons(0.3)


def solve(model=GLUONS, grid=GRID, start=None, **keys):
    options = {"end": 0.04, "every": 0.01, "samples": 2} | keys
    return rb.solve(model, grid, start if start is not None else {"g": STEP}, **options)


# --- starts -------------------------------------------------------------------------------------


def test_shapes_functions_and_arrays_of_the_same_state_give_the_same_bits():
    def gauss(px, py, pz):
        return 0.4 * np.exp(-(px**2 + py**2 + pz**2))

    array = gauss(*GRID.momenta)
    shape = rb.initial.from_function(gauss, sampling="node")
    results = [
        solve(start=start)
        for start in (
            {"g": shape},
            {"g": array},
            {"g": array.reshape(GRID.momentum_cells)},
            array.reshape(1, *GRID.momentum_cells),
        )
    ]
    for other in results[1:]:
        xr.testing.assert_identical(results[0].drop_attrs(), other.drop_attrs())
    np.testing.assert_allclose(results[0].f.values[0].ravel(), array, rtol=0, atol=2.0**-45)


def test_a_function_is_averaged_over_cells():
    ds = solve(start={"g": lambda px, py, pz: 0.1 * px**2}, end=0.01)
    px, h = GRID.axis(0), GRID.spacing[0]
    np.testing.assert_allclose(ds.f.values[0, 0, :, 0, 0], 0.1 * (px**2 + h**2 / 12), rtol=1e-12)


def test_an_array_needs_its_own_grid_and_size():
    with pytest.raises(
        rb.InputError, match="an initial state given as an array needs a PhaseSpace"
    ):
        solve(grid=7, start={"g": np.full(343, 0.1)})
    with pytest.raises(rb.InputError, match=r"initial.g.array of shape \(10,\) does not fit"):
        solve(start=np.full(10, 0.1))
    with pytest.raises(rb.InputError, match=r"initial.g.array of shape \(10,\) does not fit"):
        solve(start={"g": np.full(10, 0.1)})


@pytest.mark.parametrize(
    ("start", "message"),
    [
        ({}, "the system is empty"),
        ({"g": np.zeros(343)}, "the system is empty: f = 0 at every node"),
        ({"g": np.full(343, np.nan)}, "f = nan of g .* is not a finite number"),
        ({"g": np.full(343, -0.1)}, "f = -0.1 of g .* is negative"),
        ({"q": STEP}, "unknown species initial.q; known: g"),
        ({"g": "step"}, "initial.g: a str is not a state"),
        ({"g": [0.1] * 10}, "initial.g"),
        (None, "initial"),
        (0.5, "initial"),
    ],
)
def test_bad_starts_are_input_errors(start, message):
    with pytest.raises(rb.InputError, match=message):
        rb.solve(GLUONS, GRID, start, end=0.1)


def test_fermions_above_one_are_refused():
    with pytest.raises(rb.InputError, match="f = 1.2 of u .* is above 1: Pauli"):
        solve(rb.quarks(0.3), start={"u": rb.initial.step(1.2, 1.5)})


@pytest.mark.parametrize("grid", [None, "7", 7.5, [7, 7], 0, -3])
def test_bad_grids_are_input_errors(grid):
    with pytest.raises(rb.InputError, match="cells"):
        solve(grid=grid)


def test_two_cells_on_an_axis_are_refused():
    with pytest.raises(rb.InputError, match=r"momentum_cells = \[7, 7, 2\]: use at least 3"):
        solve(grid=rb.PhaseSpace([7, 7, 2], 2.0))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sample": 4}, "unknown option sample: did you mean 'samples'"),
        ({"stepp": 4}, "unknown option stepp: did you mean 'step'"),
        ({"samples": 0}, "collisions.samples = 0: use a whole number, 1 or more"),
        ({"samples": "many"}, "collisions.samples = 'many'"),
        ({"end": 0}, "time.end = 0: use a number of fm above 0"),
        ({"end": "5"}, "time.end = '5'"),
        ({"snapshots": [9.0]}, "9.0 is after time.end"),
        ({"step": 1.0}, "time.step = 1.0: longer than the run"),
        ({"threads": -1}, "run.threads = -1"),
    ],
)
def test_bad_options_are_input_errors(options, message):
    with pytest.raises(rb.InputError, match=message):
        solve(**options)


def test_numbers_of_numpy_are_numbers():
    ds = solve(end=np.float64(0.02), samples=np.int64(2), snapshots=np.array([0.0, 0.02]))
    assert ds.time.values[-1] == 0.02 and ds.sizes["snapshot"] == 2


# --- times --------------------------------------------------------------------------------------


def test_records_are_at_zero_at_every_multiple_and_at_the_end():
    np.testing.assert_array_equal(solve(end=0.035).time, [0, 0.01, 0.02, 0.03, 0.035])
    np.testing.assert_array_equal(solve(end=0.005).time, [0, 0.005])
    many = solve(end=0.3, every=0.1, tolerance=0.1).time.values
    np.testing.assert_allclose(many, [0, 0.1, 0.2, 0.3], rtol=1e-15)
    assert many[-1] == 0.3


def test_snapshots_between_records_add_no_records():
    ds = solve(snapshots=[0.004, 0.02])
    np.testing.assert_array_equal(ds.snapshot, [0.004, 0.02])
    np.testing.assert_array_equal(ds.time, [0, 0.01, 0.02, 0.03, 0.04])


def test_snapshots_hold_f_of_their_moment():
    ds = solve(snapshots=[0.03, 0.0, 0.01, 0.01])
    np.testing.assert_array_equal(ds.snapshot, [0.0, 0.01, 0.03])
    start = rb.initial.evaluate({"g": STEP}, GRID, GLUONS)
    np.testing.assert_allclose(ds.f.values[0].ravel(), start[0], rtol=0, atol=2.0**-45)
    assert (ds.f.values >= 0).all()
    for time, f in zip(ds.snapshot.values, ds.f.values, strict=True):
        record = ds.sel(time=time)
        rows = f.reshape(1, -1)
        number = 16 * GRID.measure * rows.sum()
        assert number == pytest.approx(float(record.number[0]), rel=1e-13)
        energy = equilibrium.total_energy(GRID, GLUONS, rows, record.mass_squared.values)
        assert energy == pytest.approx(float(record.energy_total), rel=1e-13)


def test_no_snapshots_are_no_trouble():
    ds = solve(snapshots=[])
    assert ds.f.shape == (0, 1, 7, 7, 7)


def test_a_fixed_step_is_that_step():
    ds = solve(step=0.005)
    assert ds.attrs["steps"] == 8
    np.testing.assert_allclose(ds.step[1:], 0.005, rtol=1e-9)
    uneven = solve(step=0.003, end=0.01, every=0.01)
    assert uneven.attrs["steps"] == 4  # three and a shorter one
    assert uneven.time.values[-1] == 0.01


def test_an_automatic_step_ends_exactly_at_the_end():
    lengths = []
    ds = solve(end=0.0371, every=1.0, progress=lambda p: lengths.append((p.time, p.step)))
    times, steps = np.array(lengths).T
    assert ds.time.values[-1] == times[-1] == 0.0371
    assert (np.diff(times) > 0).all()
    assert steps.sum() == pytest.approx(0.0371, rel=1e-12)
    assert steps.min() > 1e-4  # no sliver before the stop


def test_a_stricter_tolerance_takes_shorter_steps():
    loose, strict = (solve(end=0.3, every=0.3, tolerance=t).attrs["steps"] for t in (1e-2, 1e-4))
    assert strict > 2 * loose


def test_progress_tells_drifts_and_reaches_the_end():
    seen = []
    solve(progress=seen.append)
    assert seen[-1].time == seen[-1].end == 0.04
    assert all(p.number_drift == 0 and abs(p.energy_drift) < 1e-3 for p in seen)


# --- laws of a run ------------------------------------------------------------------------------


def test_a_run_conserves_and_its_entropy_grows():
    ds = solve(rb.qcd(0.3, flavors=1), start={"g": STEP}, end=0.1, every=0.02)
    assert (ds.charge_drift == 0).all() and (ds.momentum_drift == 0).all()
    np.testing.assert_allclose(ds.energy_total, ds.energy_total[0], rtol=1e-4)
    assert (np.diff(ds.entropy) > 0).all()
    np.testing.assert_allclose(ds.number[:, 1], ds.number[:, 2], rtol=1e-13)  # u = ubar


# --- interruptions and NaN ----------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_carries_what_it_has(tmp_path, number):
    before = signal.getsignal(number)

    def stop(progress):
        if progress.time > 0.022:
            os.kill(os.getpid(), number)

    with pytest.raises(rb.Interrupted) as caught:
        solve(progress=stop, file=tmp_path / "run.nc", end=10.0, step=0.005)
    assert caught.value.signal == number
    ds = caught.value.dataset
    np.testing.assert_allclose(ds.time, [0, 0.01, 0.02, 0.025], rtol=1e-12)
    assert float(ds.snapshot[-1]) == float(ds.time[-1])  # the last state is kept whole
    assert ds.attrs["status"] == {2: "interrupted by Ctrl-C", 15: "interrupted by SIGTERM"}[number]
    assert np.isfinite(ds.rate[:-1]).all()
    xr.testing.assert_identical(rb.load(tmp_path / "run.nc").drop_attrs(), ds.drop_attrs())
    assert signal.getsignal(number) == before


def nan_rates(monkeypatch, calls):
    """The rates of all processes are NaN after some calls."""
    original, count = Collider.net, []

    def net(self, *args):
        change, flows = original(self, *args)
        count.append(1)
        if len(count) <= calls:
            return change, flows
        return change, replace(flows, forward=np.full_like(flows.forward, np.nan))

    monkeypatch.setattr(Collider, "net", net)


def nan_masses(monkeypatch, calls):
    """The masses are NaN after some steps."""
    original, count = CpuBackend.masses, []

    def masses(self, start):
        count.append(1)
        squares = original(self, start)
        return squares if len(count) <= calls else np.full_like(squares, np.nan)

    monkeypatch.setattr(CpuBackend, "masses", masses)


FAULTS = [(nan_rates, "process g g -> g g: its rate is nan"), (nan_masses, "masses are not finite")]


@pytest.mark.parametrize(("fault", "message"), FAULTS)
def test_nan_stops_the_run_says_where_and_keeps_all_records(tmp_path, monkeypatch, fault, message):
    good = solve(end=1.0, step=0.005, backend="cpu")
    fault(monkeypatch, 15)
    path = tmp_path / "run.nc"
    with pytest.raises(rb.RunError, match=message) as caught:
        solve(end=1.0, step=0.005, file=path, backend="cpu")
    ds = caught.value.dataset
    n = ds.sizes["time"] - 1  # the last record may be one of the last good state
    assert 2 <= n < 12
    np.testing.assert_array_equal(ds.time[:n], good.time[:n])
    np.testing.assert_array_equal(ds.spectrum[:n], good.spectrum[:n])
    assert message in rb.load(path).attrs["status"]
    xr.testing.assert_identical(rb.load(path).drop_attrs(), ds.drop_attrs())


@pytest.mark.parametrize(("fault", "message"), FAULTS)
def test_nan_says_when(monkeypatch, fault, message):
    fault(monkeypatch, 15)
    with pytest.raises(rb.RunError, match=message + r".*t = [\d.]+ fm"):
        solve(end=1.0, step=0.005, backend="cpu")


@pytest.mark.parametrize(("fault", "message"), FAULTS)
def test_the_last_good_state_is_kept(monkeypatch, fault, message):
    reached = []
    fault(monkeypatch, 15)
    with pytest.raises(rb.RunError, match=message) as caught:
        solve(end=1.0, step=0.005, progress=lambda p: reached.append(p.time), backend="cpu")
    ds = caught.value.dataset
    assert ds.snapshot.values[-1] == reached[-1]
    assert np.isfinite(ds.f.values[-1]).all()


def test_an_error_in_the_first_step_keeps_the_start(monkeypatch):
    nan_rates(monkeypatch, 0)
    with pytest.raises(rb.RunError) as caught:
        solve(backend="cpu")
    np.testing.assert_array_equal(caught.value.dataset.time, [0])
    assert caught.value.dataset.f.sizes["snapshot"] == 1


def test_an_error_in_the_progress_function_keeps_the_result():
    def broken(progress):
        raise ZeroDivisionError("oops")

    with pytest.raises(rb.RunError, match="oops") as caught:
        solve(progress=broken)
    assert caught.value.dataset.sizes["time"] >= 1


# --- the same bits ------------------------------------------------------------------------------

PROGRAM = """
import sys
import relboltz as rb
grid, start = rb.PhaseSpace(11, 2.0), {"g": rb.initial.step(0.5, 1.5)}
rb.solve(rb.gluons(0.3), grid, start, end=0.2, every=0.05, samples=8, seed=7,
         threads=int(sys.argv[1]), file=sys.argv[2], backend="cpu")
"""


def test_threads_and_processes_give_the_same_bits(tmp_path):
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    files = [tmp_path / f"{n}.nc" for n in (1, 2)]
    processes = [
        subprocess.Popen([sys.executable, "-c", PROGRAM, path.stem, path], env=environment)
        for path in files
    ]
    assert [p.wait(timeout=60) for p in processes] == [0, 0]
    first, second = (rb.load(path) for path in files)
    options = dict(grid=rb.PhaseSpace(11, 2.0), end=0.2, every=0.05, samples=8, backend="cpu")
    own = solve(seed=7, threads=2, **options)
    for other in (second, own):
        assert set(first.variables) == set(other.variables)
        for name in first.data_vars:
            assert first[name].values.tobytes() == other[name].values.tobytes(), name
    another = solve(seed=8, **options)
    assert another.f.values.tobytes() != own.f.values.tobytes()


def test_writing_a_file_changes_no_bits(tmp_path, monkeypatch):
    monkeypatch.setattr(journal.Journal, "due", lambda self: self.path is not None)
    xr.testing.assert_identical(solve().drop_attrs(), solve(file=tmp_path / "run.nc").drop_attrs())


def test_a_table_is_the_shape_it_describes():
    """Tables as in a configuration serve in Python too, with the same messages."""
    table = {"shape": "step", "height": 0.5, "edge": 1.5, "sampling": "node"}
    one, two = (solve(start={"g": g}) for g in (table, rb.initial.step(0.5, 1.5, sampling="node")))
    xr.testing.assert_identical(one.drop_attrs(), two.drop_attrs())
    with pytest.raises(rb.InputError, match="unknown key initial.g.edg: did you mean edge"):
        solve(start={"g": {"shape": "step", "height": 0.5, "edg": 1.5}})


@pytest.mark.parametrize("masses", ["thermal", "massless"])
@pytest.mark.parametrize("name", ["qcd", "gluons", "quarks"])
def test_every_model_runs_with_ekt_screening(name, masses):
    """Conserving as ever."""
    make = {"qcd": rb.qcd, "gluons": rb.gluons, "quarks": rb.quarks}[name]
    model = make(0.1, screening="ekt", masses=masses)
    species = "u" if name == "quarks" else "g"
    ds = solve(model, start={species: rb.initial.step(0.5, 1.5)}, end=0.05)
    assert not ds.charge_drift.values.any()
    assert float(ds.rate[0].sum()) > 0


@pytest.mark.parametrize("screening", ["thermal", "ekt"])
@pytest.mark.parametrize("start", [("u",), ("u", "ubar"), ("u", "dbar"), ("g",)], ids=str)
def test_a_mixture_may_start_with_some_species_only(start, screening):
    """Flavours that are absent together with gluons are massless at first; energy is conserved."""
    states = {name: rb.initial.step(0.5, 1.5) for name in start}
    ds = solve(rb.qcd(0.3, screening=screening), start=states, end=0.05, samples=4)
    absent = ds.mass_squared.sel(species="s")
    assert (float(absent[0]) == 0) == ("g" not in start)
    assert (float(absent[-1]) > 0) == (start != ("u",) and start != ("u", "dbar"))
    assert not ds.charge_drift.values.any() and not ds.negative_weight.values.any()
    assert float(ds.energy_total[-1] / ds.energy_total[0]) == pytest.approx(1, abs=1e-5)
    assert np.isfinite(ds.rate).all() and 0 <= float(ds.f.min()) <= float(ds.f.max())


def test_a_solve_keeps_its_settings_in_the_result():
    """Options, grid and model can be read back from the configuration of the dataset."""
    kept = tomllib.loads(solve(samples=3, tolerance=0.01).attrs["configuration"])
    assert kept["collisions"]["samples"] == 3 and kept["time"]["tolerance"] == 0.01
    assert kept["model"]["processes"][0]["reaction"] == "g g -> g g"
    assert kept["grid"]["momentum_cells"] == list(GRID.momentum_cells)


def test_a_result_continues_on_its_own_nodes_only(tmp_path):
    """A start from a file brings its grid; other numbers of cells are refused, not ignored."""
    solve(file=tmp_path / "first.nc")
    start = {"g": rb.initial.from_file(tmp_path / "first.nc")}
    ds = rb.solve(GLUONS, GRID.momentum_cells, start, end=0.01, samples=2)
    assert ds.sizes["px"] == GRID.momentum_cells[0]
    with pytest.raises(rb.InputError, match="lives on"):
        rb.solve(GLUONS, 11, start, end=0.01, samples=2)


def test_the_distance_from_equilibrium_falls():
    """0 in equilibrium, between 0 and 1 and falling on the way."""
    ds = solve(end=2.0, every=0.5, samples=8)
    distance = ds.equilibrium_distance.values
    assert 0.1 < distance[0] < 1 and (np.diff(distance) < 0).all()
    still = rb.initial.thermal(0.4, 0.2, sampling="node")
    model = rb.gluons(0.3, masses={"g": 0.7})
    assert solve(model, start={"g": still}, end=0.1).equilibrium_distance.values.max() < 1e-9


STRENGTH = 100.0


def strong(s):
    """A matrix element that refers to something outside of it."""
    return STRENGTH + 0.0 * s


def test_a_matrix_element_is_never_stale(monkeypatch):
    """Names that a function refers to may change between two runs of one session."""
    model = rb.Model([rb.Species("a")], [rb.Process("a a -> a a", strong)], masses={"a": 0.5})
    rates = []
    for value in (100.0, 400.0):
        monkeypatch.setitem(globals(), "STRENGTH", value)
        ds = solve(model, start={"a": STEP}, end=0.001, step=0.001, every=0.001)
        rates.append(float(ds.rate[0, 0]))
    assert rates[1] == pytest.approx(4 * rates[0], rel=1e-12)


def test_impatience_loses_nothing(tmp_path):
    """More signals while the result is being saved change neither the file nor the code."""

    def stop(progress):
        if progress.time > 0.012:
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGTERM):
                os.kill(os.getpid(), number)

    with pytest.raises(rb.Interrupted) as caught:
        solve(progress=stop, file=tmp_path / "run.nc", end=10.0, step=0.005)
    assert caught.value.signal == signal.SIGTERM
    assert rb.load(tmp_path / "run.nc").attrs["status"] == "interrupted by SIGTERM"


def test_without_processes_nothing_happens():
    """A gas of particles that do not meet keeps its f, and has no final state to predict."""
    model = rb.Model([rb.Species("a", 2, -1)], [], masses={"a": 0.3})
    ds = solve(model, start={"a": rb.initial.step(0.5, 1.5)}, end=1.0, every=0.5)
    assert np.array_equal(ds.f[0], ds.f[-1])
    assert ds.sizes["process"] == 0 and list(ds.charge.values) == ["number"]


def test_the_configuration_in_a_result_repeats_it(tmp_path, monkeypatch):
    """Automatic boxes and the grid of a file are written out as what they came to."""
    monkeypatch.chdir(tmp_path)
    solve(file=tmp_path / "first.nc")
    table = {"shape": "file", "path": str(tmp_path / "first.nc")}
    data = {
        "model": {"name": "gluons", "alpha_s": 0.3},
        "initial": {"g": table},
        "collisions": {"samples": 2},
        "time": {"end": 0.01},
        "output": {"file": "second.nc"},
    }
    second = simulation.run_config(config.Config.from_dict(data))
    kept = tomllib.loads(second.attrs["configuration"])
    assert kept["grid"]["momentum_cells"] == list(GRID.momentum_cells)
    kept["output"]["file"] = "third.nc"
    third = simulation.run_config(config.Config.from_dict(kept))
    xr.testing.assert_identical(second.drop_attrs(), third.drop_attrs())


def test_an_exception_of_a_matrix_element_names_its_process():
    """Whatever thread it came up in."""

    def picky(s):
        if s > 4.0:
            raise ValueError("too energetic for me")
        return 100.0

    model = rb.Model([rb.Species("a")], [rb.Process("a a -> a a", picky)], masses={"a": 0.5})
    with pytest.raises(rb.InputError, match="process a a -> a a: .* ValueError: too energetic"):
        solve(model, start={"a": STEP})
