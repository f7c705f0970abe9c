"""Verdict on a run: conservation laws, final and predicted state, and losses at the grid edges.

The terminal, notebooks and reports show the text and numbers of these rows.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from ..io.result import box, is_in_space
from ..util.text import with_error

SEEDS = (
    "± is the standard error of the mean over seeds: grid, box and steps have errors of their own"
)
"""Caption that explains the errors of replicas."""


@dataclass(frozen=True)
class VerdictLine:
    """One line of a verdict, in plain text.

    part : "conserved", "state" or "lost"; key : the quantity; value : final value, or change
    """

    part: str
    key: str
    description: str
    value: str
    predicted: str = ""


def ending(ds: xr.Dataset) -> str:
    """Return final time, steps and wall time, such as 't = 5 fm, 93 steps, 1.2 s'."""
    description = f"t = {float(ds.time[-1]):g} fm"
    if "steps" in ds.attrs:  # missing while the run continues
        description += f", {count(ds.attrs['steps'], 'step')}, {ds.attrs['wall_seconds']:.1f} s"
    if "replicas" in ds.attrs:
        description += f", {ds.attrs['replicas']} replicas"
    return description


def count(number: int, word: str) -> str:
    """Return text such as '1 process', '34 processes' or '2 threads'."""
    plural = word + ("es" if word.endswith("s") else "s")
    return f"{number} {word if number == 1 else plural}"


def rows(ds: xr.Dataset) -> Iterator[VerdictLine]:
    """Yield drifts, the final and the predicted state, and losses at the edges of the grid."""
    if "scale" in ds:
        yield from _expanding(ds)
    else:
        yield from _in_space(ds) if is_in_space(ds) else _homogeneous(ds)
    losses = [("null_weight", "collisions without a place in the box", ds.null_weight[-1])]
    if "box_loss" in ds:  # missing in older files
        description = "equilibrium collisions beyond the box", "relaxation beyond the box"
        losses.append(("box_loss", description[0], ds.box_loss))
        losses.append(("box_loss_relaxation", description[1], ds.box_loss_relaxation))
    if "scale" in ds:  # NaN without a static equilibrium
        losses = [row for row in losses if not math.isnan(row[2])]
    for key, text, part in losses:
        yield VerdictLine("lost", key, text, _percent(part, ".1f"))


def _homogeneous(ds: xr.Dataset) -> Iterator[VerdictLine]:
    """Yield the rows of a homogeneous result."""
    yield from _conserved(ds, with_momentum=True)
    yield _distance(ds)
    yield _final("entropy [fm^-3]", ds, "entropy")
    yield _final("temperature [GeV]", ds, "temperature")
    for alike in _alike(ds):
        name = " ".join(str(n) for n in ds.species.values[alike])
        yield _final(f"mu of {name} [GeV]", ds, "chemical_potential", alike[0])
        yield _final(f"m^2 of {name} [GeV^2]", ds, "mass_squared", alike[0])
    if np.abs(ds.momentum_drift[0]).max() or float(np.abs(ds.velocity[0]).max()) > 1e-9:
        for i, axis in enumerate(ds.axis.values):
            yield _final(f"velocity {axis}", ds, "velocity", i)
    condensate = float(ds.condensate_fraction)
    if condensate > 0:
        description = "condensate, part of all particles"
        yield VerdictLine("state", "condensate_fraction", description, "", f"{condensate:.3f}")
    without = ds.attrs["temperature_at_zero_chemical_potential"]
    description = "T of the same energy at mu = 0 [GeV]"
    yield VerdictLine(
        "state", "temperature_at_zero_chemical_potential", description, "", _number(without)
    )


def _conserved(ds: xr.Dataset, with_momentum: bool) -> Iterator[VerdictLine]:
    """Yield the changes of charges, momentum and total energy."""
    total = float(ds.number[0].sum())
    for i, name in enumerate(ds.charge.values):
        change = float(ds.charge_density[-1, i] - ds.charge_density[0, i]) / total
        value = _exact(ds.charge_drift[-1, i], change)
        yield VerdictLine("conserved", "charge", f"change of {name}", value, "0")
    if with_momentum:
        change = float(np.abs(ds.momentum[-1] - ds.momentum[0]).max() / ds.energy_kinetic[0])
        value = _exact(np.abs(ds.momentum_drift[-1]).max(), change)
        yield VerdictLine("conserved", "momentum", "change of momentum", value, "0")
    energy = ds.energy_total.values
    value, description = f"{energy[-1] / energy[0] - 1:.1e}", "change of total energy, relative"
    if "scale" in ds:
        description = "change of total energy and work done, relative"
    yield VerdictLine("conserved", "energy_total", description, value, "0")


def _expanding(ds: xr.Dataset) -> Iterator[VerdictLine]:
    """Yield the rows of expanding matter: comoving conservation laws, and the final state."""
    mean, local = box(ds, left=True), box(ds)
    yield from _conserved(mean, with_momentum=not is_in_space(ds))
    if "left_number" in ds and float(ds.left_number[-1].sum()) > 0:
        gone = ds.left_number[-1].sum() * ds.scale[-1].prod() / mean.number[0].sum()
        yield VerdictLine(
            "lost", "left_number", "particles that left the box", _percent(gone, ".2g")
        )
    description = "pressure along z over that across, at the end"
    yield VerdictLine(
        "state", "pressure_ratio", description, f"{float(local.pressure_ratio[-1]):.4f}"
    )
    entropy = local.entropy * ds.scale.prod("axis")
    description = "entropy per comoving volume, end over start"
    yield VerdictLine("state", "entropy", description, f"{float(entropy[-1] / entropy[0]):.4f}")
    description = "temperature of the Landau frame, at the end [GeV]"
    yield VerdictLine(
        "state", "landau_temperature", description, _number(local.landau_temperature[-1])
    )
    for name, unit in (("dN_dy", ds.get("dN_dy")), ("dET_dy", ds.get("dET_dy"))):
        if unit is not None:
            each = "" if is_in_space(ds) else f" [{unit.attrs['units']}]"
            label = {"dN_dy": "dN/dy", "dET_dy": "dE_T/dy"}[name] + each
            yield VerdictLine("state", name, f"{label}, at the end", f"{float(unit[-1].sum()):.5g}")
    times = ds.doublings[-1].sum()
    if times:
        description = "how often a momentum spacing doubled"
        yield VerdictLine("state", "doublings", description, f"{int(times)}")


def _distance(ds: xr.Dataset) -> VerdictLine:
    """Return the line of the verdict about the distance from equilibrium."""
    value = _percent(ds.equilibrium_distance[-1], ".2g")
    description = "particles not yet in equilibrium"
    return VerdictLine("state", "equilibrium_distance", description, value, "0")


def _in_space(ds: xr.Dataset) -> Iterator[VerdictLine]:
    """Yield the rows of a result in space: averages, outflow, and spread of the density."""
    kinds = zip(ds.attrs["boundary"], "xyz", strict=True)
    walls = {str(kind) for kind, axis in kinds if ds.sizes[axis] > 1}
    mean, closed = box(ds, left=True), "open" not in walls
    steady = np.ptp(ds.mass_squared.values, axis=(0, 2, 3, 4)).max() == 0
    yield from _conserved(mean, with_momentum=walls <= {"periodic"} and bool(steady))
    density = ds.number.sum("species")
    for i, when in (0, "start"), (-1, "end"):
        spread = float(density[i].std() / density[i].mean())
        description = f"spread of the density over the box, relative, {when}"
        yield VerdictLine(
            "state", "spread", description, f"{spread:.2g}", "0" if i and closed else ""
        )
    total = mean.number[0].sum()
    left, refused = (ds[name][-1].sum() / total for name in ("left_number", "refused_number"))
    if not closed:
        description = "particles that left the box"
        yield VerdictLine("lost", "left_number", description, _percent(left, ".2g"))
    if refused > 0:
        description = "particles refused at the edge of p"
        yield VerdictLine("lost", "refused_number", description, _percent(refused, ".2g"))
    if closed:
        yield _distance(ds)
    yield _final("mean entropy [fm^-3]", mean, "entropy")
    yield _final("mean temperature [GeV]", mean, "temperature")


def _final(description: str, ds: xr.Dataset, key: str, *at: int) -> VerdictLine:
    """Return the row of a final value, with the error of replicas, and the predicted value."""
    value = _number(ds[key][-1, *at])
    error = float(ds[f"{key}_error"][-1, *at]) if f"{key}_error" in ds else 0.0
    if error > 0 and value != "none":
        value = with_error(float(ds[key][-1, *at]), error)
    return VerdictLine("state", key, description, value, _number(ds[f"equilibrium_{key}"][at]))


def _exact(quanta: Any, change: float) -> str:
    """Return '0 (exact)' if the integer drift is 0, else the relative change."""
    return "0 (exact)" if float(quanta) == 0 else f"{change:.1e}"


def _percent(part: Any, digits: str) -> str:
    return "unknown" if math.isnan(part) else f"{100 * float(part):{digits}} %"


def _number(value: Any) -> str:
    return "none" if math.isnan(value) else f"{round(float(value), 4) + 0.0:.4f}"


def _alike(ds: xr.Dataset) -> list[list[int]]:
    """Return groups of species with equal final mu and mass, to three decimals."""
    groups: dict[tuple[str, ...], list[int]] = {}
    for i in range(ds.sizes["species"]):
        values = (
            ds.chemical_potential[-1, i], ds.mass_squared[-1, i],
            ds.equilibrium_chemical_potential[i], ds.statistics[i],
        )  # fmt: skip
        groups.setdefault(tuple(f"{float(v):.3f}" for v in values), []).append(i)
    return list(groups.values())
