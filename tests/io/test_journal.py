"""The journal: entries that only grow, a disk that fails, a process that is killed."""

import errno
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from continued import left

import relboltz as rb
from relboltz.io import journal, output, packed_arrays, series
from relboltz.io.journal import Journal
from relboltz.io.quantities import QUANTITIES
from relboltz.thermodynamics import states
from relboltz.transport.moments import Shells

ROOT = Path(__file__).parents[2]
MODEL = rb.gluons(0.3)
END = {"status": "done"}


def frame(cells=7, space=1):
    grid = rb.PhaseSpace(cells, 2.0, space_cells=space, space_max=1.0)
    quantities = dict(QUANTITIES)
    if grid.sites > 1:
        quantities = {"number": (("species", "x", "y", "z"), "fm^-3", "particle density")}
    predicted = states.nowhere(grid.without_space, MODEL)
    return output.ResultFrame(grid, MODEL, Shells.of(grid).p, predicted, (0.1, 0.2), quantities)


def record(frame, number):
    """Different numbers in every record."""
    sizes = {name: len(axis[1]) for name, axis in frame._coordinates().items()}
    random = np.random.default_rng(number)
    values = {
        name: random.random([sizes[dim] for dim in dims])
        for name, (dims, *_) in frame.quantities.items()
    }
    return values | {"time": 0.1 * number}


def occupation(frame, seed=1):
    grid = frame.grid
    return np.random.default_rng(seed).random((grid.sites, 1, grid.size))


def filled(path, frame, records=5, snapshots=2):
    log = Journal(path, frame)
    for number in range(records):
        log.record(record(frame, number))
    for number in range(snapshots):
        log.snapshot(0.1 * number, occupation(frame, number))
    return log


def finished(log):
    """The result, once all is merged."""
    ds = log.finish(END)
    log.close()
    return ds


def parts(folder):
    (found,) = folder.glob("run.parts-*")
    return found


def merge(log, attributes=None, *tail):
    """Now, due or not."""
    log._next = 0
    log.update(attributes or {"status": "running"}, *tail)


def no_space(*_, **__):
    raise OSError(errno.ENOSPC, "No space left on device")


# --- what was put in comes out ------------------------------------------------------------------


@pytest.mark.parametrize("space", [1, (5, 4, 3)])
@pytest.mark.parametrize("large", [16, 2**16])
@pytest.mark.parametrize("block", [2**10, 2**22])
def test_a_file_holds_the_bits_of_a_run_without_one(tmp_path, monkeypatch, space, large, block):
    """Whatever is compressed early and however many blocks there are."""
    monkeypatch.setattr(packed_arrays, "LARGE_BYTES", large)
    monkeypatch.setattr(packed_arrays, "CHUNK_BYTES", 3000)
    monkeypatch.setattr(series, "BLOCK_BYTES", block)
    fixed = frame(space=space)
    expected = finished(filled(None, fixed))
    found = finished(filled(tmp_path / "run.nc", fixed))
    xr.testing.assert_identical(found, expected)
    assert list(found.variables) == list(expected.variables)
    assert {n: v.dtype for n, v in found.variables.items()} == {
        n: v.dtype for n, v in expected.variables.items()
    }
    xr.testing.assert_identical(rb.load(tmp_path / "run.nc").drop_attrs(), expected.drop_attrs())
    assert [p.name for p in tmp_path.iterdir()] == ["run.nc"]


def test_f_is_arranged_by_place_and_momentum():
    fixed = frame(space=(5, 4, 3))
    f = occupation(fixed)
    ds = filled(None, fixed, snapshots=0).frame.dataset((), [(0.0, f)], END)
    site = (2 * 4 + 1) * 3 + 2
    np.testing.assert_array_equal(ds.f[0, 0, 2, 1, 2], f[site, 0].reshape(7, 7, 7))


def test_integers_that_overflow_later_become_floats(tmp_path):
    fixed = frame()
    first, second = record(fixed, 0), record(fixed, 1)
    first["charge_drift"] = np.array([3])
    second["charge_drift"] = np.array([1e30])
    for path in (None, tmp_path / "run.nc"):
        log = Journal(path, fixed)
        log.record(first)
        log.record(second)
        drift = finished(log).charge_drift.values
        assert drift.dtype == float and drift.ravel().tolist() == [3.0, 1e30]
    log = Journal(tmp_path / "run.nc", fixed)
    log.record(first)
    assert finished(log).charge_drift.dtype == np.int64


def test_a_dimension_without_members_and_a_run_without_records(tmp_path):
    fixed = replace(frame(), model=rb.Model([rb.Species("a", 1, 0)], [], masses={"a": 0.3}))
    for records in (0, 3):
        ds = finished(filled(tmp_path / "run.nc", fixed, records, snapshots=0))
        assert ds.rate.shape == (records, 0) and ds.f.shape == (0, 1, 7, 7, 7)
        assert rb.load(tmp_path / "run.nc").sizes["time"] == records


def test_records_that_are_not_complete_are_shown_but_not_kept(tmp_path):
    fixed, path = frame(), tmp_path / "run.nc"
    log = Journal(path, fixed)
    merge(log, None, [record(fixed, 0)])
    assert rb.load(path).time.values.tolist() == [0.0]
    log.record(record(fixed, 7))
    assert log.first is log.last
    log.record(record(fixed, 8))
    merge(log)
    np.testing.assert_allclose(rb.load(path).time, [0.7, 0.8])
    assert log.first["time"] == pytest.approx(0.7) and log.last["time"] == pytest.approx(0.8)
    assert finished(log).sizes["time"] == 2


def test_a_result_beyond_memory_is_read_from_a_file_that_may_be_deleted(tmp_path, monkeypatch):
    monkeypatch.setattr(journal, "in_memory_bytes", lambda: 3000)
    fixed, path = frame(), tmp_path / "run.nc"
    ds = finished(filled(path, fixed))
    finished(filled(path, fixed, snapshots=1))  # replaces the file
    path.unlink()
    assert not ds.variables["f"]._in_memory and ds.variables["number"]._in_memory
    np.testing.assert_array_equal(ds.f[1].values.ravel(), occupation(fixed, 1).ravel())


def test_parts_of_a_killed_run_go_when_another_result_stands_in_its_place(tmp_path):
    """Folders of the user's stay whatever their names: they have no marker, or another name."""
    stale = tmp_path / "run.parts-123-abcd_123"
    others = [
        tmp_path / name
        for name in ("run.2.parts-1-abcd_123", "run.parts-mine", "run.parts-123-abcd_124",
                     "run.parts-123-abcd_123.bak", "run.parts-1")
    ]  # fmt: skip
    for folder in (stale, *others):
        folder.mkdir()
        (folder / "records").write_text("precious")
        if folder.name != "run.parts-123-abcd_124":
            (folder / journal.MARKER).touch()
    log = filled(tmp_path / "run.nc", frame(), records=3)
    own = next(path for path in journal.stale_parts(log.path) if path != stale)
    (own / "note").write_text("of the user's")
    assert stale.exists()
    assert finished(log).sizes["time"] == 3
    assert not stale.exists()
    assert [(folder / "records").read_text() for folder in others] == ["precious"] * len(others)
    assert [path.name for path in own.iterdir()] == ["note"]


def test_a_copy_of_parts_that_the_user_made_is_not_removed(tmp_path):
    log = filled(tmp_path / "run.nc", frame(), records=3)
    kept = shutil.copytree(parts(tmp_path), tmp_path / "run.parts-mine")
    finished(log)
    assert left(tmp_path) == ["run.nc", "run.parts-mine"] and (kept / "records").stat().st_size


# --- a disk that fails --------------------------------------------------------------------------


def test_records_wait_in_memory_for_a_disk_that_recovers(tmp_path, monkeypatch):
    fixed, log = frame(), Journal(tmp_path / "run.nc", frame())
    write, calls = os.write, []

    def torn(handle, data):
        calls.append(handle)
        if 3 <= len(calls) < 8:
            write(handle, data[: len(data) // 2])
            no_space()
        return write(handle, data[:1000])  # a disk may also take less than it is given

    monkeypatch.setattr(os, "write", torn)
    for number in range(6):
        log.record(record(fixed, number))
        log.snapshot(float(number), occupation(fixed, number))
    monkeypatch.undo()
    assert not log._records._waiting and not log._snapshots._waiting
    expected = Journal(None, fixed)
    for number in range(6):
        expected.record(record(fixed, number))
        expected.snapshot(float(number), occupation(fixed, number))
    xr.testing.assert_identical(finished(log), finished(expected))
    assert log.trouble is None


def test_a_folder_without_room_for_parts_still_gets_its_file(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "mkdtemp", no_space)
    log = filled(tmp_path / "run.nc", frame())
    assert finished(log).sizes["time"] == 5 and log.trouble is None
    assert rb.load(tmp_path / "run.nc").sizes["snapshot"] == 2


class Failing:
    """A file of which one write fails, and all that follow."""

    def __init__(self, handle, after):
        self.handle, self.left = handle, after

    def write(self, data):
        self.left -= 1
        if self.left < 0:
            no_space()
        return self.handle.write(data)

    def __getattr__(self, name):
        return getattr(self.handle, name)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.handle.close()


def test_whichever_write_fails_hdf5_and_the_run_survive(tmp_path, monkeypatch):
    monkeypatch.setattr(packed_arrays, "LARGE_BYTES", 1000)
    monkeypatch.setattr(packed_arrays, "CHUNK_BYTES", 1000)
    log, path = filled(tmp_path / "run.nc", frame()), tmp_path / "run.nc"
    after = 0
    while True:
        handed = []

        def opened(target, mode, after=after, handed=handed):
            handle = open(target, mode)  # noqa: SIM115
            handed.append(Failing(handle, after))
            return handed[-1]

        monkeypatch.setattr(output, "open", opened, raising=False)
        merge(log, {"status": f"running {after}"})
        if handed[0].left >= 0:
            break
        assert "run.nc could not be written: [Errno 28]" in log.trouble
        assert not path.exists()
        after += max(1, after // 4)
    assert after > 20 and log.trouble is None
    assert rb.load(path).attrs["status"] == f"running {after}"


def test_damaged_parts_are_a_trouble_and_the_file_stays(tmp_path):
    log = filled(tmp_path / "run.nc", frame())
    merge(log)
    for part in parts(tmp_path).iterdir():
        os.truncate(part, 100)
    ds = finished(log)
    assert "could not be written" in log.trouble and ds.sizes["time"] == 2
    assert rb.load(tmp_path / "run.nc").sizes["time"] == 5


@pytest.mark.parametrize("lost", ["parts", "all"])
def test_a_folder_that_is_gone_loses_no_record(tmp_path, monkeypatch, lost):
    """Saved rows stay readable through their handle and are rescued elsewhere."""
    place, elsewhere = tmp_path / "place", tmp_path / "elsewhere"
    place.mkdir()
    elsewhere.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(elsewhere))
    fixed = frame()
    log = filled(place / "run.nc", fixed)
    shutil.rmtree(place if lost == "all" else parts(place))
    log.record(record(fixed, 5))
    ds = finished(log)
    xr.testing.assert_equal(ds.drop_attrs(), finished(filled(None, fixed, 6)).drop_attrs())
    (found,) = elsewhere.iterdir() if lost == "all" else [place / "run.nc"]
    assert rb.load(found).sizes["time"] == 6


# --- a process that is killed -------------------------------------------------------------------

KILLED = """
import sys
sys.path[:0] = {paths!r}
from pathlib import Path
import test_journal as t
fixed = t.frame()
log = t.Journal(Path("run.nc"), fixed)
rows = [t.record(fixed, n) for n in range(50)]
for n in range(10**9):
    log.record(rows[n % 50] | {{"time": float(n)}})
    if n % 10 == 0:
        log.snapshot(float(n), t.occupation(fixed))
    if n % 25 == 24:
        t.merge(log)
    if n == 100:
        print("ready", flush=True)
"""


@pytest.mark.parametrize("delay", [0.0, 0.123, 0.31])
def test_a_killed_run_leaves_a_readable_file_and_readable_parts(tmp_path, delay):
    code = KILLED.format(
        paths=[str(ROOT), str(Path(__file__).parent), str(ROOT / "tests" / "helpers")]
    )
    process = subprocess.Popen([sys.executable, "-c", code], cwd=tmp_path, stdout=subprocess.PIPE)
    try:
        assert process.stdout.readline() == b"ready\n"
        time.sleep(delay)
    finally:
        process.kill()
        process.wait()
    ds = rb.load(tmp_path / "run.nc")
    assert ds.attrs["status"] == "running" and ds.sizes["time"] > 10
    np.testing.assert_array_equal(ds.time, np.arange(ds.sizes["time"]))
    assert np.isfinite(ds.f).all()
    rows = [packed_arrays.unpack(e) for e in packed_arrays.entries(parts(tmp_path) / "records")]
    assert [float(row["time"].values) for row in rows] == list(range(len(rows)))
    assert len(rows) >= ds.sizes["time"]


# --- constant cost ------------------------------------------------------------------------------


def test_records_do_not_pile_up_in_memory(tmp_path):
    import tracemalloc

    fixed = frame()
    log, row, sizes = Journal(tmp_path / "run.nc", fixed), record(fixed, 1), []
    tracemalloc.start()
    for number in range(1, 1501):
        log.record(row | {"time": float(number)})
        if number % 500 == 0:
            sizes.append(tracemalloc.get_traced_memory()[0])
    tracemalloc.stop()
    # 1000 records have 1 MB; threads that read what other programs print have some of it, too
    assert sizes[-1] - sizes[0] < 100_000
    assert finished(log).sizes["time"] == 1500


def test_snapshots_do_not_pile_up_in_memory_nor_does_merging_read_them_at_once(tmp_path):
    import tracemalloc

    fixed = frame(cells=8, space=(16, 16, 8))  # 8 MB
    f = occupation(fixed)
    tracemalloc.start()
    log = Journal(tmp_path / "run.nc", fixed)
    log.record(record(fixed, 0))
    for number in range(4):
        log.snapshot(float(number), f)
    merge(log)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 3.5 * f.nbytes, "more than one snapshot at a time"
    assert finished(log).sizes["snapshot"] == 4


def test_a_large_array_is_compressed_once(tmp_path, monkeypatch):
    calls, compress = [], packed_arrays.zlib.compress
    monkeypatch.setattr(packed_arrays.zlib, "compress", lambda *a: calls.append(a) or compress(*a))
    fixed = frame(cells=8, space=(8, 8, 4))
    log = Journal(tmp_path / "run.nc", fixed)
    log.snapshot(0.0, occupation(fixed))
    once = len(calls)
    for _ in range(3):
        merge(log)
    assert once > 0 and len(calls) == once
    with xr.open_dataset(tmp_path / "run.nc", engine="h5netcdf") as ds:
        assert ds.f.encoding["chunksizes"][0] == 1 and ds.f.encoding["zlib"]


def test_time_per_record_does_not_grow(tmp_path):
    """Work of appending, in processor time: the last thousand costs what the first did."""
    fixed = frame()
    log, row, spent = Journal(tmp_path / "run.nc", fixed), record(fixed, 1), []
    for _ in range(6):
        start = resource.getrusage(resource.RUSAGE_SELF)
        for number in range(500):
            log.record(row | {"time": float(number)})
        stop = resource.getrusage(resource.RUSAGE_SELF)
        spent.append(stop.ru_utime + stop.ru_stime - start.ru_utime - start.ru_stime)
    assert min(spent[3:]) < 2 * min(spent[:3])


def test_merging_takes_a_few_per_cent_of_the_time(tmp_path, monkeypatch):
    """Pauses are twenty times as long as what they follow."""
    fixed = frame()
    log, clock = filled(tmp_path / "run.nc", fixed, 2, 0), [100.0]
    monkeypatch.setattr(journal.time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(output, "write", lambda *_: clock.__setitem__(0, clock[0] + 5.0))
    log._next, merged, new = 0, 0, record(fixed, 1)
    for number in range(2000):
        before = clock[0]
        log.update({}, [new] * (number % 2))  # something new
        merged += clock[0] - before
        clock[0] += 0.5
    assert 0.03 < merged / (clock[0] - 100) < 0.06


def test_whatever_goes_wrong_while_writing_the_result_is_rescued(tmp_path, monkeypatch):
    """Not only what a disk says; the new name is one that nobody can lay a link in wait at."""
    wanted, elsewhere = tmp_path / "run.nc", tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(elsewhere))
    original = output.write

    def write(ds, path, rows):
        if path == wanted:
            raise ValueError("never heard of")
        original(ds, path, rows)

    monkeypatch.setattr(output, "write", write)
    names = []
    for _ in range(2):
        log = filled(wanted, frame())
        ds = finished(log)
        (rescued,) = elsewhere.iterdir()
        assert log.trouble == (
            f"{wanted} could not be written: never heard of; the result was saved as {rescued} "
            "instead"
        )
        assert len(ds.time) == len(rb.load(rescued).time) == 5
        names.append(rescued.name)
        rescued.unlink()
    assert names[0] != names[1] and not wanted.exists()
    assert len(list(tmp_path.glob("run.parts-*"))) == 2  # to go on from


def test_a_file_is_never_written_through_a_link(tmp_path):
    """A link at the place of the new file would let others choose what is overwritten."""
    precious, path = tmp_path / "precious", tmp_path / "run.nc"
    precious.write_text("old")
    output._part(path).symlink_to(precious)
    output.check_writable(path)
    output._part(path).symlink_to(precious)
    log = filled(path, frame())
    finished(log)
    assert log.trouble is None and precious.read_text() == "old"
    assert len(rb.load(path).time) == 5
