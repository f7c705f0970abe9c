"""Initial states: averages against exact integrals, symmetries, and complaints."""

import math

import numpy as np
import pytest
import xarray as xr

import relboltz as rb
from relboltz import gluons, initial, qcd
from relboltz.errors import InputError
from relboltz.grid import PhaseSpace
from relboltz.model import Model, Process, Species

GLUON = Species("g", 16, +1)
QUARK = Species("u", 6, -1)
BOX = PhaseSpace(30, 2.0)


def scalar_model(statistics=0, mass=0.0):
    """One species 'a' with constant mass [GeV]."""
    species = [Species("a", 1, statistics)]
    return Model(species, [Process("a a -> a a", lambda s: s)], masses={"a": mass})


def images(cube):
    """All reflections and axis permutations of a cube."""
    yield from (cube[::-1], cube[:, ::-1], cube[:, :, ::-1])
    yield from (cube.transpose(1, 0, 2), cube.transpose(2, 0, 1), cube.transpose(0, 2, 1))


# --- step ---------------------------------------------------------------------------------------


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


# --- gaussian, thermal, random ------------------------------------------------------------------


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


# --- functions and files ------------------------------------------------------------------------


def test_function_average_is_exact_for_polynomials():
    grid = PhaseSpace(5, 1.0)
    f = initial.from_function(lambda px, py, pz: 1 + px**4 + py**2 * pz**2)
    mean = f.values(grid, GLUON, 0.0).mean()
    assert mean == pytest.approx(1 + 1 / 5 + 1 / 9, rel=1e-14)


def test_function_from_a_python_file(tmp_path):
    path = tmp_path / "start.py"
    path.write_text("import numpy as np\ndef bump(px, py, pz):\n    return np.exp(-px**2)\n")
    shape = initial.from_function(f"{path}:bump", sampling="node")
    np.testing.assert_allclose(shape.values(BOX, GLUON, 0.0), np.exp(-(BOX.momenta[0] ** 2)))
    with pytest.raises(InputError, match="has no function 'bumb'; did you mean 'bump'"):
        initial.from_function(f"{path}:bumb")
    with pytest.raises(InputError, match="there is no file"):
        initial.from_function(f"{tmp_path}/none.py:bump")
    path.write_text("1 / 0\n")
    with pytest.raises(InputError, match="start.py failed with ZeroDivisionError"):
        initial.from_function(f"{path}:bump")


def corner(px, py, pz):
    """Finite but at one node."""
    return np.where((px > 1.9) & (py > 1.9) & (pz > 1.9), np.nan, 0.1)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (corner, r"shape = 'corner': .* returned nan at p = \(1.93333, 1.93333, 1.93333\) GeV"),
        (lambda px, py, pz: px[:3], r"shape \(3,\) for momenta of shape \(27000,\)"),
        (lambda px, py, pz: px / None, "failed with TypeError"),
    ],
)
def test_faults_of_a_function_are_named(function, message):
    with pytest.raises(InputError, match=message):
        initial.from_function(function, sampling="node").values(BOX, GLUON, 0.0)


def test_functions_of_space_are_averaged_over_space_cells():
    """Two Gauss points are exact for a cubic; sampling = "node" takes the centre."""
    grid = rb.PhaseSpace(3, 1.0, [4, 1, 2], [2.0, 1.0, 3.0])
    edges = np.linspace(-2, 2, 5)

    def cubic(x, y, z, px, py, pz):
        return 30 + x**3 + x**2 + z + 0 * y

    means = np.diff(edges**4 / 4 + edges**3 / 3) / np.diff(edges)
    expected = 30 + means[:, None] + grid.space_axis(2)
    f = initial.evaluate({"g": initial.from_function(cubic)}, grid, rb.gluons(0.3))
    assert f.shape == (8, 1, 27)
    assert f[:, 0, 5] == pytest.approx(expected.ravel(), rel=1e-13)
    nodes = initial.from_function(cubic, sampling="node")
    f = initial.evaluate({"g": nodes}, grid, rb.gluons(0.3))
    x, _, z = grid.positions
    assert f[:, 0, 5] == pytest.approx(30 + x**3 + x**2 + z, rel=1e-13)


def test_the_gradient_is_the_papers():
    """Eq. (ini_f_test_spread) with 0.1 and 0.2: from 0.1 to 0.3, 0.2 in the middle."""
    grid = rb.PhaseSpace([40, 3, 3], 2.0, [60, 1, 1], 3.0)
    f = initial.evaluate({"g": initial.gradient(0.1, 0.2)}, grid, rb.gluons(0.3))[:, 0]
    x, px = grid.positions[0][:, None], grid.momenta[0][None, :]
    assert f == pytest.approx(0.1 / 6 * (x + 3) - 0.1 / 4 * (px + 2) + 0.2, rel=1e-13)


def test_shapes_without_a_place_fill_all_of_space():
    grid = rb.PhaseSpace(5, 1.0, [3, 2, 1])
    model = rb.gluons(0.3)
    f = initial.evaluate({"g": initial.gaussian(0.5, 0.4)}, grid, model)
    one = initial.evaluate({"g": initial.gaussian(0.5, 0.4)}, grid.at_a_site, model)
    assert f.shape == (6, 1, 125) and (f == one).all()
    noise = initial.evaluate({"g": initial.random(0.1, 0.2)}, grid, model)
    assert len(np.unique(noise)) == noise.size


def test_faults_in_space_are_named_with_their_place():
    grid = rb.PhaseSpace(3, 1.0, [2, 1, 1], 3.0)
    with pytest.raises(InputError, match=r"\(1.5, 0, 0\) fm is negative"):
        initial.evaluate(
            {"g": initial.from_function(lambda x, y, z, px, py, pz: 0.5 - x)}, grid, rb.gluons(0.3)
        )


def snapshot_file(path, grid, f, names):
    """A file with the snapshots that relboltz writes."""
    coordinates = {"species": list(names), **{n: grid.axis(i) for i, n in enumerate(AXES)}}
    data = xr.DataArray(f, dims=("snapshot", "species", *AXES), coords=coordinates, name="f")
    data.to_dataset().to_netcdf(path, engine="h5netcdf")


AXES = ("px", "py", "pz")


def test_file_gives_back_its_last_snapshot(tmp_path):
    grid = PhaseSpace((4, 5, 6), (1.0, 1.1, 1.3))
    f = np.random.default_rng(1).random((2, 2, *grid.momentum_cells))
    path = tmp_path / "run.nc"
    snapshot_file(path, grid, f, ("g", "u"))
    shape = initial.from_file(path)
    assert initial.file_grid(path) == grid
    assert (shape.values(grid, QUARK, 0.0) == f[1, 1].ravel()).all()
    assert shape.extent() == 1.3
    with pytest.raises(InputError, match="has no species 'd', only g, u"):
        shape.values(grid, Species("d"), 0.0)
    with pytest.raises(InputError, match=r"4 x 5 x 6 cells .* this one is 4 x 5 x 6 .* 1.4\) GeV"):
        shape.values(PhaseSpace((4, 5, 6), (1.0, 1.1, 1.4)), QUARK, 0.0)


def test_a_file_with_nan_is_refused_with_the_place(tmp_path):
    grid = PhaseSpace(3, 1.5)
    f = np.full((1, 1, 3, 3, 3), 0.2)
    f[0, 0, 1, 2, 0] = np.nan
    snapshot_file(tmp_path / "run.nc", grid, f, ("a",))
    with pytest.raises(InputError, match=r"f = nan of a at p = \(0, 1, -1\) GeV is not a finite"):
        initial.evaluate({"a": initial.from_file(tmp_path / "run.nc")}, grid, scalar_model())


def test_a_file_that_is_no_snapshot_is_refused(tmp_path):
    with pytest.raises(InputError, match="there is no such file"):
        initial.file_grid(tmp_path / "none.nc")
    (tmp_path / "text.nc").write_text("hello")
    with pytest.raises(InputError, match="cannot be read as NetCDF"):
        initial.file_grid(tmp_path / "text.nc")
    xr.Dataset({"a": 1}).to_netcdf(tmp_path / "other.nc", engine="h5netcdf")
    with pytest.raises(InputError, match="has no f, species, px, py, pz"):
        initial.file_grid(tmp_path / "other.nc")


# --- evaluate -----------------------------------------------------------------------------------


def test_a_species_overrides_its_group_and_absent_ones_are_empty():
    model = qcd(0.3)
    low, high = initial.step(0.1, 1.0), initial.step(0.4, 1.0)
    f = initial.evaluate({"u": high, "quarks": low}, PhaseSpace(9, 2.0), model)
    peak = dict(zip(model.names, f.max(axis=1), strict=True))
    assert peak == {"g": 0, "u": 0.4, "d": 0.1, "s": 0.1, "ubar": 0, "dbar": 0, "sbar": 0}


@pytest.mark.parametrize("sampling", ["cell", "node"])
@pytest.mark.parametrize("velocity", [(0, 0, 0), (0.3, 0, 0.2)])
def test_thermal_states_carry_the_masses_they_cause(sampling, velocity):
    model, grid = qcd(0.3), PhaseSpace(15, 3.0)
    shapes = {
        "g": initial.thermal(0.35, 0.3, velocity, sampling=sampling),
        "quarks": initial.thermal(0.35, 0.2, velocity, sampling=sampling),
        "antiquarks": initial.step(0.2, 1.0),
    }
    f = initial.evaluate(shapes, grid, model)
    m2 = np.zeros(len(model.species))
    for _ in range(200):  # the gap equation of this f, by plain iteration
        sums = [row @ grid.inverse_energies(m) for row, m in zip(f, m2, strict=True)]
        y = model.degeneracy * np.array(sums) * grid.cell_volume / (2 * np.pi) ** 3
        m2 = model.mass_squared(y)
    for name in ("g", "d"):
        a = model.index(name)
        shape = shapes["g" if name == "g" else "quarks"]
        again = shape.values(grid, model.species[a], m2[a])
        np.testing.assert_allclose(f[a], again, rtol=1e-12)


def test_the_known_final_state_of_gluons_has_its_known_mass():
    model = gluons(0.3)
    shape = initial.thermal(0.43514, 0.64688, sampling="node")
    f = initial.evaluate({"g": shape}, BOX, model)[0]
    energy = 0.43514 * np.log(1 / f + 1) + 0.64688
    mass_squared = energy**2 - BOX.momentum_squared
    np.testing.assert_allclose(mass_squared, 0.5279, atol=1e-4)


def test_a_potential_above_the_thermal_mass_is_refused():
    with pytest.raises(InputError, match=r"initial.g.chemical_potential = 0.9: .* at most 0.5"):
        initial.evaluate({"g": initial.thermal(0.2, 0.9)}, BOX, gluons(0.3))


def test_a_potential_above_a_constant_mass_is_refused():
    model = gluons(0.3, masses={"g": 0.7})
    with pytest.raises(InputError, match=r"initial.g.chemical_potential = 0.8: .* 0.7 GeV"):
        initial.evaluate({"g": initial.thermal(0.2, 0.8)}, BOX, model)


def test_illegal_values_are_named_with_their_momentum():
    fermions, classical = scalar_model(-1), scalar_model(0)
    with pytest.raises(InputError, match=r"initial.a: f = 1.5 of a at p = \(.*\) GeV is above 1"):
        initial.evaluate({"a": initial.step(1.5, 1.0)}, BOX, fermions)
    initial.evaluate({"a": initial.step(1.5, 1.0)}, BOX, classical)
    negative = initial.from_function(lambda px, py, pz: px)
    with pytest.raises(InputError, match=r"f = -1.93333 .* \(-1.93333, .* is negative"):
        initial.evaluate({"a": negative}, BOX, classical)


def test_an_average_of_ones_is_a_full_fermi_sea():
    ones = initial.from_function(lambda px, py, pz: 1.0)
    assert initial.evaluate({"a": ones}, BOX, scalar_model(-1)).max() == 1.0


def test_an_empty_system_is_refused():
    model = scalar_model()
    nothing = initial.step(0.0, 1.0), initial.step(1.0, 0.01, sampling="node")
    for shapes in ({}, *({"a": shape} for shape in nothing)):
        with pytest.raises(InputError, match="the system is empty"):
            initial.evaluate(shapes, BOX, model)


def test_unknown_species_and_shapes_are_refused():
    with pytest.raises(InputError, match="unknown species initial.quark; did you mean 'quarks'"):
        initial.evaluate({"quark": initial.step(0.5, 1.5)}, BOX, qcd(0.3))
    with pytest.raises(InputError, match="initial.a = 0.5: use a shape"):
        initial.evaluate({"a": 0.5}, BOX, scalar_model())


def test_extent_contains_the_state():
    model = scalar_model()
    for shape in (
        initial.step(0.5, 1.5),
        initial.gaussian(0.5, (0.2, 0.3, 0.4)),
        initial.thermal(0.3, 0.2, velocity=(0.5, 0.0, 0.0)),
    ):
        width = initial.extent({"a": shape}, model)
        wide = PhaseSpace(61, 3 * width)
        f = initial.evaluate({"a": shape}, wide, model)[0]
        inside = (abs(wide.momenta) <= width).all(axis=0)
        assert f[inside].sum() > 0.99 * f.sum()
    with pytest.raises(InputError, match="initial.a.shape = 'random': .* set grid.momentum_max"):
        initial.extent({"a": initial.random(0, 1)}, model)


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
