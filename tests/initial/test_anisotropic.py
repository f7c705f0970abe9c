"""Starts of expanding matter: squeezed thermal states and the glasma, by quadrature."""

import numpy as np
import pytest
from scipy import integrate

import relboltz as rb
from relboltz import initial
from relboltz.grid.phase_space import PhaseSpace
from relboltz.model.model import Species
from relboltz.run import input_file as config
from relboltz.util.errors import InputError

GLUON = Species("g", 16, +1)
CLASSICAL = Species("a", 1, 0)


def test_a_squeezed_thermal_state_is_thermal_in_stretched_momenta():
    """Node by node: f(p_x, p_y, p_z) = f_eq(p_x, p_y, sqrt(1 + xi) p_z), masses included."""
    grid, xi, m2 = PhaseSpace([8, 7, 6], [1.5, 1.4, 1.2]), 3.0, 0.16
    shape = initial.romatschke_strickland(0.4, 0.1, xi, sampling="node")
    for species in (GLUON, Species("u", 6, -1), CLASSICAL):
        px, py, pz = grid.momenta
        energy = np.sqrt(px**2 + py**2 + 4 * pz**2 + m2)
        expected = 1 / (np.exp((energy - 0.1) / 0.4) - species.statistics)
        assert shape.values(grid, species, m2) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("species", [GLUON, Species("u", 6, -1), CLASSICAL], ids=lambda s: s.name)
def test_without_a_squeeze_it_is_thermal(species):
    """Averages over cells by compiled code and by NumPy: sums of 64 terms, apart by rounding."""
    grid, m2 = PhaseSpace([8, 7, 6], [1.5, 1.4, 60.0]), 0.16
    still = initial.romatschke_strickland(0.4, 0.1, 0.0).values(grid, species, m2)
    thermal = initial.thermal(0.4, 0.1).values(grid, species, m2)
    assert still == pytest.approx(thermal, rel=1e-13)
    with pytest.raises(InputError, match="must stay below the mass"):
        initial.romatschke_strickland(0.4, 0.5).values(grid, GLUON, m2)


@pytest.mark.parametrize("xi", [-0.5, 0.0, 8.0])
def test_its_number_falls_as_the_root_of_the_squeeze(xi):
    """n = T^3/(pi^2 sqrt(1 + xi)) of a massless classical gas, P_L/P_T by quadrature.

    Averages over cells: number to 1e-4, what the box cuts off included; pressures are sums over
    nodes of p_z^2/E and off by (h_z/<p_z>)^2/12.
    """
    t = 0.3
    narrow = 1 / np.sqrt(1 + xi)
    grid = PhaseSpace([28, 28, 60], [14 * t, 14 * t, 14 * t * narrow])
    f = initial.romatschke_strickland(t, xi=xi).values(grid, CLASSICAL, 0.0)
    number = f.sum() * grid.cell_volume / (2 * np.pi) ** 3
    assert number == pytest.approx(t**3 / np.pi**2 * narrow, rel=2e-4)
    energy = grid.energies(0.0)
    px, py, pz = grid.momenta
    ratio = (f * pz**2 / energy).sum() / (0.5 * f * (px**2 + py**2) / energy).sum()
    means = [
        integrate.quad(lambda c, s=s: s(c) / np.sqrt(1 - c * c + (c * narrow) ** 2), 0, 1)[0]
        for s in (lambda c: (c * narrow) ** 2, lambda c: 0.5 * (1 - c * c))
    ]
    assert ratio == pytest.approx(means[0] / means[1], rel=0.03)


def test_thermal_masses_are_those_that_it_causes():
    """m^2 of the model at its own Y; a squeezed state has fewer particles, and lighter ones."""
    model, grid = rb.gluons(0.3), PhaseSpace(10, 2.5)
    squares = []
    for xi in (0.0, 5.0):
        shape = initial.romatschke_strickland(0.4, xi=xi)
        f = initial.evaluate({"g": shape}, grid, model)[0]
        m2 = 0.1
        for _ in range(200):
            y = 16 * (f / np.sqrt(grid.momentum_squared + m2)).sum() * grid.cell_volume
            m2 = float(model.mass_squared(np.array([y / (2 * np.pi) ** 3]))[0])
        assert f == pytest.approx(shape.values(grid, model.species[0], m2), rel=1e-9)
        squares.append(m2)
    assert squares[1] < 0.8 * squares[0]


@pytest.mark.parametrize("cells", [(16, 16, 16), (17, 17, 17)])
@pytest.mark.parametrize("xi", [1.0, 4.0])
def test_the_glasma_has_its_number_and_energy(cells, xi):
    """Int f d^3p = 4 pi A Q^3/xi Int q exp(-2q^2/3) dq = 3 pi A Q^3/xi, the pole at 0 included."""
    scale, amplitude = 1.0, 0.7
    grid = PhaseSpace(cells, [4.0, 4.0, 4.0 / xi])
    shape = initial.glasma(amplitude, scale, xi)
    f = shape.values(grid, GLUON, 0.0)
    assert f.sum() * grid.cell_volume == pytest.approx(3 * np.pi * amplitude / xi, rel=2e-4)
    cube = grid.cube(f)
    for image in (cube[::-1], cube[:, ::-1], cube[:, :, ::-1], cube.transpose(1, 0, 2)):
        assert (cube == image).all()
    px, py, pz = (0.5 * h * s for h, s in zip(grid.spacing, (1, 1, 1), strict=True))
    node = initial.glasma(amplitude, scale, xi, sampling="node")
    if cells[0] % 2:
        with pytest.raises(
            InputError, match="infinite at p = 0; use sampling = 'cell', or an even"
        ):
            node.values(grid, GLUON, 0.0)
        return
    q = np.sqrt(px**2 + py**2 + (xi * pz) ** 2)
    first = grid.cube(node.values(grid, GLUON, 0.0))[cells[0] // 2, cells[1] // 2, cells[2] // 2]
    assert first == pytest.approx(amplitude / q * np.exp(-2 * q**2 / 3), rel=1e-12)


def test_averages_of_the_pole_are_those_of_many_points():
    """1/q over the cell at rest and over a neighbour, by midpoints of 60^3 parts."""
    grid = PhaseSpace([5, 5, 7], [1.0, 1.0, 0.7])
    f = grid.cube(initial.glasma(1.0, 50.0, 2.0).values(grid, GLUON, 0.0)) / 50
    at = (np.arange(60) + 0.5) / 60 - 0.5
    hx, hy, hz = grid.spacing
    for i, j, k in ((2, 2, 3), (3, 2, 3), (3, 4, 5)):
        x, y, z = np.meshgrid((i - 2 + at) * hx, (j - 2 + at) * hy, (k - 3 + at) * hz)
        q = np.sqrt(x**2 + y**2 + (2 * z) ** 2)
        exact = (np.exp(-2 * q**2 / 3 / 2500) / q).mean()
        assert f[i, j, k] == pytest.approx(exact, rel=3e-4)


def test_tables_name_them_and_mistakes_have_one_message():
    build = config.build_shape
    from pathlib import Path

    table = {"shape": "romatschke-strickland", "temperature": 0.4, "xi": 2.0}
    shape = build("g", table, Path())
    assert shape == initial.romatschke_strickland(0.4, xi=2.0) and "xi=2.0" in repr(shape)
    shape = build("g", {"shape": "glasma", "amplitude": 0.5, "scale": 1.8, "xi": 10.0}, Path())
    assert shape == initial.glasma(0.5, 1.8, 10.0)
    for bad, words in (
        ({**table, "xi": -1.0}, "initial.g.xi = -1.0: use a number above -1"),
        ({**table, "temperature": 0.0}, "a temperature is above 0 GeV"),
        ({"shape": "glasma", "amplitude": 1.0}, "shape = 'glasma' needs scale"),
        ({"shape": "glasma", "amplitude": -1.0, "scale": 1.0}, "amplitude A >= 0"),
        ({"shape": "glasma", "amplitude": 1.0, "scale": 1.0, "xi": 0.0}, "xi = 0.0: use"),
        ({"shape": "glasm", "amplitude": 1.0}, "did you mean 'glasma'"),
    ):
        with pytest.raises(InputError) as error:
            build("g", bad, Path())
        assert words in str(error.value)
    assert initial.glasma(1.0, 2.0, 0.5).extent() == pytest.approx(14.0)
