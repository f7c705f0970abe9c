"""Invalid matrix elements: poles inside phase space, negative or undefined values."""

import math
from collections.abc import Iterator

import numpy as np

from ..backends.cpu.collider import Collider
from ..backends.elements import Elements
from ..config.settings import Sampling
from ..events.collisions import LARGEST_ELEMENT, DrawInput, element_flaw, illegal
from ..events.kinematics import breakup_momentum2
from ..grid.phase_space import PhaseSpace
from ..model.model import Model, Process
from ..util.arrays import Array, Flags
from ..util.errors import InputError, negative_element
from .accuracy import warn
from .matter import Squares

ACCEPTED_NEGATIVE, LARGEST_NEGATIVE = 0.01, 0.5
"""Weight of negative matrix elements, relative to the rest of a process: warning, error."""
NEGATIVE_REMEDY = (
    "Lower model.alpha_s, or use thermal masses, or masses of the order of the screening mass"
)
INTERIOR = 0.95
"""Largest |cosine| at which t and u are exchanged: rounding of t matters more near the edges of
phase space, where poles may lie.
"""
ASYMMETRY = 1e-6
"""Largest relative difference of M(s, t, u) and M(s, u, t) due to rounding. t and u are known to
2 eps (s + sum of m^2), and in the interior are 0.025 * 4 k k' away from any pole, where 4 k k' is
1e-6 s at the lowest s tried: 4e-8 for each power of a propagator, and |M|^2 has four.
"""
NOTHING = 1e-9
"""Fraction of the largest |M|^2 at the same s that counts as 0: terms may cancel to rounding,
1e-10.
"""
DRAWN = 20000
"""Events of a process that are sampled to weigh negative matrix elements before a run."""


def check_model(
    elements: Elements,
    grid: PhaseSpace,
    mass_squared: Array,
    screening2: Array,
    happens: Flags | None = None,
) -> list[int]:
    """Raise InputError for matrix elements with a pole, or negative or undefined over a range.

    Every process is evaluated on a grid of s (from threshold to the largest in the box) and
    of the scattering angle, with the given masses. Returns the built-in processes that
    are negative somewhere; ``check_state`` decides whether this matters.

    happens : processes that can ever run, by default all. A flavour that is neither present nor
        produced may be massless beside massive gluons: its processes do nothing
    """
    model = elements.model
    negative = []
    largest = math.sqrt(float(grid.momentum_squared.max()))
    for index, process in enumerate(model.processes):
        if happens is not None and not happens[index]:
            continue
        m2 = tuple(float(mass_squared[model.index(leg)]) for leg in process.legs)
        roots = [math.sqrt(m) for m in m2]
        threshold = max(roots[0] + roots[1], roots[2] + roots[3], 1e-3) ** 2
        highest = (math.hypot(largest, roots[0]) + math.hypot(largest, roots[1])) ** 2
        s = np.geomspace(threshold * (1 + 1e-6), max(highest, 2 * threshold), 80)[:, None]
        cosine = (1 - 1e-9) * np.linspace(-1, 1, 61)[None, :]
        k_in = np.sqrt(np.maximum(breakup_momentum2(s, m2[2], m2[3]), 0))
        k_out = np.sqrt(np.maximum(breakup_momentum2(s, m2[0], m2[1]), 0))
        e1 = (s + m2[0] - m2[1]) / (2 * np.sqrt(s))
        e3 = (s + m2[2] - m2[3]) / (2 * np.sqrt(s))
        t = m2[0] + m2[2] - 2 * e1 * e3 + 2 * k_in * k_out * cosine
        u = sum(m2) - s - t
        row = model.exchange_row(process.legs[0])
        masses2 = (float(screening2[0]), float(screening2[row]))
        _check_poles(process, t, u, masses2, model.screening.ekt)
        q2 = k_in**2 + k_out**2 - 2 * k_in * k_out * cosine
        qu2 = k_in**2 + k_out**2 + 2 * k_in * k_out * cosine
        flat = [np.broadcast_to(v, t.shape).ravel() for v in (s, t, q2, qu2)]
        values = elements.evaluate(index, flat[0], flat[1], m2, screening2, flat[2], flat[3])
        _check_values(process, values, flat[0], flat[1], sum(m2))
        if process.identical:
            swapped = elements.evaluate(
                index, flat[0], u.ravel(), m2, screening2, flat[3], flat[2]
            ).reshape(t.shape)
            inside = np.abs(cosine[0]) <= INTERIOR
            both = values.reshape(t.shape)[:, inside], swapped[:, inside]
            _check_symmetry(process, both, s[:, 0], t[:, inside], sum(m2))
        if (values < 0).any():
            negative.append(index)
    return negative


def _check_poles(
    process: Process, t: Array, u: Array, masses2: tuple[float, float], ekt: bool
) -> None:
    """Raise InputError if a propagator vanishes inside phase space, where t or u = mass^2.

    A pole at the very edge, where t or u reaches it only at threshold, is allowed.

    masses2 : squared screening mass, and that of the exchanged species
    """
    kinds = {"regulated": masses2[0]}
    if not ekt:
        kinds |= {"screened": masses2[0], "exchanged": masses2[1]}
    for name, values in (("t", t), ("u", u)):
        limits = [mass2 for kind, mass2 in kinds.items() if f"{name}_{kind}" in process.arguments]
        if name == process.peak:
            limits.append(masses2[0])
        highest, limit = float(values.max()), min(limits, default=np.inf)
        if highest > limit:
            raise InputError(
                f"process {process.name} has a pole: with these masses {name} reaches "
                f"{highest:.4g} GeV^2, beyond the screening mass squared of {limit:.4g} GeV^2; "
                "bring the masses of its species closer together or raise model.screening"
            )


def _check_values(process: Process, values: Array, s: Array, t: Array, sum_m2: float) -> None:
    """Raise InputError for invalid values, by the same rule as during a run."""
    flaws, clamps = np.zeros(len(values)), float(process.built_in)
    for i in np.flatnonzero(~((values >= 0) & (values < LARGEST_ELEMENT))):  # all others are valid
        flaws[i] = element_flaw(float(values[i]), clamps)
    if not illegal(flaws.sum(), values[(flaws == 0) & (values > 0)].sum()):
        return
    worst = int(np.argmax(flaws))
    at = (float(s[worst]), float(t[worst]), sum_m2 - float(s[worst]) - float(t[worst]))
    error = negative_element(process.name, float(values[worst]), *at)
    part = float(np.mean(flaws > 0))
    raise InputError(f"{error} (it fails at {100 * part:.0f} % of the s and t that were tried)")


def _check_symmetry(
    process: Process, both: tuple[Array, Array], s: Array, t: Array, sum_m2: float
) -> None:
    """Raise InputError if |M|^2 of identical particles changes under exchange of t and u.

    both : M(s, t, u) and M(s, u, t), by s and angle
    """
    one, other = both
    size = np.maximum(np.abs(one), np.abs(other))
    rounding = ASYMMETRY * size + NOTHING * size.max(axis=1, keepdims=True)
    wrong = np.where(np.isfinite(size), np.abs(one - other) - rounding, 0.0)
    if not (wrong > 0).any():
        return
    i, j = np.unravel_index(int(wrong.argmax()), wrong.shape)
    at = float(s[i]), float(t[i, j]), sum_m2 - float(s[i]) - float(t[i, j])
    raise InputError(
        f"process {process.name} has equal particles, so that |M|^2 must not change when t and u "
        f"are exchanged: it is {one[i, j]:.6g} at s = {at[0]:.6g}, t = {at[1]:.6g}, "
        f"u = {at[2]:.6g} GeV^2, and {other[i, j]:.6g} with t and u exchanged (q2 and qu2 too); "
        "symmetrise it: (M(s, t, u) + M(s, u, t))/2"
    )


def check_state(
    elements: Elements,
    grid: PhaseSpace,
    f: Array,
    squares: Squares,
    said: list[str],
    known: float = 0.0,
    happens: Flags | None = None,
) -> float:
    """Run ``check_model``; refuse or warn if screening makes matrix elements negative too often.

    Negative values are weighted by sampled events in the collision term. Returns the largest
    weight, including ``known`` from before.

    squares : masses and screening masses; happens : as in ``check_model``
    """
    model = elements.model
    processes = [model.processes[i] for i in check_model(elements, grid, *squares, happens)]
    if not processes:
        return known
    part = Model(model.species, processes, screening=model.screening)
    sampling = Sampling(samples=max(1, math.ceil(DRAWN / grid.size)))
    backend = Collider(grid, Elements(part), sampling)
    weights = backend.negative_weight(DrawInput(0, *squares), f.ravel())
    worst = int(weights.argmax())
    if weights[worst] > LARGEST_NEGATIVE:
        raise InputError(
            f"process {part.processes[worst].name}: screening makes |M|^2 negative where it "
            f"weighs {100 * weights[worst]:.0f} % of the rest: masses and screening do not fit "
            f"together. {NEGATIVE_REMEDY}"
        )
    warn(of_negative(part, weights, known), said)
    return max(known, float(weights[worst]))


def of_negative(model: Model, weights: Array, known: float) -> Iterator[str]:
    """Warn of matrix elements that screening makes negative.

    known : the weight reported before; half as much again triggers another warning
    """
    worst = int(np.nan_to_num(weights).argmax()) if len(weights) else 0
    if len(weights) and weights[worst] > max(ACCEPTED_NEGATIVE, 1.5 * known):
        course = " in the course of the run" if known > 0 else ""
        refused = weights[worst] > LARGEST_NEGATIVE
        refusable = " (a start like that would be refused)" if refused else ""
        yield (
            f"process {model.processes[worst].name}: screening makes |M|^2 negative, which counts "
            f"as 0: {100 * weights[worst]:.1f} % of the rest{course}{refusable}, so that its rate "
            f"is uncertain by that much. {NEGATIVE_REMEDY}"
        )
