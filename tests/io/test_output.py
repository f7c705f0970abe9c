"""Output: the names of the contract, files that are never half-written, a full disk."""

import builtins
import errno
import os
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

import h5py
import numpy as np
import pytest
import xarray as xr

import relboltz as rb
from relboltz.io import journal, output
from relboltz.run import input_file as config
from relboltz.run import solve as simulation
from relboltz.util.jit import cache_folder

ROOT = Path(__file__).parents[2]

S = "species"
CONTRACT = {  # the names that users rely on
    "number": (("time", S), "fm^-3"),
    "energy_kinetic": (("time",), "GeV fm^-3"),
    "energy_total": (("time",), "GeV fm^-3"),
    "energy_momentum": (("time", "mu", "nu"), "GeV fm^-3"),
    "momentum_flux": (("time", "axis", "axis2"), "GeV fm^-3"),
    "source": (("time",), "GeV fm^-4"),
    "momentum": (("time", "axis"), "GeV fm^-3"),
    "entropy": (("time",), "fm^-3"),
    "mass_squared": (("time", S), "GeV^2"),
    "screening_mass_squared": (("time",), "GeV^2"),
    "temperature": (("time",), "GeV"),
    "chemical_potential": (("time", S), "GeV"),
    "spectrum": (("time", S, "p"), "1"),
    "pressure_ratio": (("time",), "1"),
    "rate": (("time", "process"), "fm^-4"),
    "null_weight": (("time",), "1"),
    "negative_weight": (("time", "process"), "1"),
    "limited_weight": (("time",), "1"),
    "step": (("time",), "fm"),
    "f": (("snapshot", S, "px", "py", "pz"), "1"),
    "equilibrium_temperature": ((), "GeV"),
    "equilibrium_chemical_potential": ((S,), "GeV"),
    "equilibrium_mass_squared": ((S,), "GeV^2"),
    "equilibrium_velocity": (("axis",), "1"),
    "condensate_fraction": ((), "1"),
    "box_loss": ((), "1"),
    "box_loss_relaxation": ((), "1"),
}
DATA = {
    "model": {"name": "gluons", "alpha_s": 0.3},
    "grid": {"momentum_cells": 7, "momentum_max": 2.0},
    "initial": {"g": {"shape": "step", "height": 0.5, "edge": 1.5}},
    "collisions": {"samples": 2, "seed": 5},
    "time": {"end": 0.04},
    "output": {"every": 0.01, "snapshots": [0.0, 0.02, 0.04]},
}
GRID = rb.PhaseSpace(7, 2.0)
START = {"g": rb.initial.step(height=0.5, edge=1.5)}


def solve(**keys):
    options = {"end": 0.04, "every": 0.01, "samples": 2} | keys
    return rb.solve(rb.gluons(0.3), GRID, START, **options)


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    """The file of a short run of a configuration."""
    path = tmp_path_factory.mktemp("output") / "run.nc"
    simulation.run_config(config.Config.from_dict(DATA), path)
    return path


@pytest.fixture(scope="module")
def loaded(result):
    """Return the result opened with rb.load."""
    return rb.load(result)


@pytest.fixture
def eager(monkeypatch):
    """Writes the file at every record."""
    monkeypatch.setattr(journal.Journal, "due", lambda self: self.path is not None)


# --- content ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CONTRACT)
def test_each_promised_variable_has_its_dimensions_and_units(loaded, name):
    dims, unit = CONTRACT[name]
    assert loaded[name].dims == dims
    assert loaded[name].attrs["units"] == unit
    assert loaded[name].attrs["long_name"]


def test_units_and_long_names_are_on_everything_numeric(loaded):
    bare = [
        name
        for name, variable in loaded.variables.items()
        if variable.dtype.kind in "fi" and not {"units", "long_name"} <= set(variable.attrs)
    ]
    assert bare == []


def test_the_file_and_the_returned_dataset_are_the_same(tmp_path):
    path = tmp_path / "run.nc"
    returned = solve(file=path)
    xr.testing.assert_identical(rb.load(path).drop_attrs(), returned.drop_attrs())


def test_configuration_seed_and_versions_are_inside(loaded):
    attrs = loaded.attrs
    inside = tomllib.loads(attrs["configuration"])
    assert inside["model"] == DATA["model"]
    assert inside["collisions"]["seed"] == attrs["seed"] == 5
    time = {"end": 0.04, "step": "auto", "tolerance": 1e-3, "start": 0.0, "regrid_times": "auto"}
    assert inside["time"] == time
    assert attrs["relboltz_version"] == rb.__version__
    assert attrs["numpy_version"] == np.__version__
    assert attrs["python_version"] and attrs["numba_version"]
    assert attrs["status"] == "done"


def test_the_configuration_inside_runs_again_to_the_same_bits(loaded, tmp_path):
    again = config.Config.from_dict(tomllib.loads(loaded.attrs["configuration"]))
    second = simulation.run_config(again, tmp_path / "again.nc")
    xr.testing.assert_identical(loaded.drop_attrs(), second.drop_attrs())


def test_warnings_are_kept_inside(loaded):
    warnings = loaded.attrs["warnings"]
    assert "the grid is coarse" in warnings and "the box is small" in warnings


def test_records_tell_finite_numbers(loaded):
    ds = loaded
    np.testing.assert_array_equal(ds.time, [0, 0.01, 0.02, 0.03, 0.04])
    for name in ("number", "energy_total", "entropy", "mass_squared", "temperature", "spectrum"):
        assert np.isfinite(ds[name]).all(), name
    assert np.isfinite(ds.rate).all() and (ds.rate > 0).all()
    assert np.isfinite(ds.null_weight).all()
    assert (ds.step[1:] > 0).all() and (ds.step[1:] <= 0.01 * (1 + 1e-9)).all()


# --- continuing ---------------------------------------------------------------------------------


def test_a_run_continues_from_the_last_snapshot_of_a_file(loaded, result, tmp_path):
    last = loaded.f.values[-1]
    table = {"shape": "file", "path": str(result)}
    data = DATA | {"initial": {"g": table}, "grid": {"momentum_cells": 7}}  # box of the file
    ds = simulation.run_config(config.Config.from_dict(data), tmp_path / "next.nc")
    np.testing.assert_array_equal(ds.f.values[0], last)
    assert list(ds.attrs["momentum_max"]) == [2.0] * 3


def test_a_file_on_another_grid_is_refused(result):
    with pytest.raises(rb.InputError, match="its grid is 7 x 7 x 7 cells .* this one is 9 x 9 x 9"):
        rb.solve(rb.gluons(0.3), rb.PhaseSpace(9, 2.0), {"g": rb.initial.from_file(result)}, end=1)


# --- load ---------------------------------------------------------------------------------------


def test_load_says_what_is_wrong_with_a_file(tmp_path):
    with pytest.raises(rb.InputError, match="none.nc: there is no such file"):
        rb.load(tmp_path / "none.nc")
    with pytest.raises(rb.InputError, match="is a folder; name a file in it"):
        rb.load(tmp_path)
    text = tmp_path / "text.nc"
    text.write_text("not a NetCDF")
    with pytest.raises(rb.InputError, match="text.nc: is not a NetCDF file written by relboltz"):
        rb.load(text)
    foreign = tmp_path / "foreign.nc"
    xr.Dataset({"a": ("x", [1.0])}).to_netcdf(foreign, engine="h5netcdf")
    with pytest.raises(rb.InputError, match="foreign.nc: was not written by relboltz"):
        rb.load(foreign)


def test_load_refuses_half_a_file(result, tmp_path):
    half = tmp_path / "half.nc"
    half.write_bytes(result.read_bytes()[: result.stat().st_size // 2])
    with pytest.raises(rb.InputError, match="half.nc: is damaged .truncated file"):
        rb.load(half)


def test_load_does_not_lock_the_file(result):
    ds = rb.load(result)
    with h5py.File(result, "r+"):  # would raise if it were still open
        pass
    assert ds.f.size


# --- never half-written -------------------------------------------------------------------------


def test_the_file_is_complete_after_every_record(tmp_path, eager):
    path, seen = tmp_path / "run.nc", []

    def look(progress):
        ds = rb.load(path)
        assert ds.attrs["status"] == "running"
        seen.append(ds.sizes["time"])

    solve(file=path, progress=look, step=0.01)
    assert seen[0] >= 1 and seen[-1] == 5 and seen == sorted(seen)
    assert rb.load(path).attrs["status"] == "done"
    left = sorted(p.name for p in tmp_path.iterdir())
    assert left == ["run.checkpoint-000001", "run.checkpoint-000002", "run.nc"]


def test_a_reader_never_sees_half_a_file(tmp_path, monkeypatch):
    path = tmp_path / "run.nc"
    solve(file=path)
    before = path.read_bytes()
    seen = []

    def look(handle):
        if "run.nc.part-" in os.readlink(f"/proc/self/fd/{handle}"):
            seen.append(path.read_bytes() == before)

    monkeypatch.setattr(os, "fsync", look)  # the new file is complete, but not yet in place
    solve(file=path, seed=2, force=True)
    assert seen == [True]
    assert path.read_bytes() != before


# --- a full disk --------------------------------------------------------------------------------


def full_disk(monkeypatch, folder, error=None):
    """Writing into the folder fails half-way; elsewhere it works."""
    tries = []
    armed = []

    def opened(target, mode):
        if Path(target).parent == folder:
            if armed:  # the first call is the check before the run
                Path(target).write_bytes(b"half")
                tries.append(target)
                raise error or OSError(errno.ENOSPC, "No space left on device")
            armed.append(target)
        return builtins.open(target, mode)

    monkeypatch.setattr(output, "open", opened, raising=False)
    return tries


def what_is_left(folder):
    """Kinds of files beside a result."""
    return sorted(p.name.split(".")[1].partition("-")[0] for p in folder.iterdir())


def test_a_full_disk_does_not_end_the_run_and_the_result_is_rescued(
    tmp_path, monkeypatch, eager, capsys
):
    folder, elsewhere = tmp_path / "full", tmp_path / "elsewhere"
    folder.mkdir()
    elsewhere.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(elsewhere))
    tries = full_disk(monkeypatch, folder)
    with pytest.raises(rb.RunError, match="run.nc could not be written: .*No space left") as caught:
        solve(file=folder / "run.nc")
    assert len(tries) >= 6  # at each of 5 records, and at the end
    (rescued,) = elsewhere.iterdir()
    assert f"saved as {rescued} instead" in str(caught.value)
    ds = rb.load(rescued)
    assert ds.time.values[-1] == 0.04 and ds.attrs["status"] == "done"
    np.testing.assert_array_equal(ds.number, caught.value.dataset.number)
    assert what_is_left(folder) == ["checkpoint", "checkpoint", "parts"]  # to go on from


def test_a_disk_that_recovers_leaves_no_trouble(tmp_path, monkeypatch, eager):
    original, tries = output.write, []

    def write(ds, path, rows):
        tries.append(path)
        if len(tries) < 3:
            raise OSError(errno.ENOSPC, "No space left on device")
        original(ds, path, rows)

    monkeypatch.setattr(output, "write", write)
    assert solve(file=tmp_path / "run.nc").attrs["status"] == "done"
    assert rb.load(tmp_path / "run.nc").time.values[-1] == 0.04


def test_a_full_disk_reported_by_hdf5_does_not_end_the_run(tmp_path, monkeypatch, eager):
    """HDF5 wraps some failures of the disk into RuntimeError."""
    folder, elsewhere = tmp_path / "full", tmp_path / "elsewhere"
    folder.mkdir()
    elsewhere.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(elsewhere))
    full_disk(monkeypatch, folder, RuntimeError("Unable to flush file (errno = 28)"))
    with pytest.raises(rb.RunError) as caught:
        solve(file=folder / "run.nc")
    assert caught.value.dataset.time.values[-1] == 0.04
    assert len(list(elsewhere.iterdir())) == 1
    assert what_is_left(folder) == ["checkpoint", "checkpoint", "parts"]


LIMITED = """
import resource, sys, tempfile
import relboltz as rb
tempfile.tempdir = "."
resource.setrlimit(resource.RLIMIT_FSIZE, (20000, 20000))  # every longer write fails
grid, start = rb.PhaseSpace(9, 2.0), {"g": rb.initial.random(0.1, 0.2)}
try:
    rb.solve(rb.gluons(0.3), grid, start, end=0.1, every=0.002, samples=2, file="run.nc")
except rb.RunError as error:
    print(error)
    sys.exit(0 if error.dataset.attrs["status"] == "done" else 3)
sys.exit(4)
"""


def test_a_real_failure_of_the_disk_does_not_crash_the_process(tmp_path):
    environment = os.environ | {"PYTHONPATH": str(ROOT), "HOME": str(tmp_path)}
    environment["XDG_CACHE_HOME"] = str(cache_folder().parents[1])
    done = subprocess.run(
        [sys.executable, "-c", LIMITED],
        cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-500:]
    assert "run.nc could not be written" in done.stdout
    assert "Traceback" not in done.stderr
    assert list(tmp_path.glob("*.part-*")) == []
    (parts,) = tmp_path.glob("run.parts-*")  # nothing else is left of the run
    assert f"recorded data are in {parts.name}" in done.stdout


# --- before the run -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ("missing/run.nc", "the folder .*missing' does not exist"),
        ("", "is a folder"),
        ("/proc/run.nc", "cannot be written"),
    ],
)
def test_output_that_cannot_be_written_is_said_before_the_run(
    tmp_path, monkeypatch, place, message
):
    def too_late(*args, **keys):
        raise AssertionError("work began")

    monkeypatch.setattr(simulation, "Run", too_late)
    with pytest.raises(rb.InputError, match=message):
        solve(file=tmp_path / place)


def test_a_write_protected_file_is_said_before_the_run(tmp_path, monkeypatch):
    path = tmp_path / "run.nc"
    path.touch()
    monkeypatch.setattr(output.os, "access", lambda *_: False)  # root may write anything
    with pytest.raises(rb.InputError, match="is write-protected"):
        solve(file=path, force=True)


def test_trying_to_write_leaves_nothing_behind(tmp_path):
    output.check_writable(tmp_path / "run.nc")
    assert list(tmp_path.iterdir()) == []
