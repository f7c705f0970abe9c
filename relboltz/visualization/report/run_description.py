"""Description of a run: set-up, versions, seed and run time."""

import re
import tomllib
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from xarray import Dataset

from ...analysis import tables
from ...analysis.verdict import count
from ...grid.phase_space import PhaseSpace
from ...io.result import box
from ..plots.style import groups, mean, spelt
from . import number_format
from .histories import label
from .number_format import cut, duration

KINDS = {1: "Bose", -1: "Fermi", 0: "classical"}
INSIDE = frozenset(
    ("name", "species", "processes", "constant_mass_squared", "mass_coupling", "screening")
)
"""Keys that describe a model in numbers; all other keys are arguments of its function."""

Terms = Iterator[tuple[str, str]]
"""Terms and their descriptions in plain text."""


def configuration(ds: Dataset) -> dict[str, Any]:
    """Return the configuration as nested dictionaries; empty if it is missing or unreadable."""
    try:
        return tomllib.loads(str(ds.attrs.get("configuration", "")))
    except ValueError:
        return {}


def runnable(known: Mapping[str, Any]) -> bool:
    """Whether ``relboltz run`` accepts a configuration; otherwise it comes from solve()."""
    start = known.get("initial")
    return isinstance(start, dict) and all(isinstance(v, dict) for v in start.values())


def grid_of(ds: Dataset) -> PhaseSpace:
    """Return the grid of a result, from its axes."""
    cells = [ds.sizes[f"p{axis}"] for axis in "xyz"]
    widths = np.atleast_1d(ds.attrs["momentum_max"]).tolist()
    if "x" not in ds.dims:
        return PhaseSpace(cells, widths)
    space = {
        "space_cells": [ds.sizes[axis] for axis in "xyz"],
        "space_max": np.atleast_1d(ds.attrs["space_max"]).tolist(),
        "boundary": [str(kind) for kind in np.atleast_1d(ds.attrs["boundary"])],
    }
    return PhaseSpace(cells, widths, **space)


# --- the set-up ---------------------------------------------------------------------------------


def setup(ds: Dataset) -> Terms:
    """Yield the set-up: model, grid, initial conditions and numerical parameters."""
    known, grid = configuration(ds), grid_of(ds)
    model = known.get("model", {})
    given = {k: v for k, v in model.items() if k not in INSIDE or (k == "screening" and _plain(v))}
    description = str(ds.attrs.get("model", "unknown"))
    description += f", {_listed(given)}" if given and runnable(known) else ""
    yield (
        "model",
        f"{description}: {ds.sizes['species']} species, " + count(ds.sizes["process"], "process"),
    )
    charges = [str(name) for name in ds.charge.values]
    yield "conserved by collisions", ", ".join([*charges, "momentum", "energy"])
    spacing = " × ".join(dict.fromkeys(f"{h:.3g}" for h in grid.spacing))
    yield "momentum box", f"{tables.nodes(grid).replace(' x ', ' × ')}, spacing {spacing} GeV"
    yield "space", tables.space(grid) if grid.sites > 1 else "homogeneous"
    if "expansion" in ds.attrs:
        yield "expansion", expansion(str(ds.attrs["expansion"]), known.get("grid", {}))
    starts: dict[str, list[str]] = {}
    for name, value in known.get("initial", {}).items():
        starts.setdefault(start(value), []).append(spelt(str(name)))
    for told, names in starts.items():
        yield f"start of {', '.join(names)}", told
    yield from _numerics(ds, known)


def expansion(law: str, grid: Mapping[str, Any]) -> str:
    """Return a description of the expansion."""
    if law == "bjorken":
        return "Bjorken flow: boost-invariant along z, times are proper times"
    if law == "hubble":
        rate, power = grid.get("hubble_rate"), grid.get("hubble_power")
        told = [f"a = exp(H t), H = {rate:g}/fm"] if rate is not None else []
        told += [f"a = t^{power:g}"] if power is not None else []
        return ": ".join(["Hubble flow", *told])
    return f"scale factors of {law}"


def _plain(value: Any) -> bool:
    return isinstance(value, str | int | float)


def _numerics(ds: Dataset, known: Mapping[str, Any]) -> Terms:
    """Yield sampling, time steps, records and backend."""
    drawn = known.get("collisions")
    if drawn:
        yield (
            "sampling",
            (
                f"{count(drawn.get('samples', 0), 'sample')} per node, process and step; pairs by "
                f"{drawn.get('pair_sampling', '?')}; kinematics {drawn.get('kinematics', '?')}, "
                f"{drawn.get('projection', '?')} projection"
                + ("" if drawn.get("symmetrical", True) else ", not symmetrical")
            ),
        )
    wants, taken = known.get("time", {}), ds.attrs.get("steps")
    step = wants.get("step", "auto")
    description = f"{wants.get('start', 0.0):g} to {float(ds.time[-1]):g} fm"
    if "end" in wants and wants["end"] > float(ds.time[-1]) * (1 + 1e-9):
        description += f" of {wants['end']:g} fm"
    if step == "auto":
        description += f", automatic steps with tolerance {wants.get('tolerance', 1e-3):g}"
    else:
        description += f", steps of {step:g} fm"
    if taken is not None:
        description += f": {count(int(taken), 'step')}"
        description += f" in all {ds.attrs['replicas']} replicas" if "replicas" in ds.attrs else ""
    yield "time", description
    kept = count(ds.sizes["snapshot"], "snapshot") if ds.sizes["snapshot"] else "no snapshots"
    yield "records", f"{ds.time.size}, and {kept} of f"
    yield "backend", str(ds.attrs.get("device", ds.attrs.get("backend", "unknown")))


def start(value: Any) -> str:
    """Return a description of an initial condition, such as 'step, height = 0.5, edge = 1.5'."""
    if isinstance(value, Mapping):
        rest = {k: v for k, v in value.items() if k != "shape"}
        return ", ".join([str(value.get("shape", "?")), *([_listed(rest)] if rest else [])])
    text = str(value).replace("profile=None, ", "")
    found = re.fullmatch(r"(\w+)\((.*)\)", text, re.DOTALL)
    if not found:
        return cut(value)
    named = re.search(r"label='([^']*)'", found[2])
    if named:
        kept = re.search(r"sampling='(\w+)'", found[2])
        return f"function {cut(named[1])}" + (f", sampling = {kept[1]}" if kept else "")
    name = re.sub(r"(?<=[a-z])(?=[A-Z])", "-", found[1]).lower()
    description = re.sub(r"(\w+)=", r"\1 = ", found[2]).replace("'", "")
    description = re.sub(
        r"\d+\.\d*(?:e[+-]?\d+)?", lambda value: f"{float(value[0]):g}", description
    )
    return cut(f"{name}, {description}" if description else name)


def _listed(values: Mapping[str, Any]) -> str:
    return cut(", ".join(f"{key} = {_value(value)}" for key, value in values.items()))


def _value(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{k} = {_value(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_value, value)) + "]"
    return str(value).lower() if isinstance(value, bool) else str(value)


def species(ds: Dataset) -> tuple[list[str], list[list[str]]]:
    """Return columns and rows by group of species: statistics, states, density and mass."""
    ds = box(ds)
    rows = []
    for group in groups(ds):
        one = ds.sel(species=group[0])
        density = mean(ds.number, group)[[0, -1]]
        mass = np.sqrt(np.maximum(mean(ds.mass_squared, group)[[0, -1]], 0.0))
        rows.append([
            label(group), KINDS.get(int(one.statistics), "?"), f"{float(one.degeneracy):g}",
            *(_changed(values) for values in (density, mass)),
        ])  # fmt: skip
    columns = ["species", "statistics", "states", "density, each [fm⁻³]", "mass [GeV]"]
    return columns, rows


def _changed(ends: Any) -> str:
    first, last = (number_format.number(f"{v:.4g}") for v in ends)
    return first if first == last else f"{first} → {last}"


def processes(ds: Dataset) -> list[str]:
    """Return the reactions; each stands also for its reverse."""
    found = []
    for process in ds.process.values.tolist():
        description = [spelt(part) if part != "->" else "→" for part in str(process).split()]
        found.append(" ".join(description))
    return found


# --- what made it -------------------------------------------------------------------------------


def origin(ds: Dataset) -> Terms:
    """Yield versions, seed, run time and device."""
    attrs = ds.attrs
    for name in ("relboltz", "python", "numpy", "numba"):
        if f"{name}_version" in attrs:
            yield name.replace("python", "Python"), str(attrs[f"{name}_version"])
    if "seeds" in attrs:
        yield "seeds", cut(", ".join(str(s) for s in np.atleast_1d(attrs["seeds"])))
    else:
        yield "seed", str(attrs.get("seed", "unknown"))
    if "wall_seconds" in attrs:
        of = f" in all {attrs['replicas']} replicas" if "replicas" in attrs else ""
        yield "run time", duration(float(attrs["wall_seconds"])) + of
    if "steps" in attrs:
        yield "steps", str(attrs["steps"])
    yield "device", str(attrs.get("device", attrs.get("backend", "unknown")))
    for line in tables.load(attrs):
        yield "load", line
    yield "status", str(attrs.get("status", "unknown"))
    if "run" in attrs:
        yield "run", str(attrs["run"])
