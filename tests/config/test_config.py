"""Configuration: defaults, round trips, and one line for each mistake."""

import re
import tomllib
from copy import deepcopy

import pytest
from pydantic import ValidationError

from relboltz import initial
from relboltz.config.settings import (
    GridSettings,
    OutputSettings,
    RunSettings,
    Sampling,
    TimeSettings,
)
from relboltz.grid.phase_space import PhaseSpace
from relboltz.run.input_file import TEMPLATE, Config, load
from relboltz.util.errors import InputError

STEP = {"shape": "step", "height": 0.5, "edge": 1.5}
SMALL = {
    "model": {"name": "gluons", "alpha_s": 0.3},
    "initial": {"g": {"shape": "step", "height": 0.5, "edge": 1.5}},
    "time": {"end": 5},
}


def changed(**keys):
    """SMALL with table__key=value set."""
    data = deepcopy(SMALL)
    for path, value in keys.items():
        table, _, key = path.partition("__")
        if key:
            data.setdefault(table, {})[key] = value
        else:
            data[table] = value
    return data


def lines(data):
    """The messages for bad data."""
    with pytest.raises(InputError) as caught:
        Config.from_dict(data)
    assert "pydantic" not in str(caught.value)
    return str(caught.value).splitlines()


# --- what is right ------------------------------------------------------------------------------


def test_the_rest_has_defaults():
    config = Config.from_dict(SMALL)
    assert (
        config.grid == GridSettings()
        and config.run == RunSettings()
        and config.collisions == Sampling()
    )
    assert config.time == TimeSettings(end=5.0)
    assert config.output == OutputSettings(every=0.1, snapshots=(0.0, 5.0))
    assert config.grid.momentum_cells == (41, 41, 41) and config.grid.momentum_max == "auto"


def test_a_configuration_is_frozen():
    with pytest.raises(ValidationError):
        Config.from_dict(SMALL).time.end = 3.0


def test_it_survives_dictionaries_and_toml():
    data = changed(
        title='a "quoted" \\ title\n',
        model={"name": "qcd", "alpha_s": 0.3, "masses": {"g": 0.7, "quarks": 0.4}},
        grid__momentum_max=[2, 2.5, 3.0],
        output__snapshots=[0, 1e-7],
        initial__quarks={"shape": "gaussian", "height": 0.1, "widths": [1, 1, 2]},
    )
    config = Config.from_dict(data)
    assert Config.from_dict(config.to_dict()) == config
    assert tomllib.loads(config.to_toml()) == config.to_dict()
    assert config.to_dict()["output"]["every"] == 0.1


def test_it_builds_what_it_describes():
    config = Config.from_dict(changed(grid__momentum_max=2, grid__momentum_cells=[5, 6, 7]))
    assert config.grid.phase_space() == PhaseSpace((5, 6, 7), 2.0)
    assert config.build_initial() == {"g": initial.step(0.5, 1.5)}
    assert config.build_model().names == ("g",)
    auto = Config.from_dict(SMALL)
    assert auto.grid.phase_space(momentum_max=3.0) == PhaseSpace(41, 3.0)
    assert auto.build_model() is auto.build_model()
    with pytest.raises(InputError, match="momentum_max = 'auto'"):
        auto.grid.phase_space()


def test_paper_samplings_draw_uniform_pairs():
    nearest = {"projection": "nearest", "kinematics": "k3", "symmetrical": False}
    assert Config.from_dict(changed(collisions=nearest)).collisions.pair_sampling == "uniform"
    assert lines(changed(collisions={**nearest, "pair_sampling": "importance"})) == [
        "collisions.pair_sampling = 'importance': kinematics = 'k3' draws uniform pairs; use "
        "'uniform' or leave it out"
    ]


def test_a_flat_axis_works_with_the_nearest_cell_only():
    cells = {"grid__momentum_cells": [9, 9, 1]}
    Config.from_dict(changed(collisions__projection="nearest", **cells))
    (line,) = lines(changed(**cells))
    assert "so its energy cannot be matched" in line


def test_the_template_loads_and_names_every_key(tmp_path):
    path = tmp_path / "new.toml"
    path.write_text(TEMPLATE)
    config = load(path)
    assert config.time.end == 5.0
    assert config.build_initial() == {"g": initial.step(0.5, 1.5)}
    assert config.build_model().thermal
    for table, keys in config.to_dict().items():
        for key in keys if table not in ("title", "initial") else ():
            assert re.search(rf"^(# )?{key} = ", TEMPLATE, re.MULTILINE), key


def test_defaults_shown_in_the_template_are_the_defaults(tmp_path):
    path = tmp_path / "new.toml"
    path.write_text(TEMPLATE)
    run = TEMPLATE.partition("# [coefficients]")[0]  # without it there is no such table
    shown = re.sub(
        r"^# (?!flavors|antiquarks|flavor_symmetric|hubble)(\w+ = )", r"\1", run, flags=re.MULTILINE
    )
    assert shown != TEMPLATE
    full = tomllib.loads(shown)
    assert full["initial"]["g"].pop("sampling") == "cell"
    assert full == load(path).to_dict()


# --- files and overrides ------------------------------------------------------------------------


def write(tmp_path, text=""):
    path = tmp_path / "run.toml"
    path.write_text(Config.from_dict(SMALL).to_toml() + text)
    return path


def test_overrides_are_toml_values_or_bare_words(tmp_path):
    config = load(
        write(tmp_path),
        [
            "time.end=7.5",
            "grid.momentum_max = [1, 2, 3]",
            "output.file=a/b.nc",
            "collisions.projection='nearest'",
            "initial.g.edge=1.1",
            "collisions.symmetrical=false",
        ],
    )
    assert config.time.end == 7.5
    assert config.grid.momentum_max == (1.0, 2.0, 3.0)
    assert config.output.file == "a/b.nc"
    assert config.collisions.projection == "nearest" and not config.collisions.symmetrical
    assert config.build_initial()["g"] == initial.step(0.5, 1.1)


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("time.end", "--set time.end: write key=value"),
        ("=3", "--set =3: write key=value"),
        ("time.end.now=3", "--set time.end.now=3: time.end is a value, not a table"),
        ("grid.momentum_max=[1, 2", r"--set grid.momentum_max=\[1, 2: .* is not a TOML value"),
        ("time.end=5,0", "time.end = '5,0': use a number of fm"),
        ("time.ned=5", "unknown key time.ned: did you mean end"),
    ],
)
def test_a_faulty_override_is_named(tmp_path, override, message):
    with pytest.raises(InputError, match=message):
        load(write(tmp_path), ["time.tolerance=0.01", override])


def test_broken_toml_names_file_and_line(tmp_path):
    path = tmp_path / "broken.toml"
    path.write_text("[time]\nend = = 5\n")
    with pytest.raises(InputError, match=r"broken.toml: not valid TOML: .*line 2"):
        load(path)
    with pytest.raises(InputError, match="none.toml: cannot be read: No such file"):
        load(tmp_path / "none.toml")


USER = """
from relboltz.model.model import Model, Process, Species

def constant(s):
    return 1.0

def gas(strength, mass=0.1):
    return Model([Species("a")], [Process("a a -> a a", constant)], masses={"a": mass})

def nothing():
    return 3

def leaves():
    raise SystemExit(0)

def start(px, py, pz):
    return 0.1 + 0 * px
"""


def test_files_of_the_user_lie_beside_the_configuration(tmp_path):
    (tmp_path / "mine.py").write_text(USER)
    path = tmp_path / "run.toml"
    path.write_text(
        '[model]\nname = "mine.py:gas"\nstrength = 2\n[time]\nend = 1\n'
        '[initial.a]\nshape = "mine.py:start"\nsampling = "node"\n'
    )
    config = load(path)
    model = config.build_model()
    assert model.names == ("a",)
    shape = config.build_initial()["a"]
    assert (shape.values(PhaseSpace(4, 1.0), model.species[0], 0.0) == 0.1).all()
    assert load(path, ["initial.a.shape=file", "initial.a.path=b.nc"]).build_initial()[
        "a"
    ] == initial.from_file(str(tmp_path / "b.nc"), sampling="node")


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ({"name": "mine.py:gas", "strenth": 2}, "unknown key model.strenth: did you mean strength"),
        ({"name": "mine.py:gas"}, "missing key model.strength"),
        ({"name": "mine.py:gaz"}, "model.name = .*mine.py has no function 'gaz'"),
        ({"name": "mine.py:gas", "strength": 1, "mass": "x"}, "a mass in GeV is 0 or positive"),
        ({"name": "mine.py:nothing"}, "returned 3, not a Model"),
        ({"name": "mine.py:leaves"}, "the function failed with SystemExit: 0"),
        ({"name": "exits.py:gas"}, "exits.py failed with SystemExit: 0"),
        ({"name": "other.py:gas"}, "there is no file"),
    ],
)
def test_faults_of_a_user_model_are_named(tmp_path, model, message):
    (tmp_path / "mine.py").write_text(USER)
    (tmp_path / "exits.py").write_text("import sys; sys.exit(0)")
    start = {"a": {"shape": "step", "height": 1, "edge": 1}}
    config = Config.from_dict(changed(model=model, initial=start), folder=tmp_path)
    with pytest.raises(InputError, match=message):
        config.build_model()


# --- what is wrong ------------------------------------------------------------------------------


def test_nothing_at_all_lists_what_to_add():
    assert {line.split(":")[0] for line in lines({})} == {
        "missing key model",
        "missing key initial",
        "missing key time",
    }
    assert lines(changed(time={})) == ["missing key time.end: add end = 5.0 (fm) to [time]"]
    assert lines(changed(initial={}))[0].startswith("missing key initial: add a table such as")
    assert lines(changed(model={}))[0].startswith("missing key model.name: add name")


def test_several_mistakes_are_listed_together():
    data = changed(
        time__end=-1, grid__momentum_cell=3, model__alpha=0.3, initial__g={"shape": "steps"}
    )
    found = lines(data)
    assert len(found) == 4
    assert "time.end = -1: use a number of fm above 0, from 1e-09 to 1e+09" in found
    assert "unknown key grid.momentum_cell: did you mean momentum_cells?" in found
    assert "unknown key model.alpha: did you mean alpha_s?" in found
    assert "initial.g.shape = 'steps': did you mean 'step'?" in found


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"grids": {}}, "unknown key grids: did you mean grid?"),
        ({"grid": 3}, "grid = 3: write it as a table [grid]"),
        ({"initial__g": 3}, "initial.g = 3: write it as a table [initial.g]"),
        ({"title": 3}, "title = 3: use a text"),
        ({"grid__samples": 3}, "unknown key grid.samples: samples belongs to [collisions]"),
        ({"grid__momentum_cells": True}, "grid.momentum_cells = True: use one whole number"),
        ({"grid__momentum_cells": [9, 9]}, "grid.momentum_cells = [9, 9]: use one whole number"),
        ({"grid__momentum_cells": [9, 9.5, 9]}, "grid.momentum_cells = [9, 9.5, 9]: use one"),
        ({"grid__momentum_cells": [9, 2, 9]}, "grid.momentum_cells = [9, 2, 9]: use at least 3"),
        ({"grid__momentum_max": "big"}, "grid.momentum_max = 'big': use 'auto', or one number"),
        ({"grid__momentum_max": [1, -1, 1]}, "grid.momentum_max = [1, -1, 1]: use 'auto'"),
        ({"grid__space_cells": [2, 0, 1]}, "grid.space_cells = [2, 0, 1]: use one whole number"),
        ({"grid__space_max": -3.0}, "grid.space_max = -3.0: use one number of fm above 0"),
        ({"grid__boundary": "open"}, "grid.boundary = 'open': has no effect with one space cell"),
        ({"grid__boundary": "wall"}, "grid.boundary = 'wall': use 'periodic', 'reflecting'"),
        ({"output__marginals": ["x"]}, "output.marginals = ['x']: needs more than one space cell"),
        ({"output__marginals": ["xpx"]}, "output.marginals = ['xpx']: use a list of directions"),
        ({"collisions__projection": "near"}, "collisions.projection = 'near': use 'conserving'"),
        ({"collisions__kinematics": "k2"}, "collisions.kinematics = 'k2': only with projection ="),
        ({"collisions__symmetrical": False}, "collisions.symmetrical = False: only with"),
        ({"collisions__samples": 0}, "collisions.samples = 0: use a whole number, 1 or more"),
        ({"collisions__samples": 1.5}, "collisions.samples = 1.5: use a whole number, 1 or more"),
        ({"collisions__seed": 2**63}, "collisions.seed = 9223372036854775808: use a whole"),
        ({"collisions__seed": -1}, "collisions.seed = -1: use a whole number from 0"),
        ({"time__end": "5"}, "time.end = '5': use a number of fm above 0"),
        ({"time__end": True}, "time.end = True: use a number of fm above 0"),
        ({"time__end": float("inf")}, "time.end = inf: use a number of fm above 0"),
        ({"time__step": 9}, "time.step = 9.0: longer than the run; use at most time.end = 5.0"),
        ({"time__tolerance": 1}, "time.tolerance = 1: use a number between 0 and 1"),
        ({"run__backend": "gpu"}, "run.backend = 'gpu': use 'auto', 'cpu' or 'cuda'"),
        ({"run__precision": "half"}, "run.precision = 'half': use 'auto', 'float32' or 'float64'"),
        ({"run__workers": -1}, "run.workers = -1: use a whole number; 0 = this process alone"),
        ({"run__address": "auto"}, "run.address = 'auto': is for workers; set run.workers"),
        ({"run__threads": -1}, "run.threads = -1: use a whole number; 0 = all cores"),
        ({"output__every": 0}, "output.every = 0: use a number of fm above 0"),
        ({"output__snapshots": [0, 9]}, "output.snapshots = [0.0, 9.0]: 9.0 is after time.end"),
        ({"output__snapshots": 1.0}, "output.snapshots = 1.0: use a list of times in fm"),
        ({"output__marginals": [["x"]]}, "output.marginals = [['x']]: use a list of directions"),
        ({"output__marginals": [{}]}, "output.marginals = [{}]: use a list of directions"),
        ({"time__end": 10**400}, "time.end = a whole number of 401 digits: use a number of fm"),
        ({"time__end": 5e-324}, "time.end = 5e-324: use a number of fm above 0, from 1e-09 to"),
        ({"time__end": 1e300, "output__every": 1e299}, "time.end = 1e+300: use a number of fm"),
        (
            {"time__step": 1e-18},
            "time.step = 1e-18: time.end = 5.0 would take end / step = 5.0e+18 steps, and 1e+09 "
            "are the most; use at least 5.0e-09 fm, or 'auto'",
        ),
        ({"time__tolerance": 1e-300}, "time.tolerance = 1e-300: use a number between 0 and 1, at"),
        ({"run__threads": 100000}, "run.threads = 100000: use a whole number; 0 = all cores, at"),
        ({"grid__momentum_max": 1e-300}, "grid.momentum_max = 1e-300: use 'auto', or one number"),
        ({"grid__momentum_cells": 10**400}, "grid.momentum_cells = a whole number of 401 digits"),
        ({"model__masses": 0.5}, "model.masses = 0.5: use 'thermal', 'massless' or a table"),
        ({"model__screening": 1e300}, "model.screening = 1e+300: a mass in GeV must be positive,"),
        ({"model__screening": 1e-200}, "model.screening = 1e-200: a mass in GeV must be positive,"),
        ({"model__alpha_s": 1e200}, "model.alpha_s = 1e+200: the coupling must be a positive"),
        (
            {"model": {"name": "quarks", "alpha_s": 0.3, "antiquarks": "yes"}},
            "model.antiquarks = 'yes': use true or false",
        ),
        ({"initial__g": STEP | {"edge": 10**400}}, "initial.g.edge = a whole number of 401 digits"),
        ({"initial__g": STEP | {"height": 10**400}}, "initial.g.height = a whole number of 401"),
        ({"initial__g": STEP | {"edge": 1e300}}, "initial.g.edge = 1e+300: a step has an edge"),
        ({"output__file": ""}, "output.file = '': use the name of a file"),
        ({"output__checkpoint_every": 0}, "output.checkpoint_every = 0: use a number of seconds"),
        ({"model": "qcd"}, "model = 'qcd': write it as a table [model]"),
        ({"model__name": "qdc"}, "model.name = 'qdc': did you mean 'qcd'?"),
        ({"model__alpha_s": True}, "model.alpha_s = True: the coupling must be"),
        ({"model": {"name": "gluons"}}, "missing key model.alpha_s: add alpha_s = 0.3 to [model]"),
        ({"initial__gg": SMALL["initial"]["g"]}, "unknown species initial.gg; did you mean"),
        ({"initial__g": {}}, "missing key initial.g.shape: add shape"),
        (
            {"initial__g": {"shape": "gradient", "minimum": 0.1}},
            "missing key initial.g.maximum: shape = 'gradient' needs maximum",
        ),
        (
            {"initial__g": {"shape": "gradient", "minimum": 0.1, "maximum": 0.4}},
            "initial.g.maximum = 0.4: use a number from minimum = 0.1 to 3 minimum",
        ),
        ({"initial__g": {"shape": "step", "height": 1}}, "missing key initial.g.edge: shape ="),
        (
            {"initial__g": {"shape": "random", "low": 0, "high": 1, "sed": 1}},
            "unknown key initial.g.sed: did you mean seed?",
        ),
        ({"initial__g": {"shape": "step", "height": -1, "edge": 1}}, "initial.g.height = -1: "),
        ({"initial__g": {"shape": "a.py:f", "sampling": "x"}}, "initial.g.sampling = 'x': use"),
    ],
)
def test_each_mistake_gets_one_line(keys, message):
    found = lines(changed(**keys))
    assert len(found) == 1
    assert found[0].startswith(message)


def test_numbers_that_python_does_not_print_are_named_too():
    for key in ("run.workers", "time.end", "collisions.samples", "grid.space_cells", "title"):
        (line,) = lines(changed(**{key.replace(".", "__"): 16**5000}))
        assert line.startswith(f"{key} = a whole number of 6022 digits: ")
