"""Random valid and invalid configurations: each must start, or be refused with a named key.

    python benchmarks/fuzz.py --count 50000 --seed 1

Every configuration is a function of the seed and its number, so --first NUMBER --count 1
reproduces a failure. All configurations are read and their f is put on the nodes; one in FULL is
prepared up to the first step, and one in STEPPED takes two steps.
"""

import argparse
import contextlib
import random
import re
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import h5netcdf
import numpy as np
import tomli_w

import relboltz as rb
from relboltz.config.settings import MOST_STEPS
from relboltz.run import input_file as config
from relboltz.run import solve as simulation
from relboltz.run.runner import Run
from relboltz.transport.forces import courant_limit

FULL, STEPPED = 16, 80
NAMES = "model|grid|initial|collisions|time|run|output|title|species|process"
"""Words that a refusal must contain: a table, one of its keys, or a part of a model."""
BIG = [10**400, -(10**400), 16**5000, 2**63, 2**31, 1e300, 1.7e308, 1e30, -1e300, 1e9]
TINY = [5e-324, 1e-300, 1e-18, 1e-9, -5e-324, 0, 0.0, -0.0, -1, 1]
STRANGE = [float("nan"), float("inf"), -float("inf"), True, False, "", " ", "x[/b]", "a\0b"]
TEXTS = ["\x1b[31mred\x1b[0m", "𝔤", "\u202e", "a" * 5000, "../..", ".", "/", "nan", "auto", "g\n"]
NESTED = [[], {}, [[]], [["x"]], [{}], {"a": {"b": [1]}}, [1, "a", None], [[[[[1]]]]], [0.5] * 50]
ODD = [*BIG, *TINY, *STRANGE, *TEXTS, *NESTED]
STEP = {"shape": "step", "height": 0.5, "edge": 1.5}
SHAPES: list[dict[str, Any]] = [
    STEP, STEP, STEP | {"sampling": "node"},
    {"shape": "thermal", "temperature": 0.4, "sampling": "node"},
    {"shape": "thermal", "temperature": 0.3, "velocity": [0.3, 0, 0], "chemical_potential": -0.1,
     "sampling": "node"},
    {"shape": "gaussian", "height": 0.3, "widths": [0.5, 0.6, 0.7]},
    {"shape": "random", "low": 0.0, "high": 0.2, "seed": 3}, {"shape": "file", "path": "good.nc"},
    {"shape": "gradient", "minimum": 0.1, "maximum": 0.2}, {"shape": "user.py:flat"},
    {"shape": "user.py:in_space"},
]  # fmt: skip
WRONG_FILES = ["user.py:leaves", "user.py:nan", "user.py:nothing", "user.py:long", "broken.py:f",
               "leaves.py:f", "missing.py:f", "user.py", ":", "user.py:", "a\0.py:f"]  # fmt: skip
PATHS = ["good.nc", "torn.nc", "foreign.nc", "vast.nc", "user.py", "none.nc", "loop", ".", "a\0b"]
MODELS: list[dict[str, Any]] = [
    {"name": "gluons", "alpha_s": 0.3}, {"name": "qcd", "alpha_s": 0.3, "flavors": 1},
    {"name": "quarks", "alpha_s": 0.2}, {"name": "user.py:gas"},
    {"name": "gluons", "alpha_s": 0.1, "masses": "massless", "screening": "ekt"},
    {"name": "quarks", "alpha_s": 0.2, "flavors": 2, "antiquarks": True},
    {"name": "qcd", "alpha_s": 0.3, "flavors": 1, "masses": {"g": 0.7, "quarks": 0.5}},
]  # fmt: skip
LEGAL: dict[str, list[Any]] = {
    "title": ["a title", "", "[bold]"],
    "model.alpha_s": [0.3, 0.01, 1], "model.flavors": [1, 2, 3],
    "model.masses": ["thermal", "massless", {"g": 0.6}, {"quarks": 0.3, "g": 0.5}],
    "model.screening": ["thermal", "ekt", 0.5, 1], "model.antiquarks": [True, False],
    "model.name": ["gluons", "qcd", "quarks", "user.py:gas"],
    "grid.momentum_cells": [5, 6, [4, 5, 6], [7, 3, 3]], "grid.momentum_max": [2.0, 3, [1, 2, 3]],
    "grid.space_cells": [1, [2, 1, 1], [2, 2, 1], [4, 1, 1]], "grid.space_max": [3.0, [1, 2, 3]],
    "grid.boundary": ["periodic", "open", "reflecting", ["open", "periodic", "periodic"]],
    "grid.momentum_boundary": ["closed", "periodic"],
    "collisions.projection": ["conserving", "nearest"], "collisions.kinematics": ["cm", "k2", "k3"],
    "collisions.symmetrical": [True, False], "collisions.pair_sampling": ["importance", "uniform"],
    "collisions.samples": [1, 2, 4], "collisions.seed": [0, 1, 2**62],
    "time.end": [0.01, 1, 5.0, 1000.0], "time.step": ["auto", 0.001, 0.01],
    "time.tolerance": [1e-3, 1e-2, 1e-5],
    "run.backend": ["cpu", "auto"], "run.precision": ["auto", "float64"], "run.threads": [1, 2, 0],
    "run.workers": [0], "run.address": [""], "run.gpus_per_worker": [0.0],
    "output.file": ["run.nc", "a b.nc"], "output.every": [0.1, 1.0, 0.01],
    "output.snapshots": [[], [0.0], [0, 0.005]], "output.marginals": [[], ["x"], ["x px", "px"]],
    "output.checkpoint_every": [600.0],
}  # fmt: skip
USER = """
from relboltz.model.model import Model, Process, Species
def constant(s):
    return 1.0
def gas(mass=0.1, statistics=0):
    process = Process("a a -> a a", constant)
    return Model([Species("a", 2, statistics)], [process], masses={"a": mass})
def flat(px, py, pz):
    return 0.1 + 0 * px
def in_space(x, y, z, px, py, pz):
    return 0.1 + 0.01 * x + 0 * px
def leaves(*arguments, **keys):
    raise SystemExit(0)
def nan(px, py, pz):
    return px / 0 * float("nan")
def nothing(*arguments):
    return None
def long(px, py, pz):
    return [0.1] * 5
"""


def files(folder: Path) -> None:
    """Write the files that configurations use: user code; intact, torn and foreign results."""
    (folder / "user.py").write_text(USER)
    (folder / "broken.py").write_text("def f(:\n")
    (folder / "leaves.py").write_text("import sys\nsys.exit(0)\n")
    (folder / "loop").symlink_to(folder / "loop")
    good = folder / "good.nc"
    start = {"g": rb.initial.step(0.5, 1.5)}
    rb.solve(rb.gluons(0.3), rb.PhaseSpace(5, 2.0), start, end=0.001, samples=1, file=good,
             backend="cpu", threads=1, progress=False)  # fmt: skip
    whole = good.read_bytes()
    (folder / "torn.nc").write_bytes(whole[: len(whole) // 2])
    ds = rb.load(good)
    ds.drop_vars("px").to_netcdf(folder / "foreign.nc", engine="h5netcdf")
    with h5netcdf.File(folder / "vast.nc", "w") as file:
        file.dimensions = {"snapshot": 1, "species": 1, "px": 21544, "py": 21544, "pz": 21544}
        for name in file.dimensions:
            file.create_variable(name, (name,), float)
        file.create_variable("f", tuple(file.dimensions), float, chunks=(1, 1, 64, 64, 64))


def generated(seed: int, number: int) -> dict[str, Any]:
    """Return a configuration with valid values and, in most cases, a few invalid ones."""
    random_ = random.Random(f"{seed} {number}")
    pick, chance = random_.choice, random_.random
    names = {"user.py:gas": "a", "quarks": "u"}
    model, shape = dict(pick(MODELS)), dict(pick(SHAPES[: pick([7, 7, 7, len(SHAPES)])]))
    data: dict[str, Any] = {
        "model": model, "initial": {names.get(model["name"], "g"): shape},
        "grid": {"momentum_cells": pick([3, 4, 5, 5]), "momentum_max": 2.0},
        "collisions": {"samples": 1}, "time": {"end": 0.01},
        "run": {"backend": "cpu", "threads": 1},
    }  # fmt: skip
    if chance() < 0.3:
        data["initial"][pick(["g", "u", "ubar", "quarks", "a", "antiquarks"])] = dict(pick(SHAPES))
    for _ in range(pick([0, 1, 1, 2, 3])):
        path = pick(list(LEGAL))
        _put(data, path, pick(LEGAL[path]))
    for _ in range(pick([0, 0, 0, 1, 1, 2])):
        _spoil(data, random_)
    if chance() < 0.003:  # an automatic box takes a second
        _put(data, "grid.momentum_max", "auto")
    return data


def _put(data: dict[str, Any], path: str, value: Any) -> None:
    table, _, key = path.partition(".")
    if not key:
        data[table] = value
    elif isinstance(data.setdefault(table, {}), dict):
        data[table][key] = value


def _spoil(data: dict[str, Any], random_: random.Random) -> None:
    """Make one entry odd: a value, a key, a table or a file."""
    pick = random_.choice
    kind, odd = random_.random(), pick(ODD)
    states = data.get("initial")
    shapes = [s for s in states.values() if isinstance(s, dict)] if isinstance(states, dict) else []
    if kind < 0.5:
        _put(data, pick(list(LEGAL)), odd)
    elif kind < 0.75 and shapes:
        shape = pick(shapes)
        keys = [*shape, "sampling", "height", "seed", "chemical_potential", "velocity"]
        shape[pick(keys)] = pick([odd, 0.5, 1e-9, 1e9, 1 - 1e-12])
    elif kind < 0.8:
        data["initial"] = {"g": {"shape": "file", "path": pick(PATHS)}}
    elif kind < 0.85:
        data["initial"] = {"g": {"shape": pick(WRONG_FILES)}}
    elif kind < 0.9:
        data["model"] = {"name": pick([*WRONG_FILES, *TEXTS])}
    elif kind < 0.95:
        _put(
            data,
            pick(["grid.", "time.", "model.", "initial.", "x.", ""]) + pick(["z", "x[/b]"]),
            odd,
        )
    else:
        _put(data, pick(list(data)), odd)


def judged(data: dict[str, Any], folder: Path, number: int = 0) -> str:
    """ "refused", "read", "accepted", "stepped" or "stopped"; anything else is raised."""
    try:
        settings = config.Config.from_dict(_as_toml(data, folder), folder)
        states, model = settings.build_initial(), settings.build_model()
        path = folder / settings.output.file
        if number % FULL or settings.run.workers:  # avoids starting a cluster
            grid = simulation.planned(model, states, settings.grid, settings, path)[0]
            rb.initial.evaluate(states, grid, model)
            return "read"
        run = simulation.prepare(model, states, settings.grid, settings, path)
    except rb.InputError as error:
        text = str(error)
        assert text and re.search(NAMES, text), f"names no key: {text}"
        return "refused"
    limit = courant_limit(run.grid, run.state.mass_squared)
    length = limit if run.step_plan.automatic else run.step_plan.step
    assert settings.time.end / length <= MOST_STEPS, "a run without end"
    return "accepted" if number % STEPPED else _stepped(run)


def _as_toml(data: dict[str, Any], folder: Path) -> Any:
    """Write the data as TOML and read the file if TOML can represent them; return the data."""
    try:
        text = tomli_w.dumps(data)
        (folder / "run.toml").write_text(text, encoding="utf-8")
    except (TypeError, ValueError, AttributeError):
        return data
    with contextlib.suppress(rb.InputError):
        config.load(folder / "run.toml")
    return data


def _stepped(run: Run) -> str:
    """Take two steps; check that f stays valid and masses finite."""
    state = run.state
    try:
        for _ in islice(run.backend.advance(state, run.step_plan, run.stops.next(0.0)), 2):
            assert np.isfinite(state.squares).all() and state.time > 0
            assert (run.backend.get() >= 0).all()
    except rb.RunError:  # with a message and the results so far
        return "stopped"
    return "stepped"


def examined(
    seed: int, numbers: range, folder: Path, tell: Callable[[str], Any] = str
) -> tuple[Counter[str], list[str]]:
    """Return the counts of verdicts and the failures; ``tell`` is called with each failure."""
    found: Counter[str] = Counter()
    failures = []
    for number in numbers:
        try:
            found[judged(generated(seed, number), folder, number)] += 1
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            words = f"{number}: {type(error).__name__}: {str(error)[:200]}"
            failures.append("\n".join([words, *traceback.format_exc().splitlines()[-7:-1]]))
            tell(failures[-1])
        if (number + 1) % 1000 == 0:
            tell(f"{number + 1}: {dict(found)}, {len(failures)} failures")
    return found, failures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        files(Path(folder))
        numbers = range(given.first, given.first + given.count)
        found, failures = examined(given.seed, numbers, Path(folder), partial(print, flush=True))
    print(
        f"seed {given.seed}, {given.count} configurations: {dict(found)}, {len(failures)} "
        f"failures, {time.perf_counter() - began:.0f} s"
    )
    raise SystemExit(1 if failures else 0)


if __name__ == "__main__":
    main()
