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
    """The same from places that move outwards with rapidities that depend on the direction."""
    pt, total = np.maximum(np.hypot(x, y), 1e-12), 0.0
    for phi in np.arange(96) * 2 * np.pi / 96:
        away = phi - turned
        rapidity = 0.6 + 2 * second * np.cos(2 * away) + 2 * fourth * np.cos(4 * away)
        ahead = (x * np.cos(phi) + y * np.sin(phi)) * np.sinh(rapidity)
        total = total + pt * k1(np.cosh(rapidity) * pt / 0.7) * np.exp(ahead / 0.7)
    return total


def exact(spectrum, n, end):
    """Int exp(i n phi) dN / N inside a circle, in polar coordinates."""
    radius, phi = (np.arange(1500) + 0.5) / 1500 * end, np.arange(48) * 2 * np.pi / 48
    values = spectrum(radius[:, None] * np.cos(phi), radius[:, None] * np.sin(phi))
    values = values * radius[:, None]
    return (values * np.exp(1j * n * phi)).sum() / values.sum()


def found(spectrum, n, count, other=None):
    """The same from nodes, and the circle that ends with the last ring."""
    px, py = nodes(count), nodes(other or count)
    rings = Rings(px, py, (0.5 * (px[1] - px[0]), 0.5 * (py[1] - py[0])))
    inside = rings.edges[1:] <= BOX * (1 + 1e-9)
    turned, numbers = rings.turned(spectrum(px[:, None], py), n)
    return turned[inside].sum() / numbers[inside].sum(), rings.edges[1:][inside][-1]


@pytest.mark.parametrize(
    ("count", "most"), [(14, 5e-5), (20, 3e-5), (28, 2e-5), (13, 3e-4), (19, 1.2e-4), (27, 6e-5)]
)
def test_a_round_spectrum_has_no_directions(count, most):
    """v_4 at h = 1.07, 0.75 and 0.54 T; odd numbers of nodes have the kink of p_T K_1 on a node.

    Sums over nodes have 0.06 to 0.23; the bounds are about twice what is left.
    """
    assert abs(found(at_rest, 4, count)[0]) < most
    assert abs(found(at_rest, 2, count)[0]) < 1e-12


@pytest.mark.parametrize("fourth", [0.0, 0.02])
def test_flow_is_that_of_the_spectrum(fourth):
    """v_2 = 0.043 to 0.2 % and v_4 = 0.0012 or 0.0063 to 3e-5, from 20 nodes, 0.75 T apart."""

    def spectrum(x, y):
        return blown(x, y, fourth=fourth)

    for n, most in ((2, 0.002 * 0.043), (4, 3e-5)):
        v, end = found(spectrum, n, 20)
        assert v == pytest.approx(exact(spectrum, n, end), abs=most)


@pytest.mark.parametrize(("count", "most"), [(20, 5e-3), (28, 2e-3)])
@pytest.mark.parametrize("angle", [0.3, np.pi / 4, 1.2])
def test_a_spectrum_that_is_turned_has_the_same_flow(angle, count, most):
    """v_2 to 0.32 and 0.09 %, the farthest at 45 degrees, and its direction to 1e-3."""
    straight, _ = found(blown, 2, count)
    turned, _ = found(lambda x, y: blown(x, y, angle), 2, count)
    assert abs(turned) == pytest.approx(abs(straight), rel=most)
    assert np.angle(turned) / 2 == pytest.approx(angle, abs=1e-3)


def test_unequal_spacings_take_nothing_for_round_that_is_not():
    """20 and 14 nodes: v_2 as well as v_4, which such nodes mix with it; a round state has none."""
    v, end = found(blown, 2, 20, 14)
    assert v == pytest.approx(exact(blown, 2, end), abs=2e-4)
    assert found(blown, 4, 20, 14)[0] == pytest.approx(exact(blown, 4, end), abs=4e-4)
    assert abs(found(at_rest, 2, 20, 14)[0]) < 1e-4


def test_rings_hold_all_particles_whatever_their_spectrum():
    """Fronts, empty nodes, noise, one column, few nodes: numbers are exact, and |v| < 1 or so."""
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
    assert (abs(turned) <= 2 * numbers).all()
    middle = rings.edges[1:] < 3  # a front far away does not matter: f is flat there
    assert abs(turned[0, middle]) == pytest.approx(0.0, abs=1e-9 * numbers[0].sum())
    for few in (1, 2, 3):
        small = Rings(nodes(few), nodes(8), (BOX / few, BOX / 8))
        assert small.numbers(np.ones((few, 8))).sum() == pytest.approx(8 * few, rel=1e-12)


def test_polynomials_through_nodes_are_exact():
    """Up to the third degree through four nodes, also beyond the last one."""
    u = np.array([-0.5, 0.3, 1.5, 3.4])
    for power in range(4):
        total = sum(w * a**power for a, w in enumerate(lagrange(u, 4)))
        assert total == pytest.approx(u**power, abs=1e-12)
