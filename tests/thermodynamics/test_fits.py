"""Temperature, chemical potentials and velocity at many sites."""

import numpy as np
import pytest
from begun import EVERYWHERE, begun, observer_of

import relboltz as rb
from relboltz import thermodynamics as equilibrium
from relboltz.thermodynamics.fits import sums_over
from relboltz.transport.moments import thermal_terms

QCD = rb.qcd(0.3, flavors=1, masses={"g": 0.6, "quarks": 0.4})
GRID = rb.PhaseSpace([9, 8, 8], 3.0, [4, 1, 1], 3.0)
T = np.array([0.25, 0.3, 0.35, 0.4])
MU = np.array([[0.0, 0.1, -0.1], [0.05, 0.2, 0.1], [-0.1, 0.0, 0.0], [0.2, -0.1, 0.3]])
V = np.array([[0.0, 0.0, 0.0], [0.3, 0.0, 0.0], [0.1, -0.4, 0.2], [0.0, 0.0, 0.6]])


def thermal_sites():
    m2 = QCD.constant_mass_squared
    one = GRID.without_space
    return np.stack([equilibrium.thermal(one, QCD, *row, m2) for row in zip(T, MU, V, strict=True)])


@pytest.mark.parametrize("eta", [-1, 0, 1])
def test_terms_of_a_node_are_the_derivatives_of_each_other(eta):
    """f = -d ln Z/dx and g = -df/dx; a Bose state at x <= 0 does not exist; far away is nothing."""
    for x in (0.3, 1.0, 5.0, 40.0):
        h = 1e-4 * x
        (low, f_low, _), (high, f_high, _) = (thermal_terms(x + s * h, eta) for s in (-1, 1))
        _, f, g = thermal_terms(x, eta)
        assert f == pytest.approx((low - high) / (2 * h), rel=1e-5)
        assert g == pytest.approx((f_low - f_high) / (2 * h), rel=1e-5)
    assert (thermal_terms(-0.1, eta)[1] < 0) == (eta > 0)
    assert thermal_terms(1e4, eta) == (0.0, 0.0, 0.0)


@EVERYWHERE
def test_every_site_gets_back_what_was_put_there(where):
    backend, state = begun(GRID, QCD, thermal_sites(), where, samples=1)
    record = observer_of(backend).record(state)
    assert record["temperature"].ravel() == pytest.approx(T, rel=1e-8)
    assert record["chemical_potential"].reshape(3, 4).T == pytest.approx(MU, abs=1e-8)
    assert record["velocity"].reshape(3, 4).T == pytest.approx(V, abs=1e-8)


def test_matter_at_rest_follows_from_a_similar_state_without_a_matrix():
    """Bose, Fermi and absent species; the same state as Newton's method with a full matrix."""
    from relboltz.backends.cpu import fitting, landau

    one = GRID.without_space
    f = np.stack([equilibrium.thermal(one, QCD, t, mu, np.zeros(3), QCD.constant_mass_squared)
                  for t, mu in zip(T, MU, strict=True)])  # fmt: skip
    f[1, 2] = 0.0
    backend, state = begun(GRID, QCD, f, samples=1)
    observer = observer_of(backend)
    cold, far = observer.record(state), state.fit[[1, 0, 3, 2]]
    near = observer._fits._near(state.fit, *_asked(cold, state))
    np.testing.assert_allclose(near, state.fit, rtol=1e-10, atol=1e-12)
    far[:, 4:] = np.where(
        np.isfinite(state.fit[:, 4:]), np.nan_to_num(far[:, 4:], neginf=-3), -np.inf
    )
    found = observer._fits._near(far, *_asked(cold, state))
    np.testing.assert_allclose(found, state.fit, rtol=1e-10, atol=1e-12)
    assert landau.KINDS in landau.local_states.signatures  # as other processes compile it
    assert fitting.KINDS in fitting.fit_at_rest.signatures


def test_a_species_that_appears_has_the_chemical_potential_of_its_number():
    """T and mu of a species that was absent at the last record are those of a fresh fit."""
    model = rb.qcd(0.3, flavor_symmetric=True)
    start = {"g": rb.initial.gaussian(0.6, [0.8, 0.8, 0.4])}
    ds = rb.solve(
        model, rb.PhaseSpace(8, 3.0), start, end=0.3, every=0.1, samples=2, progress=False
    )
    assert np.isnan(ds.chemical_potential.sel(species="q")[0])
    mu = ds.chemical_potential.sel(species="q").values[1:]
    assert np.isfinite(mu).all() and (np.diff(mu) > 0).all()
    backend, state = begun(
        rb.PhaseSpace(8, 3.0), model, ds.f.values[-1].reshape(1, 2, -1), samples=1
    )
    fresh = observer_of(backend).record(state)
    assert float(fresh["temperature"].item()) == pytest.approx(float(ds.temperature[-1]), rel=1e-9)
    assert fresh["chemical_potential"].ravel()[1] == pytest.approx(mu[-1], rel=1e-9)


def _asked(record, state):
    """-E, P and N_a of the sites, per node; squared masses."""
    rows = [-record["energy_kinetic"][None], np.zeros((3, 4, 1, 1)), record["number"]]
    target = np.concatenate(rows).reshape(-1, 4).T / GRID.measure
    return np.ascontiguousarray(target), state.squares


def test_a_start_from_the_last_record_changes_nothing():
    """Nor does one from a very different state; absent species and empty sites have no answer."""
    f = thermal_sites()
    f[1, 2], f[2] = 0.0, 0.0
    backend, state = begun(GRID, QCD, f, samples=1)
    observer = observer_of(backend)
    cold = observer.record(state)
    warm = observer.record(state)
    state.fit = state.fit[::-1].copy()
    swapped = observer.record(state)
    for record in (warm, swapped):
        for name in ("temperature", "chemical_potential", "velocity"):
            np.testing.assert_allclose(record[name], cold[name], rtol=1e-9, atol=1e-10)
    assert np.isnan(cold["temperature"].ravel()).tolist() == [False, False, True, False]
    assert np.isnan(cold["chemical_potential"].reshape(3, 4)[:, 1]).tolist() == [False, False, True]


def test_one_node_stands_for_all_of_the_same_momentum_where_nothing_flows():
    """ln Z, f, f E, g, g E, g E^2 of the merged nodes are those of all nodes."""
    grid, model = rb.PhaseSpace([6, 5, 4], [2.0, 1.8, 1.5]), rb.qcd(0.3, flavors=1)
    theta = np.array([[2.5, 0.0, 0.0, 0.0, -0.4, 0.2, -1.0]])
    squares, which = np.array([[0.3, 0.1, 0.1, 0.3]]), np.zeros(1, np.int64)
    everywhere, merged = (
        sums_over(grid, model, at_rest)(theta, squares, which) for at_rest in (False, True)
    )
    columns = [0, 1, 2, 6, 7, 8]
    np.testing.assert_allclose(merged[..., columns], everywhere[..., columns], rtol=1e-13)
    assert (everywhere[..., columns] > 0).all()
