"""Transport coefficients where f or the trial functions are extreme."""

import numpy as np
import pytest

import relboltz as rb
from relboltz.grid.units import HBARC

MANY = {"events": 2e5, "threads": 1}


def gas(statistics, mass=0.0, degeneracy=1):
    """One species with a constant |M|^2."""
    species = [rb.Species("a", degeneracy, statistics)]
    return rb.Model(
        species, [rb.Process("a a -> a a", lambda s, t, u: 1.0)], masses={"a": mass} if mass else {}
    )


def test_degenerate_fermions():
    """T/mu = 0.01: the entropy in closed form, and brackets from those near the surface.

    Values by quasi Monte Carlo (scipy's Sobol points, 2^20) of another program with powers
    -1 ... 2: eta T^2 = 278.3 +- 0.3, kappa/T = 2626 +- 2. The power 3 adds 1.3 % to eta, but not
    here: rounding leaves four different functions, and a warning says that.
    """
    t, mu = 0.01, 1.0
    with pytest.warns(rb.AccuracyWarning, match="only 4"):
        ds = rb.transport_coefficients(gas(-1, degeneracy=2), t, mu, **MANY)
    entropy = 2 * (mu**2 * t / 6 + 7 * np.pi**2 * t**3 / 90) / HBARC**3
    assert float(ds.entropy) == pytest.approx(entropy, rel=1e-9)
    eta, error = (float(ds[k]) * t**2 for k in ("shear_viscosity", "shear_viscosity_error"))
    assert error < 0.02 * eta and abs(eta - 278.3) < 4 * error
    kappa, error = (float(ds[k][0, 0]) / t for k in ("diffusion", "diffusion_error"))
    assert error < 0.02 * kappa and abs(kappa - 2626) < 4 * error


def test_functions_that_massless_bosons_have_no_norm_of_are_left_out():
    """Bulk viscosity of massless bosons and heavier particles.

    By quasi Monte Carlo of another program, with powers 0, 1/2, ... 3: 0.18535 +- 0.0001.
    """
    names = ("g g -> g g", "g h -> g h", "g g -> h h")
    processes = [rb.Process(name, lambda s, t, u: 100.0) for name in names]
    species = [rb.Species("g", 2, 1), rb.Species("h", 2, 0)]
    model = rb.Model(species, processes, masses={"h": 0.3})
    ds = rb.transport_coefficients(model, 0.2, **MANY)
    zeta, error = float(ds.bulk_viscosity), float(ds.bulk_viscosity_error)
    assert error < 0.03 * zeta
    assert abs(zeta - 0.18535) < 4 * error


@pytest.mark.parametrize("statistics, mass, t, mu", [(0, 100.0, 0.1, 100.0), (-1, 0.0, 0.005, 1.0)])
def test_energies_that_differ_too_little_are_told_of(statistics, mass, t, mu):
    """m/T = 1000 and a sharp Fermi surface: powers of E are not different functions."""
    with pytest.warns(rb.AccuracyWarning, match="differ too little"):
        rb.transport_coefficients(gas(statistics, mass), t, mu, **MANY | {"events": 2e4})


@pytest.mark.parametrize(
    "statistics, mass, mu", [(0, 0.0, 200.0), (0, 200.0, 0.0), (-1, 0.0, 300.0)]
)
def test_occupations_that_are_no_numbers_are_refused(statistics, mass, mu):
    """(mu - m)/T of +-1000, and 1500 of fermions."""
    with pytest.raises(rb.InputError, match="chemical_potential of a"):
        rb.transport_coefficients(gas(statistics, mass), 0.2, mu, **MANY)


def test_as_many_events_are_drawn_as_asked_for():
    """Errors fall with the root of the number, from the smallest on."""
    errors = [
        np.mean([float(rb.transport_coefficients(
            gas(0, 0.2), 0.2, events=n, seed=s, threads=1).shear_viscosity_error)
            for s in (1, 2, 3, 4)])
        for n in (2000, 32000)
    ]  # fmt: skip
    assert 2.5 < errors[0] / errors[1] < 6.5  # 4, each of 4 x 31 degrees of freedom (6 %)
