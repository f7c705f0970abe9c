"""The Landau frame: boosted thermal states come back, and frames agree with another solver."""

import numpy as np
import pytest
import scipy.integrate
import scipy.linalg

import relboltz as rb
from relboltz.grid.units import HBARC
from relboltz.thermodynamics import unlimited
from relboltz.thermodynamics.landau import METRIC, LandauFits, frames, shear_stress

VELOCITY = [0.3, 0.0, 0.4]  # 0.5 in all


def random_tensors(count, particles=6):
    """T^{mu nu} of a few particles with random momenta and masses."""
    rng = np.random.default_rng(5)
    p = rng.normal(size=(count, particles, 3)) + rng.normal(size=(count, 1, 3))
    e = np.sqrt((p**2).sum(axis=-1) + rng.uniform(0, 2, (count, particles)) ** 2)
    four = np.concatenate([e[..., None], p], axis=-1)
    return np.einsum("nki,nkj,nk->nij", four, four, 1 / e)


def test_frames_are_those_of_a_general_eigenvalue_solver():
    """T^mu_nu u^nu = e u^mu, by LAPACK's solver for matrices without symmetry; pressures too."""
    tensors = random_tensors(200)
    found = frames(tensors)
    for tensor, e, u, pressure in zip(tensors, found.energy, found.u, found.pressure, strict=True):
        values, vectors = scipy.linalg.eig(tensor @ METRIC)
        vectors = vectors.real
        timelike = [i for i in range(4) if vectors[:, i] @ METRIC @ vectors[:, i] > 0]
        assert len(timelike) == 1
        i = timelike[0]
        other = vectors[:, i] / np.sqrt(vectors[:, i] @ METRIC @ vectors[:, i])
        assert e == pytest.approx(values[i].real, rel=1e-11)
        assert u == pytest.approx(other * np.sign(other[0]), rel=1e-9, abs=1e-9)
        assert pressure == pytest.approx(-np.delete(values.real, i).mean(), rel=1e-9)


def test_the_tensor_falls_apart_into_energy_pressure_and_shear():
    """T = e u u - P (g - u u) + pi; pi has no trace and nothing along u."""
    tensors = random_tensors(50)
    found = frames(tensors)
    pi = shear_stress(tensors, found)
    u = found.u
    lower = u @ METRIC
    projector = METRIC - u[:, :, None] * u[:, None, :]
    again = (
        found.energy[:, None, None] * u[:, :, None] * u[:, None, :]
        - found.pressure[:, None, None] * projector + pi
    )  # fmt: skip
    assert again == pytest.approx(tensors, rel=1e-12)
    size = np.abs(tensors).max(axis=(1, 2))
    assert np.abs(np.einsum("nij,ij->n", pi, METRIC)).max() < 1e-12 * size.max()
    assert (np.abs(np.einsum("nij,nj->ni", pi, lower)).max(axis=1) < 1e-12 * size).all()
    assert pi == pytest.approx(pi.transpose(0, 2, 1), abs=1e-12 * size.max())


@pytest.mark.parametrize("mass", [0.0, 0.3])
@pytest.mark.parametrize("temperature", [0.3, 0.1, 0.03, 0.01])
def test_cold_fermions_have_their_temperature(mass, temperature):
    """mu = 1 GeV, T from 1 % of it on: energy and number by adaptive quadrature.

    T follows from energy to (T/mu)^2 of it, so that 1e-11 of the integrals are 1e-7 of T.
    """
    fermi = np.sqrt(1 - mass**2)
    places = [q for q in (fermi - 5 * temperature, fermi, fermi + 5 * temperature) if q > 0]

    def integral(weight):
        def inner(p):
            e = np.sqrt(p * p + mass**2)
            return p * p * weight(p, e) / (np.exp(min((e - 1) / temperature, 700)) + 1)

        found = scipy.integrate.quad(
            inner, 0, fermi + 60 * temperature, points=places, limit=500, epsabs=0, epsrel=1e-12
        )
        return np.array([found[0]]) / (2 * np.pi**2 * HBARC**3)

    number, energy = integral(lambda p, e: 1.0), integral(lambda p, e: e)
    pressure = integral(lambda p, e: p * p / (3 * e))
    model = rb.Model([rb.Species("a", 1, -1)], [rb.Process("a a -> a a", sigma=1.0)],
                     masses={"a": mass})  # fmt: skip
    guess = np.array([1.1 * temperature]), np.array([[1.0]])
    found = LandauFits(model).match(energy, number[None], np.array([[mass**2]]), guess)
    assert found.temperature[0] == pytest.approx(temperature, rel=1e-7)
    assert found.pressure[0] == pytest.approx(pressure[0], rel=1e-9)


def test_averages_of_densities_count_empty_cells():
    """Matter in two of eight cells: the mean of a density is a quarter of what they have."""
    f = np.zeros((8, 1, 1, 1, 4, 4, 4))
    f[3:5, 0, 0] = 0.2
    grid = rb.PhaseSpace(4, 2.0, [8, 1, 1], 3.0)
    ds = rb.solve(
        rb.gluons(0.3, masses={"g": 0.5}), grid, {"g": f.reshape(8, 1, 1, 4, 4, 4)}, end=0.01,
        samples=1, backend="cpu", progress=False,
    )  # fmt: skip
    first = ds.isel(time=0)
    assert np.isnan(first.landau_energy.values).sum() == 6
    for name in ("landau_energy", "pressure", "shear_stress"):
        expected = first[name].fillna(0.0).mean(("x", "y", "z"))
        np.testing.assert_allclose(first[f"total_{name}"], expected, rtol=1e-12)
    assert float(first.total_landau_energy) == pytest.approx(float(first.total_energy_kinetic))
    assert np.isfinite(first.total_landau_temperature)


def test_nothing_has_no_frame():
    found = frames(np.concatenate([random_tensors(1), np.zeros((1, 4, 4))]))
    assert np.isfinite(found.energy[0])
    assert np.isnan(found.energy[1]) and np.isnan(found.velocity[1]).all()


def test_matter_that_moves_in_a_plane_has_a_frame():
    """T^{zz} = 0, as with one momentum cell along z: a singular tensor."""
    tensor = random_tensors(20)
    tensor[:, 3] = tensor[:, :, 3] = 0.0
    found = frames(tensor)
    residual = np.einsum("nij,nj->ni", tensor @ METRIC, found.u) - found.energy[:, None] * found.u
    assert np.abs(residual).max() < 1e-11 * found.energy.max()


# --- equilibrium in it --------------------------------------------------------------------------

MODELS = [
    (rb.gluons(0.3), [5.0]),
    (rb.qcd(0.3), [3.0, 0.9, 0.7, 0.5, 0.4, 0.4, 0.5]),
    (rb.qcd(0.3, masses={"g": 0.5, "quarks": 0.3}), [3.0, 0.9, 0.7, 0.5, 0.4, 0.4, 0.5]),
    (rb.qcd(0.3), [2.0, 0, 0, 0, 0, 0, 0]),
]


@pytest.mark.parametrize(("model", "numbers"), MODELS)
def test_equilibria_agree_with_the_convex_solver(model, numbers):
    """The convex solver has another iteration and other integrals; T, mu agree to 1e-7."""
    numbers = np.array([numbers, np.array(numbers) * 0.2])
    energy = np.array([6.0, 0.9])
    fits = LandauFits(model)
    squares, nothing = np.full(numbers.shape, 0.2), np.full(2, np.nan)
    found = fits.match(energy, numbers, squares, (nothing, np.full(numbers.shape, np.nan)))
    for i in range(2):
        other = unlimited.predict(model, numbers[i], np.zeros(3), energy[i])
        assert found.temperature[i] == pytest.approx(other.temperature, rel=1e-7)
        assert found.chemical_potential[i] == pytest.approx(
            other.chemical_potential, rel=1e-6, abs=1e-7, nan_ok=True
        )


def test_the_pressure_of_equilibrium_is_a_potential():
    """dP/dT at fixed mu/T is (e + P)/T, masses of their own included: by differences of states.

    At fixed alpha = mu/T: T dP/dT = e + P, so P(e, n) is consistent with e and n.
    """
    model = rb.qcd(0.3, 2)
    fits = LandauFits(model)
    numbers = np.array([[3.0, 0.9, 0.7, 0.5, 0.4]])

    def state(energy, n):
        squares, none = np.full(n.shape, 0.2), np.full(n.shape, np.nan)
        found = fits.match(np.array([energy]), n, squares, (np.full(1, np.nan), none))
        return found.temperature[0], found.chemical_potential[0], found.pressure[0]

    t, mu, p = state(6.0, numbers)
    h = 1e-4
    # along a line in (e, n): dP = s dT + Sum n_c dmu_c with T s = e + P - Sum n_c mu_c
    ends = [state(6.0 * (1 + sign * h), numbers * (1 + 0.3 * sign * h)) for sign in (1, -1)]
    (t1, mu1, p1), (t2, mu2, p2) = ends
    charges = numbers[0]  # of equilibrium numbers only charges count: mu is linear in them
    entropy = (6.0 + p - charges @ mu) / t
    assert (p1 - p2) == pytest.approx(entropy * (t1 - t2) + charges @ (mu1 - mu2), rel=1e-5)


def test_more_bosons_than_fit_have_no_temperature_there():
    """f = 2 below 1.5 GeV: number and energy admit no state with mu < m."""
    ds = run(rb.gluons(0.3), rb.PhaseSpace(12, 2.5), {"g": rb.initial.step(2.0, 1.5)})
    first = ds.isel(time=0)
    assert float(ds.condensate_fraction) > 0
    assert np.isnan(first.landau_temperature) and np.isnan(first.bulk_pressure)
    assert np.isfinite(first.landau_energy) and np.isfinite(first.pressure)


# --- in a record --------------------------------------------------------------------------------


def run(model, grid, start, **options):
    usual = dict(end=1e-6, every=1e-6, samples=1, backend="cpu", progress=False)
    return rb.solve(model, grid, start, **usual | options)


def boosted(cells, box):
    """A mixture that flows with v = 0.5: T = 0.3, mu = 0.1 GeV."""
    model = rb.qcd(0.3, 1, masses={"g": 0.5, "quarks": 0.3})
    shape = rb.initial.thermal(0.3, 0.1, velocity=VELOCITY, sampling="node")
    ds = run(model, rb.PhaseSpace(cells, box), {name: shape for name in model.names})
    return ds.isel(time=0)


@pytest.fixture(scope="module")
def fine():
    return boosted(44, 8.0)


def test_a_boosted_thermal_state_comes_back(fine):
    """T, mu, v and no shear, to the error of sums over nodes, which falls with the spacing.

    f is analytic up to p = i m, so that sums over nodes miss exp(-2 pi m/h) of an integral: 0.09
    and 0.006 of the quarks at h = 0.8 and 0.36 GeV. The box holds all but exp(-8 gamma (1 - v)/T) =
    2e-7 along v, times (8 gamma (1 - v)/T)^3 for energies: 7e-4 of what goes that way.
    """
    errors = []
    for r in (boosted(20, 8.0), fine):
        errors.append([
            abs(float(r.landau_temperature) / 0.3 - 1),
            np.nanmax(abs(r.landau_chemical_potential.values - 0.1)) / 0.3,
            abs(r.landau_velocity.values - VELOCITY).max(),
            float(abs(r.shear_stress).max() / r.pressure),
            abs(float(r.bulk_pressure / r.pressure)),
        ])  # fmt: skip
    coarse, found = np.array(errors)
    assert (found < 0.1 * coarse).all()
    assert (found < [7e-4, 2e-3, 1e-4, 2e-4, 2e-4]).all(), found


def test_thermal_masses_leave_no_bulk_pressure_in_equilibrium():
    """A thermal state with masses of its own: energy and pressure include the field."""
    model = rb.gluons(0.3)
    start = {"g": rb.initial.thermal(0.4, 0.2, sampling="node")}
    r = run(model, rb.PhaseSpace(32, 6.0), start).isel(time=0)
    assert float(r.landau_temperature) == pytest.approx(0.4, rel=5e-4)  # 3e-4 on these nodes
    assert abs(float(r.bulk_pressure / r.pressure)) < 1e-9
    assert float(r.landau_energy) == pytest.approx(float(r.energy_total), rel=1e-12)
    trace = float(r.landau_energy - 3 * r.pressure)  # purely thermal masses: no trace of T
    assert abs(trace) < 1e-12 * float(r.landau_energy)


def test_species_add_up(fine):
    """Tensors, momenta and currents by species; a thermal current is n v."""
    r = fine
    tensor = r.energy_momentum_by_species
    assert tensor.sum("species").values == pytest.approx(r.energy_momentum.values, rel=1e-12)
    total = r.momentum_by_species.sum("species").values
    assert total == pytest.approx(r.momentum.values, rel=1e-12, abs=1e-13)
    assert tensor.sel(mu="t", nu="t").values == pytest.approx(r.energy_by_species.values)
    flow = r.number_current / r.number
    assert flow.values == pytest.approx(np.tile(VELOCITY, (3, 1)), abs=3e-4)


def test_integrals_of_spectra_are_exact(fine):
    """Numbers are sums over shells with the weights of the file."""
    r = fine
    numbers = r.degeneracy * (r.spectrum * r.shell_weight).sum("p")
    assert numbers.values == pytest.approx(r.number.values, rel=1e-13)


def test_every_space_cell_has_a_frame():
    """Two halves that flow against each other; vacuum between them has none."""
    grid = rb.PhaseSpace(24, 5.0, space_cells=[6, 1, 1], space_max=3.0, boundary="open")

    def start(x, y, z, px, py, pz):
        v = np.where(x < 0, 0.3, -0.3)
        e = np.sqrt(px**2 + py**2 + pz**2 + 0.25)
        there = np.abs(x) > 1
        return there * 0.3 * np.exp(-(e - v * px) / np.sqrt(1 - v**2) / 0.35)

    start = rb.initial.from_function(start, sampling="node")
    ds = run(rb.gluons(0.3, masses={"g": 0.5}), grid, {"g": start})
    r = ds.isel(time=0, y=0, z=0)
    v = r.landau_velocity.sel(axis="x").values
    assert v[:2] == pytest.approx([0.3, 0.3], abs=2e-3)
    assert v[4:] == pytest.approx([-0.3, -0.3], abs=2e-3)
    assert np.isnan(v[2:4]).all()
    assert ds.total_landau_velocity.isel(time=0).sel(axis="x").item() == pytest.approx(0, abs=1e-9)
