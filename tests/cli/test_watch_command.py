"""relboltz watch: a run that is followed from another terminal."""

import io
import sys
from pathlib import Path

import pytest
import typer
from rich.console import Console

import relboltz as rb
from relboltz.cli import app as cli
from relboltz.cli import console as terminal
from relboltz.cli import watch
from relboltz.io import output
from relboltz.io.reservation import Reservation


@pytest.fixture(scope="module")
def ds():
    """A run of four records."""
    options = dict(end=0.03, step=0.01, every=0.01, samples=1, backend="cpu", threads=1)
    model, grid, start = rb.gluons(0.3), rb.PhaseSpace(5, 2.0), {"g": rb.initial.step(0.5, 1.5)}
    with pytest.warns(rb.AccuracyWarning):
        return rb.solve(model, grid, start, progress=False, **options)


@pytest.fixture
def file(ds, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(watch.time, "sleep", lambda seconds: None)
    return Path("run.nc")


def put(ds, file, records, status="running"):
    """A run as it is on disk after so many records."""
    output.write(ds.isel(time=slice(0, records)).assign_attrs(status=status), file)


@pytest.fixture
def call(monkeypatch, capsys):
    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["relboltz", "watch", *map(str, arguments)])
        with pytest.raises(SystemExit) as leaving:
            cli.main()
        return leaving.value.code, capsys.readouterr().out.splitlines()

    return call


def test_a_look_tells_time_step_drifts_and_distance(ds, file, call):
    put(ds, file, 4, "done")
    code, (line,) = call(file, "--once")
    far = 100 * float(ds.equilibrium_distance[-1])
    energy = float(ds.energy_total[-1] / ds.energy_total[0]) - 1
    assert code == 0 and line == (
        f"t = 0.03 fm, step 0.01 fm, dN = 0, dE/E = {energy:.0e}, "
        f"{far:.2g} % not yet in equilibrium   (done)"
    )


def test_a_run_that_nobody_is_at_has_stopped(ds, file, call):
    put(ds, file, 2)
    code, (line,) = call(file)  # it does not wait for a run that is over
    assert code == 0 and line.endswith("(stopped; go on with it: relboltz resume run.nc)")


def test_a_line_for_every_new_record_until_the_run_ends(ds, file, call, monkeypatch):
    put(ds, file, 1)
    reserved = Reservation(file)
    reserved.take()
    ahead = iter([(1, "running"), (3, "running"), (3, "running"), (4, "done")])

    def later(seconds):
        records, status = next(ahead)
        put(ds, file, records, status)
        if status == "done":
            reserved.free()

    monkeypatch.setattr(watch.time, "sleep", later)
    code, lines = call(file, "--every", 0.5)
    assert code == 0 and next(ahead, None) is None
    assert [line.partition(",")[0] for line in lines] == ["t = 0 fm", "t = 0.02 fm", "t = 0.03 fm"]
    assert [line.rpartition("(")[2] for line in lines] == ["running)", "running)", "done)"]


def test_a_run_that_has_written_nothing_yet_is_starting(file):
    reserved = Reservation(file)
    reserved.take()
    try:
        with pytest.raises(rb.InputError, match="run.nc: its run is starting .*; try again"):
            watch.looked(file)
    finally:
        reserved.free()


def test_a_watch_waits_for_the_first_record(ds, file, call, monkeypatch):
    reserved = Reservation(file)
    reserved.take()

    def later(seconds):
        put(ds, file, 4, "done")
        reserved.free()

    monkeypatch.setattr(watch.time, "sleep", later)
    code, (first, last) = call(file)
    assert code == 0 and first == "run.nc: its run is starting; waiting for its first record"
    assert last.startswith("t = 0.03 fm")


def shown(monkeypatch):
    """Return what a terminal shows."""
    text = io.StringIO()
    terminal_ = Console(file=text, force_terminal=True, width=100, color_system=None)
    for place in (watch, terminal):
        monkeypatch.setattr(place, "console", terminal_)
    return text


def test_a_terminal_shows_a_table_that_follows(ds, file, monkeypatch):
    looks = iter([(ds.isel(time=slice(0, 2)), True), (ds, True), (ds, False)])
    monkeypatch.setattr(watch, "looked", lambda _: next(looks))
    text = shown(monkeypatch)
    watch.watch(file)
    assert text.getvalue().count("change of total energy") == 4  # at once, thrice, and as it ends
    assert "t = 0.01 fm" in text.getvalue() and "t = 0.03 fm" in text.getvalue()


def test_ctrl_c_ends_the_watch_and_not_the_run(ds, file, monkeypatch):
    def stop(seconds):
        raise KeyboardInterrupt

    monkeypatch.setattr(watch, "looked", lambda _: (ds, True))
    monkeypatch.setattr(watch.time, "sleep", stop)
    shown(monkeypatch)
    with pytest.raises(typer.Exit) as leaving:
        watch.watch(file)
    assert leaving.value.exit_code == 130
