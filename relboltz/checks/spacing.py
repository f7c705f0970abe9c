"""How far off rates of relaxation are because nodes are apart: one rule for all models.

What landing averages away between nodes and ``projection.compensation`` does not give back is of
second order in h/T, and largest for exchanges softer than the spacing and for narrow shells of
momenta. ``benchmarks/coarse_grids.py`` compares the rule with integrals in continuous momenta.
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
from .edges import DROP, near_edges
from .matter import Squares

COARSE, SOFT = 0.04, 0.02
"""Error over (h/T)^2: COARSE, or SOFT T/mu if that is more and |M|^2 has a peak 1/(mu^2 - t)^2."""
NARROW = 0.06
"""Error over (h/width)^2 of a shell of momenta: its anisotropy relaxes too slowly."""
ACCEPTED, WANTED = 0.03, 0.02
"""Error before a warning, and with the nodes that it asks for."""
LARGE = 0.3
"""Error beyond which the rule is too rough to tell a size."""
START = "at the start"
NOTABLE = 0.01
"""Share of all particles below which a species does not count."""


@dataclass(frozen=True)
class Scales:
    """What the spacing is compared with: of a species, at the start or at the end.

    temperature : harmonic mean of <p_x^2/E>, <p_y^2/E>, <p_z^2/E>, so that what is narrow along one
        axis counts; of a thermal state T for not too dense matter [GeV]
    screening : mu of a peak 1/(mu^2 - t)^2 [GeV], None without one
    width : of a shell of momenta, see ``radial_width`` [GeV]
    """

    words: str
    temperature: float
    screening: float | None
    width: float = math.inf

    def error(self, spacing: float) -> float:
        """Return the relative error of rates of relaxation."""
        return max(
            relaxation_error(spacing, self.temperature, self.screening),
            NARROW * (spacing / self.width) ** 2,
        )

    @property
    def wanted(self) -> float:
        """The spacing that will do [GeV]."""
        return math.sqrt(WANTED / self.error(1.0))


def relaxation_error(h: float, temperature: float, screening: float | None) -> float:
    """Error of rates of relaxation on nodes h apart; quantities as in ``Scales``."""
    soft = 0.0 if screening is None else SOFT * temperature / max(screening, 1e-6)
    return max(COARSE, soft) * (h / temperature) ** 2


def temperature(grid: PhaseSpace, f: Array, mass_squared: float) -> float:
    """Return ``Scales.temperature`` of f at the nodes; axes with one cell do not count."""
    energies = np.sqrt(grid.momentum_squared + mass_squared)
    weights = np.divide(f, energies, out=np.zeros_like(energies), where=energies > 0) / f.sum()
    axes = [i for i, n in enumerate(grid.momentum_cells) if n > 1]
    along = (grid.momenta[axes] ** 2 * weights).sum(axis=1)
    return float(len(axes) / (1 / along).sum()) if len(axes) and along.min() > 0 else 0.0


def radial_width(grid: PhaseSpace, f: Array) -> float:
    """Width of f along |p| [GeV]: that of a Gaussian shell, infinite for exp(-|p|/T).

    The mean curvature of -ln f along p is 1/width^2. Edges are left out: see ``edges``.
    """
    if min(grid.momentum_cells) < 3 or not f.max() > 0:
        return math.inf
    shape = grid.momentum_cells
    logarithm = np.log(np.maximum(f, DROP * f.max())).reshape(shape)
    size = np.sqrt(grid.momentum_squared)
    towards = np.divide(grid.momenta, size, out=np.zeros((3, len(size))), where=size > 0)
    towards = towards.reshape(3, *shape)

    def along(values: Array) -> Array:
        return np.asarray((towards * np.gradient(values, *grid.spacing)).sum(axis=0))

    counted = np.where(near_edges(grid, f), 0.0, f.reshape(shape))
    curvature = -float((counted * along(along(logarithm))).sum() / f.sum())
    return 1 / math.sqrt(curvature) if curvature > 0 else math.inf


def scales_of(
    grid: PhaseSpace, model: Model, f: Array, squares: Squares, predicted: Equilibrium
) -> Iterator[Scales]:
    """Scales of the start, f (species, nodes), and of the predicted final state."""
    mass_squared, screening2 = squares
    factor = EKT_OVER_GLUON if model.screening.ekt else 1.0
    screening = math.sqrt(max(float(screening2[0]) / factor, 0.0)) if len(screening2) else 0.0
    states = [(START, f, mass_squared)]
    if predicted.found:
        states.append(("in the end", predicted.f, predicted.mass_squared))
    for when, occupied, m2 in states:
        numbers = model.degeneracy * occupied.sum(axis=1)
        for a, species in enumerate(model.species):
            processes = [one for one in model.processes if species.name in one.legs]
            if not processes or not numbers[a] > NOTABLE * numbers.sum():
                continue
            warm = temperature(grid, occupied[a], m2[a])
            peaked = any(one.peak == "t" for one in processes)
            if warm > 0:
                width = radial_width(grid, occupied[a]) if when == START else math.inf
                yield Scales(f"{species.name} {when}", warm, screening if peaked else None, width)


def of_spacing(grid: PhaseSpace, scales: list[Scales]) -> tuple[float, str]:
    """The spacing that will do for all scales [GeV], and what is wrong with that of the grid."""
    spacing = grid.largest_spacing
    worst = max(scales, key=lambda one: one.error(spacing), default=None)
    if worst is None or worst.error(spacing) <= ACCEPTED:
        return math.inf, ""
    scale = f"{spacing / worst.temperature:.2g} T"
    if NARROW / worst.width**2 > relaxation_error(1.0, worst.temperature, worst.screening):
        scale = f"{spacing / worst.width:.2g} widths of the shell"
    return worst.wanted, (
        f"the grid is coarse: spacing {spacing:.3g} GeV is {scale} of {worst.words}, and rates of "
        f"relaxation are off by {size_of(worst.error(spacing))}"
    )


def size_of(error: float) -> str:
    """Return an error in words; of a large one the rule knows no size."""
    return f"about {100 * error:.0f} %" if error < LARGE else f"{100 * LARGE:.0f} % or more"
