"""Events: net flow without cancellation, exact shares, and the paper's factors for every leg."""

import math
from collections import Counter
from decimal import Decimal, localcontext

import numpy as np
import pytest

from relboltz.backends.physics import compiled
from relboltz.events.collisions import (
    LARGEST_ELEMENT,
    channels,
    element_flaw,
    flow,
    illegal,
    nearest_integer,
    shares,
)
from relboltz.model.model import Model, Process, Species
from relboltz.model.qcd import qcd

MODEL = qcd(0.3)
BOTH = pytest.mark.parametrize("function", [flow, compiled.flow], ids=["python", "compiled"])


# --- net flow -----------------------------------------------------------------------------------


@BOTH
@pytest.mark.parametrize("x", [-600.0, -30.0, -1.0, 0.0, 0.3, 20.0])
@pytest.mark.parametrize("d", [0.0, 1e-15, 1e-12, 1e-7, 1e-3, 0.5, 3.0, 60.0])
@pytest.mark.parametrize("sign", [1, -1])
def test_flow_is_the_difference_of_two_exponentials(function, x, d, sign):
    """e^x - e^y to 1e-14 of itself, however small, against 60 decimal digits; and e^x."""
    y = x - sign * d
    net, forward = function(x, y)
    with localcontext() as context:
        context.prec = 60
        ex, ey = Decimal(x).exp(), Decimal(y).exp()
        exact = float(ex - ey)
        assert net == pytest.approx(exact, rel=1e-14, abs=0)
        assert forward == pytest.approx(float(ex), rel=0, abs=2e-15 * float(max(ex, ey)))


@BOTH
def test_equal_exponents_move_exactly_nothing(function):
    """Equilibrium: every single event vanishes, not only on average."""
    for x in np.linspace(-690, 50, 200).tolist():
        assert function(x, x)[0] == 0.0


@BOTH
def test_flow_changes_sign_with_its_arguments(function):
    """The reverse reaction is the same event, to the last bit."""
    rng = np.random.default_rng(1)
    for x, y in rng.uniform(-40, 5, (100, 2)).tolist():
        assert function(x, y)[0] == -function(y, x)[0]
        assert (function(x, y)[0] > 0) == (x > y)


# --- shares -------------------------------------------------------------------------------------


@pytest.mark.parametrize("function", [shares, compiled.shares], ids=["python", "compiled"])
def test_shares_add_up_to_the_amount(function):
    """Whole numbers, exact to 2^50, the high share within half a unit of r times the amount."""
    rng = np.random.default_rng(2)
    ratios = [0.0, 1.0, 0.5, 1e-17, 1 - 2**-53, *rng.random(10).tolist()]
    amounts = [0, 1, -1, 2, 3, -7, 12345, 2**40 + 1, -(2**50) + 1, 2**50 - 1]
    amounts += rng.integers(-(2**45), 2**45, 20).tolist()
    for amount in amounts:
        for r in ratios:
            low, high = function(float(amount), r)
            assert low == int(low) and high == int(high)
            assert int(low) + int(high) == amount
            assert abs(high - r * amount) <= 0.5 + 1e-15 * abs(amount)
            assert min(0, amount) <= min(low, high) and max(low, high) <= max(0, amount)


@pytest.mark.parametrize("function", [nearest_integer, compiled.nearest_integer])
def test_amounts_are_rounded_never_truncated(function):
    """To the nearest whole number, on both sides of zero."""
    for whole in (-(2**40), -3, -1, 0, 1, 2, 2**40):
        for part in (-0.49, -0.25, 0.0, 0.25, 0.49):
            assert function(whole + part) == whole


# --- illegal matrix elements --------------------------------------------------------------------


@pytest.mark.parametrize("function", [element_flaw, compiled.element_flaw])
def test_a_flaw_is_what_is_below_zero_or_no_number(function):
    """Below zero is no flaw of rows that count as 0 there; what is undefined always is."""
    for clamps in (0.0, 1.0):
        assert function(3.0, clamps) == 0 and function(0.0, clamps) == 0
        for undefined in (math.nan, math.inf, -math.inf):
            assert function(undefined, clamps) == LARGEST_ELEMENT
    assert function(-3.0, 0.0) == 3 and function(-3.0, 1.0) == 0


@pytest.mark.parametrize("function", [illegal, compiled.illegal])
def test_flaws_are_rounding_below_1e_9_of_the_rest(function):
    """Sums against sums; nothing at all is legal, and so is one undefined value never."""
    assert not function(0.0, 0.0) and not function(0.9e-9, 1.0)
    assert function(1.1e-9, 1.0) and function(1e-30, 0.0)
    assert function(LARGEST_ELEMENT, 1e200) and function(math.nan, 1.0)


# --- channels -----------------------------------------------------------------------------------


def by_process(model, symmetrical=True):
    """Channels of each process."""
    result = [[] for _ in model.processes]
    for channel in channels(model, symmetrical):
        result[channel.process].append(channel)
    return result


def test_elastic_processes_have_one_channel_and_the_others_two():
    """34 processes of which 6 change species: 40 channels, in the order of the processes."""
    assert len(channels(MODEL)) == 40
    assert [c.process for c in channels(MODEL)] == sorted(c.process for c in channels(MODEL))
    for process, group in zip(MODEL.processes, by_process(MODEL), strict=True):
        assert len(group) == (1 if process.elastic else 2)
        assert sum(c.share for c in group) == 1.0
        assert not any(c.only_p for c in group)


def test_inelastic_processes_are_drawn_from_both_sides():
    """(k3, p) are the products in one channel and the reactants in the other; t is the same."""
    for process, group in zip(MODEL.processes, by_process(MODEL), strict=True):
        a, b, c, d = (MODEL.index(leg) for leg in process.legs)
        sides = {(ch.nodes, ch.pair, ch.forward) for ch in group}
        expected = {((c, d), (a, b), True)}
        if not process.elastic:
            expected.add(((a, b), (c, d), False))
        assert sides == expected


def paper_factors(legs):
    """Factors of C in N_q C_q and N_g C_g (Eqs. C_quark, C_gluon), by species of the leg.

    gg <-> q qbar counts 1/2 for a quark and 1 for a gluon; two equal quarks or four gluons 1/2;
    all else 1.
    """
    a, b, c, d = legs
    if legs == ("g", "g", "g", "g"):
        return {"g": 0.5}
    if (c, d) == ("g", "g"):
        return {a: 0.5, b: 0.5, "g": 1.0}
    if a == b == c == d:
        return {a: 0.5}
    return dict.fromkeys(legs, 1.0)


def test_multiplicities_are_the_factors_of_the_paper():
    """w times the number of equal legs is the paper's factor, for every leg of all 34."""
    for process in MODEL.processes:
        legs = Counter(process.legs)
        found = {name: process.multiplicity * count for name, count in legs.items()}
        assert found == paper_factors(process.legs), process


def test_symmetrical_events_deposit_with_the_factors_of_the_paper():
    """Factor of a channel times the legs a species has in it, summed over the channels."""
    for process, group in zip(MODEL.processes, by_process(MODEL), strict=True):
        found = Counter()
        for channel in group:
            for index in (*channel.nodes, *channel.pair):
                found[MODEL.names[index]] += channel.factor
        assert dict(found) == paper_factors(process.legs), process


def test_unsymmetrical_events_deposit_on_p_with_the_factors_of_the_paper():
    """Only p counts: the factors of the channels in which a species plays p are the paper's."""
    for process, group in zip(MODEL.processes, by_process(MODEL, False), strict=True):
        found = Counter()
        for channel in group:
            assert channel.only_p
            found[MODEL.names[channel.nodes[1]]] += channel.factor
        assert dict(found) == paper_factors(process.legs), process


def test_unsymmetrical_channels_keep_the_meaning_of_t():
    """k1 - k3 is a - c or b - d, from whichever side: t never turns into u."""
    model = Model([Species(n) for n in "abcd"], [Process("a b -> c d", lambda s, t: s)])
    group = channels(model, symmetrical=False)
    assert len(group) == 4 and {c.nodes[1] for c in group} == {0, 1, 2, 3}
    for channel in group:
        assert {channel.pair[0], channel.nodes[0]} in ({0, 2}, {1, 3})
        assert {channel.pair[1], channel.nodes[1]} in ({0, 2}, {1, 3})
        assert channel.forward == (set(channel.nodes) == {2, 3})
        assert channel.factor == 1.0


def test_swapped_products_keep_their_places():
    """a b -> b a: k3 is the b, p the a, and t = (k_a - k_b)^2 as written."""
    model = Model([Species("a"), Species("b")], [Process("a b -> b a", lambda s, t: s)])
    (channel,) = channels(model)
    assert channel.pair == (0, 1) and channel.nodes == (1, 0) and channel.factor == 0.5
    assert math.isclose(sum(c.factor for c in channels(model, False) if c.nodes[1] == 0), 1.0)
