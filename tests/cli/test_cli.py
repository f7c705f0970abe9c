"""The command line: exit codes, messages without tracebacks, and signals."""

import errno
import importlib.util
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from pathlib import Path

import h5netcdf
import numpy as np
import pytest
import xarray as xr

import relboltz as rb
from relboltz.backends.cuda import driver as cuda_engine
from relboltz.cli import app as cli
from relboltz.io import output
from relboltz.io.reservation import Reservation
from relboltz.run import solve as simulation

ROOT = Path(__file__).parents[2]
SMALL = """
title = "small [bold]"
[model]
name = "gluons"
alpha_s = 0.3
[grid]
momentum_cells = 7
momentum_max = 2.0
[initial.g]
shape = "step"
height = 0.5
edge = 1.5
[collisions]
samples = 2
[time]
end = 0.02
[output]
every = 0.01
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A current folder with a small configuration, small.toml."""
    monkeypatch.chdir(tmp_path)
    Path("small.toml").write_text(SMALL)
    return tmp_path


@pytest.fixture
def call(folder, monkeypatch, capsys):
    """Calls relboltz like a shell: (exit code, standard output, standard error)."""

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["relboltz", *map(str, arguments)])
        monkeypatch.setenv("COLUMNS", "300")
        code = 0
        try:
            cli.main()
        except SystemExit as leaving:
            code = leaving.code or 0
        out, err = capsys.readouterr()
        assert "Traceback" not in out + err
        return code, out, err

    return call


@pytest.fixture
def lazy(monkeypatch):
    """Fails if any work starts."""

    def too_late(*args, **keys):
        raise AssertionError("work began")

    monkeypatch.setattr(simulation, "Run", too_late)


# --- run ----------------------------------------------------------------------------------------


def test_run_writes_a_file_and_prints_a_table(call):
    code, out, err = call("run", "small.toml", "--out", "a.nc")
    assert code == 0
    for words in ("change of number", "0 (exact)", "temperature [GeV]", "written: a.nc"):
        assert words in out
    assert "\x1b" not in out + err and "\r" not in out + err  # no progress bar in a pipe
    assert rb.load("a.nc").attrs["status"] == "done"


def test_the_output_file_of_the_configuration_is_the_default(call):
    assert call("run", "small.toml", "--quiet", "--set", "output.file=b.nc")[0] == 0
    assert Path("b.nc").exists() and not Path("run.nc").exists()
    assert call("run", "small.toml", "--quiet")[0] == 0
    assert Path("run.nc").exists()


def test_quiet_prints_nothing(call):
    code, out, err = call("run", "small.toml", "--quiet")
    assert (code, out) == (0, "")
    assert all(line.startswith("warning:") for line in err.splitlines())


def test_set_takes_toml_values_and_bare_words_and_repeats(call):
    changes = ("time.end=0.03", "collisions.projection=nearest", "output.snapshots=[0.01]",
               "initial.g={shape='gaussian', height=0.4, widths=0.6}", "title=one two",
               "time.end=0.025")  # fmt: skip
    arguments = [word for change in changes for word in ("--set", change)]
    assert call("run", "small.toml", "--quiet", *arguments)[0] == 0
    ds = rb.load("run.nc")
    inside = tomllib.loads(ds.attrs["configuration"])
    assert inside["collisions"]["projection"] == "nearest" and ds.attrs["title"] == "one two"
    assert inside["initial"]["g"]["shape"] == "gaussian"
    assert inside["time"]["end"] == ds.time.values[-1] == 0.025  # the last one counts
    np.testing.assert_array_equal(ds.snapshot, [0.01])


def test_threads_reach_the_backend(call):
    code, out, _ = call("run", "small.toml", "--threads", "1")
    assert code == 0 and "cpu, 1 thread, float64" in out
    assert tomllib.loads(rb.load("run.nc").attrs["configuration"])["run"]["threads"] == 1


def test_backend_is_checked(call, lazy, monkeypatch):
    monkeypatch.setattr(cuda_engine, "trouble", lambda: "there is no GPU; use another")
    code, _, err = call("run", "small.toml", "--backend", "cuda")
    assert code == 2 and "run.backend = 'cuda': there is no GPU; use another" in err
    code, _, err = call("run", "small.toml", "--backend", "it's")
    assert code == 2 and "use 'auto', 'cpu' or 'cuda'" in err


# --- new, info, plot, and the rest --------------------------------------------------------------


def test_new_writes_a_configuration_that_runs_and_overwrites_nothing(call):
    code, out, _ = call("new", "mine.toml")
    assert code == 0 and "written: mine.toml" in out
    changes = ("grid.momentum_cells=7", "grid.momentum_max=2.0", "time.end=0.02",
               "collisions.samples=2")  # fmt: skip
    arguments = [word for change in changes for word in ("--set", change)]
    assert call("run", "mine.toml", "--quiet", *arguments)[0] == 0
    before = Path("mine.toml").read_text()
    code, _, err = call("new", "mine.toml")
    assert code == 2 and "mine.toml exists already; choose another name" in err
    assert Path("mine.toml").read_text() == before
    code, _, err = call("new", "missing/mine.toml")
    assert code == 2 and "cannot be written: No such file or directory" in err


def test_info_tells_of_the_installation(call):
    code, out, _ = call("info")
    assert code == 0
    assert f"relboltz {rb.__version__}" in out
    for name, version in (("numpy", np.__version__), ("backend", "cpu")):
        assert re.search(rf"{name}\W+{re.escape(version)}", out)


def test_info_tells_of_a_result(call):
    call("run", "small.toml", "--quiet")
    code, out, _ = call("info", "run.nc")
    assert code == 0
    for words in ("(done)", "small [bold]", "t = 0.02 fm", "time 3, species 1", "the grid is",
                  'name = "gluons"'):  # fmt: skip
        assert words in out, words
    assert call("info", "small.toml")[0] == 2
    code, _, err = call("info", "none.nc")
    assert code == 2 and "none.nc: there is no such file" in err


@pytest.mark.skipif(
    importlib.util.find_spec("relboltz.visualization.plots") is None, reason="no pictures yet"
)
def test_plot_writes_pictures(call):
    call("run", "small.toml", "--quiet")
    code, out, _ = call("plot", "run.nc", "--out", "pictures/here")
    assert code == 0
    pictures = list(Path("pictures/here").iterdir())
    assert pictures and all(p.stat().st_size > 1000 for p in pictures)
    assert all(f"written: {p}" in out for p in pictures)


def test_plot_complains_about_its_input(call):
    assert call("plot", "small.toml")[0] == 2
    call("run", "small.toml", "--quiet")
    code, _, err = call("plot", "run.nc", "--out", "small.toml")
    assert code == 2 and "--out small.toml: cannot be created" in err


def test_version_and_unknown_commands(call):
    assert call("--version")[:2] == (0, f"{rb.__version__}\n")
    code, _, err = call("rum", "small.toml")
    assert code == 2 and "No such command 'rum'" in err
    assert call("run")[0] == 2
    assert call("run", "small.toml", "--threads", "two")[0] == 2
    assert call("run", "small.toml", "--colour")[0] == 2
    code, out, _ = call("--help")
    assert code == 0 and all(name in out for name in ("run", "new", "plot", "info", "bench"))


# --- bad input ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("grid.momentum_cell=9", "unknown key grid.momentum_cell: did you mean momentum_cells?"),
        ("colisions.seed=1", "unknown key colisions: did you mean collisions?"),
        ("time.end='5'", "time.end = '5': use a number of fm above 0"),
        ("time.end=nan", "time.end = nan: use a number of fm above 0"),
        ("time.end=-1", "time.end = -1: use a number of fm above 0"),
        ("collisions.samples=2.5", "collisions.samples = 2.5: use a whole number, 1 or more"),
        ("grid.momentum_cells=[7, 7]", "grid.momentum_cells = [7, 7]: use one whole number"),
        ("grid.momentum_cells=0", "grid.momentum_cells = 0: use one whole number"),
        ("initial.g.height=-1", "initial.g.height = -1: a step has a height f >= 0"),
        ("initial.g.height=0", "the system is empty: f = 0 at every node"),
        ("initial.g.height=inf", "initial.g.height = inf"),
        ("initial.q={shape='step',height=1,edge=1}", "unknown species initial.q; known: g"),
        ("model.name=glouns", "model.name = 'glouns': did you mean 'gluons'?"),
        ("model.alpha_s=0", "model.alpha_s = 0: the coupling must be a positive number"),
        ("model.alpha=0.3", "unknown key model.alpha: did you mean alpha_s?"),
        ("output.snapshots=[1.0]", "1.0 is after time.end = 0.02"),
        ("nonsense", "--set nonsense: write key=value, such as time.end=5.0"),
        ("time.end=[1", "--set time.end=[1: '[1' is not a TOML value"),
        ("time.step=0.0", "time.step = 0.0: use 'auto' or a number of fm above 0"),
    ],
)
def test_bad_input_gets_one_message_and_code_2(call, monkeypatch, change, message):
    monkeypatch.setattr(simulation, "Run", None)  # any work would be a TypeError
    code, out, err = call("run", "small.toml", "--set", change)
    assert code == 2 and out == ""
    assert message in err
    assert err.startswith("error: ") and len(err.splitlines()) == 1
    assert not Path("run.nc").exists()


@pytest.mark.parametrize("where", ["top", "model", "shape"])
def test_leaving_in_a_users_file_is_an_error(call, lazy, where):
    """sys.exit(0) would end the command in silence, and well."""
    Path("mine.py").write_text(
        ("import sys; sys.exit(0)\n" if where == "top" else "import sys\n")
        + "def model():\n    sys.exit(0)\ndef shape(px, py, pz):\n    sys.exit(0)\n"
    )
    change = (
        "initial.g={shape='mine.py:shape'}" if where == "shape" else "model={name='mine.py:model'}"
    )
    code, _, err = call("run", "small.toml", "--quiet", "--set", change)
    assert code == 2 and "failed with SystemExit: 0" in err and len(err.splitlines()) == 1


def test_ctrl_c_in_a_users_file_is_ctrl_c(call, lazy):
    Path("mine.py").write_text("raise KeyboardInterrupt\n")
    assert call("run", "small.toml", "--set", "model={name='mine.py:model'}")[0] == 130


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a = " + "[" * 5000, "odd.toml: not valid TOML: maximum recursion depth"),
        ("a = " + "9" * 5000, "odd.toml: not valid TOML: Exceeds the limit"),
        (SMALL + "file = 'a\0b'", "odd.toml: not valid TOML"),
        (SMALL + 'file = "a\\u0000b"', "cannot be written (embedded null byte)"),
        (SMALL + f"file = '{'a' * 300}'", "cannot be written (File name too long)"),
        (SMALL + "file = 'loop/a.nc'", "the folder 'loop' does not exist"),
    ],
)
def test_odd_texts_and_paths_are_refused(call, lazy, text, message):
    Path("odd.toml").write_text(text)
    Path("loop").symlink_to("loop")
    code, _, err = call("run", "odd.toml")
    assert code == 2 and message in err
    for name in ("a" * 300, "loop"):
        assert [call(word, name)[0] for word in ("run", "info", "plot")] == [2, 2, 2]
    assert call("new", "a" * 300)[0] == 2


# --- what others wrote --------------------------------------------------------------------------

OWN = """
from relboltz.model.model import Model, Process, Species
def constant(s):
    return 1.0
def gas():
    name = "x[/b]\x1b[31m"
    return Model([Species(name)], [Process(f"{name} {name} -> {name} {name}", constant)])
"""


def test_names_are_neither_markup_nor_commands_to_a_terminal(call):
    """Species, titles and files may have such names."""
    Path("own.py").write_text(OWN)
    text = SMALL.replace("[initial.g]", r'[initial."x[/b]\u001b[31m"]').replace("7\n", "8\n", 1)
    text = re.sub(r"\[model\].*\[grid\]", "[model]\nname = 'own.py:gas'\n[grid]", text, flags=re.S)
    Path("own.toml").write_text(text.replace("small [bold]", r"[/red]\u001b[31m"))
    code, out, err = call("run", "own.toml", "--out", "[red].nc", "--set", "run.backend=cpu")
    assert code == 0 and "written: [red].nc" in out and r"mu of x[/b]\x1b[31m [GeV]" in out
    code, told, _ = call("info", "[red].nc")
    assert code == 0 and r"[/red]\x1b[31m   (done)" in told
    assert "\x1b" not in out + err + told


# --- results that are not whole -----------------------------------------------------------------


def test_damaged_results_are_refused_in_words(call, monkeypatch):
    """Variables or attributes that are missing, of no dimension, or of another kind."""
    call("run", "small.toml", "--quiet")
    whole = rb.load("run.nc")
    spoilt = {name: whole.drop_vars(name) for name in ("number", "charge_drift", "statistics")}
    spoilt |= {f"{name} 1": whole.assign({name: 1.0}) for name in ("number", "temperature")}
    spoilt["number x"] = whole.assign(number=(("time", "species"), [["x"], ["x"], ["x"]]))
    for name in ("title", "warnings", "backend"):
        del (ds := whole.copy()).attrs[name]
        spoilt[f"no {name}"] = ds
    spoilt["odd steps"] = whole.assign_attrs(steps=np.array([1.5, 2.5]))
    spoilt["no time"] = whole.isel(time=slice(0, 0))
    for what, ds in spoilt.items():
        monkeypatch.setattr(output, "load", lambda path, ds=ds: ds)
        for word in ("info", "plot") if what == "number" else ("info",):
            code, _, err = call(word, "spoilt.nc")
            assert code == 2 and "spoilt.nc: is damaged, or not a result of this" in err, what


def test_a_shape_of_many_terabytes_is_not_allocated(call):
    """A file of 9 kB."""
    with h5netcdf.File("vast.nc", "w") as file:
        axes = dict.fromkeys(("px", "py", "pz"), 21544)
        file.dimensions = {"time": 1, "snapshot": 1, "species": 1, **axes}
        for name in file.dimensions:
            file.create_variable(name, (name,), float)
        dims = ("snapshot", "species", "px", "py", "pz")
        file.create_variable("f", dims, float, chunks=(1, 1, 64, 64, 64))
        file.attrs["relboltz_version"] = file.attrs["status"] = "1"
    for word in ("info", "plot"):
        code, _, err = call(word, "vast.nc")
        assert code == 2 and "GiB do not fit into memory" in err
    change = "initial.g={shape='file', path='vast.nc'}"
    code, _, err = call("run", "small.toml", "--out", "b.nc", "--set", change)
    assert code == 2 and "initial.g.path = 'vast.nc': a snapshot takes" in err


@pytest.mark.parametrize("spoil", ["torn", "without f", "f 1", "text"])
def test_starts_from_damaged_files_are_refused(call, lazy, spoil):
    Path("torn.nc").write_bytes(b"\x89HDF\r\n\x1a\n" + bytes(100))
    if spoil != "torn":
        axes = {name: (name, np.linspace(-1, 1, 3)) for name in ("px", "py", "pz")}
        ds = xr.Dataset({"species": ("species", ["g"]), "snapshot": ("snapshot", [0.0]), **axes})
        if spoil != "without f":
            ds["f"] = ("species", ["x"]) if spoil == "text" else 1.0
        ds.to_netcdf("torn.nc", engine="h5netcdf")
    change = "initial.g={shape='file', path='torn.nc'}"
    code, _, err = call("run", "small.toml", "--out", "b.nc", "--set", change)
    assert code == 2 and "initial.g.path = 'torn.nc': " in err and len(err.splitlines()) == 1


def test_too_many_fermions_are_refused(call, lazy):
    arguments = (
        "--set",
        "model.name=quarks",
        "--set",
        "initial={u={shape='step',height=1.2,edge=1}}",
    )
    code, _, err = call("run", "small.toml", *arguments)
    assert code == 2
    assert re.search(r"initial.u: f = 1.2 of u at p = \(.*\) GeV is above 1: Pauli", err)


def test_missing_and_broken_files_are_said(call, lazy):
    code, _, err = call("run", "none.toml")
    assert code == 2 and err == "error: none.toml: cannot be read: No such file or directory\n"
    assert call("run", ".")[0] == 2
    Path("broken.toml").write_text("[model\nname = 1")
    code, _, err = call("run", "broken.toml")
    assert code == 2 and "broken.toml: not valid TOML" in err and "line 1" in err
    Path("binary.toml").write_bytes(b"\xff\xfe\x00")
    assert call("run", "binary.toml")[0] == 2
    Path("empty.toml").write_text("")
    code, _, err = call("run", "empty.toml")
    assert code == 2
    assert all(f"missing key {key}: " in err for key in ("model", "initial", "time"))


@pytest.mark.parametrize(
    ("out", "message"),
    [
        ("missing/a.nc", "the folder 'missing' does not exist"),
        (".", "is a folder"),
        ("/proc/a.nc", "output.file = '/proc/a.nc' cannot be written"),
        ("small.toml/a.nc", "does not exist"),
    ],
)
def test_output_that_cannot_be_written_is_said_before_the_run(call, lazy, out, message):
    code, _, err = call("run", "small.toml", "--out", out)
    assert code == 2 and message in err and "--out" in err


def test_the_configuration_is_never_overwritten_by_the_result(call, lazy):
    code, _, err = call("run", "small.toml", "--out", "small.toml")
    assert code == 2 and "small.toml" in err
    assert Path("small.toml").read_text() == SMALL


def test_a_vast_number_of_records_is_refused(call, lazy):
    """0.02 fm in steps of 1e-12 would be 2e10 records: no memory holds their times."""
    code, _, err = call("run", "small.toml", "--set", "output.every=1e-12")
    assert code == 2 and "output.every" in err


# --- failures while running ---------------------------------------------------------------------


def test_a_full_disk_gives_code_1_and_the_place_of_the_rescue(call, folder, monkeypatch):
    original, elsewhere = output.write, folder / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(elsewhere))

    def write(ds, path, *rows):
        if path.name == "run.nc":
            raise OSError(errno.ENOSPC, "No space left on device")
        original(ds, path, *rows)

    monkeypatch.setattr(output, "write", write)
    code, _, err = call("run", "small.toml", "--quiet")
    assert code == 1
    (rescued,) = elsewhere.iterdir()
    said = [line for line in err.splitlines() if not line.startswith("warning:")]
    assert len(said) == 1, "the same trouble is said more than once"
    assert "No space left on device" in said[0] and str(rescued) in said[0]
    assert rb.load(rescued).attrs["status"] == "done"


def test_a_failure_while_running_gives_code_1_and_keeps_the_file(call, folder):
    Path("late.py").write_text(
        "import math\nimport relboltz as rb\n\n\n"
        "def element(s):\n    return math.nan if 3.0 < s < 3.02 else 100.0\n\n\n"
        "def model():\n    a = rb.Species('a', 1, 0)\n"
        "    return rb.Model([a], [rb.Process('a a -> a a', element)], masses={'a': 0.3})\n"
    )
    Path("late.toml").write_text(
        '[model]\nname = "late.py:model"\n[grid]\nmomentum_cells = 8\nmomentum_max = 2.0\n'
        '[initial.a]\nshape = "step"\nheight = 1.0\nedge = 1.5\n'
        "[collisions]\nsamples = 8\n[time]\nend = 1.0\n"
    )
    code, _, err = call("run", "late.toml", "--quiet")
    assert code == 1
    assert re.search(r"process a a -> a a: the matrix element is nan at s = 3\.0", err)
    assert rb.load("run.nc").attrs["status"].startswith("failed: process a a -> a a")


# --- signals ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def stopped(tmp_path_factory):
    """Long runs that were sent a signal while a reader followed them: (code, error, file)."""
    folder = tmp_path_factory.mktemp("signals")
    (folder / "small.toml").write_text(SMALL)
    environment = os.environ | {"PYTHONPATH": str(ROOT), "COLUMNS": "300"}
    command = [sys.executable, "-m", "relboltz", "run", "small.toml", "--threads", "1"]
    command += ["--set", "time.end=1e3"]
    result = {}
    for number, wait in (
        (signal.SIGINT, 1.0), (signal.SIGTERM, 0.5), (signal.SIGKILL, random.random()),
    ):  # fmt: skip
        path = folder / f"{number.name}.nc"
        process = subprocess.Popen(
            [*command, "--out", path.name], cwd=folder, env=environment, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        try:
            patience = time.monotonic() + 120  # the first compiles
            while not path.exists() and process.poll() is None and time.monotonic() < patience:
                time.sleep(0.05)
            rb.load(path)  # a reader may follow
            time.sleep(wait)
            process.send_signal(number)
            _, err = process.communicate(timeout=30)
        finally:
            process.kill()
        result[number] = process.returncode, err, path
    return result


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupted_run_leaves_a_complete_file(stopped, number, code):
    returned, err, path = stopped[number]
    assert returned == code
    assert "Traceback" not in err
    name = {signal.SIGINT: "Ctrl-C", signal.SIGTERM: "SIGTERM"}[number]
    assert f"interrupted by {name}; everything so far is in {path.name}" in err
    ds = rb.load(path)
    assert ds.attrs["status"] == f"interrupted by {name}"
    assert ds.sizes["time"] > 1 and 0 < ds.time[-1] < 1e4
    np.testing.assert_allclose(ds.time, 0.01 * np.arange(ds.sizes["time"]), rtol=0, atol=1e-9)
    assert np.isfinite(ds.energy_total).all() and (ds.charge_drift == 0).all()
    assert np.isfinite(ds.rate[:-1]).all()
    assert not list(path.parent.glob(f"{path.name}.part-*"))


def test_a_kill_at_any_moment_leaves_a_readable_file(stopped):
    returned, _, path = stopped[signal.SIGKILL]
    assert returned == -signal.SIGKILL
    ds = rb.load(path)
    assert ds.attrs["status"] == "running" and ds.sizes["time"] >= 1 and ds.time[-1] < 1e4
    assert np.isfinite(ds.energy_total).all()


def test_info_tells_whether_somebody_is_still_at_a_run(stopped, call):
    """A killed run says "running" of itself; the lock beside it knows better."""
    _, _, path = stopped[signal.SIGKILL]
    words = f"(stopped; go on with it: relboltz resume {path})"
    assert words in call("info", path)[1]
    reserved = Reservation(path)
    reserved.take()
    try:
        assert "(running)" in call("info", path)[1]
    finally:
        reserved.free()
