"""Checkpoints: every byte is checked, a crash leaves the one before, the run goes on meanwhile."""

import errno
import os
import threading
import time
import warnings
from types import SimpleNamespace

import numpy as np
import pytest

import relboltz as rb
from relboltz.io import checkpoint, series
from relboltz.io.checkpoint import CheckpointWriter
from relboltz.io.journal import Journal
from relboltz.run import runner
from relboltz.util.errors import CheckpointWarning

FACTS = {"time": 0.1 + 0.2, "words": "Größe", "none": None, "numbers": [1, 2.5, float("inf")]}
ARRAYS = {
    "number": np.arange(7, dtype=np.int64) * 2**40,
    "empty": np.zeros((0, 3)),
    "scalar": np.array(1 / 3),
    "words": np.frombuffer(b"abc", np.uint8),
    "turned": np.arange(6.0).reshape(2, 3).T,
}
GRID, START = rb.PhaseSpace(5, 2.0), {"g": rb.initial.step(0.5, 1.5)}
NO_SPACE = OSError(errno.ENOSPC, "No space left on device")


@pytest.fixture(autouse=True)
def _quick_disk(monkeypatch):
    """Waiting for the disk changes nothing but the time."""
    monkeypatch.setattr(os, "fsync", lambda _: None)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run.checkpoint-000001"


@pytest.fixture
def small(path):
    """A checkpoint of a few hundred bytes."""
    checkpoint.write(path, FACTS, ARRAYS)
    return path


def keeper(folder, origin="run.checkpoint-000003", before=lambda facts: None):
    return CheckpointWriter(folder / "run.nc", before, folder / origin)


def names(folder):
    return sorted(p.name for p in folder.iterdir())


def refused(path):
    try:
        checkpoint.read(path)
    except rb.InputError as error:
        return "is damaged" in str(error) and str(path) in str(error)
    return False


# --- the file -----------------------------------------------------------------------------------


@pytest.mark.parametrize("block", [5, 2**22])
def test_what_was_written_is_read(path, monkeypatch, block):
    monkeypatch.setattr(checkpoint, "BLOCK", block)
    checkpoint.write(path, FACTS, ARRAYS)
    found = checkpoint.read(path)
    assert found.facts == FACTS and list(found.arrays) == list(ARRAYS)
    for name, expected in ARRAYS.items():
        assert found.arrays[name].dtype == expected.dtype
        np.testing.assert_array_equal(found.arrays[name], expected)
        assert found.arrays[name].shape == expected.shape
    assert names(path.parent) == [path.name]


def test_every_altered_byte_is_noticed(small):
    good = small.read_bytes()
    for place in range(len(good)):
        other = good[place] ^ (1 << place % 8)
        small.write_bytes(good[:place] + bytes([other]) + good[place + 1 :])
        assert refused(small), place
    small.write_bytes(good)
    checkpoint.read(small)


def test_every_length_but_its_own_is_noticed(small):
    good = small.read_bytes()
    for length in range(len(good)):
        small.write_bytes(good[:length])
        assert refused(small), length
    for more in (b"\0", b"x", good):
        small.write_bytes(good + more)
        assert refused(small)


def test_what_is_no_checkpoint_at_all_is_refused(tmp_path):
    for content in (b"", b"\0" * 1000, checkpoint.MAGIC + b"\xff" * 8):
        (tmp_path / "a").write_bytes(content)
        assert refused(tmp_path / "a")
    assert refused(tmp_path) and refused(tmp_path / "not there")


# --- the newest that is whole -------------------------------------------------------------------


def three(folder):
    """Three checkpoints, of which two are kept."""
    kept = keeper(folder)
    for number in (1, 2, 3):
        kept.keep({"number": number}, ARRAYS, wait=True)
    return folder / "run.nc"


def test_two_are_kept_and_the_newest_is_used(tmp_path):
    file = three(tmp_path)
    assert names(tmp_path) == ["run.checkpoint-000002", "run.checkpoint-000003"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert checkpoint.latest(file).facts == {"number": 3}


@pytest.mark.parametrize(
    "harm", [lambda b: b[:-1], lambda b: b[:99] + b"?" + b[100:], lambda b: b""]
)
def test_one_that_is_damaged_gives_way_to_the_one_before(tmp_path, harm):
    file = three(tmp_path)
    newest = tmp_path / "run.checkpoint-000003"
    newest.write_bytes(harm(newest.read_bytes()))
    with pytest.warns(CheckpointWarning, match=r"000003 is damaged.*000002 is used instead"):
        assert checkpoint.latest(file).facts == {"number": 2}


def test_without_any_there_is_a_remedy(tmp_path):
    file = tmp_path / "run.nc"
    with pytest.raises(rb.InputError, match=r"no checkpoint run.checkpoint-\* .*start the run"):
        checkpoint.latest(file)
    with pytest.raises(rb.InputError, match="no checkpoint"):
        checkpoint.latest(tmp_path / "no folder" / "run.nc")
    three(tmp_path)
    for path in tmp_path.iterdir():
        path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(rb.InputError) as caught:
        checkpoint.latest(file)
    text = str(caught.value)
    assert "000003" in text and "000002" in text and "start the run again" in text


def test_numbers_count_not_letters_and_others_are_left_out(tmp_path):
    for name in (
        "run.checkpoint-999999", "run.checkpoint-1000000", "run.checkpoint-1000000.part-7",
        "run2.checkpoint-2000000", "arun.checkpoint-3000000", "run.checkpoint-x",
    ):  # fmt: skip
        (tmp_path / name).touch()
    found = [p.name for p in checkpoint.of_run(tmp_path / "run.nc")]
    assert found == ["run.checkpoint-999999", "run.checkpoint-1000000"]


# --- a disk that fails --------------------------------------------------------------------------


def torn_write(monkeypatch):
    """Half of a piece is written, then there is no space."""

    class Torn:
        def __init__(self, handle):
            self.handle = handle

        def write(self, data):
            if len(data) > 20:
                self.handle.write(data[: len(data) // 2])
                raise NO_SPACE
            return self.handle.write(data)

        def fileno(self):
            return self.handle.fileno()

        def __enter__(self):
            return self

        def __exit__(self, *_):
            self.handle.close()

    def opened(path, *arguments, **options):
        return Torn(open(path, *arguments, **options))

    monkeypatch.setattr(checkpoint, "open", opened, raising=False)


def fails(name):
    def patch(monkeypatch):
        def failing(*_):
            raise NO_SPACE

        others = SimpleNamespace(**{**vars(os), name: failing})
        monkeypatch.setattr(checkpoint, "os", others)

    return patch


@pytest.mark.parametrize("fault", [torn_write, fails("replace"), fails("fsync")])
def test_a_failure_while_writing_leaves_the_ones_before(tmp_path, monkeypatch, fault):
    file = three(tmp_path)
    before = {p.name: p.read_bytes() for p in tmp_path.iterdir()}
    kept = keeper(tmp_path)
    with monkeypatch.context() as patch:
        fault(patch)
        with pytest.warns(
            CheckpointWarning, match=r"000004 could not be written.*No space"
        ) as told:
            kept.keep({"number": 4}, ARRAYS, wait=True)
        assert len(told) == 1 and "checkpoints before it are kept" in str(told[0].message)
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == before
    kept.keep({"number": 5}, ARRAYS, wait=True)
    assert kept.trouble is None and checkpoint.latest(file).facts == {"number": 5}


def test_records_that_are_not_on_the_disk_are_no_ground_to_stand_on(tmp_path):
    def before(facts):
        raise OSError("2 records wait for room on the disk")

    three(tmp_path)
    kept = keeper(tmp_path, before=before)
    with pytest.warns(CheckpointWarning, match="000004.*2 records wait"):
        kept.keep({"number": 4}, ARRAYS, wait=True)
    assert checkpoint.latest(tmp_path / "run.nc").facts == {"number": 3}


@pytest.mark.parametrize("fault", [torn_write, fails("replace")])
def test_a_run_goes_on_without_checkpoints_and_says_so(tmp_path, monkeypatch, fault):
    expected = solve()
    with monkeypatch.context() as patch:
        fault(patch)
        with pytest.warns(CheckpointWarning, match="could not be written") as told:
            ds = solve(tmp_path / "run.nc", checkpoint_every=1e-9)
    assert len([w for w in told if w.category is CheckpointWarning]) == 1
    assert ds.f.values.tobytes() == expected.f.values.tobytes()
    assert not [name for name in names(tmp_path) if "part" in name]


# --- in the background --------------------------------------------------------------------------


def solve(file=None, **options):
    given = {"end": 0.02, "step": 0.005, "every": 0.01, "samples": 1, "progress": False, **options}
    return rb.solve(rb.gluons(0.3), GRID, START, file=file, **given)


def test_a_slow_disk_is_not_waited_for(tmp_path):
    go = threading.Event()
    kept = keeper(tmp_path, before=lambda facts: go.wait())
    began = time.monotonic()
    kept.keep(FACTS, ARRAYS, wait=False)
    assert time.monotonic() - began < 1.0 and kept.busy
    assert names(tmp_path) == []
    go.set()
    kept.wait()
    assert not kept.busy and names(tmp_path) == ["run.checkpoint-000001"]


def test_a_run_steps_while_a_checkpoint_is_written(tmp_path, monkeypatch):
    """The second one hangs until the run has made three more steps."""
    write, calls, go, steps = checkpoint.write, [], threading.Event(), []

    def slow(*arguments):
        calls.append(len(steps))
        if len(calls) == 2:
            assert go.wait(30)
        write(*arguments)

    def progress(moment):
        steps.append(moment.time)
        if calls[1:] and len(steps) >= calls[1] + 3:
            go.set()

    monkeypatch.setattr(checkpoint, "write", slow)
    file = tmp_path / "run.nc"
    ds = solve(file, end=0.05, checkpoint_every=1e-9, progress=progress)
    assert ds.attrs["status"] == "done" and go.is_set() and len(steps) == 10
    assert checkpoint.latest(file).facts["time"] == 0.05


def test_a_checkpoint_holds_its_own_moment_whatever_follows(tmp_path, monkeypatch):
    """Nothing that it holds is changed by later steps, so that it may be written late."""
    packed, held = runner.Run._packed, []

    def kept(self):
        facts, arrays = packed(self)
        held.append(({k: v.copy() for k, v in arrays.items()}, arrays))
        return facts, arrays

    monkeypatch.setattr(runner.Run, "_packed", kept)
    solve(tmp_path / "run.nc", checkpoint_every=1e-9)
    assert len(held) >= 3
    for then, later in held:
        for name, values in then.items():
            assert values.tobytes() == later[name].tobytes(), name


def test_a_record_that_is_being_saved_is_no_trouble_for_a_checkpoint(tmp_path, monkeypatch):
    """A checkpoint asks only for the records that it counts, not for those that came since."""
    append, flush, saving, told = series.append, Journal.flush, threading.Event(), []

    def slow(*arguments):
        saving.set()
        time.sleep(0.05)
        saving.clear()
        return append(*arguments)

    def while_another_is_saved(self, *arguments):
        saving.wait(0.5)
        flush(self, *arguments)

    monkeypatch.setattr(series, "append", slow)
    monkeypatch.setattr(Journal, "flush", while_another_is_saved)
    monkeypatch.setattr(checkpoint, "say", lambda text, _: told.append(text))
    solve(tmp_path / "run.nc", every=0.005, checkpoint_every=1e-9)
    assert told == []


# --- another run --------------------------------------------------------------------------------


def test_those_of_another_run_go_with_the_first_of_this_one(tmp_path):
    three(tmp_path)
    kept = CheckpointWriter(tmp_path / "run.nc", lambda facts: None)
    assert names(tmp_path) == ["run.checkpoint-000002", "run.checkpoint-000003"]
    kept.keep({"number": 4}, ARRAYS, wait=True)
    assert names(tmp_path) == ["run.checkpoint-000004"]
    kept.keep({"number": 5}, ARRAYS, wait=True)
    assert names(tmp_path) == ["run.checkpoint-000004", "run.checkpoint-000005"]


def test_a_result_that_is_replaced_leaves_no_checkpoint(tmp_path):
    file = tmp_path / "run.nc"
    first = solve(file, seed=1)
    second = solve(file, seed=2, force=True)
    assert first.attrs["run"] != second.attrs["run"]
    for path in checkpoint.of_run(file):
        saved = checkpoint.read(path)
        assert saved.facts["known"]["attributes"]["run"] == second.attrs["run"]


def test_one_that_was_damaged_is_not_kept_in_place_of_a_good_one(tmp_path):
    three(tmp_path)
    kept = keeper(tmp_path, "run.checkpoint-000002")
    kept.keep({"number": 4}, ARRAYS, wait=True)
    assert names(tmp_path) == ["run.checkpoint-000002", "run.checkpoint-000004"]


def test_pieces_that_a_killed_process_left_are_removed(tmp_path):
    three(tmp_path)
    for name in ("run.checkpoint-000004.part-77", "run.nc.part-77", "rune.nc.part-77", "[run].nc"):
        (tmp_path / name).touch()
    keeper(tmp_path).keep({"number": 4}, ARRAYS, wait=True)
    assert names(tmp_path) == [
        "[run].nc", "run.checkpoint-000003", "run.checkpoint-000004", "rune.nc.part-77",
    ]  # fmt: skip
