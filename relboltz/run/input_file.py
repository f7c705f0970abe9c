"""Configuration of a run in TOML: from the text to model, initial states and settings."""

import inspect
import os
import tomllib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from pathlib import Path
from typing import Annotated, Any

import tomli_w
from pydantic import ConfigDict, Field, PrivateAttr

from ..config.settings import (
    GridSettings,
    Settings,
    SettingsTable,
    TimeSettings,
    key,
    no_marginals,
    refuse,
    short_axes,
)
from ..grid.units import LARGEST, SMALLEST
from ..initial import SHAPES, FromFunction, Shape, load_function
from ..initial.occupation import named
from ..model.model import Model
from ..model.qcd import gluons, qcd, quarks
from ..util.errors import InputError
from ..util.text import shown, suggest
from ..util.trust import path_of
from ..util.user_code import users_code

MODELS: dict[str, Callable[..., Model]] = {"qcd": qcd, "gluons": gluons, "quarks": quarks}
TEMPLATE = (Path(__file__).parent.parent / "config" / "template.toml").read_text()


class ModelTable(SettingsTable):
    """[model]: the name of a model and the arguments of its function."""

    model_config = ConfigDict(frozen=True, strict=True, extra="allow")

    name: str = key(advice="use 'qcd', 'gluons', 'quarks' or 'file.py:function'")


Temperature = Annotated[float, Field(ge=SMALLEST, le=LARGEST)]
Powers = Annotated[tuple[float, ...], Field(strict=False, min_length=1)]


class CoefficientSettings(SettingsTable):
    """[coefficients]: settings of ``relboltz coefficients``, which a run ignores."""

    temperature: Temperature | Annotated[tuple[Temperature, ...], Field(strict=False)] = key(
        (), "use a number of GeV above 0, or a list of them"
    )
    chemical_potential: float | dict[str, float] = key(
        0.0, "use a number of GeV, or a table of them by species, group or charge"
    )
    events: int = key(1_000_000, "use a whole number, 1000 or more", ge=1000)
    seed: int = key(1, "use a whole number from 0 to 2^63 - 1", ge=0, lt=2**63)
    tagged: str = key("", "use the name of a species, or leave it out")
    on_grid: bool = key(False, "use true for the nodes of [grid], false for unlimited momenta")
    powers: dict[str, Powers] = key({}, "use a table such as { shear = [-1, 0, 1] }")


class _CoefficientsTable(Settings):
    """[coefficients] as a nested table, for error messages."""

    time: TimeSettings = TimeSettings(end=1.0)
    coefficients: CoefficientSettings = CoefficientSettings()


@dataclass
class _BuiltConfig:
    """Model and initial states of a configuration, built once."""

    folder: Path = Path()
    coefficients: CoefficientSettings = field(default_factory=CoefficientSettings, compare=False)
    model: Model | None = field(default=None, compare=False)
    shapes: dict[str, Shape] = field(default_factory=dict, compare=False)


class Config(Settings):
    """Configuration of a complete run: the keys of the TOML file, with defaults filled in."""

    title: str = key("", "use a text")
    model: ModelTable
    grid: GridSettings = GridSettings()
    initial: dict[str, dict[str, Any]] = Field(min_length=1)

    _built: _BuiltConfig = PrivateAttr(default_factory=_BuiltConfig)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], folder: str | Path = Path()) -> "Config":
        """Validate nested dictionaries as read from TOML; file paths are relative to the folder."""
        built, data = _BuiltConfig(Path(folder)), dict(data)
        problems = _take_coefficients(built, data)
        _place_expansion(built.folder, data)
        problems += _build_shapes(built, data.get("initial"))
        problems += _build_model(built, data.get("model"), data.get("initial"))
        config = cls.checked(data, problems)
        config._built = built
        return config

    def _in_space(self) -> bool:
        return max(self.grid.space_cells) > 1

    def problems(self) -> Iterator[str]:
        """Yield problems, including grid keys that are too coarse or would have no effect."""
        yield from super().problems()
        grid, walls = self.grid, self.grid.phase_space(momentum_max=1.0).boundary
        yield from short_axes(grid.momentum_cells, self.collisions.projection)
        alone = [axis for axis, n in enumerate(grid.space_cells) if n == 1]
        each = not isinstance(grid.boundary, str) or len(alone) == 3
        if each and any(walls[axis] != "periodic" for axis in alone):
            kept = grid.boundary if isinstance(grid.boundary, str) else list(walls)
            yield (
                f"grid.boundary = {kept!r}: has no effect with one space cell along an axis; set "
                "grid.space_cells, or use 'periodic' there"
            )
        if self._in_space():
            return
        if grid.momentum_boundary != "closed":
            yield (
                f"grid.momentum_boundary = {grid.momentum_boundary!r}: has no effect with one "
                "space cell; set grid.space_cells, or leave it out"
            )
        yield from no_marginals(self.output.marginals)

    def to_toml(self) -> str:
        """Return the whole configuration, defaults included, as TOML text that can be loaded."""
        return tomli_w.dumps(self.to_dict())

    @property
    def folder(self) -> Path:
        """Folder to which file paths are relative."""
        return self._built.folder.resolve()

    def sources(self) -> dict[str, str]:
        """Sources of the files with user functions, by path, one character per byte."""
        paths = [path_of(name) for name in self.functions()]
        return {str(path): path.read_bytes().decode("latin-1") for path in paths}

    def functions(self) -> list[str]:
        """Return the user functions that a run calls, each as "/folder/file.py:name"."""
        shapes = [table.get("shape") for table in self.initial.values()]
        law = self.grid.expansion
        names = [self.model.name, *shapes, os.path.abspath(law) if ":" in law else law]
        return [str(self.folder / n) for n in names if isinstance(n, str) and ":" in n]

    @property
    def coefficients(self) -> CoefficientSettings:
        """Settings of ``relboltz coefficients``."""
        return self._built.coefficients

    def build_model(self) -> Model:
        """Return the model, built at the first call; this may run a user function."""
        built = self._built
        if built.model is None:
            built.model = call_model(self.model.name, self.model.model_extra or {}, built.folder)
        return built.model

    def build_initial(self) -> dict[str, Shape]:
        """Return the initial states by species or group; the first call loads user functions."""
        folder, shapes = self._built.folder, self._built.shapes
        for name, table in self.initial.items():
            if name not in shapes:
                shapes[name] = build_shape(name, table, folder)
        return {name: shapes[name] for name in self.initial}


class ModelConfig(Config):
    """Configuration from which only the model is needed."""

    initial: dict[str, dict[str, Any]] = Field(default_factory=dict)
    time: TimeSettings = TimeSettings(end=1.0)


def _place_expansion(folder: Path, data: dict[str, Any]) -> None:
    """Make the path of an expansion's file relative to the folder of the configuration."""
    grid = data.get("grid")
    law = grid.get("expansion") if isinstance(grid, Mapping) else None
    if isinstance(law, str) and ".py:" in law:
        data["grid"] = {**data["grid"], "expansion": str(folder / law)}


def _take_coefficients(built: _BuiltConfig, data: dict[str, Any]) -> list[str]:
    """Remove [coefficients] from a configuration; return its errors."""
    table = data.pop("coefficients", {})
    try:
        built.coefficients = _CoefficientsTable.checked({"coefficients": table}).coefficients
    except InputError as error:
        return str(error).splitlines()
    return []


# --- the model and the initial states -----------------------------------------------------------


def _check_keys(
    table: str, given: Iterable[str], known: Sequence[str], needed: Mapping[str, str]
) -> None:
    """Return errors for unknown and missing keys of a table, with remedies."""
    problems = [Config.unknown(table, name, known) for name in given if name not in known]
    missing = [f"{name}: {needed[name]}" for name in needed if name not in given]
    refuse(problems + [f"missing key {table}.{text}" for text in missing])


def call_model(name: str, arguments: Mapping[str, Any], folder: Path) -> Model:
    """Build a model by name with the given arguments; file paths are relative to the folder."""
    if name in MODELS:
        function = MODELS[name]
    elif ":" in name:
        function = load_function(str(folder / name), "model.name")
    else:
        raise InputError(
            f"model.name = {shown(name)}: {suggest(name, (*MODELS, 'file.py:function'))}"
        )
    with users_code(f"model.name = {name!r}: reading its arguments"):
        parameters = inspect.signature(function).parameters.values()
    named = [p for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    known = [p.name for p in named]
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        known += arguments
    needed = {
        p.name: f"add {p.name} = {0.3 if p.name == 'alpha_s' else '...'} to [model]"
        for p in named
        if p.default is p.empty
    }
    _check_keys("model", arguments, known, needed)
    with users_code(f"model.name = {name!r}: the function"):
        model = function(**arguments)
    if not isinstance(model, Model):
        raise InputError(
            f"model.name = {name!r}: the function returned {shown(model)}, not a Model"
        )
    return model


def _build_model(built: _BuiltConfig, table: Any, initial: Any) -> list[str]:
    """Return errors of a built-in model and of the initial species; runs no user code."""
    name = table.get("name") if isinstance(table, Mapping) else None
    if not isinstance(name, str) or ":" in name:
        return []
    try:
        arguments = {key: value for key, value in table.items() if key != "name"}
        built.model = model = call_model(name, arguments, built.folder)
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
    """Return the class of a shape and its keys; none may be unknown or missing."""
    place, shape = f"initial.{name}", table.get("shape")
    if shape is None:
        raise InputError(f'missing key {place}.shape: add shape = "step", height, edge (GeV)')
    if isinstance(shape, str) and ":" in shape:
        kind: type[Shape] = FromFunction
    elif isinstance(shape, str) and shape in SHAPES:
        kind = SHAPES[shape]
    else:
        advice = suggest(shape if isinstance(shape, str) else "", (*SHAPES, "file.py:function"))
        raise InputError(f"{place}.shape = {shown(shape)}: {advice}")
    expected = {f.name: f for f in fields(kind) if f.init and f.name != "function"}
    given = {key: value for key, value in table.items() if key != "shape"}
    needed = {
        name: f"shape = {shape!r} needs {name}"
        for name, item in expected.items()
        if item.default is MISSING
    }
    _check_leftovers(place, str(shape), given, expected)
    _check_keys(place, given, ["shape", *expected], needed)
    return kind, given


def _check_leftovers(
    place: str, shape: str, given: Mapping[str, Any], expected: Collection[str]
) -> None:
    """Explain unknown keys that belong to another shape, left over when ``shape`` was changed."""
    left = [name for name in given if name not in expected]
    for other, kind in SHAPES.items():
        if left and {f.name for f in fields(kind) if f.init} >= set(left):
            own = [name for name in expected if name not in ("sampling", "profile")]
            table = ", ".join([f'shape = "{shape}"', *(f"{name} = ..." for name in own)])
            raise InputError(
                f"{place}: shape = {shape!r} has no {' and no '.join(left)}, as {other!r} has; "
                f"remove these keys, or give the whole table: {place} = {{ {table} }}"
            )


def build_shape(name: str, table: Mapping[str, Any], folder: Path) -> Shape:
    """Build the initial state of a table [initial.NAME]; file paths are relative to the folder."""
    kind, given = _shape_arguments(name, table)
    if isinstance(given.get("path"), str):
        given["path"] = str(folder / given["path"])
    if kind is FromFunction:
        given["function"] = str(folder / table["shape"])
    with named(name):
        return kind(**given)


def _build_shapes(built: _BuiltConfig, initial: Any) -> list[str]:
    """Return errors of the initial states; opens no file and runs no user code."""
    problems = []
    for name, table in initial.items() if isinstance(initial, Mapping) else ():
        if not isinstance(table, Mapping):
            continue
        try:
            kind, given = _shape_arguments(name, table)
            if kind is not FromFunction:
                built.shapes[name] = build_shape(name, table, built.folder)
            elif given.get("sampling", "cell") not in ("cell", "node"):
                raise InputError(
                    f"initial.{name}.sampling = {shown(given['sampling'])}: use 'cell' or 'node'"
                )
        except InputError as error:
            problems += str(error).splitlines()
    return problems


# --- TOML ---------------------------------------------------------------------------------------


def load(
    path: str | Path,
    overrides: Sequence[str] = (),
    kind: type[Config] = Config,
    values: Mapping[str, Any] | None = None,
) -> Config:
    """Read and validate a TOML file; overrides are "dotted.key=TOML value" texts.

    values : further overrides, by dotted key
    """
    path = Path(path)
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:  # ValueError: also for endless numbers
        if path.suffix in (".nc", ".h5"):
            raise InputError(
                f"{path}: is a result, not a configuration; use plot, info or resume"
            ) from None
        raise InputError(f"{path}: not valid TOML: {error}") from error
    for text in overrides:
        path_, equals, value = text.partition("=")
        if not equals:
            raise InputError(f"--set {text}: write key=value, such as time.end=5.0")
        _override(data, path_, parsed_value(value.strip(), f"--set {text}"), f"--set {text}")
    for name, given in (values or {}).items():
        _override(data, name, given, f"--over {name}")
    return kind.from_dict(data, folder=path.parent)


def _override(data: dict[str, Any], path: str, value: Any, asked: str) -> None:
    """Set one key of nested dictionaries; asked : origin of the override, for messages."""
    keys = [part.strip() for part in path.split(".")]
    if not all(keys):
        raise InputError(f"{asked}: write key=value, such as time.end=5.0")
    table = data
    for depth, part in enumerate(keys[:-1], start=1):
        table = table.setdefault(part, {})
        if not isinstance(table, dict):
            raise InputError(f"{asked}: {'.'.join(keys[:depth])} is a value, not a table")
    table[keys[-1]] = value


def parsed_value(value: str, asked: str) -> Any:
    """Parse a TOML value or a bare word; asked : origin of the value, for messages."""
    if not value:
        raise InputError(f"{asked}: there is no value; write key=value, such as time.end=5.0")
    try:
        parsed = tomllib.loads(f"value = {value}")
    except (ValueError, RecursionError) as error:
        if value and value[0] not in "[{\"'" and "\n" not in value:
            return value
        raise InputError(f"{asked}: {value!r} is not a TOML value: {error}") from error
    if set(parsed) != {"value"}:
        raise InputError(f"{asked}: give one value")
    return parsed["value"]
