"""Shapes of initial states: averages over cells, values at nodes, and numbers that are refused."""

import math

import numpy as np
import pytest

import relboltz as rb
from relboltz import initial
from relboltz.grid.phase_space import PhaseSpace
from relboltz.model.model import Species
from relboltz.util.errors import InputError

GLUON = Species("g", 16, +1)
QUARK = Species("u", 6, -1)
BOX = PhaseSpace(30, 2.0)


def images(cube):
    """All reflections and axis permutations of a cube."""
    yield from (cube[::-1], cube[:, ::-1], cube[:, :, ::-1])
    yield from (cube.transpose(1, 0, 2), cube.transpose(2, 0, 1), cube.transpose(0, 2, 1))


@pytest.mark.parametrize("cells", [30, 31])
def test_step_has_the_volume_of_the_sphere(cells):
    grid = PhaseSpace(cells, 2.0)
    f = initial.step(height=0.5, edge=1.5).values(grid, GLUON, 0.0)
    exact = 0.5 * 4 * math.pi / 3 * 1.5**3
    assert f.sum() * grid.cell_volume == pytest.approx(exact, rel=2e-6)


def test_step_on_an_uneven_grid_has_the_volume_of_the_sphere():
    grid = PhaseSpace((11, 20, 7), (2.0, 1.6, 3.0))
    f = initial.step(height=1.0, edge=1.5).values(grid, GLUON, 0.0)
    assert f.sum() * grid.cell_volume == pytest.approx(4 * math.pi / 3 * 1.5**3, rel=1e-4)
    cube = grid.cube(f)
    assert (cube == cube[::-1, ::-1, ::-1]).all()


@pytest.mark.parametrize("cells", [30, 31])
@pytest.mark.parametrize("sampling", ["cell", "node"])
def test_step_is_symmetric_to_the_last_bit(cells, sampling):
    grid = PhaseSpace(cells, 2.0)
    shape = initial.step(height=0.3, edge=1.37, sampling=sampling)
    cube = grid.cube(shape.values(grid, GLUON, 0.0))
    assert all((cube == image).all() for image in images(cube))


def test_step_is_exact_away_from_its_edge():
    f = initial.step(height=0.3, edge=1.5).values(BOX, GLUON, 0.0)
    p = np.sqrt(BOX.momentum_squared)
    diagonal = math.sqrt(3) * BOX.spacing[0] / 2
    assert (f[p < 1.5 - diagonal] == 0.3).all()
    assert (f[p > 1.5 + diagonal] == 0.0).all()
    assert ((f >= 0) & (f <= 0.3)).all()


def test_step_smaller_than_a_cell_keeps_its_volume():
    f = initial.step(height=1.0, edge=0.05).values(PhaseSpace(5, 1.0), GLUON, 0.0)
    assert np.count_nonzero(f) == 1
    assert f.sum() * 0.4**3 == pytest.approx(4 * math.pi / 3 * 0.05**3, rel=0.01)


@pytest.mark.parametrize("widths", [(0.3, 0.4, 0.5), (0.02, 0.3, 0.3)])
def test_gaussian_average_keeps_the_integral(widths):
    grid = PhaseSpace((31, 40, 31), 6.0)
    f = initial.gaussian(height=0.7, widths=widths).values(grid, GLUON, 0.0)
    exact = 0.7 * (2 * math.pi) ** 1.5 * math.prod(widths)
    assert f.sum() * grid.cell_volume == pytest.approx(exact, rel=1e-12)


def test_gaussian_tail_is_accurate_relative_to_itself():
    grid = PhaseSpace(81, 4.0)
    f = grid.cube(initial.gaussian(height=1.0, widths=0.4).values(grid, GLUON, 0.0))
    p, h = grid.axis(0)[-1], grid.spacing[0]
    z = p * h / 0.4**2 / 2
    leading = math.exp(-0.5 * (p / 0.4) ** 2) * math.sinh(z) / z
    assert f[-1, 40, 40] / f[40, 40, 40] == pytest.approx(leading, rel=0.01)


def test_gaussian_at_the_node_is_the_function():
    f = initial.gaussian(height=0.7, widths=0.4, sampling="node").values(BOX, GLUON, 0.0)
    np.testing.assert_allclose(f, 0.7 * np.exp(-BOX.momentum_squared / 0.32), rtol=1e-13)


def test_classical_massless_gas_has_its_density():
    grid = PhaseSpace(41, 8.0)
    shape = initial.thermal(temperature=0.4)
    density = shape.values(grid, Species("a"), 0.0).sum() * grid.cell_volume
    assert density == pytest.approx(8 * math.pi * 0.4**3, rel=1e-4)


@pytest.mark.parametrize(("statistics", "mu"), [(1, 0.3), (-1, 0.3), (0, -0.1)])
def test_thermal_node_solves_its_equation(statistics, mu):
    v = np.array([0.3, 0.0, -0.4])
    shape = initial.thermal(0.5, mu, velocity=v, sampling="node")
    f = shape.values(BOX, Species("a", 1, statistics), 0.5)
    gamma = 1 / np.sqrt(0.75)
    x = (gamma * (BOX.energies(0.5) - v @ BOX.momenta) - mu) / 0.5
    np.testing.assert_allclose(np.log(1 / f + statistics), x, atol=1e-12)


def test_massless_bosons_at_zero_potential_are_finite_on_average_only():
    odd = PhaseSpace(11, 2.0)
    assert np.isfinite(initial.thermal(0.4).values(odd, GLUON, 0.0)).all()
    with pytest.raises(InputError, match=r"infinite at p = \(0, 0, 0\) GeV.*even number of cells"):
        initial.thermal(0.4, sampling="node").values(odd, GLUON, 0.0)


def test_temperature_is_that_of_the_fluid():
    """A massless classical gas with flow: e in its rest frame, T^{mu nu} u_mu u_nu, is 3 n0 T."""
    grid, v = PhaseSpace(61, 12.0), 0.6
    gamma = 1 / math.sqrt(1 - v * v)
    f = initial.thermal(0.6, velocity=(v, 0, 0)).values(grid, Species("a"), 0.0)
    inverse, px = grid.inverse_energies(0.0), grid.momenta[0]
    rest_energy = np.sum(f * inverse * (gamma * (grid.energies(0.0) - v * px)) ** 2)
    assert rest_energy / np.sum(f) * gamma == pytest.approx(3 * 0.6, rel=1e-2)


def test_bose_potential_must_stay_below_the_mass_whatever_the_flow():
    shape = initial.thermal(0.4, 0.5, velocity=(0.8, 0, 0))
    assert np.isfinite(shape.values(BOX, GLUON, 0.51**2)).all()
    with pytest.raises(InputError, match=r"chemical_potential = 0.5: must stay .* 0.48 GeV"):
        shape.values(BOX, GLUON, 0.48**2)
    assert (shape.values(BOX, QUARK, 0.48**2) < 1).all()


def test_random_depends_on_seed_and_species_alone():
    shape = initial.random(low=0.1, high=0.4, seed=3)
    f = shape.values(BOX, GLUON, 0.0)
    assert (f == shape.values(BOX, GLUON, 1.0)).all()
    assert ((f >= 0.1) & (f < 0.4)).all()
    assert f.mean() == pytest.approx(0.25, abs=3e-3)
    assert (f != shape.values(BOX, QUARK, 0.0)).all()
    assert (f != initial.random(low=0.1, high=0.4, seed=4).values(BOX, GLUON, 0.0)).all()


def test_the_gradient_is_the_papers():
    """Eq. (ini_f_test_spread) with 0.1 and 0.2: from 0.1 to 0.3, 0.2 in the middle."""
    grid = rb.PhaseSpace([40, 3, 3], 2.0, [60, 1, 1], 3.0)
    f = initial.evaluate({"g": initial.gradient(0.1, 0.2)}, grid, rb.gluons(0.3))[:, 0]
    x, px = grid.positions[0][:, None], grid.momenta[0][None, :]
    assert f == pytest.approx(0.1 / 6 * (x + 3) - 0.1 / 4 * (px + 2) + 0.2, rel=1e-13)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: initial.step(-0.5, 1.5), "height = -0.5: "),
        (lambda: initial.step(True, 1.5), "height = True: "),
        (lambda: initial.step(0.5, 0), "edge = 0: "),
        (lambda: initial.step(0.5, 1, sampling="point"), "sampling = 'point': use 'cell'"),
        (lambda: initial.thermal(0), "temperature = 0: "),
        (lambda: initial.thermal(1, math.nan), "chemical_potential = nan: "),
        (lambda: initial.thermal(1, 0, (0.8, 0.8, 0)), r"velocity = \[0.8, 0.8, 0.0\]: .* below 1"),
        (lambda: initial.thermal(1, 0, 0.5), "velocity = 0.5: use three"),
        (lambda: initial.gaussian(1, (1, 2)), r"widths = \(1, 2\): use one width or three"),
        (lambda: initial.random(0.5, 0.5), "high = 0.5: use a number above low = 0.5"),
        (lambda: initial.random(0, 1, seed=-1), "seed = -1: "),
        (lambda: initial.from_function(3), "function = 3: "),
        (lambda: initial.from_file(3), "path = 3: "),
    ],
)
def test_shapes_refuse_bad_numbers(make, message):
    with pytest.raises(InputError, match=message):
        make()
