"""Directions of momenta on a lattice, against quadratures in polar coordinates."""

import numpy as np
import pytest
from scipy.special import k1

from relboltz.analysis.rings import Rings, lagrange

BOX = 7.5
"""Half a box, in temperatures."""


def nodes(count):
    return (np.arange(count) - 0.5 * (count - 1)) * 2 * BOX / count


def at_rest(x, y):
    """Massless thermal particles of all p_z: p_T K_1(p_T/T)."""
    pt = np.maximum(np.hypot(x, y), 1e-12)
    return pt * k1(pt)


def blown(x, y, turned=0.0, second=0.05, fourth=0.0):
    """Return the spectrum of sources that move outwards with direction-dependent rapidities."""
    pt, total = np.maximum(np.hypot(x, y), 1e-12), 0.0
    for phi in np.arange(96) * 2 * np.pi / 96:
        away = phi - turned
        rapidity = 0.6 + 2 * second * np.cos(2 * away) + 2 * fourth * np.cos(4 * away)
        ahead = (x * np.cos(phi) + y * np.sin(phi)) * np.sinh(rapidity)
        total = total + pt * k1(np.cosh(rapidity) * pt / 0.7) * np.exp(ahead / 0.7)
    return total


def exact(spectrum, n, end, power=0):
    """Int p_T^power exp(i n phi) dN / Int p_T^power dN inside a circle, in polar coordinates."""
    radius, phi = (np.arange(1500) + 0.5) / 1500 * end, np.arange(48) * 2 * np.pi / 48
    values = spectrum(radius[:, None] * np.cos(phi), radius[:, None] * np.sin(phi))
    values = values * radius[:, None] ** (1 + power)
    return (values * np.exp(1j * n * phi)).sum() / values.sum()


def lattice(count, other=None):
    px, py = nodes(count), nodes(other or count)
    return px[:, None], py, Rings(px, py, (0.5 * (px[1] - px[0]), 0.5 * (py[1] - py[0])))


def found(spectrum, n, count, other=None, power=0):
    """Return the moment read from nodes, and the radius at which the last ring ends."""
    x, y, rings = lattice(count, other)
    inside = rings.within(BOX)
    turned, numbers = rings.turned(spectrum(x, y), n, power)
    return turned[inside].sum() / numbers[inside].sum(), rings.edges[1:][inside][-1]


@pytest.mark.parametrize(
    ("count", "most"), [(14, 5e-5), (20, 3e-5), (28, 2e-5), (13, 1.2e-4), (19, 6e-5), (27, 3e-5)]
)
def test_a_round_spectrum_has_no_directions(count, most):
    """v_4 at h = 1.07, 0.75 and 0.54 T; odd numbers of nodes have the kink of p_T K_1 on a node.

    Sums over nodes have 0.06 to 0.23; the bounds are about twice what is left.
    """
    assert abs(found(at_rest, 4, count)[0]) < most
    assert abs(found(at_rest, 2, count)[0]) < 1e-12


@pytest.mark.parametrize("fourth", [0.0, 0.02])
@pytest.mark.parametrize(("count", "most"), [(20, 0.008), (28, 0.002), (40, 0.0005)])
def test_flow_is_that_of_the_spectrum(fourth, count, most):
    """v_2 = 0.043 and v_4 = 0.0012 or 0.0063 to 3e-5, from nodes 0.75, 0.54 and 0.375 T apart.

    This v_2 grows as p_T^2. Inside the innermost nodes it is taken to grow as p_T, which makes
    0.7 % at 0.75 T and falls with h^4: a part h^2 of all particles, whose v_2 is wrong by ~ h^2.
    """

    def spectrum(x, y):
        return blown(x, y, fourth=fourth)

    for n, bound in ((2, most * 0.043), (4, 3e-5)):
        v, end = found(spectrum, n, count)
        assert v == pytest.approx(exact(spectrum, n, end), abs=bound)


@pytest.mark.parametrize("angle", [0.0, 0.3, np.pi / 4])
@pytest.mark.parametrize(("n", "most"), [(2, 0.005), (3, 0.003)])
def test_flow_that_grows_as_p_t_is_read_at_small_p_t_too(n, angle, most):
    """A thin sheet of massless particles, v_n ~ p_T at small p_T, 28 nodes 0.54 T apart.

    The innermost nodes lie where cos(2 phi) = 0 and say nothing of v_2.
    """

    def sheet(x, y):
        pt = np.hypot(x, y)
        wave = np.cos(n * (np.arctan2(y, x) - angle))
        return np.exp(-pt) * (1 + 0.1 * np.tanh(pt) * wave)

    v, end = found(sheet, n, 28)
    assert v == pytest.approx(exact(sheet, n, end), rel=most)


@pytest.mark.parametrize(("count", "most"), [(20, 5e-3), (28, 2e-3)])
@pytest.mark.parametrize("angle", [0.3, np.pi / 4, 1.2])
def test_a_spectrum_that_is_turned_has_the_same_flow(angle, count, most):
    """v_2 to 0.32 and 0.09 %, the farthest at 45 degrees, and its direction to 1e-3."""
    straight, _ = found(blown, 2, count)
    turned, _ = found(lambda x, y: blown(x, y, angle), 2, count)
    assert abs(turned) == pytest.approx(abs(straight), rel=most)
    assert np.angle(turned) / 2 == pytest.approx(angle, abs=1e-3)


def test_particles_may_count_with_their_momentum():
    """v_2 weighted with p_T, 0.068 against 0.043 without."""
    v, end = found(blown, 2, 20, power=1)
    assert v == pytest.approx(exact(blown, 2, end, power=1), rel=2e-3)


def boosted(x, y, velocity=0.3):
    """Thermal matter that moves along x."""
    gamma, pt = (1 - velocity**2) ** -0.5, np.maximum(np.hypot(x, y), 1e-12)
    return pt * k1(gamma * pt) * np.exp(gamma * velocity * x)


@pytest.mark.parametrize(
    ("n", "count", "most"), [(1, 20, 2e-3), (2, 20, 2e-3), (3, 20, 0.022), (3, 28, 0.01)]
)
def test_matter_that_moves_has_odd_harmonics_too(n, count, most):
    """v_1 = 0.339, v_2 = 0.082 to 0.1 %; v_3 = 0.0166, which grows as p_T^3, to 2 and 0.8 %."""
    v, end = found(boosted, n, count)
    assert v == pytest.approx(exact(boosted, n, end), rel=most)


def test_unequal_spacings_take_nothing_for_round_that_is_not():
    """v_2 of nodes that are not alike along both axes; twice what is found to be left."""
    v, end = found(blown, 2, 20, 14)
    assert v == pytest.approx(exact(blown, 2, end), abs=4e-4)
    assert found(blown, 4, 20, 14)[0] == pytest.approx(exact(blown, 4, end), abs=4e-4)
    assert abs(found(at_rest, 2, 20, 14)[0]) < 1e-4
    v, end = found(boosted, 2, 24, 12)
    assert v == pytest.approx(exact(boosted, 2, end), abs=1e-3)


def test_rings_hold_all_particles_whatever_their_spectrum():
    """Fronts, empty nodes, noise, one column, few nodes: numbers are exact, and |v| <= 1."""
    rng, p = np.random.default_rng(3), nodes(20)
    pt = np.hypot(p[:, None], p)
    one = np.zeros((20, 20))
    one[3, 4] = 2.0
    front = np.where(pt < 4, 0.5, 1e-9)
    columns = np.array([pt < 4, front, rng.poisson(9 * np.exp(-pt)), one, 0 * one], float)
    rings = Rings(p, p, (0.375, 0.375))
    turned, numbers = rings.turned(columns, 4)
    assert numbers.sum(axis=-1) == pytest.approx(columns.sum(axis=(1, 2)), rel=1e-12)
    assert rings.numbers(columns) == pytest.approx(numbers, rel=1e-12)
    assert (abs(turned) <= numbers * (1 + 1e-12)).all()
    middle = rings.edges[1:] < 3  # a front far away does not matter: f is flat there
    assert abs(turned[0, middle]) == pytest.approx(0.0, abs=1e-9 * numbers[0].sum())
    for few in (1, 2, 3):
        small = Rings(nodes(few), nodes(8), (BOX / few, BOX / 8))
        assert small.numbers(np.ones((few, 8))).sum() == pytest.approx(8 * few, rel=1e-12)


@pytest.mark.parametrize("floor", [1e-9, 1e-4, 0.0])
def test_a_front_overshoots_little_and_has_few_directions(floor):
    """A round step on 20 nodes: rings inside are flat to 5 %, v_4 is below 0.04 (nodes: 0.075).

    ln N may bend by exp(1/2) at most; with bends of 1 all rings would be 16 % off.
    """
    x, y, rings = lattice(20)
    columns = np.where(np.hypot(x, y) < 4, 1.0, floor)
    turned, numbers = rings.turned(columns, 4)
    area = np.pi * np.diff(rings.edges**2) / rings.width**2
    middle = rings.edges[1:] < 2.5
    assert numbers[middle] == pytest.approx(area[middle], rel=0.05)
    assert abs(turned.sum()) < 0.04 * numbers.sum()


def test_next_to_empty_nodes_the_spectrum_goes_on():
    """exp(-p_T) that ends at 5: rings before the last one know nothing of it, to 1.2 %."""
    x, y, rings = lattice(20)
    columns = np.exp(-np.hypot(x, y))
    whole, cut = (rings.numbers(v) for v in (columns, np.where(np.hypot(x, y) < 5, columns, 0.0)))
    before = rings.edges[1:] < 4.6
    ratio = cut[before] / whole[before]
    assert ratio == pytest.approx(ratio[0], rel=0.015)


def test_round_spectra_are_followed_and_go_on():
    """To rounding if constant, to 1e-3 if thermal or hollow; ln N is straight where it is unknown.

    Harmonics that are fitted too are small at small p_T: else a hollow one is 2e-3 off there.
    """
    x, y, rings = lattice(20)
    pt = np.hypot(x, y)
    assert rings.rounded(np.full((20, 20), 3.0)) == pytest.approx(1.0, abs=1e-9)
    for spectrum in (at_rest(x, y), (pt**2 + 0.1) * np.exp(-pt)):
        off = np.log(rings.rounded(spectrum) * spectrum.max() / spectrum)
        assert abs(off[pt < 6]).max() < 1e-3
    exponential = rings.rounded(np.where(pt < 5, np.exp(-pt), 0.0))
    beyond = (pt > 5) & (pt < 7)
    slope = np.polyfit(pt[beyond], np.log(exponential[beyond]), 1)[0]
    assert slope == pytest.approx(-1.0, abs=0.15)


@pytest.mark.filterwarnings("error")
def test_what_is_no_number_stays_none():
    x, y, rings = lattice(8)
    columns = np.array([at_rest(x, y), at_rest(x, y)])
    columns[0, 2, 3] = np.nan
    turned, numbers = rings.turned(columns, 2)
    assert np.isnan(turned[0]).all() and np.isnan(numbers[0]).all()
    assert np.isfinite(turned[1]).all() and np.isfinite(numbers[1]).all()


def test_polynomials_through_nodes_are_exact():
    """Up to the third degree through four nodes, also beyond the last one."""
    u = np.array([-0.5, 0.3, 1.5, 3.4])
    for power in range(4):
        total = sum(w * a**power for a, w in enumerate(lagrange(u, 4)))
        assert total == pytest.approx(u**power, abs=1e-12)
