"""Configuration: one frozen class per TOML table, validated once, complaining in the user's words.

The description of a field is the remedy in its error message, so it is phrased as advice.
"""

from __future__ import annotations

import difflib
import inspect
import math
import tomllib
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import tomli_w
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PrivateAttr,
    ValidationError,
    model_validator,
)

from .errors import InputError
from .grid import MAX_CELLS, PhaseSpace
from .initial import SHAPES, FromFunction, Shape, load_function
from .model import Model, suggest
from .qcd import gluons, qcd, quarks

MODELS: dict[str, Callable[..., Model]] = {
    "qcd": qcd,
    "gluons": gluons,
    "quarks": quarks,
}


MOST_RECORDS = 100_000


# --- the tables ---------------------------------------------------------------------------------


def _per_axis(value: Any) -> Any:
    """A list as a tuple, one number for all axes as three."""
    if isinstance(value, list):
        return tuple(value)
    plain = isinstance(value, int | float) and not isinstance(value, bool)
    return (value,) * 3 if plain else value


def _tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


DIRECTIONS = ("x", "y", "z", "px", "py", "pz")


def _in_order(value: Any) -> Any:
    """Marginals with their directions in the order of the output, each once."""
    if not isinstance(value, list | tuple):
        return value
    result = []
    for text in value:
        words = text.split() if isinstance(text, str) else []
        known = bool(words) and set(words) <= set(DIRECTIONS)
        result.append(" ".join(sorted(set(words), key=DIRECTIONS.index)) if known else text)
    return tuple(dict.fromkeys(result))


Count = Annotated[int, Field(ge=1, le=MAX_CELLS)]
Positive = Annotated[float, Field(gt=0)]
Cells = Annotated[tuple[Count, Count, Count], BeforeValidator(_per_axis)]
Widths = Annotated[tuple[Positive, Positive, Positive], BeforeValidator(_per_axis)]
Boundary = Literal["periodic", "reflecting", "open"]
Boundaries = Annotated[tuple[Boundary, Boundary, Boundary], BeforeValidator(_tuple)]
Marginal = Annotated[str, Field(pattern=r"^(x|y|z|px|py|pz)( (x|y|z|px|py|pz))*$")]
Marginals = Annotated[tuple[Marginal, ...], BeforeValidator(_in_order)]
Times = Annotated[tuple[Annotated[float, Field(ge=0)], ...], BeforeValidator(_tuple)]


def _key(default: Any = ..., advice: str = "", **limits: Any) -> Any:
    """A field whose description tells what to write."""
    return Field(default, description=advice, **limits)


class Table(BaseModel):
    """What all tables share: frozen, no conversions, no unknown keys."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", allow_inf_nan=False)


class ModelTable(Table):
    """[model]: the name of a model and what its function is given."""

    model_config = ConfigDict(frozen=True, strict=True, extra="allow")

    name: str = _key(advice="use 'qcd', 'gluons', 'quarks' or 'file.py:function'")


class Grid(Table):
    """[grid]: cells and half widths of the box, momenta in GeV and lengths in fm."""

    momentum_cells: Cells = _key(
        (31, 31, 31), f"use one whole number or three, from 1 to {MAX_CELLS}"
    )
    momentum_max: Literal["auto"] | Widths = _key(
        "auto", "use 'auto', or one number of GeV above 0 or three"
    )
    momentum_boundary: Literal["closed", "periodic"] = _key("closed", "use 'closed' or 'periodic'")
    space_cells: Cells = _key((1, 1, 1), f"use one whole number or three, from 1 to {MAX_CELLS}")
    space_max: Widths = _key((3.0, 3.0, 3.0), "use one number of fm above 0 or three")
    boundary: Boundary | Boundaries = _key(
        "periodic", "use 'periodic', 'reflecting' or 'open', or one of them for each axis"
    )

    def phase_space(self, cells: Any, widths: Any) -> PhaseSpace:
        """The grid with these momentum cells and half widths [GeV]."""
        return PhaseSpace(
            cells, widths, self.space_cells, self.space_max, self.boundary, self.momentum_boundary
        )


class Collisions(Table):
    """[collisions]: how events are drawn and where they land."""

    projection: Literal["conserving", "nearest"] = _key(
        "conserving", "use 'conserving' or 'nearest'"
    )
    sampling: Literal["cm", "k2", "k3"] = _key("cm", "use 'cm', 'k2' or 'k3'")
    symmetrical: bool = _key(True, "use true or false")
    pairs: Literal["importance", "uniform"] = _key("importance", "use 'importance' or 'uniform'")
    samples: int = _key(16, "use a whole number, 1 or more", ge=1)
    seed: int = _key(1, "use a whole number from 0 to 2^63 - 1", ge=0, lt=2**63)


class Time(Table):
    """[time]: times in fm."""

    end: float = _key(advice="use a number of fm above 0", gt=0)
    step: Literal["auto"] | Positive = _key("auto", "use 'auto' or a number of fm above 0")
    tolerance: float = _key(1e-3, "use a number between 0 and 1", gt=0, lt=1)


class Run(Table):
    """[run]: where the work is done."""

    backend: Literal["auto", "cpu", "cuda"] = _key("auto", "use 'auto', 'cpu' or 'cuda'")
    precision: Literal["auto", "float32", "float64"] = _key(
        "auto", "use 'auto', 'float32' or 'float64'"
    )
    threads: int = _key(0, "use a whole number; 0 = all cores", ge=0)
    workers: int = _key(0, "use a whole number; 0 = this process alone", ge=0)
    address: str = _key("", "use the address of a cluster; '' = none")
    gpus_per_worker: float = _key(0.0, "use a number, 0 or more", ge=0)


class Output(Table):
    """[output]: the file and the times [fm] of what is written into it."""

    file: str = _key("run.nc", "use the name of a file", min_length=1)
    every: float = _key(0.1, "use a number of fm above 0", gt=0)
    snapshots: Times = _key(advice="use a list of times in fm, 0 or more")
    marginals: Marginals = _key(
        (), "use a list of directions to keep, such as ['x', 'x px'], of x, y, z, px, py, pz"
    )
    checkpoint_every: float = _key(600.0, "use a number of seconds above 0", gt=0)


class Settings(Table):
    """How to solve: everything but the physics."""

    collisions: Collisions = Collisions()
    time: Time
    run: Run = Run()
    output: Output

    @model_validator(mode="before")
    @classmethod
    def _dependent_defaults(cls, data: Any) -> Any:
        """Defaults that depend on other keys: snapshots, pairs."""
        data = deepcopy(dict(data))
        time = data.get("time")
        end = time.get("end") if isinstance(time, dict) else None
        if isinstance(end, bool) or not isinstance(end, int | float) or not 0 < end < math.inf:
            end = 1.0  # its own error is reported; do not add others
        output = data.setdefault("output", {})
        if isinstance(output, dict):
            grid = data.get("grid")
            cells = _per_axis(grid.get("space_cells", 1) if isinstance(grid, dict) else 1)
            in_space = isinstance(cells, tuple) and any(isinstance(n, int) and n > 1 for n in cells)
            output.setdefault("snapshots", [] if in_space else [0.0, float(end)])
        collisions = data.get("collisions")
        if isinstance(collisions, dict) and collisions.get("sampling") in ("k2", "k3"):
            collisions.setdefault("pairs", "uniform")
        return data

    def settings_dict(self) -> dict[str, Any]:
        """[collisions], [time], [run] and [output] as nested dictionaries of TOML values."""
        return _plain(self.model_dump(include=set(Settings.model_fields)))

    @classmethod
    def from_options(cls, **options: Any) -> Settings:
        """Settings from keyword arguments: the keys of [collisions], [time], [run], [output]."""
        tables = {name: _table_fields(name) for name in cls.model_fields}
        data: dict[str, dict[str, Any]] = {name: {} for name in tables}
        for key, value in options.items():
            table = next((name for name, fields in tables.items() if key in fields), None)
            if table is None and key in Grid.model_fields:
                raise InputError(
                    f"option {key} belongs to the grid: give solve() a PhaseSpace(momentum_cells, "
                    "momentum_max, space_cells, ...)"
                )
            if table is None:
                known = [key for fields in tables.values() for key in fields]
                raise InputError(f"unknown option {key}: {suggest(key, known)}")
            data[table][key] = (
                value.tolist() if isinstance(value, np.generic | np.ndarray) else value
            )
        try:
            settings = Settings.model_validate(data)
        except ValidationError as error:
            raise InputError("\n".join(_messages(error, data))) from None
        problems = _conflicts(settings) + _not_yet(settings)
        if problems:
            raise InputError("\n".join(problems))
        return settings


class Config(Settings):
    """A complete run; keys are those of the TOML file, defaults filled in."""

    title: str = _key("", "use a text")
    model: ModelTable
    grid: Grid = Grid()
    initial: dict[str, dict[str, Any]] = Field(min_length=1)

    _folder: Path = PrivateAttr(default=Path())

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], folder: str | Path = Path()) -> Config:
        """Validates nested dictionaries as read from TOML; files are relative to the folder."""
        problems: list[str] = []
        config = None
        try:
            config = cls.model_validate(data)
        except ValidationError as error:
            problems += _messages(error, data)
        problems += _initial_problems(data.get("initial"), Path(folder))
        problems += _model_problems(data.get("model"), data.get("initial"))
        if config is not None:
            problems += _conflicts(config) + _not_yet(config)
            problems += short_axes(config.grid.momentum_cells, config.collisions.projection)
            problems += _space_conflicts(config)
        if problems or config is None:
            raise InputError("\n".join(dict.fromkeys(problems)))
        config._folder = Path(folder)
        return config

    @property
    def folder(self) -> Path:
        """The folder that files named in the configuration are relative to."""
        return self._folder

    def to_dict(self) -> dict[str, Any]:
        """Everything, defaults included, as nested dictionaries of TOML values."""
        data = _plain(self.model_dump())
        order = ("title", "model", "grid", "initial", *Settings.model_fields)
        return {key: data[key] for key in order}

    def to_toml(self) -> str:
        """Everything, defaults included, as TOML text that loads again."""
        return tomli_w.dumps(self.to_dict())

    def build_model(self) -> Model:
        """The model; runs the user's function if it names one."""
        return _call_model(self.model.name, self.model.model_extra or {}, self._folder)

    def build_initial(self) -> dict[str, Shape]:
        """The initial states by species or group; loads the user's functions."""
        return {
            name: build_shape(name, table, self._folder) for name, table in self.initial.items()
        }

    def build_grid(self, momentum_max: float | Sequence[float] | None = None) -> PhaseSpace | None:
        """The grid, or None if its half widths [GeV] are "auto" and none are given here."""
        widths = self.grid.momentum_max if momentum_max is None else momentum_max
        if isinstance(widths, str):
            return None
        return self.grid.phase_space(self.grid.momentum_cells, widths)


# --- messages -----------------------------------------------------------------------------------

REQUIRED = {
    "model": 'add a table [model] with name = "qcd" and alpha_s = 0.3',
    "model.name": 'add name = "qcd" to [model]',
    "initial": 'add a table such as [initial.g] with shape = "step", height = 0.5, edge = 1.5',
    "time": "add a table [time] with end = 5.0 (fm)",
    "time.end": "add end = 5.0 (fm) to [time]",
}


def _table_fields(name: str) -> dict[str, Any]:
    """The fields of a table, or the tables themselves for ''."""
    if not name:
        return dict(Config.model_fields)
    kind = Config.model_fields[name].annotation
    return dict(kind.model_fields) if isinstance(kind, type) and issubclass(kind, Table) else {}


def _unknown(table: str, key: str, known: Sequence[str]) -> str:
    """unknown key grid.momentum_cell: did you mean momentum_cells?"""
    path = f"{table}.{key}" if table else key
    near = difflib.get_close_matches(key, known, n=1)
    if near:
        return f"unknown key {path}: did you mean {near[0]}?"
    for other in Config.model_fields:
        if key in _table_fields(other):
            return f"unknown key {path}: {key} belongs to [{other}]"
    return f"unknown key {path}: known are {', '.join(known)}"


def _messages(error: ValidationError, data: Any) -> list[str]:
    """Each faulty key once, with its value and the remedy."""
    messages: dict[str, str] = {}
    for item in error.errors(include_url=False):
        place = [str(part) for part in item["loc"][:2]]
        path = ".".join(place)
        table, key = place if len(place) == 2 else ("", *place) if place else ("", "")
        value: Any = data
        for part in place:
            value = value.get(part) if isinstance(value, Mapping) else None
        if item["type"] == "extra_forbidden":
            text = _unknown(table, key, list(_table_fields(table)))
        elif path in REQUIRED and (value is None or value == {}):
            text = f"missing key {path}: {REQUIRED[path]}"
        else:
            field = _table_fields(table).get(key)
            advice = (field.description if field else None) or f"write it as a table [{path}]"
            text = f"{path} = {value!r}: {advice}"
        messages.setdefault(path, text)
    return list(messages.values())


def short_axes(cells: Sequence[int], projection: str) -> list[str]:
    """Axes that are too short to conserve energy on."""
    if projection != "conserving" or min(cells) >= 3:
        return []
    return [
        f"grid.momentum_cells = {list(cells)}: use at least 3 on each axis: along a "
        "shorter one a scattered pair has no nodes to be split between, so its energy cannot be "
        "matched; or set collisions.projection = 'nearest'"
    ]


def _conflicts(config: Settings) -> list[str]:
    """Keys that are legal alone but not together."""
    collisions, time, output = config.collisions, config.time, config.output
    problems = []
    if collisions.projection == "conserving":
        if collisions.sampling != "cm":
            problems.append(
                f"collisions.sampling = {collisions.sampling!r}: only with projection = 'nearest'; "
                "use 'cm'"
            )
        if not collisions.symmetrical:
            problems.append(
                "collisions.symmetrical = False: only with projection = 'nearest'; use true"
            )
    if collisions.sampling != "cm" and collisions.pairs == "importance":
        problems.append(
            f"collisions.pairs = 'importance': sampling = {collisions.sampling!r} draws uniform "
            "pairs; use 'uniform' or leave it out"
        )
    if time.step != "auto" and time.step > time.end:
        problems.append(
            f"time.step = {time.step!r}: longer than the run; use at most time.end = {time.end!r}"
        )
    late = [t for t in output.snapshots if t > time.end * (1 + 1e-9)]
    if late:
        problems.append(
            f"output.snapshots = {list(output.snapshots)}: {late[0]!r} is after "
            f"time.end = {time.end!r}; use times within the run"
        )
    records = time.end / output.every
    if records > MOST_RECORDS:
        problems.append(
            f"output.every = {output.every!r}: would give {records:.1e} records; use at least "
            f"{time.end / MOST_RECORDS:.1e} fm"
        )
    return problems


def _absent(key: str, value: Any, feature: str, instead: str) -> str:
    return (
        f"{key} = {value!r}: needs {feature}, which this version does not have yet; use {instead}"
    )


def _space_conflicts(config: Config) -> list[str]:
    """Keys about space that would have no effect."""
    grid = config.grid
    problems = []
    walls = (grid.boundary,) * 3 if isinstance(grid.boundary, str) else grid.boundary
    alone = [axis for axis, n in enumerate(grid.space_cells) if n == 1]
    each = not isinstance(grid.boundary, str) or len(alone) == 3
    if each and any(walls[axis] != "periodic" for axis in alone):
        problems.append(
            f"grid.boundary = {_plain(grid.boundary)!r}: has no effect with one space cell along "
            "an axis; set grid.space_cells, or use 'periodic' there"
        )
    if len(alone) < 3:
        return problems
    if grid.momentum_boundary != "closed":
        problems.append(
            f"grid.momentum_boundary = {grid.momentum_boundary!r}: has no effect with one space "
            "cell; set grid.space_cells, or leave it out"
        )
    return problems + no_marginals(config)


def no_marginals(settings: Settings) -> list[str]:
    """Marginals of a homogeneous system."""
    kept = settings.output.marginals
    if not kept:
        return []
    return [
        f"output.marginals = {list(kept)}: needs more than one space cell; set "
        "grid.space_cells, or use output.snapshots for f"
    ]


def _not_yet(config: Settings) -> list[str]:
    """Other values that need a feature of a later version."""
    run, pause = config.run, config.output.checkpoint_every
    rules = [
        ("run.workers", run.workers, run.workers > 0, "a cluster", "0"),
        ("run.address", run.address, run.address != "", "a cluster", "''"),
        ("run.gpus_per_worker", run.gpus_per_worker, run.gpus_per_worker > 0, "a cluster", "0"),
        ("output.checkpoint_every", pause, pause != 600, "checkpoints", "600 or leave it out"),
    ]  # fmt: skip
    return [_absent(key, value, need, instead) for key, value, used, need, instead in rules if used]


# --- the model and the initial states -----------------------------------------------------------


def _check_arguments(function: Callable[..., Any], arguments: Mapping[str, Any]) -> None:
    """Unknown and missing keys of [model], against the signature of its function."""
    parameters = inspect.signature(function).parameters.values()
    known = [p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    free = any(p.kind is p.VAR_KEYWORD for p in parameters)
    problems = [_unknown("model", key, known) for key in arguments if key not in known and not free]
    problems += [
        f"missing key model.{p.name}: add {p.name} = {0.3 if p.name == 'alpha_s' else '...'} "
        "to [model]"
        for p in parameters
        if p.name in known and p.default is p.empty and p.name not in arguments
    ]
    if problems:
        raise InputError("\n".join(problems))


def _call_model(name: str, arguments: Mapping[str, Any], folder: Path) -> Model:
    if name in MODELS:
        function = MODELS[name]
    elif ":" in name:
        function = load_function(str(folder / name), "model.name")
    else:
        raise InputError(f"model.name = {name!r}: {suggest(name, (*MODELS, 'file.py:function'))}")
    _check_arguments(function, arguments)
    try:
        model = function(**arguments)
    except InputError:
        raise
    except Exception as error:
        raise InputError(
            f"model.name = {name!r}: the function failed with {type(error).__name__}: {error}"
        ) from error
    if not isinstance(model, Model):
        raise InputError(f"model.name = {name!r}: the function returned {model!r}, not a Model")
    return model


def _model_problems(table: Any, initial: Any) -> list[str]:
    """Errors of a built-in model and of the species given a start; runs no code of the user."""
    name = table.get("name") if isinstance(table, Mapping) else None
    if not isinstance(name, str) or ":" in name:
        return []
    try:
        model = _call_model(name, {k: v for k, v in table.items() if k != "name"}, Path())
    except InputError as error:
        return str(error).splitlines()
    problems = []
    for species in initial if isinstance(initial, Mapping) else ():
        try:
            model.indices(species, "initial")
        except InputError as error:
            problems.append(str(error))
    return problems


def _shape_arguments(name: str, table: Mapping[str, Any]) -> tuple[type[Shape], dict[str, Any]]:
    """The class of a shape and its keys, none unknown or missing."""
    place, shape = f"initial.{name}", table.get("shape")
    if shape is None:
        raise InputError(f'missing key {place}.shape: add shape = "step", height, edge (GeV)')
    if isinstance(shape, str) and ":" in shape:
        kind: type[Shape] = FromFunction
    elif isinstance(shape, str) and shape in SHAPES:
        kind = SHAPES[shape]
    else:
        advice = suggest(str(shape), (*SHAPES, "file.py:function"))
        raise InputError(f"{place}.shape = {shape!r}: {advice}")
    expected = {f.name: f for f in fields(kind) if f.init and f.name != "function"}
    given = {key: value for key, value in table.items() if key != "shape"}
    problems = [_unknown(place, key, ["shape", *expected]) for key in given if key not in expected]
    problems += [
        f"missing key {place}.{key}: shape = {shape!r} needs {key}"
        for key, item in expected.items()
        if item.default is MISSING and key not in given
    ]
    if problems:
        raise InputError("\n".join(problems))
    return kind, given


def build_shape(name: str, table: Mapping[str, Any], folder: Path) -> Shape:
    """The initial state of a table [initial.NAME]; its files are relative to the folder."""
    kind, given = _shape_arguments(name, table)
    if isinstance(given.get("path"), str):
        given["path"] = str(folder / given["path"])
    if kind is FromFunction:
        given["function"] = str(folder / table["shape"])
    try:
        return kind(**given)
    except InputError as error:
        raise InputError(f"initial.{name}.{error}") from error


def _initial_problems(initial: Any, folder: Path) -> list[str]:
    """Errors of the initial states; opens no file and runs no code of the user."""
    problems = []
    for name, table in initial.items() if isinstance(initial, Mapping) else ():
        try:
            if not isinstance(table, Mapping):
                continue
            kind, given = _shape_arguments(name, table)
            if kind is not FromFunction:
                build_shape(name, table, folder)
            elif given.get("sampling", "cell") not in ("cell", "node"):
                raise InputError(
                    f"initial.{name}.sampling = {given['sampling']!r}: use 'cell' or 'node'"
                )
        except InputError as error:
            problems += str(error).splitlines()
    return problems


# --- TOML ---------------------------------------------------------------------------------------


def load(path: str | Path, overrides: Sequence[str] = ()) -> Config:
    """Reads and validates a TOML file; overrides are "dotted.key=TOML value" texts."""
    path = Path(path)
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: not valid TOML: {error}") from error
    for text in overrides:
        _override(data, text)
    return Config.from_dict(data, folder=path.parent)


def _override(data: dict[str, Any], text: str) -> None:
    """Sets one key of nested dictionaries from "dotted.key=TOML value"."""
    path, equals, value = text.partition("=")
    keys = [part.strip() for part in path.split(".")]
    if not equals or not all(keys):
        raise InputError(f"--set {text}: write key=value, such as time.end=5.0")
    table = data
    for depth, key in enumerate(keys[:-1], start=1):
        table = table.setdefault(key, {})
        if not isinstance(table, dict):
            raise InputError(f"--set {text}: {'.'.join(keys[:depth])} is a value, not a table")
    table[keys[-1]] = _override_value(value.strip(), text)


def _override_value(value: str, text: str) -> Any:
    try:
        parsed = tomllib.loads(f"value = {value}")
    except tomllib.TOMLDecodeError as error:
        if value and value[0] not in "[{\"'" and "\n" not in value:
            return value
        raise InputError(f"--set {text}: {value!r} is not a TOML value: {error}") from error
    if set(parsed) != {"value"}:
        raise InputError(f"--set {text}: give one value")
    return parsed["value"]


def _plain(value: Any) -> Any:
    """Tuples as lists, all the way down."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value


TEMPLATE = (Path(__file__).parent / "template.toml").read_text()
