"""PhaseSpace: mirror-symmetric nodes, the cell average of 1/|p|, packed indices, bad input."""

import numpy as np
import pytest

from relboltz.grid.phase_space import PhaseSpace
from relboltz.grid.units import HBARC
from relboltz.util.errors import InputError

GRIDS = [PhaseSpace(5, 2.0), PhaseSpace(6, 2.0), PhaseSpace((7, 4, 3), (2.0, 1.0, 3.3))]


@pytest.mark.parametrize("grid", GRIDS, ids=str)
def test_node_n_minus_1_minus_i_is_exactly_minus_node_i(grid):
    """Antisymmetric to the last bit, along each axis and for whole momenta."""
    for i in range(3):
        axis = grid.axis(i)
        assert np.array_equal(axis, -axis[::-1])
    assert np.array_equal(grid.momenta, -grid.momenta[:, ::-1])
    assert np.array_equal(grid.energies(0.3), grid.energies(0.3)[::-1])


@pytest.mark.parametrize("n", range(1, 12))
def test_only_odd_numbers_of_cells_have_a_node_at_zero(n):
    """A node at p = 0 exactly when n is odd."""
    assert (0.0 in PhaseSpace(n, 1.7).axis(0)) == (n % 2 == 1)


@pytest.mark.parametrize("grid", GRIDS, ids=str)
def test_nodes_are_the_centres_of_cells_that_fill_the_box(grid):
    """p_i = -L + (i + 1/2) h, h = 2 L / n."""
    for i in range(3):
        n, width, h = grid.momentum_cells[i], grid.momentum_max[i], grid.spacing[i]
        assert n * h == pytest.approx(2 * width, rel=1e-15)
        expected = -width + (np.arange(n) + 0.5) * h
        np.testing.assert_allclose(grid.axis(i), expected, rtol=0, atol=1e-15)


@pytest.mark.parametrize("grid", GRIDS, ids=str)
def test_sums_of_two_nodes_minus_a_node_are_nodes(grid):
    """In index space i_p + i_3 - l: the law the conserving projection rests on."""
    for i in range(3):
        axis = grid.axis(i)
        n = len(axis)
        for a, b, c in np.ndindex(n, n, n):
            if 0 <= a + b - c < n:
                assert axis[a] + axis[b] - axis[c] == pytest.approx(axis[a + b - c], abs=1e-14)


@pytest.mark.parametrize("grid", GRIDS, ids=str)
def test_packed_indices_name_every_node(grid):
    """ix | iy << 10 | iz << 20 leads back to the node's momentum, last axis fastest."""
    assert grid.packed.shape == (grid.size,) and len(set(grid.packed.tolist())) == grid.size
    for node, packed in enumerate(grid.packed.tolist()):
        ix, iy, iz = packed & 1023, (packed >> 10) & 1023, packed >> 20
        _, ny, nz = grid.momentum_cells
        assert node == (ix * ny + iy) * nz + iz
        expected = (grid.axis(0)[ix], grid.axis(1)[iy], grid.axis(2)[iz])
        assert tuple(grid.momenta[:, node]) == expected


def test_packed_indices_hold_the_largest_grid():
    """1024 nodes along one axis keep their ten bits."""
    for i, shift in enumerate((0, 10, 20)):
        cells = [1, 1, 1]
        cells[i] = 1024
        assert np.array_equal(PhaseSpace(cells, 1.0).packed, np.arange(1024) << shift)


def test_energy_is_the_root_of_momentum_and_mass_squared():
    """E^2 - p^2 = m^2, and 1/E is its inverse."""
    grid = GRIDS[2]
    energy = grid.energies(0.49)
    np.testing.assert_allclose(energy**2 - (grid.momenta**2).sum(axis=0), 0.49, rtol=1e-12)
    np.testing.assert_allclose(grid.inverse_energies(0.49) * energy, 1, rtol=1e-15)


@pytest.mark.parametrize("widths", [(1.0, 1.0, 1.0), (2.0, 1.0, 3.3), (0.3, 5.0, 1.0)])
def test_a_massless_node_at_rest_takes_the_cell_average_of_one_over_p(widths):
    """Int dOmega R(Omega)^2 / 2 with R the distance to the cell's surface, by quadrature."""
    grid = PhaseSpace((3, 5, 7), widths)
    a, b, c = (0.5 * h for h in grid.spacing)
    n = 1200
    cosine = ((np.arange(n) + 0.5) / n)[:, None]
    phi = (0.5 * np.pi * (np.arange(n) + 0.5) / n)[None, :]
    sine = np.sqrt(1 - cosine**2)
    surface = np.minimum(np.minimum(a / (sine * np.cos(phi)), b / (sine * np.sin(phi))), c / cosine)
    average = 8 * 0.5 * np.pi * np.mean(surface**2 / 2) / (8 * a * b * c)
    assert grid.rest_inverse_energy == pytest.approx(average, rel=1e-4)
    inverse = grid.inverse_energies(0.0)
    rest = grid.size // 2
    assert inverse[rest] == grid.rest_inverse_energy
    others = np.arange(grid.size) != rest
    np.testing.assert_allclose(inverse[others] * grid.energies(0.0)[others], 1, rtol=1e-15)


def test_the_cell_average_of_a_cube_has_its_known_value():
    """<1/r> of a unit cube about its centre is 2.38007..."""
    exact = 3 * np.log((np.sqrt(3) + 1) / (np.sqrt(3) - 1)) - np.pi / 2
    assert PhaseSpace(1, 0.5).rest_inverse_energy == pytest.approx(exact, rel=1e-13)


def test_measure_is_the_phase_space_of_one_cell():
    """d^3p / (2 pi hbar c)^3 in fm^-3."""
    grid = GRIDS[2]
    assert grid.size * grid.cell_volume == pytest.approx(8 * 2.0 * 1.0 * 3.3, rel=1e-14)
    assert grid.measure == pytest.approx(grid.cell_volume / (2 * np.pi * HBARC) ** 3, rel=1e-14)


def test_one_number_stands_for_three():
    """PhaseSpace(5, 2) is the same as with all three axes spelt out; a cube view follows."""
    assert PhaseSpace(5, 2.0) == PhaseSpace((5, 5, 5), [2, 2.0, 2])
    grid = GRIDS[2]
    cube = grid.cube(np.stack([grid.momenta[2], grid.momenta[0]]))
    assert cube.shape == (2, 7, 4, 3)
    assert np.array_equal(cube[0, 3, 1], grid.axis(2))
    assert np.array_equal(cube[1, :, 1, 2], grid.axis(0))


@pytest.mark.parametrize(
    ("cells", "width", "message"),
    [
        (0, 2.0, "grid.momentum_cells.*between 1 and 1024"),
        (1025, 2.0, "grid.momentum_cells.*between 1 and 1024"),
        ((5, 5, -1), 2.0, "grid.momentum_cells.*between 1 and 1024"),
        (5.5, 2.0, "grid.momentum_cells = 5.5.*whole numbers"),
        ((5, 5), 2.0, "grid.momentum_cells.*one number or three"),
        (5, (1.0, 2.0), "grid.momentum_max.*one number or three"),
        (5, 0.0, "grid.momentum_max.*positive"),
        (5, (1.0, -2.0, 1.0), "grid.momentum_max.*positive"),
        (5, float("nan"), "grid.momentum_max.*positive"),
        (5, float("inf"), "grid.momentum_max.*positive"),
    ],
)
def test_bad_input_is_named(cells, width, message):
    """The message names the key and the remedy."""
    with pytest.raises(InputError, match=message):
        PhaseSpace(cells, width)


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"expansion": "bjorken"},
        {"expansion": "hubble", "hubble_rate": 0.1},
        {"expansion": "hubble", "hubble_power": 0.5, "space_cells": [2, 1, 1]},
    ],
)
def test_a_grid_is_what_its_words_make(given):
    grid = PhaseSpace([5, 6, 7], 2.0, **given)
    assert eval(repr(grid)) == grid
    law = given.get("expansion", "expansion")
    assert (f"expansion {law}" in grid._repr_html_()) == bool(given)
    assert ("expansion" in repr(grid)) == bool(given)


@pytest.mark.parametrize("cells", [40, 41, (40, 41, 60)], ids=["even", "odd", "mixed"])
@pytest.mark.parametrize("part", [0.0, 0.05, 0.3, 1.0, 1.4])
def test_sums_of_1_over_e_are_right_with_what_inner_nodes_gain(cells, part):
    """Sum g/E over nodes against Int d^3p g/E of a Gaussian, for light masses."""
    grid = PhaseSpace(cells, (4.0, 4.0, 4.5))
    h, width = grid.cell_volume ** (1 / 3), 0.9
    m2 = (part * h) ** 2
    p2 = grid.momentum_squared
    g = np.exp(-p2 / (2 * width**2))
    energy = np.sqrt(p2 + m2)
    inverse = np.divide(1.0, energy, out=np.zeros_like(energy), where=energy > 0)
    more = np.where(p2 <= grid.inner_momentum_squared, grid.missing_inverse_energy(m2), 0.0)
    x, w = np.polynomial.legendre.leggauss(2000)
    p = 4 * (1 + x)
    exact = 16 * np.pi * (w * p**2 * np.exp(-(p**2) / (2 * width**2)) / np.hypot(p, part * h)).sum()
    assert grid.cell_volume * float(g @ (inverse + more)) == pytest.approx(exact, rel=2e-4)
    assert (p2 <= grid.inner_momentum_squared).sum() == 2 ** sum(
        n % 2 == 0 for n in grid.momentum_cells
    )


def test_inner_nodes_of_massless_particles():
    """Constants of the cubic lattice: 0.10024/h at eight nodes, or 2.8372/h at the one at rest."""
    for cells, expected in ((20, 0.10024), (21, 2.8372)):
        grid = PhaseSpace(cells, 2.0)
        found = grid.missing_inverse_energy(0.0) * grid.spacing[0]
        assert found == pytest.approx(expected, rel=1e-4)
    assert PhaseSpace(20, 2.0).missing_inverse_energy(0.31**2) == 0.0
