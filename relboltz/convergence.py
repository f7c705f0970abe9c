"""What changed settings change of a quantity, where that leads, and how well it is known.

B is the mean over seeds of a set-up, F a run with a finer knob, C one with a coarser one. Along a
knob a quantity is Q = a + s x, with x = 1 for B and the power of the knob that its error goes with:
x = h^2 of the spacing, dt^2 of a step, ``tolerance`` of automatic ones (which is dt^2). The value
at x = 0 is B - s. Every knob gives

- a shift, B to there, linear in B, F and C, so that its noise is known from theirs;
- a bar: what its law may miss. That is no random number: bars of several knobs are added, while
  noise is added in squares, and the whole noise once, times Student's t.

All of it elementwise, on arrays of any shape; NaN stays NaN.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from .arrays import Array, Flags

LEVEL = 0.99
"""How often noise stays within its part of an error bar: a table has dozens of them."""
ALIKE = 0.35
"""Two slopes that differ by less, relative to the steeper one, show the order: with h, h/2 and
1.5 h those of h^p differ by that much for p = 1.15 and for 2.8 instead of 2."""
HELD = 2 / 3
"""Of the way from B to an extrapolated limit: runs with less than 0.8 of the spacing lie within the
bar, such as one with twice the nodes along each axis in a larger box, and so do limits of another
order: with h/2 that of first order is half of the way off."""
ROUNDING = 1e-10
"""Of the largest value of a quantity: what sums over the nodes of another grid may differ by."""


@dataclass(frozen=True)
class Measured:
    """A value and the variance of its noise."""

    value: Array
    variance: Array


@dataclass(frozen=True)
class Shift:
    """What a knob does: F - B, B to the limit, its bar, and what the limit is made of.

    fine, coarse : weights of F and C in the shift; that of B is minus their sum
    shown : whether the change has the order that it should have
    """

    change: Array
    shift: Array
    bar: Array
    fine: Array
    coarse: Array
    shown: Flags
    variances: tuple[Array, Array] = field(repr=False)

    def noise(self) -> Array:
        """Variance that F and C bring in; B has its own."""
        return self.fine**2 * self.variances[0] + self.coarse**2 * self.variances[1]


# --- one knob -----------------------------------------------------------------------------------


def power_law(
    base: Measured, fine: Measured, coarse: Measured | None, x: tuple[float, float], t: float
) -> Shift:
    """A knob whose error goes with x: (x of F, x of C) beside 1 of B; x is a length squared.

    If the slopes on both sides agree (within ``t`` standard errors of their difference, or ALIKE),
    the order is shown: the limit is Richardson's, B - s, and its bar what a term x^2 of that size,
    twice over, would make of it, at least two thirds of the way (HELD) from B to the limit. C
    enters s as far as it is both less noisy and of the same slope. If not, the limit is F, and the
    bar what an error of first order would leave, as F tells or half as C tells.
    """
    low, high = x
    change = fine.value - base.value
    one = np.ones_like(change)
    none = np.zeros_like(change)
    steep = -change / (1 - low)
    left = np.abs(change) * _remains(low)
    if coarse is None:
        return Shift(change, change, left, one, none, none > 0, (fine.variance, none))
    there = np.isfinite(coarse.value)  # else F alone tells
    far = np.where(there, coarse.value - base.value, 0.0)
    coarse = Measured(coarse.value, np.where(there, coarse.variance, 0.0))
    gentle = far / (high - 1)
    apart = gentle - steep
    own, other, mixed = _slope_variances(base, fine, coarse, x)
    steeper = np.maximum(np.abs(steep), np.abs(gentle))
    shown = there & (np.abs(apart) <= t * np.sqrt(mixed) + ALIKE * steeper)
    share = _part(own, other + apart**2, 0.0)
    slope = (1 - share) * steep + share * gentle
    bent = np.abs(apart) * low / (high - low)
    bar = np.maximum(HELD * np.abs(slope), 2 * bent)
    rough = np.maximum(left, 0.5 * np.abs(far) * math.sqrt(low) / (math.sqrt(high) - 1))
    return Shift(
        change,
        np.where(shown, -slope, change),
        np.where(shown, bar, rough),
        np.where(shown, (1 - share) / (1 - low), one),
        np.where(shown, -share / (high - 1), none),
        shown,
        (fine.variance, coarse.variance),
    )


def _part(one: Array, other: Array, otherwise: float) -> Array:
    """one / (one + other), neither below 0."""
    total = one + other
    return np.where(total > 0, one / np.where(total > 0, total, 1.0), otherwise)


def _remains(x: float) -> float:
    """Of F - B, what is left beyond F if the error is of first order in the length: r = sqrt(x)."""
    ratio = math.sqrt(x)
    return ratio / (1 - ratio)


def _slope_variances(
    base: Measured, fine: Measured, coarse: Measured, x: tuple[float, float]
) -> tuple[Array, Array, Array]:
    """Variances of the slope to F, of that to C, and of their difference; both know B."""
    below, above = 1 - x[0], x[1] - 1
    own = (base.variance + fine.variance) / below**2
    other = (base.variance + coarse.variance) / above**2
    return own, other, own + other + 2 * base.variance / (below * above)


def exponential(base: Measured, larger: Measured, decay: float) -> Shift:
    """A box: what it cuts off falls by ``decay`` from B to F, and so does its effect.

    The limit is F; what remains beyond it is decay/(1 - decay) of the change, and half of the
    change at least, because the cut is not one exponential.
    """
    change = larger.value - base.value
    one, none = np.ones_like(change), np.zeros_like(change)
    bar = np.abs(change) * max(decay / (1 - decay), 0.5)
    return Shift(change, change, bar, one, none, one > 0, (larger.variance, none))


def tail(width: float, larger: float, temperature: float) -> float:
    """How much less of a thermal gas lies beyond a larger box, weighted with p^3 in d^3p.

    That is the weight of (E^2)^2 d^3p/p, what relaxes last: p^5 exp(-p/T). At most 0.9.
    """
    if not (temperature > 0 and math.isfinite(temperature)):
        return 0.5
    fall = (larger / width) ** 5 * math.exp(-(larger - width) / temperature)
    return min(fall, 0.9)


def unbiased(base: Measured, more: Measured, times: float, t: float) -> Shift:
    """More samples: the mean does not depend on them but for a bias that falls with 1/samples.

    Where the change is noise, the limit is the mean of all events that were drawn, and the change
    itself the bar; where it is more than ``t`` standard errors, a bias of order 1/samples is
    extrapolated, and the bar covers one of order 1/sqrt(samples).
    """
    change = more.value - base.value
    none = np.zeros_like(change)
    both = base.variance + more.variance
    significant = np.abs(change) > t * np.sqrt(both)
    pooled = _part(base.variance, more.variance, 0.5)
    weight = np.where(significant, times / (times - 1), pooled)
    slow = 1 / (math.sqrt(times) - 1) - 1 / (times - 1)
    bar = np.abs(change) * np.where(significant, slow, 1.0)
    return Shift(change, weight * change, bar, weight, none, significant, (more.variance, none))


def holding(knob: Shift, times: float) -> Shift:
    """A bar that also holds runs which the knob moves by so many of its shifts the other way."""
    return replace(knob, bar=np.maximum(knob.bar, times * np.abs(knob.shift)))


# --- all knobs ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Limit:
    """The value that all knobs together lead to; error = Sum of bars + t noise + rounding."""

    value: Array
    error: Array
    noise: Array


def limit(base: Measured, shifts: Sequence[Shift], t: float) -> Limit:
    """B and all shifts; B is in each of them, so that its noise counts once, with its weight."""
    value = base.value + sum((one.shift for one in shifts), np.zeros_like(base.value))
    of_base = 1 - sum((one.fine + one.coarse for one in shifts), np.zeros_like(base.value))
    variance = of_base**2 * base.variance + sum(
        (one.noise() for one in shifts), np.zeros_like(base.value)
    )
    noise = np.sqrt(variance)
    bars = sum((one.bar for one in shifts), np.zeros_like(base.value))
    known = np.abs(base.value[np.isfinite(base.value)])
    return Limit(value, bars + t * noise + ROUNDING * known.max(initial=0.0), noise)


def students_t(freedom: int, level: float = LEVEL) -> float:
    """|t| that Student's distribution stays below with this probability (A and S 26.7.3)."""

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
