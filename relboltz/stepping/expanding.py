"""Expanding matter: comoving momentum nodes, work done by the pressure, doubling of spacings.

Between collisions, f at the comoving nodes does not change. A step uses the spacings, energies and
masses at its midpoint; observables at a given time are measured on the nodes of that time.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from ..grid.expansion import Expansion, Scales
from ..grid.phase_space import PhaseSpace
from ..model.gap_equation import field_energy
from ..model.model import Model
from ..transport.moments import Moments
from ..util.arrays import Array
from .control import USUAL
from .quanta import TOTAL_BITS
from .regridding import more_bits, widened
from .state import State

if TYPE_CHECKING:
    from ..backends.contract import Backend

T = TypeVar("T")
STRETCH = 0.05
"""Largest change of ln a in a step with the usual tolerance."""
DRIVEN = 1 / 3
"""Allowed change of C within a step, relative to static matter. An anisotropy driven by expansion
and undone by collisions with z = dt/relaxation time is z^2/(4 - 2z) too large: 0.3 % for z = 0.1.
"""
SPREAD = 2.0
"""Limit on the change of C at a single site, in units of the mean over all sites. At the edge of a
plane, where momenta point outwards and most nodes are empty, an event that fills a node makes its
reverse possible at once: C changes there by its own magnitude, however short the step."""
QUIET = 0.01
"""Errors below this fraction of the tolerance never shorten the step: matter that has expanded far
hardly collides, and its C is mostly noise."""
TIGHT = 0.02
"""Largest share of the second moment of p_i in the outer quarter of the momentum range before the
spacing along axis i doubles: a thermal state reaches it where the momentum range ends at 12 T."""
OUTER = 0.75
GAINED = 1.02
"""Least shrinkage of the grid momenta along an axis, relative to the other axes, for doubling."""
PATIENCE = 1.4
"""Further shrinkage to wait for if doubling would still be too coarse, up to a factor LATEST."""
LATEST = 2.0
DOUBLINGS = 6
"""Doublings for which binary digits are reserved: matter thinning out along one axis by 2^6."""
MOST_LOST = 1e-3
"""Largest fraction of the energy that a doubling may change."""
FINE = 4.0
"""Least rms momentum along an axis, in half spacings, that leaves enough nodes after a doubling.
Below it, the doubling waits until the grid momenta have shrunk by COARSE."""
COARSE = 1.5
COLUMNS = 10
"""Columns of ``stresses``: total pressure along the axes, then second moments of the outer momenta
and of all momenta, in quanta times half a spacing squared, and the total number of quanta."""


@dataclass(frozen=True)
class ExpansionSchedule:
    """Expansion law of a run, with its initial time and its regridding times.

    start : initial time [fm]; regrid_times : times [fm] at which spacings double, or "auto"
    """

    law: Expansion
    start: float
    regrid_times: tuple[float, ...] | str = "auto"

    def scales(self, time: float) -> Scales:
        """Return the scale factors a_i at a time."""
        return self.law.scales(time, self.start)

    def grid(self, base: PhaseSpace, time: float, doublings: list[int]) -> PhaseSpace:
        """Return the grid at a time, after the given number of doublings along each axis."""
        x, y, z = (2.0**d / a for d, a in zip(doublings, self.scales(time), strict=True))
        return base.scaled((x, y, z))

    def gained(self, state: State) -> list[float]:
        """Return the factor by which grid momenta have shrunk along each axis, net of doublings."""
        return [a / 2.0**d for a, d in zip(self.scales(state.time), state.doublings, strict=True)]

    def longest(self, time: float, tolerance: float) -> float:
        """Return the longest step [fm] allowed at a time."""
        fastest = max(abs(h) for h in self.law.rates(max(time, 1e-12), self.start))
        bound = STRETCH * math.sqrt(tolerance / USUAL)
        return bound / fastest if fastest > 0 else math.inf


def reserve(schedule: ExpansionSchedule, grid: PhaseSpace) -> int:
    """Return the binary digits that numbers may gain; independent of the end time of the run."""
    if isinstance(schedule.regrid_times, str):
        count = 0 if schedule.law.law == "hubble" else DOUBLINGS
    else:
        count = min(len(schedule.regrid_times), 2 * DOUBLINGS)
    cells = grid.momentum_cells[2:] if schedule.law.law == "bjorken" else grid.momentum_cells
    return count * max(more_bits(n) for n in cells)


@contextmanager
def uninterrupted(backend: Backend) -> Iterator[None]:
    """Ignore interrupts within the block."""
    before, backend.interrupt = backend.interrupt, False
    try:
        yield
    finally:
        backend.interrupt = before


def stresses(grid: PhaseSpace, model: Model, moments: Moments, squares: Array) -> Array:
    """Return pressures and second momentum moments, needed after every step: (sites, COLUMNS)."""
    weight = model.degeneracy * grid.measure
    kinds = len(model.species)
    found = np.empty((len(moments.totals), COLUMNS))
    y = model.degeneracy * moments.sums[:, :, 1] * (grid.cell_volume / (2 * np.pi) ** 3)
    field = -field_energy(model, squares[:, :kinds], y)
    for i in range(3):
        found[:, i] = moments.sums[:, :, 2 + i] @ weight + field
        n = grid.momentum_cells[i]
        k2 = (2.0 * np.arange(n) - (n - 1)) ** 2
        outer = np.sqrt(k2) > OUTER * n
        planes = moments.planes[i].astype(float)
        found[:, 3 + i], found[:, 6 + i] = planes[:, outer] @ k2[outer], planes @ k2
    found[:, 9] = moments.totals.sum(axis=1, dtype=float)
    return found


def begin_expansion(backend: Backend, state: State, schedule: ExpansionSchedule) -> None:
    """Start the account of the work done by the pressure."""
    mean = backend.stresses(state.squares).mean(axis=0)
    state.strain = [_row(schedule, state.time, mean)]


def _row(schedule: ExpansionSchedule, time: float, mean: Array) -> list[float]:
    """Return ln a_i and V (P_i + B), with the volume V in units of the initial volume."""
    a = schedule.scales(time)
    volume = a[0] * a[1] * a[2]
    return [*(math.log(s) for s in a), *(float(volume * p) for p in mean[:3])]


def carry_on(backend: Backend, state: State, schedule: ExpansionSchedule, base: PhaseSpace) -> None:
    """Add the work done during a step, and double a spacing if that is due."""
    mean = backend.stresses(state.squares).mean(axis=0)
    rows = [*state.strain, _row(schedule, state.time, mean)]
    state.work += sum(_integral([(r[i], r[3 + i]) for r in rows]) for i in range(3))
    if len(rows) == 3 and state.step == 2:  # the first step had only two points
        early = [[(r[i], r[3 + i]) for r in rows] for i in range(3)]
        state.work += sum(_integral(e[::-1]) * -1.0 - _integral(e[:2]) for e in early)
    state.strain = rows[-2:]
    axis = _tight(state, schedule, mean)
    if axis is not None:
        double(backend, state, schedule, base, axis)


def _integral(points: list[tuple[float, float]]) -> float:
    """Integrate the parabola through three points over the last interval; for two, the chord."""
    (x1, y1), (x2, y2) = points[-2:]
    h = x2 - x1
    area = 0.5 * h * (y1 + y2)
    if len(points) == 3 and (x1 - points[0][0]) * h > 0:
        x0, y0 = points[0]
        bend = ((y2 - y1) / h - (y1 - y0) / (x1 - x0)) / (x2 - x0)
        area -= bend * h**3 / 6
    return area


def _tight(state: State, schedule: ExpansionSchedule, mean: Array) -> int | None:
    """Return the axis along which the spacing is due to double, or None."""
    scales, gained = schedule.scales(state.time), schedule.gained(state)
    order = [i for i in np.argsort(gained)[::-1] if scales[i] > min(scales) and not state.stuck[i]]
    if not isinstance(schedule.regrid_times, str):
        due = sum(t <= state.time * (1 + 1e-12) for t in schedule.regrid_times)
        return int(order[0]) if order and due > sum(state.doublings) else None
    for axis in order:
        fine = mean[6 + axis] >= FINE**2 * mean[9]
        least = max(GAINED if fine else COARSE, state.waits[axis])
        if gained[axis] >= least * min(gained) and mean[3 + axis] > TIGHT * mean[6 + axis]:
            return int(axis)
    return None


def _changed(values: list[T], axis: int, value: T) -> list[T]:
    """Return a copy of the list with the value of one axis replaced."""
    return [value if i == axis else old for i, old in enumerate(values)]


def double(
    backend: Backend, state: State, schedule: ExpansionSchedule, base: PhaseSpace, axis: int
) -> None:
    """Double the spacing along an axis unless nodes or binary digits are too few for that."""
    grid, name = backend.grid, "xyz"[axis]
    extra, number = more_bits(grid.momentum_cells[axis]), backend.get()
    held = number.sum(axis=(1, 2)).astype(float)[:, None]
    description = (
        f"at t = {state.time:.4g} fm matter has little room in its momenta along {name}, but "
    )
    stay = "spacings stay as they are, and pressures along it suffer; "
    if backend.gather_sites(held).max() >= 2.0 ** (TOTAL_BITS - extra):
        why = (
            f"{description}its numbers have no binary digits left for twice the spacing: {stay}"
            f"begin with a larger momentum_max along {name}, and an odd number of nodes"
        )
        state.stuck = _changed(state.stuck, axis, why)
        return
    threads = getattr(backend, "count", 0)
    number, bits, energies = widened(
        number, state.bits, grid, backend.model, state.squares[backend.local_sites], axis, threads
    )
    before, after = backend.gather_sites(energies).sum(axis=0)
    lost = after / before - 1 if before > 0 else 0.0
    if abs(lost) > MOST_LOST:
        gained = schedule.gained(state)
        if isinstance(schedule.regrid_times, str) and gained[axis] < LATEST * min(gained):
            wait = PATIENCE * gained[axis] / min(gained)
            state.waits = _changed(state.waits, axis, wait)
            return
        why = (
            f"{description}with twice the spacing its energy would change by {100 * lost:.2g} %: "
            f"{stay}use more nodes along {name}, an odd number"
        )
        state.stuck = _changed(state.stuck, axis, why)
        return
    state.ledger.widen(grid, axis, extra)
    if state.origin is not None:
        charges, momenta = state.origin
        moved = [p << extra - (i == axis) for i, p in enumerate(momenta)]
        state.origin = [q << extra for q in charges], moved
    state.bits, state.waits = bits, _changed(state.waits, axis, 1.0)
    state.doublings = _changed(state.doublings, axis, state.doublings[axis] + 1)
    backend.put(number, bits)
    backend.set_momentum_grid(schedule.grid(base, state.time, state.doublings))
    state.squares = backend.masses(state.squares)
    state.by_part = []
