"""Flow of particle number in one event, and the channels of a model.

An event moves an amount D of particle number from the two cells of a and b into the two cells of
c and d (D may be negative). All cells are updated with the same D: the paper's symmetrical
sampling. With x = ln(f_a f_b F_c F_d) and y = ln(F_a F_b f_c f_d) the net flow is e^x - e^y.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import ceil, exp, expm1, log, log1p, log2

import numpy as np

from ..grid.phase_space import PhaseSpace
from ..grid.units import HBARC
from ..model.model import Model
from ..util.arrays import Array
from ..util.errors import InputError
from .elementary import floor

MORE_WORDS = 1 << 20
"""Flag in the channel number for a sample that needs more than four random words."""
LARGEST_ELEMENT = 1e300
"""A matrix element at or above this value counts as undefined."""
ACCEPTED_FLAW = 1e-9
"""Negative matrix elements count as rounding if their sum is below this part of the positive."""
SETS = 2
"""Number of halves of a step's events, each an independent estimate of C: see ``stepping``."""
AHEAD = 2 * SETS
"""Factor by which one half of the events must be scaled up to predict a whole step: relative to
its share of half a step taken by both halves."""
FLOOR = -690.0
"""Lowest logarithm: f = 0 is replaced by e^-690."""


def logarithms(f, eta):
    """Return ln(f/F) and ln F of one cell."""
    full = 1.0 + eta * f
    ln_f = log(f) if f > 1e-299 else FLOOR
    ln_full = (log1p(eta * f) if full > 1e-299 else FLOOR) if eta != 0.0 else 0.0
    return ln_f - ln_full, ln_full


def exponents(low, high, nodes, full_low, full_high, full_nodes, r):
    """Return x and y of an event from sums over its three pairs of cells: ln(f/F), then ln F.

    Between the low and the high pair f is interpolated geometrically.
    """
    full = full_low + r * (full_high - full_low) + full_nodes
    return low + r * (high - low) + full, nodes + full


def flow(x, y):
    """Return net and forward flow, e^x - e^y (without cancellation) and e^x.

    In equilibrium x = y, so that every single event moves exactly nothing.
    """
    d = x - y
    larger = exp(max(x, y))
    change = larger * expm1(-abs(d))
    return (-change, larger) if d > 0.0 else (change, larger + change)


def element_flaw(value, clamps):
    """Return by how much a matrix element is invalid: 0 if valid, -value if < 0, huge if undefined.

    clamps : 1 if negative values count as 0 (``Process.built_in``), else 0
    """
    if not abs(value) < LARGEST_ELEMENT:
        return LARGEST_ELEMENT
    return -value if value < 0.0 and clamps == 0.0 else 0.0


def illegal(flaws: float, legal: float) -> bool:
    """Whether the matrix elements of a group of events must stop a run.

    flaws, legal : sums of ``element_flaw`` and of all |M|^2 > 0 over the group: a chunk on the CPU,
    a block on a GPU (the same events), or the sample tested before a run
    """
    return not flaws <= ACCEPTED_FLAW * legal


def nearest_integer(x):
    """Round to the nearest integer, stored as a float; exact for |x| < 2^51."""
    return floor(x + 0.5)


def shares(amount, r):
    """Split the integer amount of an event between the low and the high pair.

    Number: the two shares add up to the amount exactly. Energy: r is chosen such that
    (1 - r) e_low + r e_high is the energy of the two nodes.
    """
    from_high = np.int64(nearest_integer(r * amount))
    return amount - from_high, from_high


def demand(amount, r):
    """Return the quanta, rounded up, that an event moves at its nodes, low pair and high pair."""
    high = r * amount
    low = amount - high
    return np.int64(ceil(abs(amount))), np.int64(ceil(abs(low))), np.int64(ceil(abs(high)))


def bound(available, wanted, allowance):
    """Return the fraction of the total demand on a cell that is granted, up to half its content.

    available : quanta that the cell can lose or, for fermions, gain; allowance : reduces the share
    """
    return min(max(allowance * available / (2.0 * wanted), 0.0), 1.0) if wanted > 0 else 1.0


def tightest(p, k3, low_1, low_2, high_1, high_2, r):
    """Return the fraction of an event that the bounds of its six cells allow."""
    s = min(p, k3)
    if r < 1.0:
        s = min(s, min(low_1, low_2))
    if r > 0.0:
        s = min(s, min(high_1, high_2))
    return min(s, 1.0)


@dataclass(frozen=True)
class DrawInput:
    """Everything needed to draw a set of events again. Squared masses in GeV^2."""

    step: int
    mass_squared: Array
    screening2: Array
    """Squared screening masses as in ``Model.screening_squared``."""
    site: int = 0
    """Number of the space cell among all cells of the run."""

    @classmethod
    def of(cls, step: int, squares: Array, species: int, site: int = 0) -> DrawInput:
        """Build from one row of squared masses: those of the species, then of the screenings."""
        return cls(step, squares[:species], squares[species:], site)


@dataclass(frozen=True)
class Flows:
    """Rates from a pass over all events: per process, in 1/fm of N f summed over the nodes."""

    forward: Array
    backward: Array
    wanted: float
    """Sum of the |net| flows of all events."""
    refused: float
    """Part of ``wanted`` that the limits refused."""
    signed: Array = field(default_factory=lambda: np.zeros((2, 0)))
    """Weight of physical collisions drawn with |M|^2 > 0 and with |M|^2 < 0, which counts as 0."""

    @property
    def negative_weight(self) -> Array:
        """Weight of |M|^2 < 0, which counts as 0, relative to that of |M|^2 > 0, per process."""
        if not self.signed.size:
            return np.zeros(self.forward.shape)
        above, below = self.signed
        return np.asarray(below / np.maximum(above, 1e-300))


@dataclass(frozen=True)
class Estimate:
    """C[f] from one draw of events: rate of change of N f of every cell [fm^-1], and its flows."""

    net: Array
    gain: Array
    loss: Array
    flows: Flows
    null_weight: float


GROSS_BITS = 60
"""Maximum number of bits of a sum of gross rates over all events."""
LARGEST_EXPONENT = 1000
"""Largest binary exponent of the scale; smaller rates are negligible."""


def finest_scale(flows: Flows) -> float:
    """Return the quanta per unit of N f: as fine as 64-bit sums of these gross rates allow."""
    legs = 4.0 * float(flows.forward.sum() + flows.backward.sum())
    return 2.0 ** min(GROSS_BITS - ceil(log2(legs)), LARGEST_EXPONENT) if legs > 0 else 1.0


@dataclass(frozen=True)
class Channel:
    """A process seen from one of its sides: two legs on nodes, two legs to be determined.

    ``nodes`` are the species of (k3, p) and ``pair`` those of (k1, k2). A reaction that changes
    species is drawn from both sides, with half the samples each; a reaction with a constant cross
    section is drawn only from the side of that cross section, because |M|^2 diverges from the other
    side. t = (k1 - k3)^2 is the same from both sides, so the matrix element does not depend on the
    side.
    """

    process: int
    nodes: tuple[int, int]
    pair: tuple[int, int]
    share: float
    """Fraction of the process's samples assigned to this channel."""
    factor: float
    """Multiplicity w of the process, times the share of the process in this channel."""
    forward: bool
    """Whether (k3, p) are the products of the reaction as written."""
    only_p: bool = False
    """Deposit on the leg p alone: sampling without symmetry."""

    def weight(self, cell_volume: float, samples: int) -> float:
        """Return the common weight of the channel's events: w d^3p / ((2 pi)^3 4 samples hbar c).

        samples : total over all sets, so that the sum over all events is C
        """
        return self.factor * cell_volume / ((2 * np.pi) ** 3 * 4 * samples * HBARC)


def inner_weights(grid: PhaseSpace, model: Model) -> Array:
    """Return ``PhaseSpace.missing_inverse_energy`` for every species [GeV^-1].

    0 for masses that depend on the state: the correction would change from step to step.
    """
    found: dict[float, float] = {}
    for m2, row in zip(model.constant_mass_squared.tolist(), model.mass_coupling, strict=True):
        if not row.any() and m2 not in found:
            found[m2] = grid.missing_inverse_energy(m2)
    thermal = model.mass_coupling.any(axis=1)
    return np.where(thermal, 0.0, [found.get(m2, 0.0) for m2 in model.constant_mass_squared])


def channels(model: Model, symmetrical: bool = True) -> list[Channel]:
    """Return all channels of a model, in the order of its processes."""
    result = []
    for index, process in enumerate(model.processes):
        a, b, c, d = (model.index(leg) for leg in process.legs)
        w = process.multiplicity
        if symmetrical and process.elastic:
            result.append(Channel(index, (c, d), (a, b), 1.0, w, True))
        elif symmetrical and process.constant:
            result.append(Channel(index, (a, b), (c, d), 1.0, w, False))
        elif symmetrical:
            result.append(Channel(index, (c, d), (a, b), 0.5, w / 2, True))
            result.append(Channel(index, (a, b), (c, d), 0.5, w / 2, False))
        elif process.constant and not process.elastic:
            raise InputError(
                f"collisions.symmetrical = False: process {process.name} has a constant cross "
                "section and changes species: drawn from its products |M|^2 diverges; use true"
            )
        else:  # every leg in turn plays p; equal legs share one channel
            sides = [((c, d), (a, b)), ((d, c), (b, a)), ((a, b), (c, d)), ((b, a), (d, c))]
            distinct = list(dict.fromkeys(sides))
            for nodes, pair in distinct:
                count = sides.count((nodes, pair))
                forward = (nodes, pair) in sides[:2]
                result.append(Channel(index, nodes, pair, 1.0, w * count, forward, only_p=True))
    return result
