"""Runs that are continued have the bits of runs that were not disturbed."""

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path

import numpy as np
import pytest
from continued import (
    SIGNALS,
    command,
    configured,
    go_on,
    in_file,
    interrupted,
    left,
    same,
    solve,
    stopping,
)

import relboltz as rb
from relboltz.io import checkpoint
from relboltz.io.observables import Observer
from relboltz.run import progress, runner
from relboltz.util.errors import CheckpointWarning

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def _quick_disk(monkeypatch):
    """Waiting for the disk changes nothing but the time."""
    monkeypatch.setattr(os, "fsync", lambda _: None)


# --- further than the end -----------------------------------------------------------------------

LONGER = {
    "mixture, automatic steps": ("mixture", {"every": 0.1}, 0.2, 0.4),
    "mixture, fixed steps": ("mixture", {"every": 0.1, "step": 0.03}, 0.2, 0.4),
    "snapshots between": (
        "gluons", {"every": 0.1, "snapshots": [0.0, 0.04, 0.2]}, 0.2, 0.4,
    ),
    "no snapshots": ("gluons", {"every": 0.1, "snapshots": []}, 0.2, 0.3),
    "rounding": ("gluons", {"every": 0.1}, 0.3, 0.7),
    "one record": ("gluons", {"every": 0.2}, 0.2, 0.4),
    "open walls, marginals": ("open", {"every": 0.05, "marginals": ["x", "x px"]}, 0.1, 0.2),
    "open walls, snapshots, fixed steps": (
        "open", {"every": 0.05, "step": 0.02, "snapshots": [0.0, 0.07, 0.1]}, 0.1, 0.2,
    ),
    "open walls, nearest": (
        "open", {"every": 0.05, "projection": "nearest", "samples": 2}, 0.1, 0.2,
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", LONGER)
def test_a_finished_run_goes_on_as_one_longer_run(tmp_path, case):
    name, options, middle, end = LONGER[case]
    expected = solve(name, end=end, **options)
    assert expected.attrs["steps"] > 3
    file = tmp_path / "run.nc"
    first = solve(name, file, end=middle, **options)
    assert first.sizes["time"] < expected.sizes["time"]
    found = go_on(file, until=end)
    same(found, expected)
    if case == "open walls, marginals":
        same(rb.load(file), found)
        gone = found.left_number.sum(("species", "wall")).values
        assert (np.diff(gone) > 0).all() and gone[0] == 0  # counted from the start
    assert in_file(file)[1] == end
    assert [n for n in left(tmp_path) if "checkpoint" not in n] == ["run.nc"]


def test_an_end_that_is_no_record_of_the_longer_run_stays_a_record(tmp_path):
    solve("gluons", tmp_path / "run.nc", end=0.15, every=0.1)
    ds = go_on(tmp_path / "run.nc", until=0.3)
    np.testing.assert_allclose(ds.time, [0, 0.1, 0.15, 0.2, 0.3])


def test_more_snapshots_may_be_asked_for_and_are_those_of_a_run_that_has_them(tmp_path):
    listed = {"every": 0.1, "snapshots": [0.0, 0.1]}
    expected = solve("gluons", end=0.4, every=0.1, snapshots=[0.0, 0.1, 0.25, 0.4])
    file = tmp_path / "run.nc"
    solve("gluons", file, end=0.2, **listed)
    with pytest.raises(rb.InputError, match=r"snapshots: 0.1 fm: the run is at t = 0.2 fm"):
        go_on(file, until=0.4, snapshots=[0.1])
    found = go_on(file, until=0.4, snapshots=[0.25, 0.4])
    same(found, expected)


def test_an_end_that_is_not_later_is_refused(tmp_path):
    file = tmp_path / "run.nc"
    solve("gluons", file, end=0.2)
    before = file.read_bytes()
    for until in (0.2, 0.1, 0.0, -1.0, float("nan"), float("inf"), "later"):
        with pytest.raises(rb.InputError, match="the run is at t = 0.2 fm; use a later time"):
            go_on(file, until=until)
    with pytest.raises(rb.InputError, match="the run is done, at t = 0.2 fm; go on until T"):
        go_on(file)
    assert file.read_bytes() == before


# --- interrupted --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("system", "name"), [(("mixture", "open")[i % 2], name) for i, name in enumerate(SIGNALS)]
)
def test_a_run_that_was_interrupted_goes_on_to_the_same_bits(tmp_path, system, name):
    options = {"end": 0.2, "every": 0.05}
    expected = solve(system, **options)
    after = int(np.random.default_rng(len(name) + len(system)).integers(1, expected.steps))
    part = interrupted(system, tmp_path / "run.nc", after, SIGNALS[name], **options)
    words = "Ctrl-C" if name == "SIGINT" else name
    assert part.attrs["status"] == f"interrupted by {words}"
    assert part.attrs["steps"] == after and float(part.time[-1]) < 0.2
    same(go_on(tmp_path / "run.nc"), expected)


def test_a_run_may_be_interrupted_at_every_step(tmp_path):
    options = {"end": 0.1, "every": 0.05, "step": 0.02, "snapshots": [0.0, 0.03, 0.1]}
    expected = solve("gluons", **options)
    file = tmp_path / "run.nc"
    interrupted("gluons", file, 1, **options)
    for _ in range(expected.attrs["steps"] - 2):
        with pytest.raises(rb.Interrupted):
            go_on(file, progress=stopping(signal.SIGUSR1, 1))
    found = go_on(file)
    same(found, expected)
    assert [n for n in left(tmp_path) if "checkpoint" not in n] == ["run.nc"]


def test_an_interrupt_while_a_record_is_made_keeps_what_the_step_told(tmp_path, monkeypatch):
    """The rates of the record before it: the step that told them stands."""
    options = {"end": 0.2, "every": 0.05, "step": 0.05}
    expected = solve("gluons", **options)
    look, calls = Observer.look, []

    def stopped(self, state):
        calls.append(1)
        if len(calls) == 3:
            os.kill(os.getpid(), signal.SIGTERM)
        return look(self, state)

    with monkeypatch.context() as patched:
        patched.setattr(Observer, "look", stopped)
        with pytest.raises(rb.Interrupted) as caught:
            solve("gluons", tmp_path / "run.nc", **options)
    rates = caught.value.dataset.rate
    assert len(rates) == 3 and np.isfinite(rates[:2]).all() and np.isnan(rates[2]).all()
    same(go_on(tmp_path / "run.nc"), expected)


def test_an_interrupt_in_the_middle_of_a_step_is_undone(tmp_path, monkeypatch):
    from relboltz.backends.cpu.backend import CpuBackend

    options = {"end": 0.1, "every": 0.05, "step": 0.02}
    expected = solve("open", **options)
    stream, calls = CpuBackend.stream, []

    def stopped(self, *arguments):
        calls.append(1)
        if len(calls) == 8:
            os.kill(os.getpid(), signal.SIGHUP)
        return stream(self, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(CpuBackend, "stream", stopped)
        with pytest.raises(rb.Interrupted):
            solve("open", tmp_path / "run.nc", **options)
    same(go_on(tmp_path / "run.nc"), expected)


def test_twice_longer_with_an_interrupt_between(tmp_path):
    options = {"every": 0.1, "snapshots": [0.0, 0.1]}
    expected = solve("gluons", end=0.6, **options)
    file = tmp_path / "run.nc"
    solve("gluons", file, end=0.2, **options)
    with pytest.raises(rb.Interrupted):
        go_on(file, until=0.4, progress=stopping(signal.SIGINT, 3))
    assert go_on(file).attrs["status"] == "done"
    with pytest.raises(rb.Interrupted):
        go_on(file, until=0.6, progress=stopping(signal.SIGTERM, 2))
    same(go_on(file, until=0.6), expected)


def test_an_interrupted_run_may_be_given_a_later_end_at_once(tmp_path):
    expected = solve("gluons", end=0.4)
    interrupted("gluons", tmp_path / "run.nc", 3, end=0.2)
    same(go_on(tmp_path / "run.nc", until=0.4), expected)


def test_checkpoints_on_the_way_change_nothing(tmp_path):
    options = {"end": 0.2, "every": 0.05, "checkpoint_every": 1e-9}
    same(solve("open", tmp_path / "run.nc", **options), solve("open", **options))


@pytest.mark.parametrize("which", [-1, -2])
def test_a_run_that_was_killed_goes_on_from_either_checkpoint(tmp_path, which):
    """A copy of all its files at a moment is what a kill leaves."""
    options = {"end": 0.2, "every": 0.05, "checkpoint_every": 1e-9}
    expected, copies = solve("mixture", **options), tmp_path / "copies"
    file, taken = tmp_path / "run" / "run.nc", []
    file.parent.mkdir()

    def progress(moment):
        if moment.time > 0.12 and not taken:
            time.sleep(0.1)  # whatever is being written is done
            taken.append(shutil.copytree(file.parent, copies))

    solve("mixture", file, progress=progress, **options)
    found = checkpoint.of_run(copies / "run.nc")
    assert len(found) == 2
    if which == -2:
        with open(found[-1], "r+b") as handle:
            handle.truncate(os.path.getsize(found[-1]) // 2)
        with pytest.warns(CheckpointWarning, match="is used instead"):
            same(go_on(copies / "run.nc"), expected)
    else:
        same(go_on(copies / "run.nc"), expected)


def test_signals_that_were_ignored_at_the_start_stay_ignored(tmp_path):
    before = {n: signal.signal(n, signal.SIG_IGN) for n in SIGNALS.values()}
    try:
        sent = [stopping(n, after) for after, n in enumerate(before, 1)]
        ds = solve("gluons", end=0.1, progress=lambda m: [send(m) for send in sent])
        assert ds.attrs["status"] == "done" and ds.attrs["steps"] >= 4
        assert {signal.getsignal(n) for n in before} == {signal.SIG_IGN}
    finally:
        for number, old in before.items():
            signal.signal(number, old)


def test_wall_seconds_add_up(tmp_path):
    file = tmp_path / "run.nc"

    def slow(_):
        time.sleep(0.02)

    first = solve("gluons", file, end=0.1, progress=slow).attrs["wall_seconds"]
    assert first > 0.06
    began = time.perf_counter()
    both = go_on(file, until=0.2, progress=slow).attrs["wall_seconds"]
    assert first + 0.02 < both <= first + time.perf_counter() - began


# --- the command line ---------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "code"), list(zip(SIGNALS, (130, 143, 138, 129), strict=True)))
def test_exit_codes_are_those_of_signals(tmp_path, monkeypatch, capsys, name, code):
    settings, file = configured(tmp_path)
    stop = stopping(SIGNALS[name], 2)
    monkeypatch.setattr(runner.Run, "_progress", lambda self, leg: stop(leg))
    monkeypatch.setattr(progress, "bar", lambda *_: _Anything())
    assert command("run", settings, "--out", file) == (code, "")
    told = capsys.readouterr().err
    assert f"relboltz resume {file}" in told.replace("\n", " ")
    monkeypatch.undo()
    assert command("resume", file, "--quiet") == (0, "")
    assert in_file(file) == ("done", 0.2)


class _Anything:
    """In place of a bar."""

    def __enter__(self):
        return lambda _: None

    def __exit__(self, *_):
        return None


def test_a_real_process_ends_with_the_code_of_its_signal_and_goes_on(tmp_path):
    settings, file = configured(tmp_path, end=1000.0)
    program = [sys.executable, "-W", "ignore", "-m", "relboltz"]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(
        [*program, "run", settings, "--out", file, "--quiet"], env=environment,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    try:
        until = time.monotonic() + 120
        while not checkpoint.of_run(file) and time.monotonic() < until:
            time.sleep(0.02)
        assert checkpoint.of_run(file)
        process.send_signal(signal.SIGUSR1)
        told, _ = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 138, told
    assert "interrupted by SIGUSR1" in told and "relboltz resume" in told
    saved = checkpoint.latest(file)
    assert in_file(file) == ("interrupted by SIGUSR1", saved.facts["time"])


# --- the end of a run, step by step -------------------------------------------------------------


def test_a_result_that_could_not_be_written_at_the_end_is_written_by_resume(tmp_path, monkeypatch):
    """The last checkpoint is at the end, and the records are in the parts."""
    from relboltz.io import output

    def no_space(*_):
        raise OSError(28, "No space left on device")

    expected, file = solve("gluons", end=0.1), tmp_path / "run.nc"
    with monkeypatch.context() as patch:
        patch.setattr(output, "write", no_space)
        with pytest.raises(rb.RunError, match="could not be written: .*recorded data are in"):
            solve("gluons", file, end=0.1)
    assert not file.exists()
    same(go_on(file), expected)
    assert in_file(file) == ("done", 0.1)


def test_accuracy_warnings_are_said_once_per_process_and_kept_in_all_results(tmp_path):
    options = {"every": 0.05, "projection": "nearest"}
    expected = solve("gluons", end=0.2, **options)
    assert expected.attrs["warnings"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        interrupted("gluons", tmp_path / "run.nc", 3, end=0.2, **options)
    found = go_on(tmp_path / "run.nc")
    assert found.attrs["warnings"] == expected.attrs["warnings"]


def test_a_run_outside_the_main_thread_goes_on_too(tmp_path):
    expected, found = solve("gluons", end=0.2), []
    interrupted("gluons", tmp_path / "run.nc", 2, end=0.2)
    thread = threading.Thread(target=lambda: found.append(go_on(tmp_path / "run.nc")))
    thread.start()
    thread.join()
    same(found[0], expected)
