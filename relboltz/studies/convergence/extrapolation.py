"""Limits of a quantity as one setting after another is refined, with error bars.

B is the mean over seeds of a set-up, F a run with one setting ("knob") refined, and C a run with it
coarsened. If the knob has a length h (spacing, time step, space cell), the error of a quantity is
assumed to be a power law,

    Q(h) = a + k h^p,    h = r for F, 1 for B, c for C    (r < 1 < c).

The three values measure the order p: with u = C - B and w = B - F,

    u / w = R(p) = (c^p - 1) / (1 - r^p),    R increases with p,

and the limit is a = B - w / (1 - r^p). The orders that noise cannot exclude follow from
u - R w, which is linear in C, B and F, so that its variance is known (Fieller's theorem).
If these orders include both 1 and 2, the error bar covers both limits.

Each knob contributes

- a shift from B to the limit, linear in B, F and C at a given p, whose noise follows from theirs;
- a bar: the possible error of the assumed law. The bar is not a random number, so the bars of
  several knobs are added linearly; noise is added in quadrature, and the total noise enters once,
  times Student's t.

All functions work elementwise on arrays of any shape; NaN stays NaN.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import NamedTuple

import numpy as np

from ...util.arrays import Array, Flags

LEVEL = 0.99
"""Probability that noise stays within its part of an error bar: a table has dozens of bars."""
SEEN = 2.0
"""Number of standard errors of F - B below which noise hides the change."""
LEAST, MOST = 0.5, 3.0
"""Range of orders that three values may show. Limits use order 1 at least: lower orders are
transient (two powers of opposite sign) and only widen the bar.
"""
SCATTER = 0.3
"""Allowed relative deviation of a difference of two values from its power law, apart from noise:
the errors of initial conditions with an edge oscillate as the edge moves through the cells of other
grids. At 0.34, orders 1 and 2 could no longer be told apart with h/2 and 1.5 h.
"""
MARGIN = 0.5
"""Reach of a bar beyond the first-order limit, relative to the distance from F to that limit: the
step initial conditions leave up to 1.5 times the first-order error at spacings between 0.2 and 0.4
GeV.
"""
ROUNDING = 1e-10
"""Rounding of sums over the nodes of different grids, relative to the largest value of a quantity.
"""


@dataclass(frozen=True)
class NoisyValue:
    """A value and the variance of its noise."""

    value: Array
    variance: Array


@dataclass(frozen=True)
class KnobEffect:
    """Effect of a knob: F - B, shift from B to the limit, bar, and the weights of the limit.

    fine, coarse : weights of F and C in the shift; the weight of B is minus their sum
    shown : whether the runs measure the law: the order, or a bias of few samples
    order : order of the power law, measured where ``shown``, otherwise assumed; NaN if there is no
        power law
    order_error : half the range of orders that noise leaves open at LEVEL; NaN unless measured
    """

    change: Array
    shift: Array
    bar: Array
    fine: Array
    coarse: Array
    shown: Flags
    variances: tuple[Array, Array] = field(repr=False)
    order: Array | float = math.nan
    order_error: Array | float = math.nan

    def noise(self) -> Array:
        """Variance contributed by F and C; that of B is counted separately."""
        return self.fine**2 * self.variances[0] + self.coarse**2 * self.variances[1]


# --- one knob -----------------------------------------------------------------------------------


def power_law(
    base: NoisyValue,
    fine: NoisyValue,
    coarse: NoisyValue | None,
    ratios: tuple[float, float],
    t: float,
    usual: float = 1.0,
) -> KnobEffect:
    """Extrapolate a knob whose error is a power of a length; see the module docstring.

    ratios : lengths r of F and c of C, relative to that of B
    t : Student's t, which decides which orders noise excludes
    usual : order used where noise hides the change: 1, or 2 if the scheme is known to be second
        order

    - The three values exclude order 1 or 2 and allow an order between LEAST and MOST: the limit has
      the measured order (1 at least). The bar covers the orders left open, within 1 to 2, reaches
      back to F, and beyond the limit of first order by MARGIN.
    - They exclude neither: the limit has order 1, and the bar reaches back to F, covering order 2.
    - Noise hides the change: the limit has the usual order, and the bar covers 1 and 2.
    - No such order, because the values turn around or change ever faster towards F: the limit is
      that of a + b h + c h^2 through all three, and the bar reaches back to F.
    - No such order, because only C differs: the limit is F, and the bar is the larger of the
      first-order error implied by F and half of that implied by C. Without C, F alone is used.
    """
    change = fine.value - base.value
    none = np.zeros_like(change)
    left = np.abs(change) * ratios[0] / (1 - ratios[0])
    if coarse is None:
        return KnobEffect(change, change, left, none + 1, none, none > 0, (fine.variance, none))
    there = np.isfinite(coarse.value)  # otherwise only F is used
    coarse = NoisyValue(
        np.where(there, coarse.value, base.value), np.where(there, coarse.variance, 0.0)
    )
    far = coarse.value - base.value
    orders = _orders(base, fine, coarse, ratios, t, usual)
    kind, used = np.where(there, orders.kind, FLAT), np.maximum(orders.order, 1.0)
    at = partial(_slope, base, fine, coarse, ratios)
    slope, share = at(used)
    ends = [np.abs(at(p)[0] - slope) for p in orders.covered]
    first = np.abs(at(np.ones_like(change))[0] - slope) + MARGIN * left
    back = np.where(kind == HIDDEN, 0.0, np.abs(slope + change))
    bar = np.maximum.reduce([*ends, first, back])
    weights = (1 - share) / (1 - ratios[0] ** used), -share / (ratios[1] ** used - 1)
    both = _two_powers(ratios)
    turn = both[0] * change + both[1] * far
    rough = np.maximum(left, 0.5 * np.abs(far) * ratios[0] / (ratios[1] - 1))

    def choice(law: Array, turning: Array, flat: Array) -> Array:
        return np.where(kind == FLAT, flat, np.where(kind == TURNING, turning, law))

    measured = kind == MEASURED
    return KnobEffect(
        change,
        choice(-slope, turn, change),
        choice(bar, np.maximum(np.abs(turn - change), left), rough),
        choice(weights[0], none + both[0], none + 1),
        choice(weights[1], none + both[1], none),
        measured,
        (fine.variance, coarse.variance),
        np.where(kind <= HIDDEN, orders.order, np.nan),
        np.where(measured, orders.error, np.nan),
    )


MEASURED, EITHER, HIDDEN, TURNING, FLAT = range(5)
"""Laws along a knob: measured order; order 1 or 2, undecided; undecided because noise hides the
change; no order, largest change towards F; no order, largest change towards C.
"""


class PossibleOrders(NamedTuple):
    """Orders of a power law that three values allow.

    order : the measured order; 1 where it may be 1 or 2; the usual order where noise hides the
        change
    error : largest distance to an order that noise leaves open
    covered : lowest and highest order that the bar has to cover
    kind : kind of law
    """

    order: Array
    error: Array
    covered: tuple[Array, Array]
    kind: Array


def _orders(
    base: NoisyValue, fine: NoisyValue, coarse: NoisyValue, ratios: tuple[float, float], t: float,
    usual: float,
) -> PossibleOrders:  # fmt: skip
    """Measure the order.

    With variances v of the values, noise cannot exclude R if

        (u - R w)^2 <= t^2 [vC + (1 + R)^2 vB + R^2 vF] + SCATTER^2 (u^2 + R^2 w^2),

    that is, square R^2 - 2 middle R + rest <= 0 with the terms below: an interval if square > 0,
    which means that w differs significantly from 0.
    """
    u, w = coarse.value - base.value, base.value - fine.value
    tiny = (ROUNDING * np.abs(base.value)) ** 2
    square = (1 - SCATTER**2) * w**2 - t**2 * (base.variance + fine.variance) - tiny
    middle = u * w + t**2 * base.variance
    rest = (1 - SCATTER**2) * u**2 - t**2 * (coarse.variance + base.variance)
    bounded = square > 0
    safe = np.where(bounded, square, 1.0)
    root = np.sqrt(np.maximum(middle**2 - safe * rest, 0.0))
    lowest, highest = (middle - root) / safe, (middle + root) / safe

    def excluded(p: float) -> Flags:
        r = _ratio(p, ratios)
        variance = coarse.variance + (1 + r) ** 2 * base.variance + r**2 * fine.variance
        return (u - r * w) ** 2 > t**2 * variance + SCATTER**2 * (u**2 + (r * w) ** 2) + tiny

    fast, slow = _ratio(MOST, ratios), _ratio(LEAST, ratios)
    seen = w**2 > SEEN**2 * (base.variance + fine.variance) + tiny
    first, second = ~excluded(1.0), ~excluded(2.0)
    kind = np.select(
        [
            ~seen & second, first & second, ~bounded & (first | second),
            bounded & (highest < slow), bounded & (lowest <= fast),
        ],
        [HIDDEN, EITHER, EITHER, TURNING, MEASURED],
        FLAT,
    )  # fmt: skip
    order, low, high = (
        _order(value, ratios) for value in (u / np.where(bounded, w, 1.0), lowest, highest)
    )
    measured = kind == MEASURED
    return PossibleOrders(
        np.where(measured, order, np.where(kind == HIDDEN, usual, 1.0)),
        np.maximum(order - low, high - order),
        (
            np.where(measured, np.minimum(np.maximum(low, 1.0), order), 1.0),
            np.where(measured, np.maximum(np.minimum(high, 2.0), order), 2.0),
        ),
        kind,
    )


def _ratio(p: float, ratios: tuple[float, float]) -> float:
    """Return (C - B) / (B - F) of an error of order p."""
    return float((ratios[1] ** p - 1) / (1 - ratios[0] ** p))


def _order(ratio: Array, ratios: tuple[float, float]) -> Array:
    """Return the order between LEAST and MOST that corresponds to a ratio (C - B) / (B - F)."""
    low, high = np.full_like(ratio, LEAST), np.full_like(ratio, MOST)
    for _ in range(40):
        middle = 0.5 * (low + high)
        above = (ratios[1] ** middle - 1) / (1 - ratios[0] ** middle) > ratio
        low, high = np.where(above, low, middle), np.where(above, middle, high)
    return 0.5 * (low + high)


def _two_powers(ratios: tuple[float, float]) -> tuple[float, float]:
    """Return the weights of F and C in the shift to the limit of a + b h + c h^2 through F, B, C.

    The parabola at h = 0 has F c/((1 - r)(c - r)) - B r c/((1 - r)(c - 1)) + C r/((c - r)(c - 1)).
    """
    r, c = ratios
    return c / ((1 - r) * (c - r)), r / ((c - r) * (c - 1))


def _slope(
    base: NoisyValue, fine: NoisyValue, coarse: NoisyValue, ratios: tuple[float, float], p: Array
) -> tuple[Array, Array]:
    """Return k of a + k h^p, and the share of k that comes from C.

    F and C each give a value of k; C contributes if it is less noisy and agrees with F.
    """
    below, above = 1 - ratios[0] ** p, ratios[1] ** p - 1
    steep = (base.value - fine.value) / below
    gentle = (coarse.value - base.value) / above
    own = (base.variance + fine.variance) / below**2
    other = (base.variance + coarse.variance) / above**2
    share = _part(own, other + (gentle - steep) ** 2, 0.0)
    return (1 - share) * steep + share * gentle, share


def _part(one: Array, other: Array, otherwise: float) -> Array:
    """Return one / (one + other) for non-negative arguments."""
    total = one + other
    return np.where(total > 0, one / np.where(total > 0, total, 1.0), otherwise)


def exponential(base: NoisyValue, larger: NoisyValue, decay: float) -> KnobEffect:
    """Extrapolate a box size whose cut-off effect falls by a factor ``decay`` from B to F.

    The limit is F. The remaining error is decay/(1 - decay) of the change, and at least half of the
    change, because the cut-off effect is not a single exponential.
    """
    change = larger.value - base.value
    one, none = np.ones_like(change), np.zeros_like(change)
    bar = np.abs(change) * max(decay / (1 - decay), 0.5)
    return KnobEffect(change, change, bar, one, none, one > 0, (larger.variance, none))


def tail(width: float, larger: float, temperature: float) -> float:
    """Return the ratio of thermal tails beyond a larger and a smaller box, weighted with p^3.

    This is the weight of (E^2)^2 d^3p/p, which relaxes last: p^5 exp(-p/T). At most 0.9.
    """
    if not (temperature > 0 and math.isfinite(temperature)):
        return 0.5
    fall = (larger / width) ** 5 * math.exp(-(larger - width) / temperature)
    return min(fall, 0.9)


def unbiased(base: NoisyValue, more: NoisyValue, times: float, t: float) -> KnobEffect:
    """Extrapolate the number of samples: the mean has at most a bias that falls with 1/samples.

    If the change is noise, the limit is the mean of all events that were drawn, and the bar is the
    change itself; if the change exceeds ``t`` standard errors, a bias of order 1/samples is
    extrapolated, and the bar covers a bias of order 1/sqrt(samples).
    """
    change = more.value - base.value
    none = np.zeros_like(change)
    both = base.variance + more.variance
    significant = np.abs(change) > t * np.sqrt(both)
    pooled = _part(base.variance, more.variance, 0.5)
    weight = np.where(significant, times / (times - 1), pooled)
    slow = 1 / (math.sqrt(times) - 1) - 1 / (times - 1)
    bar = np.abs(change) * np.where(significant, slow, 1.0)
    return KnobEffect(
        change, weight * change, bar, weight, none, significant, (more.variance, none)
    )


def holding(knob: KnobEffect, times: float) -> KnobEffect:
    """Widen the bar to cover ``times`` the shift in the opposite direction."""
    return replace(knob, bar=np.maximum(knob.bar, times * np.abs(knob.shift)))


# --- all knobs ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class ConvergedValue:
    """Value extrapolated in all knobs; error = Sum of bars + t noise + rounding."""

    value: Array
    error: Array
    noise: Array


def limit(base: NoisyValue, shifts: Sequence[KnobEffect], t: float) -> ConvergedValue:
    """Add all shifts to B; the noise of B, which enters each shift, is counted once."""
    value = base.value + sum((one.shift for one in shifts), np.zeros_like(base.value))
    of_base = 1 - sum((one.fine + one.coarse for one in shifts), np.zeros_like(base.value))
    variance = of_base**2 * base.variance + sum(
        (one.noise() for one in shifts), np.zeros_like(base.value)
    )
    noise = np.sqrt(variance)
    bars = sum((one.bar for one in shifts), np.zeros_like(base.value))
    known = np.abs(base.value[np.isfinite(base.value)])
    return ConvergedValue(value, bars + t * noise + ROUNDING * known.max(initial=0.0), noise)


def students_t(freedom: int, level: float = LEVEL) -> float:
    """Return the |t| that Student's distribution exceeds with probability 1 - ``level``.

    Series of Abramowitz and Stegun, 26.7.3.
    """

    def within(t: float) -> float:
        angle = math.atan(t / math.sqrt(freedom))
        cosine, term, total = math.cos(angle), 1.0, 0.0
        if freedom % 2:
            term = cosine
            for k in range(1, freedom, 2):
                total += term
                term *= cosine**2 * (k + 1) / (k + 2)
            return 2 / math.pi * (angle + math.sin(angle) * total)
        for k in range(0, freedom, 2):
            total += term
            term *= cosine**2 * (k + 1) / (k + 2)
        return math.sin(angle) * total

    low, high = 0.0, 1e6
    for _ in range(100):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if within(middle) < level else (low, middle)
    return high
