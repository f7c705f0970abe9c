"""Initial states: averages against exact integrals, symmetries, and complaints."""

import numpy as np
import pytest
import xarray as xr

import relboltz as rb
from relboltz import gluons, initial, qcd
from relboltz.grid.phase_space import PhaseSpace
from relboltz.model.model import Model, Process, Species
from relboltz.util.errors import InputError

GLUON = Species("g", 16, +1)
QUARK = Species("u", 6, -1)
BOX = PhaseSpace(30, 2.0)


def scalar_model(statistics=0, mass=0.0):
    """One species 'a' with constant mass [GeV]."""
    species = [Species("a", 1, statistics)]
    return Model(species, [Process("a a -> a a", lambda s: s)], masses={"a": mass})


# --- step ---------------------------------------------------------------------------------------


# --- gaussian, thermal, random ------------------------------------------------------------------


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


def test_shapes_without_a_place_fill_all_of_space():
    grid = rb.PhaseSpace(5, 1.0, [3, 2, 1])
    model = rb.gluons(0.3)
    f = initial.evaluate({"g": initial.gaussian(0.5, 0.4)}, grid, model)
    one = initial.evaluate({"g": initial.gaussian(0.5, 0.4)}, grid.without_space, model)
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


def test_a_start_from_a_state_older_than_its_last_record_is_told_of(tmp_path):
    """As of a run that was killed: its last f may be that of the start."""
    path = tmp_path / "run.nc"
    grid, start = rb.PhaseSpace(4, 2.0), {"g": rb.initial.step(0.5, 1.5)}
    options = dict(end=0.02, every=0.01, step=0.01, samples=1, progress=False)
    rb.solve(rb.gluons(0.3), grid, start, file=path, snapshots=[0.01], **options)
    with pytest.warns(rb.AccuracyWarning, match=r"last f is of t = 0.01 fm, .* of 0.02 fm.*resume"):
        rb.initial.evaluate({"g": rb.initial.from_file(path)}, grid, rb.gluons(0.3))


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
