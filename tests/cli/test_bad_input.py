"""Bad input: one message that says what, where and what to do; exit code 2; before any work."""

import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import relboltz as rb
from relboltz.cli import app as cli
from relboltz.io import checkpoint, output
from relboltz.run import runner as run
from relboltz.run import solve as simulation
from relboltz.studies import replicas
from relboltz.studies import scan as scanning

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
samples = 1
[time]
end = 0.02
step = 0.01
[run]
backend = "cpu"
threads = 1
[output]
every = 0.01
"""
OWN = """
import relboltz as rb
def one(s):
    return 1.0
def nothing():
    return 3
def fails():
    raise RuntimeError("no luck")
def needs(mass):
    return rb.gluons(0.3)
"""
G, GRID, STEP = rb.gluons(0.3), rb.PhaseSpace(5, 2.0), rb.initial.step(0.5, 1.5)


@pytest.fixture(scope="module")
def things(tmp_path_factory):
    """A folder with everything that a command can be given, good and bad."""
    folder = tmp_path_factory.mktemp("things")
    (folder / "small.toml").write_text(SMALL)
    (folder / "own.py").write_text(OWN)
    for name, text in {
        "broken.toml": "[model\nname = 1", "binary.toml": "\x00\x01", "empty.toml": "",
        "file": "x", "text.nc": "hello", "empty.nc": "", "broken.py": "def (:",
    }.items():  # fmt: skip
        (folder / name).write_text(text)
    for name in ("folder.nc", "folder", "full"):
        (folder / name).mkdir()
    (folder / "full" / "a").write_text("x")
    options = dict(end=0.02, step=0.01, every=0.01, samples=1, backend="cpu", threads=1)
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        patch.chdir(folder)
        ds = rb.solve(G, GRID, {"g": STEP}, file="run.nc", progress=False, **options)
        whole = Path("run.nc").read_bytes()
        for name, damaged in {"torn.nc": whole[:3000], "last.nc": whole[:-1000]}.items():
            Path(name).write_bytes(damaged)
        points = scanning.points_of("small.toml", {"model.alpha_s": [0.2, 0.3]})
        output.write(scanning.combined(points, [ds, ds], ["done", "done"]), _("scan"))
        output.write(replicas.combined([ds, ds]), _("mean"))
        found = rb.transport_coefficients(G, 0.4, events=1000, backend="cpu", threads=1)
        output.write(found, _("coefficients"))
        output.write(ds.expand_dims(knob=["box"]).assign_attrs(kind="convergence"), _("converge"))
        xr.Dataset({"a": ("x", [1.0])}).to_netcdf("foreign.nc", engine="h5netcdf")
        output.write(ds.drop_vars("number"), _("lacking"))
        first = checkpoint.of_run(Path("run.nc"))[0]
        Path("cut.nc").write_bytes(whole)
        Path("cut.checkpoint-000001").write_bytes(first.read_bytes()[:200])
    return folder


def _(name):
    return Path(f"{name}.nc")


@pytest.fixture
def here(things, monkeypatch):
    """In that folder, where any work would fail."""

    def too_late(*args, **keys):
        raise AssertionError("work began")

    monkeypatch.chdir(things)
    monkeypatch.setenv("COLUMNS", "400")
    for place in (simulation, run):
        monkeypatch.setattr(place, "Run", too_late)
    monkeypatch.setattr(rb, "load", remembered)
    monkeypatch.setattr(output, "load", remembered)
    return things


load = rb.load  # names are imported when they are asked for: this one before it is replaced
read = {}


def remembered(path):
    """Return the content of a good file, which takes long to read."""
    if path not in read:
        read[path] = load(path)
    return read[path].copy()


@pytest.fixture
def refused(here, monkeypatch, capsys):
    """Return the message of a command that refuses its arguments, and nothing else."""

    def refused(*arguments):
        before = sorted(here.rglob("*"))
        monkeypatch.setattr(sys, "argv", ["relboltz", *map(str, arguments)])
        with pytest.raises(SystemExit) as leaving:
            cli.main()
        out, err = capsys.readouterr()
        assert leaving.value.code == 2, out + err
        assert "Traceback" not in out + err
        assert len([line for line in err.splitlines() if line.lower().startswith("error: ")]) == 1
        assert sorted(here.rglob("*")) == before, "something was left behind"
        return err

    return refused


# --- configurations -----------------------------------------------------------------------------

CONFIGURATIONS = [
    ("initial.g.shape=file", "initial.g: shape = 'file' has no height and no edge", "'step' has",
     'initial.g = { shape = "file", path = ... }'),
    ("initial.g.shape=thermal", "initial.g: shape = 'thermal' has no height", "temperature = ..."),
    ("initial.g.shape=stpe", "initial.g.shape = 'stpe': did you mean 'step'?"),
    ("initial.g.shape=3", "initial.g.shape = 3: known: step, thermal"),
    ("initial.g=5", "initial.g = 5: write it as a table [initial.g]"),
    ("initial.g.heigth=1", "unknown key initial.g.heigth: did you mean height?"),
    ("initial.g.edge=nan", "initial.g.edge = nan: a step has an edge above 0 GeV"),
    ("initial.g.height=inf", "initial.g.height = inf"),
    ("initial.g.edge='a'", "initial.g.edge = 'a': a step has an edge above 0 GeV"),
    ("initial.q={shape='step',height=1,edge=1}", "unknown species initial.q; known: g"),
    ("initial.g={shape='own.py:missing'}", "initial.g.shape = 'own.py:missing'", "missing"),
    ("initial.g={shape='file',path='none.nc'}", "initial.g.path = 'none.nc': there is no such"),
    ("initial.g={shape='file',path='folder'}", "initial.g.path = 'folder': this is a folder"),
    ("initial.g={shape='file',path='coefficients.nc'}", "'coefficients.nc': has no f, px, py, pz"),
    ("initial.g={shape='file',path='torn.nc'}", "initial.g.path = 'torn.nc': cannot be read"),
    ("model.name=glouns", "model.name = 'glouns': did you mean 'gluons'?"),
    ("model={name='none.py:f'}", "model.name = 'none.py:f': there is no file none.py"),
    ("model={name='broken.py:f'}", "model.name = 'broken.py:f'", "SyntaxError"),
    ("model={name='own.py:nothing'}", "model.name = 'own.py:nothing'", "returned 3, not a Model"),
    ("model={name='own.py:fails'}", "model.name = 'own.py:fails'", "RuntimeError: no luck"),
    ("model={name='own.py:needs'}", "missing key model.mass: add mass = ... to [model]"),
    ("model.alpha_s=-0.3", "model.alpha_s = -0.3: the coupling must be a positive number"),
    ("model.flavors=3", "unknown key model.flavors: known are alpha_s, masses, screening"),
    ("model.masses={x=0.1}", "unknown key model.masses.x: known: g"),
    ("model.masses=massless", "model.screening is required with massless gluons"),
    ("grid.momentum_cells=0", "grid.momentum_cells = 0: use one whole number or three"),
    ("grid.momentum_cells=1000", "grid.momentum_cells = [1000, 1000, 1000]: needs", "use at most"),
    ("grid.momentum_max=-1.0", "grid.momentum_max = -1.0: use 'auto', or one number of GeV"),
    ("grid.boundary=wall", "grid.boundary = 'wall': use 'periodic', 'reflecting' or 'open'"),
    ("grid.boundary=open", "grid.boundary = 'open': has no effect", "set grid.space_cells"),
    ("collisions.samples=2.5", "collisions.samples = 2.5: use a whole number, 1 or more"),
    ("collisions.kinematics=k2", "collisions.kinematics = 'k2': only with projection = 'nearest'"),
    ("time.end=0", "time.end = 0: use a number of fm above 0"),
    ("time.step=nan", "time.step = nan: use 'auto' or a number of fm above 0"),
    ("time=5", "time = 5: write it as a table [time]"),
    ("run.threads=100000", "run.threads = 100000: use a whole number", "at most 1024"),
    ("run.backend=gpu", "run.backend = 'gpu': use 'auto', 'cpu' or 'cuda'"),
    ("run.address=x", "run.address = 'x': is for workers; set run.workers"),
    ("output.every=-1", "output.every = -1: use a number of fm above 0"),
    ("output.snapshots=[5.0]", "output.snapshots = [5.0]: 5.0 is after time.end = 0.02"),
    ("output.marginals=['x']", "output.marginals = ['x']: needs more than one space cell"),
    ("output.file=none/a.nc", "output.file = 'none/a.nc': the folder 'none' does not exist"),
    ("colisions.seed=1", "unknown key colisions: did you mean collisions?"),
    ("time.end", "--set time.end: write key=value, such as time.end=5.0"),
    ("time.end=", "--set time.end=: there is no value; write key=value"),
    ("time.end=[1", "--set time.end=[1: '[1' is not a TOML value"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "words"), [(row[0], row[1:]) for row in CONFIGURATIONS])
def test_a_configuration_is_refused_with_key_value_and_remedy(refused, change, words):
    out = () if "output.file" in change else ("--out", "new.nc")
    said = refused("run", "small.toml", *out, "--set", change)
    assert all(word in said for word in words), said
    assert said.startswith("error: ")


@pytest.mark.parametrize("command", ["run", "check", "converge", "coefficients"])
@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("none.toml", "none.toml: cannot be read: No such file or directory"),
        ("folder", "folder: cannot be read: Is a directory"),
        ("broken.toml", "broken.toml: not valid TOML"),
        ("binary.toml", "binary.toml: not valid TOML"),
        ("empty.toml", "missing key model: "),
        ("run.nc", "run.nc: is a result, not a configuration"),
    ],
)
def test_what_is_no_configuration_says_so_to_every_command(refused, command, name, words):
    assert words in refused(command, name)


# --- files --------------------------------------------------------------------------------------

READERS = {
    "info": (), "plot": (), "report": (), "export": ("--format", "csv"), "watch": ("--once",),
}  # fmt: skip
FILES = [
    ("none.nc", "none.nc: there is no such file"),
    ("folder.nc", "folder.nc: is a folder; name a file in it"),
    ("empty.nc", "empty.nc: is empty; name the result of a run"),
    ("text.nc", "text.nc: is not a NetCDF file written by relboltz; name the result of a run"),
    ("torn.nc", "torn.nc: is damaged (truncated file"),
    ("last.nc", "last.nc: is damaged (truncated file"),
    ("foreign.nc", "foreign.nc: was not written by relboltz (it has no relboltz_version)"),
    ("small.toml", "small.toml: is a configuration; name the result of a run", "relboltz run"),
    ("run.checkpoint-000001", "is a checkpoint; name the result that it belongs to, run.nc"),
]


@pytest.mark.parametrize("command", READERS)
@pytest.mark.parametrize(("name", "words"), [(row[0], row[1:]) for row in FILES])
def test_what_is_no_result_says_what_it_is_to_every_command(refused, command, name, words):
    said = refused(command, name, *READERS[command])
    assert all(word in said for word in words), said


@pytest.mark.parametrize("command", ["info", "report", "export", "watch"])
def test_a_result_that_lacks_something_is_damaged(refused, command):
    more = ("--out", "full", "--force") if command == "export" else ()
    assert "lacking" in (said := refused(command, "lacking.nc", *READERS[command], *more))
    assert "is damaged, or not a result of this version of relboltz" in said


OTHERS = {
    "scan.nc": ("is a scan of several runs", "name one of its points in the folder scan.scan"),
    "converge.nc": ("is what relboltz converge found, not a run", "name one of the runs"),
    "coefficients.nc": ("holds transport coefficients, not a run", "see relboltz info"),
}


@pytest.mark.parametrize("name", OTHERS)
def test_what_is_made_of_runs_says_what_it_is(refused, name):
    for command in ("report", "export", "watch"):
        said = refused(command, name, *READERS[command])
        assert name in said and all(word in said for word in OTHERS[name]), said
    assert OTHERS[name][0] in refused("plot", "run.nc", name)  # as one of several


def test_coefficients_scans_and_means_are_shown_as_what_they_are(here, capsys, monkeypatch):
    def told(*arguments):
        monkeypatch.setattr(sys, "argv", ["relboltz", *map(str, arguments)])
        with pytest.raises(SystemExit) as leaving:
            cli.main()
        out, err = capsys.readouterr()
        assert leaving.value.code == 0, err
        return out

    assert "transport coefficients of gluons" in (said := told("info", "coefficients.nc"))
    assert "η/s" in said
    said = told("info", "scan.nc")
    assert "alpha_s (model.alpha_s): 0.2, 0.3" in said and "2 points, 0 failed" in said
    assert "mean of 2 replicas" in told("info", "mean.nc")
    for name, kind in (("run", "run"), ("mean", "replicas"), ("scan", "scan")):
        assert rb.load(f"{name}.nc").attrs["kind"] == kind
    assert rb.load("coefficients.nc").attrs["kind"] == "coefficients"
    point = rb.load("scan.nc").sel(alpha_s=0.3)
    assert "temperature" in repr(point.rb)  # one point is a run


RESUMED = [
    ("none.nc", "none.nc: there is no such file, and no checkpoint none.checkpoint-* beside it"),
    ("folder", "folder: is a folder; name the result of a run"),
    ("small.toml", "small.toml: is a configuration; name the result, or use relboltz run"),
    ("run.checkpoint-000001", "is a checkpoint; name the result that it belongs to, run.nc"),
    ("foreign.nc", "there is no checkpoint foreign.checkpoint-* beside it; start the run again"),
    ("cut.nc", "is damaged: it is cut short", "no other checkpoint is left: start the run again"),
    ("scan.nc", "scan.nc: the same relboltz scan command does what is missing of it"),
    ("mean.nc", "mean.nc: all of its replicas are done", "--replicas R"),
    ("converge.nc", "converge.nc: the same relboltz converge command does what is missing"),
    ("coefficients.nc", "coefficients.nc: there is nothing to go on with"),
    ("run.nc", "run.nc: the run is done, at t = 0.02 fm; go on until T (--until T)"),
    ("run.nc --until 0.01", "until = 0.01: the run is at t = 0.02 fm; use a later time"),
    ("run.nc --until nan", "until = nan: the run is at t = 0.02 fm; use a later time"),
    ("run.nc --until 1 --snapshot 5", "snapshots: 5 fm: the run is at t = 0.02 fm and goes on to"),
    ("run.nc --until 1 --threads -1", "run.threads = -1: use a whole number"),
    ("mean.nc --until 1", "until = 1.0: mean.nc is the mean of replicas", "--set time.end=T"),
]


@pytest.mark.parametrize(("line", "words"), [(row[0], row[1:]) for row in RESUMED])
def test_what_cannot_go_on_says_why(refused, line, words):
    said = refused("resume", *line.split())
    assert all(word in said for word in words), said


# --- arguments ----------------------------------------------------------------------------------

ARGUMENTS = [
    ("run small.toml --out run.nc", "output.file = 'run.nc' exists already", "relboltz resume"),
    ("run small.toml --out small.toml", "is the configuration itself; choose another"),
    ("run small.toml --out folder", "output.file = 'folder' is a folder"),
    ("run small.toml --out /proc/a.nc", "'/proc/a.nc' cannot be written", "(--out)"),
    ("run small.toml --replicas 1", "replicas = 1: use a whole number from 2"),
    ("run small.toml --threads two", "--threads"),
    ("run small.toml --colour", "--colour"),
    ("run", "FILE.toml"),
    ("rum", "No such command 'rum'", "'run'"),
    ("new small.toml", "small.toml exists already; choose another name"),
    ("new none/a.toml", "none/a.toml cannot be written", "choose a folder that is there"),
    ("plot run.nc --out file", "--out file: cannot be created: File exists"),
    ("plot run.nc --quantity number", "--quantity number: is for films; add --animate"),
    ("plot run.nc --animate a.gif", "run.nc: has one space cell", "leave --animate out"),
    ("plot run.nc --animate a.txt", "--animate a.txt: films end in .gif or .mp4"),
    ("plot run.nc --animate a.gif --fps 0", "--fps 0: use a number from 0.1 to 100"),
    ("plot run.nc run.nc --animate a.gif", "--animate a.gif: a film is of one result, not of 2"),
    ("export run.nc --format root", "--format root: use vtk, csv or music"),
    ("export run.nc --format vtk", "format 'vtk' is for results in space cells; use 'csv'"),
    ("export run.nc --format csv --out file", "--out file: is a file; name a folder"),
    ("export run.nc --format csv --out file/b", "file/b cannot be written", "another folder"),
    ("export run.nc --format csv --out full", "--out full: has files in it; add --force"),
    ("report run.nc --out a.txt", "--out a.txt: a report is a page", ".html"),
    ("report run.nc --out none/a.html", "--out = 'none/a.html': the folder 'none' does not exist"),
    ("check small.toml --seconds 0", "--seconds 0: use a number from 0.1 to 3600"),
    ("check small.toml --json none/a.json", "--json = 'none/a.json': the folder 'none'"),
    ("check small.toml --set run.workers=2", "run.workers = 2: one process can be estimated"),
    ("scan small.toml", "--over"),
    ("scan small.toml --over model.alpha_s", "write key=value,value,..., such as model.alpha_s="),
    ("scan small.toml --over model.alpha_s=0.1,0.1", "[0.1, 0.1]: a value is there twice"),
    ("scan small.toml --over model.alpha=0.1", "at model.alpha = 0.1: unknown key model.alpha"),
    ("scan small.toml --over model.alpha_s=0,-1", "at model.alpha_s = 0: model.alpha_s = 0"),
    ("scan small.toml --over time.end=1 --over time.end=2", "--over: a key is there twice"),
    ("scan small.toml --over time.end=1 --out scan.nc", "scan.nc exists already", "--force"),
    ("scan small.toml --over time.end=1 --out small.toml --force", "is the configuration itself"),
    ("scan small.toml --over time.end=1 --workers -1", "workers = -1: use a whole number from 0"),
    ("scan small.toml --over time.end=1 --address x", "address = 'x': is for workers"),
    ("scan small.toml --over output.file=a,b", "output.file: a scan names the files of its points"),
    ("watch run.nc --every 0", "--every 0: use at least 0.1 seconds"),
    ("watch run.nc --every nan", "--every nan: use at least 0.1 seconds"),
    ("list models", "models"),
    ("coefficients small.toml --temperature -1", "coefficients.temperature = [-1.0]: use a number"),
    ("coefficients small.toml --mu 1", "chemical_potential (--mu) is given without a temperature"),
    ("coefficients small.toml --temperature 1 --mu x", "--mu x: write a number of GeV, or NAME="),
    ("coefficients small.toml --temperature 1 --mu u=1", "unknown key chemical_potential.u"),
    ("coefficients small.toml --temperature 1 --events 9", "coefficients.events = 9: use a whole"),
    ("coefficients small.toml --temperature 1 --tagged u", "tagged = 'u': known: g"),
    ("coefficients small.toml --temperature 1 --out run.nc", "--out run.nc: exists already"),
    ("coefficients small.toml --temperature 1 --plot a.txt", "--plot a.txt: pictures end in .png"),
    ("converge small.toml --seeds 1", "seeds = 1: use a whole number from 3"),
    ("converge small.toml --budget 0", "budget = 0.0: use a number of minutes above 0"),
    ("converge small.toml --at 5", "--at 5: the run goes from 0 to 0.02 fm"),
    ("converge small.toml --out file", "the folder file cannot be made: File exists"),
    ("validate rats", "problem rats: did you mean 'rates'?"),
    ("validate rates --threads -1", "--threads -1: use a whole number, at most 1024"),
    ("validate rates --document none", "--document none: is no folder; create it first"),
    ("reproduce fig1", "no figure 'fig1': known are fig2"),
    ("reproduce fig2 --threads -1", "--threads -1: use a whole number"),
    ("reproduce fig2 --out file", "--out file: cannot be created: File exists"),
    ("bench --backend gpu", "--backend gpu: use auto, cpu or cuda"),
    ("bench --threads -1", "--threads -1: use a whole number"),
    ("bench --json none/a.json", "--json = 'none/a.json': the folder 'none' does not exist"),
]


@pytest.mark.parametrize(("line", "words"), [(row[0], row[1:]) for row in ARGUMENTS])
def test_an_argument_is_refused_with_its_name_and_a_remedy(refused, line, words):
    said = refused(*line.split())
    assert all(word in said for word in words), said


# --- Python -------------------------------------------------------------------------------------


def one(s):
    return 1.0


A, ELASTIC = rb.Species("a"), rb.Process("a a -> a a", one)


def solved(initial=None, **options):
    return rb.solve(G, GRID, {"g": STEP} if initial is None else initial, **{"end": 1, **options})


def loaded(name="run"):
    return rb.load(f"{name}.nc").rb


PYTHON = [
    (lambda: rb.Species("a b"), "species name 'a b': use one word"),
    (lambda: rb.Species("a", 0), "species a: degeneracy = 0 must be > 0"),
    (lambda: rb.Species("a", 1, "bose"), "statistics = 'bose': use +1 (Bose)"),
    (lambda: rb.Species("a", charges={"B": "x"}), "species a: charges: B = 'x': a charge is a"),
    (lambda: rb.Process(3, one), "process 3: write a text such as 'u g -> u g'"),
    (lambda: rb.Process("a a -> a", one), "write two species, '->', two species"),
    (lambda: rb.Process("a a -> a a"), "give a matrix element, or sigma"),
    (lambda: rb.Process("a a -> a a", lambda s, x: s), "asks for 'x'", "known: s, t, u"),
    (lambda: rb.Process("a a -> a a", one, peak="q"), "peak = 'q': use \"t\" or leave it out"),
    (lambda: rb.Model([], []), "a model needs at least one species"),
    (lambda: rb.Model(A, [ELASTIC]), "species = Species(name='a'", "use a list"),
    (lambda: rb.Model(["a"], [ELASTIC]), "species = 'a': is no Species; write Species("),
    (lambda: rb.Model([A], ["a a -> a a"]), "process = 'a a -> a a': is no Process; write"),
    (lambda: rb.Model([A, A], [ELASTIC]), "species names must differ: a, a"),
    (lambda: rb.Model([A], [rb.Process("a b -> a b", one)]), "unknown species 'b'; known: a"),
    (lambda: rb.Model([A], [ELASTIC, ELASTIC]), "list each physical process once"),
    (lambda: rb.Model([A], [ELASTIC], masses={"b": 1}), "unknown species masses.b; known: a"),
    (lambda: rb.Model([A], [ELASTIC], masses={"a": -1}), "masses: a = -1: a mass in GeV is 0 or"),
    (lambda: G.extend(3), "species = 3: use a list"),
    (lambda: rb.qcd(0.3, flavors=7), "model.flavors = 7: use a whole number from 0 to 3"),
    (lambda: rb.PhaseSpace(0, 1.0), "grid.momentum_cells = [0, 0, 0]: each must lie between 1"),
    (lambda: rb.PhaseSpace(5, np.nan), "half widths in GeV must be positive"),
    (lambda: rb.PhaseSpace(5, 1.0, [2, 2]), "grid.space_cells = [2, 2]: give one number or three"),
    (lambda: rb.initial.step("a", 1), "height = 'a': a step has a height f >= 0"),
    (lambda: rb.initial.thermal(0), "temperature = 0: a temperature is above 0 GeV"),
    (lambda: rb.initial.thermal(0.4, velocity=2), "velocity = 2: use three numbers", "below 1"),
    (lambda: rb.initial.step(1, 1, sampling="nod"), "sampling = 'nod': use 'cell'"),
    (lambda: rb.initial.random(0.5, 0.1), "high = 0.1: use a number above low = 0.5"),
    (lambda: rb.initial.from_file(3), "path = 3: use the name of a NetCDF file"),
    (lambda: rb.initial.from_function(3), "function = 3: use a function or 'file.py:function'"),
    (lambda: rb.solve(3, GRID, {"g": STEP}, end=1), "model = 3: use a Model, such as"),
    (lambda: rb.solve(G, None, {"g": STEP}, end=1), "grid = None: give a PhaseSpace"),
    (lambda: solved({}), "the system is empty: give at least one species"),
    (lambda: solved({"u": STEP}), "unknown species initial.u; known: g"),
    (lambda: solved({"g": "step"}), "initial.g: a str is not a state; use a shape such as"),
    (lambda: solved({"g": np.zeros((3, 3, 3))}), "does not fit", "use (px, py, pz) = (5, 5, 5)"),
    (lambda: solved({"g": np.full((5, 5, 5), np.nan)}), "f = nan of g at p = ", "not a finite"),
    (lambda: solved({"g": lambda px: px}), "write the function as f(px, py, pz)"),
    (lambda: solved({"g": lambda px, py, pz: 1 / 0}), "initial.g.shape", "ZeroDivisionError"),
    (lambda: solved(end="1"), "time.end = '1': use a number of fm above 0"),
    (lambda: solved(sample=4), "unknown option sample: did you mean 'samples'?"),
    (lambda: solved(file=3), "file = 3: use the name of a file"),
    (lambda: solved(file="run.nc"), "output.file = 'run.nc' exists already", "force=True"),
    (lambda: solved(progress=3), "progress = 3: use True, False or a function"),
    (lambda: solved(replicas=2.5), "replicas = 2.5: use a whole number from 2"),
    (lambda: rb.transport_coefficients(3, 0.4), "model = 3: use a Model, such as"),
    (lambda: rb.transport_coefficients(G, "0.4"), "temperature = '0.4': a temperature in GeV"),
    (lambda: rb.transport_coefficients(G, 0.4, events=9), "events = 9: use a whole number, 1000"),
    (lambda: rb.transport_coefficients(G, 0.4, threads=-1), "threads = -1: use a whole number"),
    (lambda: rb.transport_coefficients(G, 0.4, grid=7), "grid = 7: give a PhaseSpace"),
    (lambda: rb.transport_coefficients(G, 0.4, {"u": 1}), "unknown key chemical_potential.u"),
    (lambda: rb.scan(3, {"a": [1]}), "setup = 3: use the name of a configuration, or a function"),
    (lambda: rb.scan("small.toml", 3), "over = 3: use lists by key"),
    (lambda: rb.scan("small.toml", {3: [1]}), "over: 3 is no key"),
    (lambda: rb.scan("small.toml", {"time.end": 1}), "time.end = 1: a scan needs a list of values"),
    (lambda: rb.scan(lambda b: {}, {"a": [1]}), "is called with a by name"),
    (lambda: rb.scan(lambda a: 3, {"a": [1]}), "the function of a scan returned 3"),
    (lambda: rb.load(3), "load(3): give the name of a file"),
    (lambda: rb.resume("run.nc", until="x"), "until = 'x': the run is at t = 0.02 fm"),
    (lambda: rb.resume("run.nc", until=1, snapshots=3), "snapshots = 3: use a list of times"),
    (lambda: rb.resume("run.nc", until=1, model=3), "model = 3: use a Model"),
    (lambda: loaded().relaxation_time("presure"), "quantity 'presure': did you mean 'pressure"),
    (lambda: loaded().thermalisation_time("a"), "threshold = 'a': use a number between 0 and 1"),
    (lambda: loaded().flow(0), "flow(0): n is a whole number, 1 or more"),
    (lambda: loaded().compare(3), "compare(3): give a result"),
    (lambda: loaded().compare(rb.load("scan.nc")), "other: is a scan of several runs"),
    (lambda: loaded().export("x", "root"), "format 'root': use vtk, csv or music"),
    (lambda: loaded().report("a.txt"), "a.txt: a report is a page; use a name that ends in .html"),
    (lambda: loaded().plot_spectra(species="u"), "no species 'u' in this result; known: g"),
    (lambda: loaded().plot_spectra(times="x"), "times = 'x': use times in fm"),
    (lambda: loaded().plot_map(), "a map needs two directions", "use a profile"),
    (lambda: loaded().animate("a.gif"), "a film needs a result with more than one space cell"),
    (lambda: loaded("scan"), "is a scan of several runs", ".sel(...)"),
    (lambda: loaded("converge"), "is what relboltz converge found, not a run"),
    (lambda: loaded("coefficients"), "result.rb is for results of solve()"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("call", "words"), [(row[0], row[1:]) for row in PYTHON], ids=[row[1] for row in PYTHON]
)
def test_python_gets_the_same_messages(here, call, words):
    with pytest.raises(rb.InputError) as error:
        call()
    assert all(word in str(error.value) for word in words), error.value


def test_there_are_many_more_than_sixty_kinds():
    tables = (CONFIGURATIONS, FILES, RESUMED, ARGUMENTS, PYTHON)
    assert sum(map(len, tables)) > 150
    assert len({row[0].split()[0] for row in ARGUMENTS}) >= 14  # commands
