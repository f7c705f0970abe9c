"""How long a step may be, and which masses it takes: scalar functions for host and device.

Two bounds: the L1 error of a step stays below the tolerance, and C may not change by more than
``largest_change`` of itself within a step. The second one is relative to the deviation from
equilibrium, so it holds however small that is: a mode that decays at a rate r is damped by
1 - z + z^2/2 a step, z = r dt, so its rate is z^2/6 too small: that falls with the tolerance.
"""

from math import sqrt

CHANGE = 0.3
"""Largest |C(n1) - C(n0)| / |C(n0)| of a step with a tolerance of USUAL."""
USUAL = 1e-3
STABLE = 0.9
"""The same with any tolerance: beyond it, fast modes are not damped."""
GROWTH = 1.25
"""Largest growth of the step from one step to the next."""
SAFETY = 0.9
REJECT = 0.7
"""A step that should have been shorter than this part of itself is done again."""
FIRST_STEP = 1e-3
"""First length of an automatic run [fm]; it grows, or shrinks, from there."""
SHORTEST = 1e-7
"""No step below this length [fm] is done again."""
LEAST_SIGNAL = 0.1
"""Part of C that is taken as more than noise in any case."""
STILL = 1e-6
"""Errors below this part of the tolerance never shorten the step."""


def step_length(wanted: float, room: float, automatic: bool) -> float:
    """The length to take, such that a stop at distance ``room`` is met without a tiny step."""
    if room <= wanted * (1.0 + 1e-9):
        return room
    return 0.5 * room if automatic and room < 2.0 * wanted else wanted


def largest_change(tolerance: float, noise: float) -> float:
    """How much C may change within a step, relative to itself.

    noise : squared standard error of C over C^2, both summed over the cells. Noise that one step
        adds must decay before the next ones add theirs, and a noisy prediction is a biased one.
    """
    signal = max(1.0 - sqrt(noise), LEAST_SIGNAL)
    return signal * min(STABLE, CHANGE * sqrt(tolerance / USUAL))


def adapted(
    length: float, error: float, ratio: float, largest: float, wanted: float, tolerance: float
) -> tuple[bool, float]:
    """Whether a step of this length may stand, and the length wanted next.

    ratio, largest : how much C changed, relative to itself, and how much it may
    """
    by_error = sqrt(tolerance / max(error, 1e-300))
    by_change = largest / max(ratio, 1e-30)
    factor = SAFETY * min(by_error, by_change)
    if error < STILL * tolerance:  # may be rounding: no reason to shorten
        return True, max(wanted, min(GROWTH * wanted, factor * length))
    if factor < REJECT * SAFETY and length > SHORTEST:
        return False, length * min(0.7, max(0.1, factor))
    return True, min(GROWTH * wanted, length * max(factor, 0.5))


def mean_during(now, lasts, length, rate, last, before, earlier):
    """Mean of a value over what lasts so long in a step of this length, from now on.

    rate, before : its rate of change at the same place of the last step and of the one before that
    last, earlier : the lengths of those steps; earlier = 0 if there was only one

    The rate is extrapolated to the middle of this step; never outside of a factor two.
    """
    if earlier > 0.0:
        rate = rate + (rate - before) * ((length + last) / (last + earlier))
    return min(max(now + 0.5 * lasts * rate, 0.5 * now), 2.0 * now)
