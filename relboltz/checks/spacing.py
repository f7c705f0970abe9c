"""How much too slowly matter relaxes because its nodes are apart: one rule for all models.

Landing averages over what lies between nodes, and sums over nodes miss 1/E near p = 0. Both are of
second order in h/T, and largest for light particles and for exchanges softer than the spacing.
``benchmarks/coarse_grids.py`` compares the rule with integrals in continuous momenta.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ..arrays import Array
from ..equilibrium.states import Equilibrium
from ..grid import PhaseSpace
from ..model import Model
from ..qcd_settings import EKT_OVER_GLUON
from .matter import Squares

LIGHT, MASS, HEAVY = 0.25, 6.0, 0.03
"""Error over (h/T)^2 for a constant |M|^2: LIGHT/(1 + MASS m^2/T^2) + HEAVY."""
PEAKED, SOFT = 0.3, 0.045
"""With a peak in t: PEAKED times the first part; soft exchanges have at least SOFT T/mu."""
ACCEPTED, WANTED = 0.03, 0.02
"""Error before a warning, and with the nodes that it asks for."""
NOTABLE = 0.01
"""Share of all particles below which a species does not count."""


@dataclass(frozen=True)
class Scales:
    """What the spacing is compared with: of a species, at the start or at the end.

    temperature : <p^2/E>/3, of a thermal state T for not too dense matter [GeV]
    screening : mu of a peak 1/(mu^2 - t)^2 [GeV], None without one
    """

    words: str
    temperature: float
    mass: float
    screening: float | None

    def error(self, spacing: float) -> float:
        """Share by which energies relax too slowly."""
        return relaxation_error(spacing, self.temperature, self.mass, self.screening)

    @property
    def wanted(self) -> float:
        """The spacing that will do [GeV]."""
        return math.sqrt(WANTED / self.error(1.0))


def relaxation_error(h: float, temperature: float, mass: float, screening: float | None) -> float:
    """Share by which energies relax too slowly on nodes h apart; quantities as in ``Scales``."""
    light = LIGHT / (1 + MASS * (mass / temperature) ** 2)
    size = light + HEAVY
    if screening is not None:
        size = max(PEAKED * light + HEAVY, SOFT * temperature / max(screening, 1e-6))
    return size * (h / temperature) ** 2


def scales_of(
    grid: PhaseSpace, model: Model, f: Array, squares: Squares, predicted: Equilibrium
) -> Iterator[Scales]:
    """Scales of the start, f (species, nodes), and of the predicted final state."""
    mass_squared, screening2 = squares
    p2 = grid.momentum_squared
    factor = EKT_OVER_GLUON if model.screening.ekt else 1.0
    screening = math.sqrt(max(float(screening2[0]) / factor, 0.0)) if len(screening2) else 0.0
    states = [("at the start", f, mass_squared)]
    if predicted.found:
        states.append(("in the end", predicted.f, predicted.mass_squared))
    for when, occupied, m2 in states:
        numbers = model.degeneracy * occupied.sum(axis=1)
        for a, species in enumerate(model.species):
            processes = [one for one in model.processes if species.name in one.legs]
            if not processes or not numbers[a] > NOTABLE * numbers.sum():
                continue
            energies = np.sqrt(p2 + m2[a])
            weights = np.divide(p2, energies, out=np.zeros_like(p2), where=energies > 0)
            warm = float(occupied[a] @ weights / occupied[a].sum() / 3)
            peaked = any(one.peak == "t" for one in processes)
            if warm > 0:
                yield Scales(
                    f"{species.name} {when}", warm, math.sqrt(max(m2[a], 0.0)),
                    screening if peaked else None,
                )  # fmt: skip


def of_spacing(grid: PhaseSpace, scales: list[Scales]) -> tuple[float, str]:
    """The spacing that will do for all scales [GeV], and what is wrong with that of the grid."""
    spacing = max(grid.spacing)
    worst = max(scales, key=lambda one: one.error(spacing), default=None)
    if worst is None or worst.error(spacing) <= ACCEPTED:
        return math.inf, ""
    return worst.wanted, (
        f"the grid is coarse: spacing {spacing:.3g} GeV is {spacing / worst.temperature:.2g} T of "
        f"{worst.words}, and energies relax about {100 * worst.error(spacing):.0f} % too slowly"
    )
