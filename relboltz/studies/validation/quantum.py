"""Relaxation in time of Bose, Fermi and classical gases, against a one-dimensional solver.

For one species, an isotropic f and a constant |M|^2 (summed over spins, g states) all angles can be
integrated: P of a colliding pair has the range 2 min(p1, p2, p3, p4) at given energies, and

    df1/dt = |M|^2/(128 pi^3 g E1 p1) Int dE2 dE3 min(p1, p2, p3, p4)
             * [f3 f4 F1 F2 - f1 f2 F3 F4],        E4 = E1 + E2 - E3.

The solver stores f at E_i = m + (i + 1/2) dE, so that E4 is a node and every collision conserves
number and energy. The lower momentum of a pair (i, T - i) of given total energy, i <= T/2, is p_i;
because of min(p_i, p_k) of two pairs, the sums over k are cumulative: n^2 operations for n
energies. The solver uses no sampled events, no landing and no three-dimensional nodes.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np

from ...grid.phase_space import PhaseSpace
from ...grid.units import HBARC
from ...model.model import Model, Process, Species
from ...run.solve import solve
from ...util.arrays import Array
from .rows import Comparison, ValidationEffort, relative

# --- the solver in one dimension ------------------------------------------------------------------


def _collided(f: Array, p: Array, eta: float, change: Array) -> None:
    """Fill change with Sum_jk min(p) [f3 f4 F1 F2 - f1 f2 F3 F4] at every energy."""
    n = len(f)
    change[:] = 0.0
    for total in range(2 * n - 1):
        first, last = max(0, total - n + 1), total // 2
        # Sums over pairs (k, total - k), including the exchanged pairs (total - k, k).
        gain_above, loss_above = 0.0, 0.0
        for k in range(first, last + 1):
            q = total - k
            twice = 1.0 if k == q else 2.0
            gain_above += twice * f[k] * f[q]
            loss_above += twice * (1 + eta * f[k]) * (1 + eta * f[q])
        gain_below, loss_below = 0.0, 0.0
        for i in range(first, last + 1):
            j = total - i
            twice = 1.0 if i == j else 2.0
            here, free = f[i] * f[j], (1 + eta * f[i]) * (1 + eta * f[j])
            gain_above -= twice * here
            loss_above -= twice * free
            gain_below += twice * p[i] * here
            loss_below += twice * p[i] * free
            net = free * (gain_below + p[i] * gain_above)
            net -= here * (loss_below + p[i] * loss_above)
            change[i] += net
            if j != i:
                change[j] += net


collided = numba.jit(nogil=True)(_collided)  # not cached on disk: it compiles in a second


@dataclass(frozen=True)
class QuantumGas:
    """One species with a constant |M|^2, and the height of the initial f.

    statistics : +1 Bose, -1 Fermi, 0 classical
    """

    name: str
    statistics: int
    height: float
    element: float
    mass: float = 0.5
    states: int = 2

    def start(self, p2: Array) -> Array:
        """Return the initial f, a smooth plateau: height exp(-(p/GeV)^4)."""
        return np.asarray(self.height * np.exp(-(p2**2)))

    def model(self) -> Model:
        """Return the model of this gas for the three-dimensional solver."""
        process = Process("a a -> a a", constant, strength=self.element)
        species = Species("a", self.states, self.statistics)
        return Model([species], [process], masses={"a": self.mass})


def constant(s: float, strength: float) -> float:
    """Constant |M|^2."""
    return strength


def evolved(
    gas: QuantumGas, times: Sequence[float], points: int, highest: float = 7.0, step: float = 0.05
) -> tuple[Array, Array, Array]:
    """Return p^2, weights p E dE, and f (times, energies) at the times [fm], by RK4 steps."""
    width = (highest - gas.mass) / points
    energy = gas.mass + (np.arange(points) + 0.5) * width
    p2 = np.asarray(energy**2 - gas.mass**2, dtype=float)
    p = np.sqrt(p2)
    factor = gas.element * width**2 / (128 * np.pi**3 * gas.states * HBARC) / (energy * p)
    buffer = np.empty(points)

    def rate(f: Array) -> Array:
        collided(f, p, float(gas.statistics), buffer)
        return factor * buffer

    f, now, found = gas.start(p2), 0.0, []
    for time in times:
        count = int(np.ceil((time - now) / step - 1e-9))
        dt = (time - now) / count
        for _ in range(count):
            k1 = rate(f)
            k2 = rate(f + 0.5 * dt * k1)
            k3 = rate(f + 0.5 * dt * k2)
            k4 = rate(f + dt * k3)
            f = f + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        now = time
        found.append(f)
    return p2, p * energy * width, np.array(found)


# --- in three dimensions --------------------------------------------------------------------------

GASES = (
    QuantumGas("Bose", 1, 0.6, 12_000.0),
    QuantumGas("Fermi", -1, 0.6, 25_000.0),
    QuantumGas("classical", 0, 0.6, 15_000.0),
)
TIMES = (0.5, 1.5, 3.0)
MOMENTS = ("<p^2> [GeV^2]", "<p^4> [GeV^4]", "<1/E> [1/GeV]")
BOX = 3.2


def changes(gas: QuantumGas, p2: Array, weight: Array, f: Array) -> Array:
    """Return the changes of the three means (times, means), from f (times, momenta)."""
    values = np.stack([p2, p2**2, 1 / np.sqrt(p2 + gas.mass**2)])
    all_times = np.concatenate([gas.start(p2)[None], f]) * weight
    means = all_times @ values.T / all_times.sum(axis=1)[:, None]
    return np.asarray(means[1:] - means[0])


def expected(gas: QuantumGas, points: int = 400) -> Array:
    """Return the changes without a grid, extrapolated from two widths dE.

    p ~ sqrt(E - m) at the lower end causes an error of dE^(3/2), 0.14 % at most with 800 points;
    the error that remains after extrapolation from 400 and 800 points is below 1e-4.
    """
    rough, good = (changes(gas, *evolved(gas, TIMES, n)) for n in (points, 2 * points))
    return np.asarray(good + (good - rough) / (2**1.5 - 1))


def relaxed(gas: QuantumGas, cells: int, samples: int, **options: Any) -> Array:
    """Return the changes in a run with initial conditions given at the nodes."""
    grid = PhaseSpace(cells, BOX)
    p2 = grid.momentum_squared
    ds = solve(
        gas.model(), grid, gas.start(p2)[None], end=TIMES[-1], every=TIMES[-1],
        snapshots=list(TIMES), samples=samples, **options,
    )  # fmt: skip
    return changes(gas, p2, np.ones_like(p2), ds.f.values.reshape(len(TIMES), -1))


SCATTER = {"limit": (0.0045, 0.0025, 0.0018), "run": (0.004, 0.002, 0.0012)}
"""Relative standard deviations between seeds at the three times with the quick set-up, for the
extrapolated changes and for those with 32 cells: the largest over means and gases, from four seeds.
"""


def quantum_gases(effort: ValidationEffort) -> Iterator[Comparison]:
    """Compare three means at three times, at one spacing and extrapolated to zero spacing."""
    cells, samples = ((32, 48), (8, 4)) if effort.quick else ((48, 72), (16, 8))
    h, finer = (2 * BOX / n for n in cells)
    for gas in GASES:
        exact = expected(gas)
        far, near = (
            relaxed(gas, n, k, **effort.solving) for n, k in zip(cells, samples, strict=True)
        )
        limit = near + (near - far) / ((h / finer) ** 2 - 1)
        for i, time in enumerate(TIMES):
            of_limit, of_run = (3.5 * SCATTER[kind][i] for kind in ("limit", "run"))
            for j, name in enumerate(MOMENTS):
                description = f"{gas.name}: change of {name} until {time:g} fm"
                yield relative(
                    f"{description}, h = {h:.3g} and {finer:.3g} GeV, h -> 0",
                    limit[i, j],
                    exact[i, j],
                    2 * h**4 + of_limit,
                    "2 (h/GeV)^4, and 3.5 times the scatter of seeds",
                )
                yield relative(
                    f"{description}, h = {h:.3g} GeV", far[i, j], exact[i, j], 0.65 * h**2 + of_run,
                    "65 % (h/GeV)^2 of landing, and 3.5 times the scatter of seeds",
                )  # fmt: skip
