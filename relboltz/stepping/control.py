"""Step-size control and extrapolated masses: scalar functions for host and device.

Two bounds apply: the L1 error of a step stays below the tolerance, and C may not change by more
than the fraction ``largest_change`` within a step. The second bound is relative to the deviation
from equilibrium, so it works however small the deviation is: a mode that decays at a rate r is
damped by 1 - z + z^2/2 per step, z = r dt, so its numerical rate is too small by z^2/6, an error
that falls with the tolerance.
"""

from math import sqrt

CHANGE = 0.3
"""Largest |C(n1) - C(n0)| / |C(n0)| of a step with a tolerance of USUAL."""
USUAL = 1e-3
STABLE = 0.9
"""Upper bound on that ratio for any tolerance: beyond it, fast modes are not damped."""
GROWTH = 1.25
"""Largest growth of the step from one step to the next."""
SAFETY = 0.9
REJECT = 0.7
"""A step is repeated if it should have been shorter than this fraction of its length."""
FIRST_STEP = 1e-3
"""First step length of a run with automatic steps [fm]; later steps grow or shrink from it."""
SHORTEST = 1e-7
"""No step below this length [fm] is repeated."""
LEAST_SIGNAL = 0.1
"""Fraction of C that always counts as signal rather than noise."""
STILL = 1e-6
"""Errors below this fraction of the tolerance never shorten the step."""


def step_length(wanted: float, room: float, automatic: bool) -> float:
    """Return a step length that reaches the stop, ``room`` ahead, without a tiny last step."""
    if room <= wanted * (1.0 + 1e-9):
        return room
    return 0.5 * room if automatic and room < 2.0 * wanted else wanted


def largest_change(tolerance: float, noise: float) -> float:
    """Return the largest allowed change of C within a step, relative to C.

    noise : squared standard error of C over C^2, both summed over the cells. The noise of one step
        must decay before the next steps add theirs, and a noisy predictor is a biased one.
    """
    signal = max(1.0 - sqrt(noise), LEAST_SIGNAL)
    return signal * min(STABLE, CHANGE * sqrt(tolerance / USUAL))


def adapted(
    length: float, error: float, ratio: float, largest: float, wanted: float, tolerance: float
) -> tuple[bool, float]:
    """Return whether to accept a step of this length, and the length wanted next.

    ratio, largest : actual and largest allowed change of C within the step, relative to C
    """
    by_error = sqrt(tolerance / max(error, 1e-300))
    by_change = largest / max(ratio, 1e-30)
    factor = SAFETY * min(by_error, by_change)
    if error < STILL * tolerance:  # possibly rounding: no reason to shorten
        return True, max(wanted, min(GROWTH * wanted, factor * length))
    if factor < REJECT * SAFETY and length > SHORTEST:
        return False, length * min(0.7, max(0.1, factor))
    return True, min(GROWTH * wanted, length * max(factor, 0.5))


def mean_during(now, lasts, length, rate, last, before, earlier):
    """Extrapolate the mean of a value over a substep of duration ``lasts`` in a step of ``length``.

    now : the value at the start of the substep
    rate, before : its rate of change in the same substep of the previous step and the one before
    last, earlier : the lengths of those steps; earlier = 0 if there was only one

    The rate is extrapolated to the middle of this step; the mean stays within a factor two of
    ``now``.
    """
    if earlier > 0.0:
        rate = rate + (rate - before) * ((length + last) / (last + earlier))
    return min(max(now + 0.5 * lasts * rate, 0.5 * now), 2.0 * now)
