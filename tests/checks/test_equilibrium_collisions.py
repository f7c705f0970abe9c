"""Equilibrium collisions that a finite box loses: laws, exact values, rates on nodes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from test_equilibrium import exact_step

import relboltz as rb
from relboltz.backends.elements import Elements
from relboltz.checks import equilibrium_collisions
from relboltz.grid.units import HBARC
from relboltz.studies.validation import quadrature
from relboltz.thermodynamics import unlimited
from relboltz.thermodynamics.unlimited import FreeState

GLUONS, QCD = rb.gluons(0.3), rb.qcd(0.3)
FINAL = {model: unlimited.predict(model, *exact_step(model, 0.5)) for model in (GLUONS, QCD)}
"""Final states of the paper's step."""


@pytest.fixture(scope="module")
def collisions():
    return {
        model: equilibrium_collisions.of(Elements(model), state) for model, state in FINAL.items()
    }


def hard_spheres(sigma):
    """A massless classical gas, cross section in GeV^-2."""
    process = rb.Process("a a -> a a", lambda s, sigma: 32 * np.pi * sigma * s, sigma=sigma)
    return rb.Model([rb.Species("a", 1, 0)], [process])


def test_rates_are_those_of_quadrature(collisions):
    """Unlimited momentum space, all processes; elastic collisions once, others both ways."""
    for model, found in collisions.items():
        state = FINAL[model]
        rates = quadrature.rates(
            state.temperature,
            dict.fromkeys(quadrature.QUARKS_AND_ANTIQUARKS, state.chemical_potential[-1])
            | {"g": state.chemical_potential[0]},
            dict.fromkeys(quadrature.QUARKS_AND_ANTIQUARKS, state.mass_squared[-1])
            | {"g": state.mass_squared[0]},
            state.screening2,
            0.3,
        )
        wanted = sum(rates[p.name] * (1 if p.elastic else 2) for p in model.processes)
        assert found.rate.sum() == pytest.approx(wanted, rel=0.01)


def test_hard_spheres_collide_and_relax_as_they_must():
    """n^2 sigma/2 collisions; E^2 - 8 T E + 12 T^2 decays with n sigma/3, so <(dE^2)^2> = 32 T^4.

    The dissipation of a deviation phi is half the rate times (Delta phi)^2, and its square
    averages 24 T^4.
    """
    model, temperature, sigma = hard_spheres(2.0), 0.3, 2.0
    state = FreeState(temperature, np.array([-0.5]), np.zeros(3), np.zeros(1), np.zeros(1))
    found = equilibrium_collisions.of(Elements(model), state)
    number = temperature**3 / np.pi**2 * np.exp(-0.5 / 0.3)
    assert found.rate.sum() * HBARC**4 == pytest.approx(0.5 * number**2 * sigma, rel=0.01)
    mean = found.relaxation.sum() / found.rate.sum()
    assert mean == pytest.approx(32 * temperature**4, rel=0.02)


@pytest.mark.parametrize(("width", "cells"), [(2.0, 20), (2.6, 26)])
def test_the_loss_is_what_rates_on_nodes_miss(collisions, width, cells):
    """Gluons with constant masses: C[f] on the nodes of a box against quadrature in all space."""
    state = FINAL[GLUONS]
    m2, mu = float(state.mass_squared[0]), state.chemical_potential
    model = rb.gluons(0.3, masses={"g": m2**0.5}, screening=m2**0.5)
    grid = rb.PhaseSpace(cells, width)
    f = rb.equilibrium.thermal(grid, model, state.temperature, mu, np.zeros(3), [m2])
    term = rb.collision_term(model, grid, grid.cube(f), samples=64, batches=4, backend="cpu")
    row = lambda s, t, u: quadrature.gg_gg(s, t, u, (4 * np.pi * 0.3) ** 2, m2)  # noqa: E731
    everywhere = quadrature.rate(
        row, (m2,) * 4, (state.temperature, (mu[0],) * 4), (1,) * 4, 0.25, 40
    )
    missing = 1 - float(term.rate[0]) / everywhere
    lost = collisions[GLUONS].loss(grid.momentum_max)[0]
    assert lost == pytest.approx(missing, abs=0.005) and missing > 0.02
    assert float(term.null_weight) < 0.5 * missing  # which sees pairs inside the box alone


def test_the_papers_box_loses_much_and_relaxation_more(collisions):
    """8.6 % of the gluons' collisions and 73 % of what relaxes their spectrum."""
    rate, relaxation = collisions[GLUONS].loss([2.0] * 3)
    assert rate == pytest.approx(0.086, abs=0.003)
    assert relaxation == pytest.approx(0.73, abs=0.015)
    rate, relaxation = collisions[QCD].loss([2.0] * 3)
    assert rate == pytest.approx(0.125, abs=0.004)
    assert relaxation == pytest.approx(0.685, abs=0.02)


def test_losses_scatter_little_between_seeds(monkeypatch):
    """Near the limits of 2 % and 5 %: by less than 0.2 %."""
    for model, state in FINAL.items():
        elements, losses = Elements(model), []
        for seed in range(6):
            monkeypatch.setattr(equilibrium_collisions, "SEED", seed)
            found = equilibrium_collisions.of(elements, state)
            losses.append([found.loss([2.5] * 3)[0], found.loss([4.4] * 3)[1]])
        assert (np.std(losses, axis=0, ddof=1) < 0.002).all()


def test_larger_boxes_lose_less_and_half_width_inverts(collisions):
    for found in collisions.values():
        losses = [found.loss([width] * 3) for width in (2.0, 2.5, 3.0, 4.0, 6.0)]
        assert (np.diff(losses, axis=0) < 0).all()
        assert found.loss([2.0, 6.0, 6.0])[0] < found.loss([2.0, 2.0, 6.0])[0] < losses[0][0]
        for loss in (0.02, 0.05, 0.3):
            width = found.half_width(loss)
            assert (
                found.loss([1.0001 * width] * 3)[1] <= loss <= found.loss([0.9999 * width] * 3)[1]
            )


def test_a_moving_fluid_collides_as_often_and_reaches_further():
    """Collisions per four-volume are the same in any frame, and so is what they relax."""
    elements, rest = Elements(GLUONS), FINAL[GLUONS]
    still = equilibrium_collisions.of(elements, rest)
    moving = equilibrium_collisions.of(elements, replace(rest, velocity=np.array([0.0, 0.3, 0.6])))
    assert moving.rate.sum() == pytest.approx(still.rate.sum(), rel=0.02)
    assert moving.relaxation.sum() == pytest.approx(still.relaxation.sum(), rel=0.04)
    wide = 20.0
    x, y, z = ([wide if i != axis else 3.0 for i in range(3)] for axis in range(3))
    assert moving.loss(x)[0] == pytest.approx(still.loss(x)[0], abs=0.003)
    assert moving.loss(x)[0] < moving.loss(y)[0] < moving.loss(z)[0]


def test_a_condensate_leaves_the_gas_above_it():
    """mu = m: soft bosons are singular, the loss is finite all the same."""
    model = rb.gluons(0.1)
    found = equilibrium_collisions.of(
        Elements(model), unlimited.predict(model, *exact_step(model, 1.0))
    )
    rate, relaxation = found.loss([3.0] * 3)
    assert 0 < rate < relaxation < 1 and np.isfinite(found.rate).all()


def test_what_does_not_collide_has_no_reach():
    free = rb.Model([rb.Species("a", 1, 0)], [])
    state = FreeState(0.3, np.zeros(1), np.zeros(3), np.zeros(1), np.zeros(1))
    assert equilibrium_collisions.of(Elements(free), state) is None
    alone = rb.Model(
        [rb.Species("a", 1, 0), rb.Species("b", 1, 0)],
        [rb.Process("a b -> a b", lambda s: 1.0)],
    )
    mu = np.array([0.0, np.nan])
    assert (
        equilibrium_collisions.of(
            Elements(alone), FreeState(0.3, mu, np.zeros(3), np.zeros(2), np.zeros(1))
        )
        is None
    )


def test_processes_with_other_exchange_masses_are_drawn_apart():
    """Elements that differ only in the exchanged mass are drawn separately, in any order."""

    def element(t_exchanged):
        return 1e3 / t_exchanged**2

    species = [rb.Species("a"), rb.Species("b")]
    masses = {"a": rb.Screening(0.01), "b": rb.Screening(4.0)}
    rates = []
    for names in ("ab", "ba"):
        processes = [rb.Process(f"{n} {n} -> {n} {n}", element) for n in names]
        screening = rb.Screening(1.0, exchange=masses)
        model = rb.Model(species, processes, masses={"a": 0.3, "b": 0.3}, screening=screening)
        zero = np.zeros(2)
        state = FreeState(0.3, zero, np.zeros(3), zero + 0.09, model.screening_squared(zero))
        rates.append(equilibrium_collisions.of(Elements(model), state).rate.sum())
    assert rates[0] == pytest.approx(rates[1], rel=0.05)
