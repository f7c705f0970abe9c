"""Error of relaxation rates caused by the finite spacing of nodes: one rule for all models.

The smoothing by landing between nodes that ``projection.compensation`` does not correct is of
second order in the spacing over the momentum scale of f, and largest for exchanges softer
than the spacing. ``benchmarks/coarse_grids.py`` compares the rule with integrals in continuous
momenta.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from ..backends.elements import Elements
from ..grid.phase_space import PhaseSpace
from ..thermodynamics.states import Equilibrium
from ..util.arrays import Array
from ..util.errors import InputError
from .edges import near_edges
from .matter import Squares

COARSE = 0.04
"""Error over (h/L)^2, where f changes by a factor e over the momentum L."""
SOFT, POWER = 0.03, 1.25
"""Error over (h/L)^2 (L/mu)^POWER, if this is larger, where |M|^2 has a peak 1/(mu^2 - t)^2."""
LIGHT = 0.2
"""Error over -d ln|M|^2/d ln s at s = h^2, for light particles that collide more often at small
s.
"""
ACCEPTED, WANTED = 0.03, 0.02
"""Error above which a warning is issued, and error with the recommended nodes."""
LARGE = 0.3
"""Error beyond which the rule is too crude to give a size."""
START = "at the start"
NOTABLE = 0.01
"""Share of all particles below which a species does not count."""
FLOOR = 1e-12
"""Fraction of the largest f below which f is ignored."""
HALVINGS = 8
"""Bisections, in ln h, in the search for the largest sufficient spacing."""


def flat(h: float) -> float:
    """Return the slope of a matrix element that does not depend on s."""
    return 0.0


@dataclass(frozen=True)
class MomentumScales:
    """Scales of one species, initially or finally, with which the spacing is compared.

    length : momentum over which f changes by a factor e [GeV], T for thermal light particles
    screening : mu of a peak 1/(mu^2 - t)^2 [GeV]; infinite without a peak
    falling : -d ln|M|^2/d ln s of light particles at s = h^2, as a function of h
    """

    description: str
    length: float
    screening: float = math.inf
    falling: Callable[[float], float] = flat

    def error(self, spacing: float) -> float:
        """Return the relative error of relaxation rates."""
        error = relaxation_error(spacing, self.length, self.screening)
        return error + LIGHT * max(self.falling(spacing), 0.0)

    def wanted(self, spacing: float) -> float:
        """Return the largest sufficient spacing [GeV], no larger than the given spacing."""
        if self.error(spacing) <= WANTED:
            return spacing
        low, high = spacing / 32, spacing
        for _ in range(HALVINGS):
            middle = math.sqrt(low * high)
            low, high = (low, middle) if self.error(middle) > WANTED else (middle, high)
        return low


def relaxation_error(h: float, length: float, screening: float = math.inf) -> float:
    """Return the error of relaxation rates on nodes h apart; see ``MomentumScales``."""
    if math.isinf(length):
        return 0.0
    soft = SOFT * (length / max(screening, 1e-6)) ** POWER
    return max(COARSE, soft) * (h / length) ** 2


def momentum_scale(grid: PhaseSpace, f: Array, statistics: int, mass_squared: float) -> float:
    """Return the momentum scale of f/F, F = 1 + eta f [GeV]; infinite if f is flat.

    (h/L)^2, with h the largest spacing, is the root mean square of the sum over axes of the squared
    changes of ln(f/F) from node to node: L = T for exp(-|p|/T). Nodes are weighted with f/E, for
    fermions with f (1 - f)/E; nodes at edges are excluded, see ``edges``.
    """
    inverse = grid.inverse_energies(mass_squared)
    full = np.maximum(1 + statistics * f, FLOOR)
    values = np.log(np.maximum(f, FLOOR * f.max()) / full).reshape(grid.momentum_cells)
    changes = np.zeros(grid.momentum_cells)
    for axis, n in enumerate(grid.momentum_cells):
        steps = np.moveaxis(np.diff(values, axis=axis) ** 2, axis, 0)
        here = np.moveaxis(changes, axis, 0)
        if n > 1:  # mean of both sides
            here[:-1] += 0.5 * steps
            here[1:] += 0.5 * steps
    counted = inverse * np.where(near_edges(grid, f).ravel(), 0.0, f * np.minimum(full, 1.0))
    total = float(counted.sum())
    if not total > 0:
        return math.inf
    mean = math.sqrt(float((counted * changes.ravel() ** 2).sum()) / total)
    mean *= total / float((f * inverse).sum())
    return grid.largest_spacing / math.sqrt(mean) if mean > 0 else math.inf


def thermal_scale(grid: PhaseSpace, f: Array, mass_squared: float) -> float:
    """Return the momentum scale of a thermal f [GeV]: <p_i^2/E>, larger for low velocities.

    <p_i^2/E> is T of matter that is not too dense; if the axes differ, their harmonic mean is used.
    ln f changes by v/T per unit of momentum.
    """
    energies = np.sqrt(grid.momentum_squared + mass_squared)
    weights = np.divide(f, energies, out=np.zeros_like(energies), where=energies > 0) / f.sum()
    axes = [i for i, n in enumerate(grid.momentum_cells) if n > 1]
    along = (grid.momenta[axes] ** 2 * weights).sum(axis=1)
    if not len(axes) or not along.min() > 0:
        return math.inf
    inverse = np.divide(1, energies, out=np.zeros_like(energies), where=energies > 0)
    velocity2 = float((grid.momentum_squared * weights * inverse).sum())
    return float(len(axes) / (1 / along).sum()) / min(1.0, 2 * velocity2)


def softest_exchange(
    elements: Elements, index: int, m2: Array, screening2: Array, momentum: float
) -> float:
    """Return mu of the peak 1/(mu^2 - t)^2 closest to |M|^2 [GeV]; infinite if |M|^2 is flat.

    Estimated from |M|^2 forward and at right angles, for particles with three times the given
    momentum.
    """
    legs = [elements.model.index(name) for name in elements.model.processes[index].legs]
    s = (sum(math.sqrt(m2[a] + 9 * momentum**2) for a in legs[:2])) ** 2
    transfer = 0.5 * s - m2[legs].sum() / 2
    forward, across = _values(elements, index, [s, s], [-1e-6 * s, -transfer], m2, screening2)
    ratio = forward / across if across > 0 and forward > 0 else 1.0
    root = math.sqrt(ratio * (2 if elements.folds[index] else 1))
    return math.sqrt(transfer / (root - 1)) if root > 2 else math.inf


def falling_with_s(
    elements: Elements, index: int, m2: Array, screening2: Array
) -> Callable[[float], float]:
    """Return -d ln|M|^2/d ln s at s = h^2 as a function of h; 0 unless particles are light."""
    process = elements.model.processes[index]
    legs = [elements.model.index(name) for name in process.legs]
    threshold = float(np.sqrt(m2[legs]).reshape(2, 2).sum(axis=1).max()) ** 2

    def falling(h: float) -> float:
        s = np.array([1.0, 1.2]) * h * h
        if not process.elastic or threshold >= s[0]:
            return 0.0
        low, high = _values(elements, index, s, -0.5 * s, m2, screening2)
        return math.log(low / high) / math.log(1.2) if low > 0 and high > 0 else 0.0

    return falling


def _values(
    elements: Elements, index: int, s: object, t: object, m2: Array, screening2: Array
) -> tuple[float, float]:
    """Return |M|^2 of a process at two points."""
    legs = [elements.model.index(name) for name in elements.model.processes[index].legs]
    a, b, c, d = (float(m2[leg]) for leg in legs)
    at_s, at_t = np.asarray(s, float), np.asarray(t, float)
    u = a + b + c + d - at_s - at_t
    try:
        found = elements.evaluate(index, at_s, at_t, (a, b, c, d), screening2, -at_t, -u)
    except InputError:  # reported where matrix elements are checked
        return 0.0, 0.0
    return float(found[0]), float(found[1])


def scales_of(
    grid: PhaseSpace, elements: Elements, f: Array, squares: Squares, predicted: Equilibrium
) -> Iterator[MomentumScales]:
    """Yield scales of the initial state, f (species, nodes), and of the predicted final state."""
    model, (mass_squared, screening2) = elements.model, squares
    states = [(START, f, mass_squared)]
    if predicted.found:
        states.append(("in the end", predicted.f, predicted.mass_squared))
    for when, occupied, m2 in states:
        numbers = model.degeneracy * occupied.sum(axis=1)
        warm = sum(
            share * thermal_scale(grid, one, 0.0)
            for share, one in zip(numbers / numbers.sum(), occupied, strict=True)
            if share > NOTABLE
        )
        softest = [
            softest_exchange(elements, i, m2, screening2, warm) for i in range(len(model.processes))
        ]
        for a, species in enumerate(model.species):
            own = [i for i, one in enumerate(model.processes) if species.name in one.legs]
            if not own or not numbers[a] > NOTABLE * numbers.sum():
                continue
            if when == START:
                length = momentum_scale(grid, occupied[a], int(model.statistics[a]), float(m2[a]))
            else:
                length = thermal_scale(grid, occupied[a], float(m2[a]))
            falling = partial(_steepest, [falling_with_s(elements, i, m2, screening2) for i in own])
            yield MomentumScales(
                f"{species.name} {when}", length, min(softest[i] for i in own), falling
            )


def _steepest(slopes: list[Callable[[float], float]], h: float) -> float:
    """Return the largest of several functions of a spacing."""
    return max(slope(h) for slope in slopes)


def of_spacing(grid: PhaseSpace, scales: list[MomentumScales]) -> tuple[float, str]:
    """Return a spacing sufficient for all scales [GeV], and a warning about the grid."""
    spacing = grid.largest_spacing
    worst = max(scales, key=lambda one: one.error(spacing), default=None)
    if worst is None or spacing == 0:
        return math.inf, ""
    error, wanted = worst.error(spacing), min(one.wanted(2 * spacing) for one in scales)
    if error <= ACCEPTED:
        return wanted, ""
    return wanted, (
        f"the grid is coarse: f of {worst.description} changes by a factor e over "
        f"{worst.length:.2g} GeV, the spacing is {spacing:.3g} GeV, and rates of relaxation "
        f"are off by {size_of(error)}"
    )


def size_of(error: float) -> str:
    """Describe an error in words; for a large one give only a lower bound."""
    return f"about {100 * error:.0f} %" if error < LARGE else f"{100 * LARGE:.0f} % or more"
