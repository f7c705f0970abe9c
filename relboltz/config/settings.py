"""Settings: one frozen class per table, validated once, with errors in the user's terms.

The keys are those of a TOML file and the options of solve(). The description of a field is the
advice in its error message; a field with a list of allowed values needs none.
"""

import difflib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal, Self, cast, get_origin

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from pydantic.fields import FieldInfo
from pydantic.functional_validators import AfterValidator, BeforeValidator

from ..events.collisions import SETS, Channel
from ..grid import phase_space as grid
from ..grid.phase_space import MAX_CELLS, PhaseSpace, choices, half_widths, numbers_of_cells
from ..grid.units import LARGEST, SMALLEST
from ..model.process import Process
from ..util.errors import InputError
from ..util.renamed import renamed_key, renamed_option
from ..util.text import shown, suggest

MOST_RECORDS = 100_000
MOST_STEPS = 1e9
"""Largest number of steps: they take 28 hours at 0.1 ms per step, the fastest on any machine, and
116 days at 10 ms, typical of a few cores."""
LEAST_TOLERANCE = 1e-12
"""Smallest tolerance. Errors below STILL = 1e-6 of the tolerance count as rounding; with a smaller
tolerance such errors are below one of the 2^61 quanta that a state may hold, so that the error of a
step could not be measured."""
MOST_WORKERS = 4096
MOST_THREADS = 1024
"""Largest number of threads: each has its own memory, and no machine has more cores."""
REQUIRED = {
    "model": 'add a table [model] with name = "qcd" and alpha_s = 0.3',
    "model.name": 'add name = "qcd" to [model]',
    "initial": 'add a table such as [initial.g] with shape = "step", height = 0.5, edge = 1.5',
    "time": "add a table [time] with end = 5.0 (fm)",
    "time.end": "add end = 5.0 (fm) to [time]",
}
"""Advice on missing keys."""


# --- the tables ---------------------------------------------------------------------------------


def _per_axis(value: Any) -> Any:
    """Repeat a single number for all three axes."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return (value,) * 3 if number else value


DIRECTIONS = ("x", "y", "z", "px", "py", "pz")


def _in_order(value: Any) -> Any:
    """Sort the directions of each marginal as in the output, and drop duplicates."""
    if not isinstance(value, list | tuple):
        return value
    result = []
    for text in value:
        words = text.split() if isinstance(text, str) else []
        known = bool(words) and set(words) <= set(DIRECTIONS)
        result.append(" ".join(sorted(set(words), key=DIRECTIONS.index)) if known else text)
    plain = all(isinstance(text, str) for text in result)
    return tuple(dict.fromkeys(result)) if plain else result


WITHIN = f"from {SMALLEST:g} to {LARGEST:g}"
LIST = Field(strict=False)
"""Allows a list where a tuple is expected; nothing else is converted."""
Cells = Annotated[
    tuple[int, int, int],
    Field(strict=False, description=f"use one whole number or three, from 1 to {MAX_CELLS}"),
    BeforeValidator(_per_axis),
    AfterValidator(numbers_of_cells),
]
Widths = Annotated[
    tuple[float, float, float], LIST, BeforeValidator(_per_axis), AfterValidator(half_widths)
]
Pairs = Literal["importance", "uniform"]
Boundaries = Annotated[tuple[grid.Boundary, grid.Boundary, grid.Boundary], LIST]
Marginal = Annotated[str, Field(pattern=r"^(x|y|z|px|py|pz)( (x|y|z|px|py|pz))*$")]
Marginals = Annotated[tuple[Marginal, ...], BeforeValidator(_in_order)]
Times = Annotated[tuple[Annotated[float, Field(ge=0)], ...], LIST]


def key(default: Any = ..., advice: str = "", **limits: Any) -> Any:
    """Return a field whose description is the advice in its error message."""
    return Field(default, description=advice, **limits)


class SettingsTable(BaseModel):
    """Base class of all tables: frozen, no conversions, no unknown keys."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", allow_inf_nan=False)


class GridSettings(SettingsTable):
    """[grid]: arguments of PhaseSpace, some of which can be chosen automatically."""

    momentum_cells: Cells = (41, 41, 41)
    momentum_max: Literal["auto"] | Widths = key(
        "auto", f"use 'auto', or one number of GeV above 0 or three, {WITHIN}"
    )
    momentum_boundary: grid.MomentumBoundary = PhaseSpace.momentum_boundary
    space_cells: Cells = PhaseSpace.space_cells
    space_max: Widths = key(
        PhaseSpace.space_max, f"use one number of fm above 0 or three, {WITHIN}"
    )
    boundary: grid.Boundary | Boundaries = key(PhaseSpace.boundary[0], grid.BOUNDARY_ADVICE)
    expansion: str = key("none", "use 'none', 'bjorken', 'hubble' or 'file.py:function'")
    hubble_rate: float | None = key(None, "use a number of 1/fm", ge=-LARGEST, le=LARGEST)
    hubble_power: float | None = key(None, "use a number", ge=-LARGEST, le=LARGEST)

    def phase_space(self, **chosen: Any) -> PhaseSpace:
        """Return the grid, with the chosen values replacing its own keys."""
        return PhaseSpace(**(self.model_dump() | chosen))

    @classmethod
    def describe(cls, grid: PhaseSpace) -> dict[str, Any]:
        """Return a grid as keys of [grid], without those of space if there is one space cell."""
        of_space = ("space_cells", "space_max", "boundary", "momentum_boundary")
        none = of_space if grid.sites == 1 else ()
        told = {name: value for name, value in cls.told(grid).items() if name not in none}
        return told if grid.expansion else {k: v for k, v in told.items() if k != "expansion"}

    @classmethod
    def told(cls, grid: PhaseSpace) -> dict[str, Any]:
        """Return a grid as all keys of [grid]."""
        keys = {name: getattr(grid, name) for name in cls.model_fields}
        keys["expansion"] = "none" if grid.expansion is None else str(grid.expansion)
        return plain(keys)


class Sampling(SettingsTable):
    """[collisions]: how events are drawn and where they land."""

    projection: Literal["conserving", "nearest"] = "conserving"
    kinematics: Literal["cm", "k2", "k3"] = "cm"
    symmetrical: bool = key(True, "use true or false")
    pair_sampling: Pairs = "importance"
    samples: int = key(16, "use a whole number, 1 or more", ge=1, lt=2**32)
    seed: int = key(1, "use a whole number from 0 to 2^63 - 1", ge=0, lt=2**63)

    @model_validator(mode="before")
    @classmethod
    def _uniform_in_the_paper(cls, data: Any) -> Any:
        """Default to uniform pairs for the paper's kinematics."""
        papers = isinstance(data, dict) and data.get("kinematics") in ("k2", "k3")
        return {"pair_sampling": "uniform", **data} if papers else data

    def samples_of(self, channel: Channel, nodes: int) -> int:
        """Return the number of samples of a channel in one set of a step."""
        return max(1, round(self.samples * nodes * channel.share / SETS))

    def compensated_spacing2(self, grid: PhaseSpace, process: Process) -> float:
        """Squared spacing for ``events.projection.compensation`` [GeV^2]; 0 if not needed.

        Only elastic events are compensated: inelastic ones determine how fast species convert.
        """
        if not process.elastic or self.projection == "nearest" or not self.symmetrical:
            return 0.0
        return sum(h * h for h in grid.spacing) / 3


class TimeSettings(SettingsTable):
    """[time]: times in fm."""

    end: float = key(advice=f"use a number of fm above 0, {WITHIN}", ge=SMALLEST, le=LARGEST)
    start: float = key(0.0, "use a number of fm, 0 or more", ge=0, le=LARGEST)
    step: Literal["auto"] | Annotated[float, Field(gt=0)] = key(
        "auto", "use 'auto' or a number of fm above 0"
    )
    tolerance: float = key(
        1e-3, f"use a number between 0 and 1, at least {LEAST_TOLERANCE:g}",
        ge=LEAST_TOLERANCE, lt=1,
    )  # fmt: skip
    regrid_times: Literal["auto"] | Times = key(
        "auto", "use 'auto', or a list of times in fm at which momentum spacings double"
    )

    @property
    def span(self) -> float:
        """Duration of the run [fm]."""
        return self.end - self.start


class RunSettings(SettingsTable):
    """[run]: hardware and parallelism."""

    backend: Literal["auto", "cpu", "cuda"] = "auto"
    precision: Literal["auto", "float32", "float64"] = "auto"
    threads: int = key(
        0, f"use a whole number; 0 = all cores, at most {MOST_THREADS}", ge=0, le=MOST_THREADS
    )
    workers: int = key(
        0, f"use a whole number; 0 = this process alone, at most {MOST_WORKERS}",
        ge=0, le=MOST_WORKERS,
    )  # fmt: skip
    address: str = key("", "use 'auto', the address of a Ray cluster, or '' to start one here")
    gpus_per_worker: float = key(
        0.0, "use a number of GPUs, 0 or more; a part where workers share one", ge=0, le=64
    )


class OutputSettings(SettingsTable):
    """[output]: the file, and the times [fm] at which it is written to."""

    file: str = key("run.nc", "use the name of a file", min_length=1)
    every: float = key(0.1, "use a number of fm above 0", gt=0)
    snapshots: Times = key(None, "use a list of times in fm, 0 or more")
    marginals: Marginals = key(
        (), "use a list of directions to keep, such as ['x', 'x px'], of x, y, z, px, py, pz"
    )
    checkpoint_every: float = key(600.0, "use a number of seconds above 0", gt=0)


class Settings(SettingsTable):
    """All settings except the physics."""

    collisions: Sampling = Sampling()
    time: TimeSettings
    run: RunSettings = RunSettings()
    output: OutputSettings = OutputSettings()

    @model_validator(mode="after")
    def _default_snapshots(self) -> Self:
        """Set snapshots to start and end; in space f is large, so default to none."""
        if self.output.snapshots is None:
            times = () if self._in_space() else (self.time.start, self.time.end)
            output = self.output.model_copy(update={"snapshots": times})
            output.model_fields_set.discard("snapshots")
            object.__setattr__(self, "output", output)
        return self

    @property
    def default_snapshots(self) -> bool:
        """Whether snapshot times are the default ones, which follow from start and end."""
        return "snapshots" not in self.output.model_fields_set

    def _in_space(self) -> bool:
        """Whether the grid is known to have more than one space cell."""
        return False

    def to_dict(self) -> dict[str, Any]:
        """Return all settings, defaults included, as nested dictionaries of TOML values."""
        return plain(self.model_dump())

    @classmethod
    def from_options(cls, **options: Any) -> Self:
        """Return settings from keyword arguments: keys of [collisions], [time], [run], [output]."""
        tables = {name: cls._keys_of(name) for name in cls.model_fields}
        data: dict[str, dict[str, Any]] = {name: {} for name in tables}
        for option, value in options.items():
            table = next((name for name, keys in tables.items() if option in keys), None)
            if table is None and option in GridSettings.model_fields:
                raise InputError(
                    f"option {option} belongs to the grid: give solve() a "
                    "PhaseSpace(momentum_cells, momentum_max, space_cells, ...)"
                )
            if table is None:
                if present := renamed_option(option):
                    raise InputError(f"unknown option {option}: it is called {present} now")
                known = [key for keys in tables.values() for key in keys]
                raise InputError(f"unknown option {option}: {suggest(option, known)}")
            of_numpy = isinstance(value, np.generic | np.ndarray)
            data[table][option] = value.tolist() if of_numpy else value
        return cls.checked(data)

    @classmethod
    def checked(cls, data: Mapping[str, Any], others: Iterable[str] = ()) -> Self:
        """Return the settings in nested dictionaries, or raise all problems, with others, at once.

        others : problems found elsewhere
        """
        problems: list[str] = []
        settings = None
        try:
            settings = cls.model_validate(data)
        except ValidationError as error:
            problems += cls._messages(error, data)
        problems += others
        if settings is not None:
            problems += settings.problems()
        refuse(problems)
        return cast(Self, settings)

    def problems(self) -> Iterator[str]:
        """Yield problems of keys that are valid alone but not together."""
        collisions, time, output, run = self.collisions, self.time, self.output, self.run
        kinematics = collisions.kinematics
        nearest = "only with projection = 'nearest'"
        if collisions.projection == "conserving":
            if kinematics != "cm":
                yield f"collisions.kinematics = {kinematics!r}: {nearest}; use 'cm'"
            if not collisions.symmetrical:
                yield f"collisions.symmetrical = False: {nearest}; use true"
        if kinematics != "cm" and collisions.pair_sampling == "importance":
            yield (
                f"collisions.pair_sampling = 'importance': kinematics = {kinematics!r} draws "
                "uniform pairs; use 'uniform' or leave it out"
            )
        end = f"time.end = {time.end!r}"
        if time.end <= time.start:
            yield f"time.start = {time.start!r}: is not before {end}; use an earlier start"
            return
        if time.step != "auto" and time.step > time.span:
            yield f"time.step = {time.step!r}: longer than the run; use at most {end}"
        if time.step != "auto" and time.span > MOST_STEPS * time.step:
            yield (
                f"time.step = {time.step!r}: {end} would take end / step = "
                f"{time.span / time.step:.1e} steps, and {MOST_STEPS:.0e} are the most; use at "
                f"least {time.span / MOST_STEPS:.1e} fm, or 'auto'"
            )
        late = [t for t in output.snapshots if not time.start <= t <= time.end * (1 + 1e-9)]
        if late:
            where = f"after {end}" if late[0] > time.end else f"before time.start = {time.start!r}"
            yield (
                f"output.snapshots = {list(output.snapshots)}: {late[0]!r} is {where}; use "
                "times within the run"
            )
        records = time.span / output.every
        if records > MOST_RECORDS:
            yield (
                f"output.every = {output.every!r}: would give {records:.1e} records; use at least "
                f"{time.span / MOST_RECORDS:.1e} fm"
            )
        for key, value in (("address", run.address), ("gpus_per_worker", run.gpus_per_worker)):
            if value and not run.workers:
                yield (
                    f"run.{key} = {shown(value)}: is for workers; set run.workers, the number of "
                    "them, or leave it out"
                )

    @classmethod
    def _keys_of(cls, table: str) -> Mapping[str, Any]:
        """Return the fields of a table, or the tables themselves for ''."""
        if not table:
            return cls.model_fields
        kind = cls.model_fields[table].annotation
        return (
            kind.model_fields if isinstance(kind, type) and issubclass(kind, SettingsTable) else {}
        )

    @classmethod
    def unknown(cls, table: str, key: str, known: Sequence[str]) -> str:
        """Return a message such as 'unknown key grid.momentum_cell: did you mean ...?'."""
        path = f"{table}.{key}" if table else key
        if present := renamed_key(path):
            return f"unknown key {path}: it is called {present} now"
        near = difflib.get_close_matches(key, known, n=1)
        if near:
            return f"unknown key {path}: did you mean {near[0]}?"
        for other in cls.model_fields:
            if key in cls._keys_of(other):
                return f"unknown key {path}: {key} belongs to [{other}]"
        if not known:
            return f"unknown key {path}: nothing is asked for there; leave it out"
        return f"unknown key {path}: known are {', '.join(known)}"

    @classmethod
    def _messages(cls, error: ValidationError, data: Any) -> list[str]:
        """Return one message per invalid key, with its value and advice."""
        found: dict[str, str] = {}
        for item in error.errors(include_url=False):
            place = [str(part) for part in item["loc"][:2]]
            path = ".".join(place)
            table, key = ("", "", *place)[-2:]
            value: Any = data
            for part in place:
                value = value.get(part) if isinstance(value, Mapping) else None
            if item["type"] == "extra_forbidden":
                text = cls.unknown(table, key, list(cls._keys_of(table)))
            elif path in REQUIRED and (value is None or value == {}):
                text = f"missing key {path}: {REQUIRED[path]}"
            else:
                advice = _advice(cls._keys_of(table).get(key))
                text = f"{path} = {shown(value)}: {advice or f'write it as a table [{path}]'}"
            found.setdefault(path, text)
        return list(found.values())


def _advice(field: FieldInfo | None) -> str | None:
    """Return advice for a key: its description, or the allowed values."""
    if field is None or get_origin(field.annotation) is not Literal:
        return field and field.description
    return f"use {choices(field.annotation)}"


def plain(value: Any) -> Any:
    """Convert tuples to lists recursively, and drop keys whose value is None."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items() if item is not None}
    return [plain(item) for item in value] if isinstance(value, list | tuple) else value


def refuse(problems: Iterable[str]) -> None:
    """Raise InputError with all problems, if any, each line once."""
    lines = dict.fromkeys(problems)
    if lines:
        raise InputError("\n".join(lines))


def of_expansion(grid: PhaseSpace, time: TimeSettings) -> Iterator[str]:
    """Yield settings that are incompatible with the expansion of the grid."""
    law = grid.expansion
    if law is None:
        if time.regrid_times not in ("auto", ()):
            yield (
                f"time.regrid_times = {list(time.regrid_times)}: is for momenta that expand; set "
                "grid.expansion, or leave it out"
            )
        return
    key = f"grid.expansion = {str(law)!r}"
    if law.needs_start() and not time.start > 0:
        yield f"{key}: needs a time of start above 0; set time.start, in fm"
        return
    if problems := list(law.problems(time.start, time.end)):
        yield from problems
        return
    if not isinstance(time.regrid_times, str) and any(t <= time.start for t in time.regrid_times):
        yield (
            f"time.regrid_times = {list(time.regrid_times)}: the run begins at {time.start:g} fm; "
            "use times after that, 'auto', or [] for none"
        )
    for axis, grows in zip("xyz", law.grows(time.start, time.end), strict=True):
        if grows and grid.space_cells["xyz".index(axis)] > 1:
            yield (
                f"{key}: expands along {axis}, so matter must be homogeneous there; use "
                f"grid.space_cells = 1 along {axis}"
            )


def short_axes(cells: Sequence[int], projection: str) -> Iterator[str]:
    """Yield a problem if an axis has too few nodes to conserve energy."""
    if projection == "conserving" and min(cells) < 3:
        yield (
            f"grid.momentum_cells = {list(cells)}: use at least 3 on each axis: along a shorter "
            "one a scattered pair has no nodes to be split between, so its energy cannot be "
            "matched; or set collisions.projection = 'nearest'"
        )


def no_marginals(kept: Sequence[str]) -> Iterator[str]:
    """Yield a problem if marginals are requested for a homogeneous system."""
    if kept:
        yield (
            f"output.marginals = {list(kept)}: needs more than one space cell; set "
            "grid.space_cells, or use output.snapshots for f"
        )
