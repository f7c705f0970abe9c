"""Whatever happens to standard output and standard error, a result reaches the disk."""

import io
import json
import os
import shlex
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
from test_cli import SMALL

import relboltz as rb
from relboltz.cli import app as cli
from relboltz.run import progress
from relboltz.util.console_streams import FailSafeStream
from relboltz.util.text import harmless

ROOT = Path(__file__).parents[2]
FULL = Path("/dev/full")
GLUONS = rb.gluons(0.3), rb.PhaseSpace(7, 2.0), {"g": rb.initial.step(0.5, 1.5)}


class Broken(io.StringIO):
    """A pipe that nobody reads, on a terminal if so wanted."""

    def __init__(self, terminal=False):
        super().__init__()
        self.terminal, self.tries = terminal, 0

    def isatty(self):
        return self.terminal

    def write(self, text):
        self.tries += 1
        raise BrokenPipeError(32, "Broken pipe")


class Closed(io.StringIO):
    """Stream that a program has closed."""

    def __init__(self):
        super().__init__()
        self.close()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("small.toml").write_text(SMALL)
    return tmp_path


def code_of(monkeypatch, *arguments):
    """Exit code of a command."""
    monkeypatch.setattr(sys, "argv", ["relboltz", *arguments])
    with pytest.raises(SystemExit) as leaving:
        cli.main()
    return leaving.value.code or 0


# --- streams ------------------------------------------------------------------------------------


def test_a_stream_that_failed_is_not_tried_again():
    broken = Broken()
    stream = FailSafeStream(broken)
    for _ in range(3):
        assert stream.write("text") == 4
    stream.flush()
    assert broken.tries == 1 and isinstance(stream.error, BrokenPipeError)
    with pytest.raises(TypeError):
        stream.write(b"")


def test_a_stream_that_was_closed_takes_everything():
    for stream in (FailSafeStream(None), FailSafeStream(Closed())):
        stream.writelines(["one", "two"])
        stream.flush()
        assert not stream.isatty()


def test_characters_that_a_stream_does_not_know_are_written_otherwise():
    raw = io.BytesIO()
    stream = FailSafeStream(io.TextIOWrapper(raw, "ascii"))
    stream.write("\udcff.nc ħ")
    stream.flush()
    assert raw.getvalue() == b"\\udcff.nc \\u0127" and stream.error is None


def test_nothing_in_a_text_moves_the_cursor():
    assert harmless("a\x1b[31mb\r\x00\udcff\nħ") == "a\\x1b[31mb\\r\\x00\\udcff\nħ"


# --- commands -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "quiet"),
    [
        (Broken, ["--quiet"]),
        (Closed, []),
        (lambda: None, []),
        (lambda: Broken(terminal=True), []),
    ],
    ids=["quiet", "closed", "none", "terminal"],
)
def test_a_run_goes_on_where_nothing_can_be_printed(folder, monkeypatch, kind, quiet):
    monkeypatch.setattr(sys, "stdout", kind())
    monkeypatch.setattr(sys, "stderr", kind())
    assert code_of(monkeypatch, "run", "small.toml", *quiet) == 0
    ds = rb.load("run.nc")
    assert ds.attrs["status"] == "done" and "too few samples" in ds.attrs["warnings"]


def test_bad_input_is_told_by_the_exit_code_at_least(folder, monkeypatch):
    monkeypatch.setattr(sys, "stderr", Broken())
    assert code_of(monkeypatch, "run", "nothing.toml") == 2


def test_what_only_tells_something_fails_if_it_cannot(folder, monkeypatch):
    monkeypatch.setattr(sys, "stdout", Broken())
    assert code_of(monkeypatch, "info") == 1


def shell(folder, line):
    """Exit code of a line of the shell, and what it left to read."""
    environment = os.environ | {"PYTHONPATH": str(ROOT), "RUN": f"{sys.executable} -m relboltz"}
    environment.pop("PYTHONUNBUFFERED", None)
    done = subprocess.run(
        ["bash", "-c", line], cwd=folder, env=environment, capture_output=True, text=True,
        timeout=120, check=False,
    )  # fmt: skip
    return done.returncode, done.stdout + done.stderr


@pytest.mark.skipif(not FULL.exists(), reason="there is no /dev/full")
def test_a_process_ends_in_peace_where_nothing_can_be_printed(folder):
    """No traceback, no complaint of Python at its end; the exit code tells of the result."""
    code, words = shell(folder, "$RUN run small.toml --out a.nc > /dev/full 2> /dev/full")
    assert code == 0 and words == "" and rb.load(folder / "a.nc").attrs["status"] == "done"
    code, words = shell(folder, "$RUN run small.toml --out b.nc <&- >&- 2>&-")
    assert code == 0 and words == "" and rb.load(folder / "b.nc").attrs["status"] == "done"
    assert shell(folder, "$RUN --help > /dev/full") == (0, "")


def test_a_file_never_becomes_standard_error(folder):
    """Where that was closed, the next file that is opened would."""
    program = (
        "import os, sys; from relboltz.util.console_streams import steady\n"
        "with steady(): os._exit(0 if os.open('new', os.O_CREAT | os.O_WRONLY) > 2 else 1)"
    )
    line = f"{sys.executable} -c {shlex.quote(program)} <&- >&- 2>&-"
    assert shell(folder, line) == (0, "")


# --- names --------------------------------------------------------------------------------------


def test_a_title_or_a_path_that_is_no_text_does_not_lose_the_result(folder, monkeypatch, capsys):
    Path("odd.toml").write_text(SMALL.replace("small [bold]", "a\\u0000b"))
    name = os.fsdecode(b"\xff[red].nc")
    assert code_of(monkeypatch, "run", "odd.toml", "--out", name) == 0
    assert "written: \\udcff[red].nc" in capsys.readouterr().out
    ds = rb.load(name)
    assert ds.attrs["title"] == "a?b" and 'file = "?[red].nc"' in ds.attrs["configuration"]


@pytest.mark.parametrize("name", ["a\0b.nc", "x" * 300 + ".nc", "loop/run.nc"])
def test_paths_that_lead_nowhere_are_refused_in_words(folder, monkeypatch, name):
    Path("loop").symlink_to("loop")
    with pytest.raises(rb.InputError, match="output.file = .*; (create it or )?choose another"):
        rb.solve(*GLUONS, end=0.02, file=name)
    assert (
        code_of(monkeypatch, "run", "small.toml", "--set", f"output.file={json.dumps(name)}") == 2
    )


# --- warnings -----------------------------------------------------------------------------------


def test_warnings_that_are_errors_are_raised_when_all_is_written(tmp_path):
    """Warnings from before the first step wait as well; the result of the run is in the error."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(rb.AccuracyWarning, match="the grid is coarse") as caught:
            rb.solve(*GLUONS, end=0.02, samples=1, file=tmp_path / "w.nc")
    ds = rb.load(tmp_path / "w.nc")
    assert ds.attrs["status"] == "done" and "too few samples" in ds.attrs["warnings"]
    assert caught.value.dataset.identical(ds)


def test_warnings_that_cannot_be_shown_stop_nothing(tmp_path, monkeypatch):
    def show(*_, **__):
        raise BrokenPipeError

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        monkeypatch.setattr(warnings, "showwarning", show)
        ds = rb.solve(*GLUONS, end=0.02, samples=1, file=tmp_path / "w.nc")
    assert ds.attrs["status"] == rb.load(tmp_path / "w.nc").attrs["status"] == "done"


def test_a_bar_on_a_broken_terminal_stops_nothing(monkeypatch):
    broken = Broken(terminal=True)
    monkeypatch.setattr(sys, "stderr", broken)
    monkeypatch.setenv("TERM", "xterm")
    assert rb.solve(*GLUONS, end=0.02, samples=1, progress=True).attrs["status"] == "done"
    assert broken.tries == 1
    with progress.bar() as report:
        report(progress.RunProgress(1.0, 2.0, 0.1, 0, 0.0))
