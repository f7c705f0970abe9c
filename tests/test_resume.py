"""Runs that are continued have the bits of runs that were not disturbed."""

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
import tomllib
import warnings
from pathlib import Path

import h5py
import numpy as np
import pytest

import relboltz as rb
from relboltz import cli, config, simulation
from relboltz.errors import CheckpointWarning
from relboltz.records import checkpoint

ROOT = Path(__file__).parents[1]
SIGNALS = {name: getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGUSR1", "SIGHUP")}
OWN_WORDS = ("run", "wall_seconds", "configuration")
"""Attributes that tell one run from another."""


@pytest.fixture(autouse=True)
def _quick_disk(monkeypatch):
    """Waiting for the disk changes nothing but the time."""
    monkeypatch.setattr(os, "fsync", lambda _: None)


def hot(x, y, z, px, py, pz):
    """A hot spot."""
    return 0.1 + 0.7 * np.exp(-((x - 0.3) ** 2)) * np.exp(-(px**2) - py**2 - 2 * pz**2)


SYSTEMS = {
    "mixture": (rb.qcd(0.3, flavors=1), rb.PhaseSpace(6, 2.0), {"g": rb.initial.step(0.5, 1.5)}),
    "gluons": (rb.gluons(0.3), rb.PhaseSpace(5, 2.0), {"g": rb.initial.step(0.5, 1.5)}),
    "open": (rb.gluons(0.3), rb.PhaseSpace(5, 2.0, [4, 1, 1], 1.0, "open"), {"g": hot}),
}


def solve(name, file=None, **options):
    given = {"samples": 1, "progress": False, "file": file, **options}
    return rb.solve(*SYSTEMS[name], **given)


def go_on(file, **options):
    return rb.resume(file, **{"progress": False, **options})


def same(found, expected):
    """Everything of a result but its own words, bit by bit."""
    assert set(found.variables) == set(expected.variables)
    for name, values in expected.variables.items():
        other = found.variables[name]
        assert other.dims == values.dims and other.shape == values.shape, name
        assert other.dtype == values.dtype, name
        if values.dtype.kind in "OUT":
            assert other.values.tolist() == values.values.tolist(), name
        else:
            assert other.values.tobytes() == values.values.tobytes(), name
    words = [
        {k: np.asarray(v).tolist() for k, v in ds.attrs.items() if k not in OWN_WORDS}
        for ds in (found, expected)
    ]
    assert words[0] == words[1]
    texts = [tomllib.loads(ds.attrs["configuration"]) for ds in (found, expected)]
    for text in texts:
        text["output"]["file"] = ""
    assert texts[0] == texts[1]


def stopping(number, after):
    """Progress that sends a signal after so many steps."""
    steps = []

    def progress(_):
        steps.append(1)
        if len(steps) == after:
            os.kill(os.getpid(), number)

    return progress


def interrupted(name, file, after, number=signal.SIGTERM, **options):
    with pytest.raises(rb.Interrupted) as caught:
        solve(name, file, progress=stopping(number, after), **options)
    return caught.value.dataset


def in_file(file):
    """Status and last time of a result; ``load`` takes longer."""
    with h5py.File(file, "r") as found:
        return str(found.attrs["status"]), float(found["time"][-1])


def left(folder):
    return sorted(p.name for p in folder.iterdir())


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


def test_an_end_that_is_not_later_is_refused(tmp_path):
    file = tmp_path / "run.nc"
    solve("gluons", file, end=0.2)
    before = file.read_bytes()
    for until in (0.2, 0.1, 0.0, -1.0, float("nan"), float("inf"), "later"):
        with pytest.raises(rb.InputError, match="the run is at t = 0.2 fm; use a later time"):
            go_on(file, until=until)
    with pytest.raises(rb.InputError, match="the run is done, at t = 0.2 fm; go on with --until"):
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

TOML = """
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
[time]
end = {end}
[collisions]
samples = 1
"""


def command(*words):
    """Exit code of a command, in this process."""
    try:
        code = cli.app([str(word) for word in words], standalone_mode=False)
    except rb.InputError as error:
        return 2, str(error)
    return code or 0, ""


def configured(folder, end=0.2):
    (folder / "run.toml").write_text(TOML.format(end=end))
    return folder / "run.toml", folder / "run.nc"


@pytest.mark.parametrize(("name", "code"), list(zip(SIGNALS, (130, 143, 138, 129), strict=True)))
def test_exit_codes_are_those_of_signals(tmp_path, monkeypatch, capsys, name, code):
    settings, file = configured(tmp_path)
    stop = stopping(SIGNALS[name], 2)
    monkeypatch.setattr(rb.run.Run, "_progress", lambda self, leg: stop(leg))
    monkeypatch.setattr(rb.progress, "bar", lambda *_: _Anything())
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


# --- the model ----------------------------------------------------------------------------------

OWN = """
import relboltz as rb

def contact(s, t, u, ma2, mb2, mc2, md2, coupling, screening2):
    return coupling

def model(strength):
    kind = rb.Species("a", 2, 0)
    process = rb.Process("a a -> a a", contact, coupling=strength)
    return rb.Model([kind], [process], masses={"a": 0.3})

def start(px, py, pz):
    return 0.2 + 0.1 * (px > 0)
"""
OWN_TOML = (
    TOML.replace('"gluons"', '"own.py:model"')
    .replace("alpha_s = 0.3", "strength = 3000.0")
    .replace("initial.g", "initial.a")
    .replace('shape = "step"\nheight = 0.5\nedge = 1.5', 'shape = "shape.py:start"')
)


@pytest.fixture
def own(tmp_path):
    """A run with a model and a start from files of one's own, interrupted; what it would give."""
    for name in ("own.py", "shape.py"):
        (tmp_path / name).write_text(OWN)
    (tmp_path / "run.toml").write_text(OWN_TOML.format(end=0.2))
    settings = config.load(tmp_path / "run.toml")
    expected = simulation.run_config(settings, tmp_path / "whole.nc")
    with pytest.raises(rb.Interrupted):
        simulation.run_config(settings, tmp_path / "run.nc", stopping(signal.SIGHUP, 2))
    return tmp_path / "run.nc", expected


def test_a_model_from_a_file_is_made_again(own):
    file, expected = own
    same(go_on(file), expected)


@pytest.mark.parametrize("name", ["own.py", "shape.py"])
def test_a_source_that_was_changed_is_refused_and_its_own_is_kept(own, name):
    file, expected = own
    path = file.with_name(name)
    path.write_text(OWN.replace("return coupling", "return 2 * coupling"))
    with pytest.raises(rb.InputError) as caught:
        go_on(file)
    for word in (str(path), "was changed", "bring back", "move it away", "start a new run"):
        assert word in str(caught.value)
    path.unlink()
    same(go_on(file), expected)


def contact(s, t, u, ma2, mb2, mc2, md2, coupling, screening2):
    return coupling


def twice(s, t, u, ma2, mb2, mc2, md2, coupling, screening2):
    return 2 * coupling


def own_model(element=contact, coupling=3000.0):
    process = rb.Process("a a -> a a", element, coupling=coupling)
    return rb.Model([rb.Species("a", 2, 0)], [process], masses={"a": 0.3})


def test_a_model_made_in_python_is_asked_for_again(tmp_path):
    file, grid, start = tmp_path / "run.nc", rb.PhaseSpace(5, 2.0), {"a": rb.initial.step(0.3, 1.5)}
    options = {"end": 0.2, "samples": 1}
    expected = rb.solve(own_model(), grid, start, progress=False, **options)
    with pytest.raises(rb.Interrupted):
        stop = stopping(signal.SIGTERM, 2)
        rb.solve(own_model(), grid, start, file=file, progress=stop, **options)
    with pytest.raises(rb.InputError, match=r"made in Python; use relboltz.resume\(.*model=...\)"):
        go_on(file)
    for other in (own_model(coupling=1.0), own_model(twice), rb.gluons(0.3)):
        with pytest.raises(rb.InputError, match="not that of the model that began the run; use"):
            go_on(file, model=other)
    same(go_on(file, model=own_model()), expected)


def test_an_element_of_the_same_numbers_but_another_source_is_named(tmp_path):
    file, grid, start = tmp_path / "run.nc", rb.PhaseSpace(5, 2.0), {"a": rb.initial.step(0.3, 1.5)}
    rb.solve(own_model(), grid, start, file=file, progress=False, end=0.1, samples=1)
    with pytest.raises(rb.InputError, match="the matrix element of a a -> a a is not that"):
        go_on(file, until=0.2, model=own_model(_renamed(twice)))


def _renamed(function):
    function.__name__ = function.__qualname__ = "contact"
    return function


@pytest.mark.parametrize(
    "model", [rb.qcd(0.3, flavors=1), rb.gluons(0.3, masses={"g": 0.5}), rb.quarks(alpha_s=0.2)]
)
def test_built_in_models_need_not_be_given_again(tmp_path, model):
    start = {model.names[0]: rb.initial.step(0.5, 1.5)}
    given = {"samples": 1, "progress": False}
    expected = rb.solve(model, rb.PhaseSpace(5, 2.0), start, end=0.2, **given)
    rb.solve(model, rb.PhaseSpace(5, 2.0), start, end=0.1, file=tmp_path / "run.nc", **given)
    same(go_on(tmp_path / "run.nc", until=0.2), expected)


# --- what is missing ----------------------------------------------------------------------------


@pytest.fixture
def killed(tmp_path):
    """What a run leaves that is killed after some records."""
    file, copies = tmp_path / "run" / "run.nc", tmp_path / "killed"
    file.parent.mkdir()

    def progress(moment):
        if moment.time > 0.12 and not copies.exists():
            time.sleep(0.1)
            shutil.copytree(file.parent, copies)

    solve("gluons", file, end=0.2, every=0.02, checkpoint_every=1e-9, progress=progress)
    return copies / "run.nc"


def parts(file):
    (found,) = file.parent.glob("run.parts-*")
    return found


def test_a_file_that_is_gone_is_made_again_from_its_parts(killed):
    killed.unlink(missing_ok=True)
    same(go_on(killed), solve("gluons", end=0.2, every=0.02, checkpoint_every=1e-9))


def test_records_that_are_gone_are_asked_for(killed):
    kept = shutil.copytree(parts(killed), killed.with_name("kept"))
    shutil.rmtree(folder := parts(killed))
    killed.unlink(missing_ok=True)
    with pytest.raises(rb.InputError, match=r"run.nc: the records .* bring back the file, or"):
        go_on(killed)
    kept.rename(folder)
    assert go_on(killed).attrs["status"] == "done"


def test_parts_that_are_cut_short_are_asked_for_and_taken_when_they_are_back(killed):
    records = parts(killed) / "records"
    good = records.read_bytes()
    for bad in (good[:100], b""):
        records.write_bytes(bad)
        with pytest.raises(rb.InputError, match="is damaged: .* records are missing; bring it"):
            go_on(killed)
    records.unlink()
    with pytest.raises(rb.InputError, match="is damaged: .* records are missing; bring it"):
        go_on(killed)
    records.write_bytes(good)
    assert go_on(killed).attrs["status"] == "done"


@pytest.mark.parametrize("other", ["gone", "of another run", "no file of ours"])
def test_a_finished_run_without_its_own_file_is_refused(tmp_path, other):
    file = tmp_path / "run.nc"
    solve("gluons", file, end=0.1)
    good = file.read_bytes()
    file.unlink()
    if other == "of another run":
        solve("gluons", tmp_path / "other.nc", end=0.1)
        (tmp_path / "other.nc").rename(file)
    elif other == "no file of ours":
        file.write_text("something else")
    with pytest.raises(rb.InputError, match=r"run.nc: the records .* bring back the file, or"):
        go_on(file, until=0.2)
    file.write_bytes(good)
    assert go_on(file, until=0.2).attrs["status"] == "done"


def test_nothing_to_go_on_from_is_said(tmp_path):
    with pytest.raises(rb.InputError, match=r"no checkpoint run.checkpoint-\*.*start the run"):
        go_on(tmp_path / "run.nc")
    assert command("resume", tmp_path / "run.nc")[0] == 2


def test_other_software_is_told_of(tmp_path, monkeypatch):
    from relboltz.records import output

    solve("gluons", tmp_path / "run.nc", end=0.1)
    now = output.versions()
    monkeypatch.setattr(output, "versions", lambda: now | {"numba_version": "1.2.3"})
    with pytest.warns(CheckpointWarning, match=r"numba_version .* \(now 1.2.3\): the last bits"):
        go_on(tmp_path / "run.nc", until=0.2)


# --- one at a time, and nothing is replaced -----------------------------------------------------


def test_a_second_process_is_refused(tmp_path):
    file, refused = tmp_path / "run.nc", []

    def another(_):
        if len(refused) < 2:
            with pytest.raises(rb.InputError, match="another process is at this run; wait"):
                go_on(file, until=0.4)
            refused.append(1)

    solve("gluons", file, end=0.1, progress=another)
    assert refused == [1, 1]
    refused.clear()
    same(go_on(file, until=0.4, progress=another), solve("gluons", end=0.4))
    assert refused == [1, 1]


def test_a_result_is_not_replaced_unless_asked(tmp_path):
    settings, file = configured(tmp_path)
    solve("gluons", file, end=0.1)
    before = {p.name: p.read_bytes() for p in tmp_path.iterdir()}
    with pytest.raises(rb.InputError) as caught:
        solve("gluons", file, end=0.1)
    for word in ("run.nc' exists already", "another name", "force=True", "relboltz resume"):
        assert word in str(caught.value)
    code, told = command("run", settings, "--out", file, "--quiet")
    assert code == 2
    for word in ("run.nc' exists already", "--out", "--force", "relboltz resume"):
        assert word in told
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == before
    assert command("run", settings, "--out", file, "--quiet", "--force") == (0, "")
    assert in_file(file) == ("done", 0.2)
    solve("gluons", file, end=0.3, force=True)
    assert in_file(file) == ("done", 0.3)


def test_a_run_that_was_not_finished_is_not_replaced(killed):
    killed.unlink(missing_ok=True)
    with pytest.raises(rb.InputError, match=r"was not finished \(run.checkpoint-\d+\); .*resume"):
        solve("gluons", killed, end=0.1)
    solve("gluons", killed, end=0.1, force=True)
    with pytest.raises(rb.InputError, match="the run is done, at t = 0.1 fm"):
        go_on(killed)


@pytest.mark.parametrize("force", [False, True])
def test_a_device_is_no_place_for_a_result(force):
    with pytest.raises(rb.InputError, match="'/dev/null' is no file but a device; use another"):
        solve("gluons", "/dev/null", end=0.1, force=force)
    assert Path("/dev/null").is_char_device()


# --- the end of a run, step by step -------------------------------------------------------------


def test_a_result_that_could_not_be_written_at_the_end_is_written_by_resume(tmp_path, monkeypatch):
    """The last checkpoint is at the end, and the records are in the parts."""
    from relboltz.records import output

    def no_space(*_):
        raise OSError(28, "No space left on device")

    expected, file = solve("gluons", end=0.1), tmp_path / "run.nc"
    with monkeypatch.context() as patch:
        patch.setattr(output, "write", no_space)
        with pytest.raises(rb.RunError, match="could not be written: .*left in"):
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
