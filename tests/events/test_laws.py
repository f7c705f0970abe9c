"""Laws that every run obeys, on every backend: conservation to the last bit, bounds, entropy."""

import numpy as np
import pytest
from begun import BY_NAME, EVERYWHERE, advanced, begun, f_of, observer_of

import relboltz as rb
from relboltz import thermodynamics as equilibrium
from relboltz.io.observables import charges, momentum

QCD = rb.qcd(0.3)


def on(where):
    """Options of solve() and collision_term()."""
    return dict(backend=where, precision="float64")


def quiet(where):
    return dict(progress=False, **on(where))


def balanced_potentials(number, **flavours):
    """mu by species with mu_a + mu_b = mu_c + mu_d in every process."""
    return np.array(
        [number] + [number + flavours[q] for q in "uds"] + [number - flavours[q] for q in "uds"]
    )


@BY_NAME
@pytest.mark.parametrize("process", QCD.processes, ids=lambda p: p.name)
def test_thermal_states_with_flow_change_by_nothing(process, where):
    """Bose and Fermi states with flow and balanced potentials: |C| < 1e-12 of the gross rate."""
    grid = rb.PhaseSpace([8, 9, 7], [2.0, 2.2, 1.9])
    m2 = np.array([0.45] + [0.2] * 6)
    masses = dict(zip(QCD.names, np.sqrt(m2), strict=True))
    model = rb.Model(QCD.species, [process], masses=masses, screening=0.6)
    mu = balanced_potentials(0.05, u=0.12, d=-0.07, s=0.03)
    f = equilibrium.thermal(grid, model, 0.35, mu, np.array([0.3, -0.2, 0.4]), m2)
    term = rb.collision_term(model, grid, f, samples=4, batches=2, **on(where))
    gross = float(max(term.gain.max(), term.loss.max()))
    assert gross > 0
    assert float(abs(term.collision_term).max()) < 1e-12 * gross


@BY_NAME
def test_unbalanced_potentials_do_change(where):
    """The test above can fail: quarks with another mu react."""
    grid = rb.PhaseSpace(8, 2.0)
    model = rb.qcd(0.3, masses={"g": 0.67, "quarks": 0.45})
    mu = balanced_potentials(0.05, u=0.12, d=-0.07, s=0.03) + np.array([0.1, 0, 0, 0, 0, 0, 0])
    f = equilibrium.thermal(grid, model, 0.35, mu, np.zeros(3), model.constant_mass_squared)
    term = rb.collision_term(model, grid, f, samples=4, batches=2, **on(where))
    assert float(abs(term.collision_term).max()) > 1e-3 * float(term.gain.max())


STARTS = {
    "mixture on even nodes": (QCD, rb.PhaseSpace(8, 2.0), {"g": rb.initial.step(0.5, 1.5)}),
    "mixture with flow on odd, uneven nodes": (
        QCD,
        rb.PhaseSpace([9, 7, 8], [2.0, 1.8, 2.1]),
        {
            "g": rb.initial.thermal(0.3, velocity=[0.1, 0.2, -0.3]),
            "u": rb.initial.gaussian(0.9, [0.5, 0.7, 0.9]),
            "sbar": rb.initial.step(0.8, 1.0),
        },
    ),
    "nearly full Fermi sea": (
        rb.quarks(0.3),
        rb.PhaseSpace(9, 2.0),
        {"u": rb.initial.step(1, 1.5)},
    ),
    "random gluons": (
        rb.gluons(0.3),
        rb.PhaseSpace(9, 2.0),
        {"g": rb.initial.random(0.0, 1.0, seed=4)},
    ),
    "EKT screening": (
        rb.gluons(0.3, screening="ekt"),
        rb.PhaseSpace(9, 2.0),
        {"g": rb.initial.step(0.5, 1.5)},
    ),
    "massless quarks with EKT screening": (
        rb.qcd(0.1, flavors=2, masses="massless", screening="ekt"),
        rb.PhaseSpace(8, 2.0),
        {"g": rb.initial.step(0.2, 1.5), "u": rb.initial.step(0.5, 1.5)},
    ),
    "one flavour at the start": (QCD, rb.PhaseSpace(9, 2.0), {"u": rb.initial.step(0.5, 1.5)}),
}


@EVERYWHERE
@pytest.mark.parametrize("case", STARTS, ids=str)
@pytest.mark.parametrize("length", [0.01, 1.0])
def test_every_step_conserves_and_stays_legal(case, length, where):
    """Charges and momentum exactly, energy at frozen masses to rounding, 0 <= f (<= 1), entropy.

    Steps of 1 fm are far beyond what is accurate; the limits must hold all the same.
    """
    model, grid, start = STARTS[case]
    backend, state = begun(grid, model, start, where, samples=4)
    for step in range(3):
        f = f_of(backend, state)[0]
        before = backend.moments(state.squares, f)
        backend.collide(step, length, state.squares)
        after, g = backend.moments(state.squares, f), f_of(backend, state)[0]
        assert charges(model, after, state) == charges(model, before, state)
        assert momentum(grid, after, state) == momentum(grid, before, state)
        m2 = state.mass_squared[0]
        old, new = (equilibrium.kinetic_energy(grid, model, x, m2) for x in (f, g))
        assert new == pytest.approx(old, rel=1e-13)
        assert (backend.get() >= 0).all()
        assert (g[model.statistics < 0] <= 1).all()
        if length < 0.1:
            entropy = [float(sums.sums[0, :, 8] @ model.degeneracy) for sums in (before, after)]
            assert entropy[1] >= entropy[0] * (1 - 1e-12)
        assert (g != f).any()
        state.squares = backend.masses(state.squares)


def hump(x, y, z, px, py, pz):
    """Denser in the middle, on its way along x."""
    f = np.exp(-((px - 0.2) ** 2) - py**2 - pz**2)
    return 0.8 * f * (1 + 0.5 * np.cos(np.pi * x / 3)) / 1.5


SPACES = {
    "open and periodic": ["open", "periodic", "periodic"],
    "reflecting": "reflecting",
    "periodic": "periodic",
}


@EVERYWHERE
@pytest.mark.parametrize("walls", SPACES)
@pytest.mark.parametrize("masses", ["constant", "thermal"])
def test_every_step_in_space_conserves_and_stays_legal(walls, masses, where):
    """Charges with what left exactly; energy, with constant masses, to rounding; 0 <= f <= 1."""
    heavy = {"g": 0.6, "quarks": 0.4}
    model = rb.qcd(0.3, flavors=1, **(dict(masses=heavy) if masses == "constant" else {}))
    grid = rb.PhaseSpace(5, 2.0, [4, 1, 2], 3.0, SPACES[walls])
    shape = rb.initial.from_function(hump)
    backend, state = begun(grid, model, {"g": shape, "u": shape}, where, samples=2)
    observer = observer_of(backend)
    first = observer.record(state)
    for _ in range(3):
        advanced(backend, state, 0.2)
        record, f = observer.record(state), f_of(backend, state)
        assert not record["charge_drift"].any()
        if walls == "periodic" and masses == "constant":
            assert not record["momentum_drift"].any()
        if masses == "constant":
            total = record["total_energy_total"] + record["left_energy"].sum()
            assert total == pytest.approx(float(first["total_energy_total"]), rel=1e-12)
        assert (backend.get() >= 0).all() and (f[:, 1:] <= 1).all()
    assert (record["left_number"].sum() > 0) == ("open" in walls)


@BY_NAME
def test_the_nearest_cell_heats_and_the_conserving_projection_does_not(where):
    """At exact Bose-Einstein nearest-cell landing gains energy for ever; number alone is kept."""
    model, grid = rb.gluons(0.3, masses={"g": 0.7}), rb.PhaseSpace(12, 2.0)
    start = {"g": rb.initial.thermal(0.4, 0.3, sampling="node")}
    gains = {}
    for projection in ("conserving", "nearest"):
        ds = rb.solve(
            model, grid, start, end=0.2, step=0.05, projection=projection, samples=32, every=0.1,
            **quiet(where),
        )  # fmt: skip
        assert not ds.charge_drift.values.any()
        gains[projection] = float(ds.energy_kinetic[-1] / ds.energy_kinetic[0] - 1)
    assert abs(gains["conserving"]) < 1e-13
    assert gains["nearest"] > 1e-3


@BY_NAME
@pytest.mark.parametrize("sampling", ["cm", "k2", "k3"])
def test_only_symmetrical_sampling_conserves_number(sampling, where):
    """The paper's Figs. 3 and 4: exact with it, a random drift without."""
    model, grid = rb.gluons(0.3, masses={"g": 0.7}), rb.PhaseSpace(10, 2.0)
    start = {"g": rb.initial.random(0.0, 1.0, seed=1)}
    drift = {}
    for symmetrical in (True, False):
        ds = rb.solve(
            model, grid, start, end=0.002, step=0.001, every=0.001, samples=8, seed=3,
            projection="nearest", kinematics=sampling, symmetrical=symmetrical,
            pair_sampling="uniform", **quiet(where),
        )  # fmt: skip
        drift[symmetrical] = int(ds.charge_drift.values[-1, 0])
    assert drift[True] == 0
    assert drift[False] != 0


@BY_NAME
def test_gluons_end_exactly_where_number_and_energy_say(where):
    """Every cell within 1e-6 of Bose-Einstein at the run's own T, mu and m^2; both as predicted."""
    model, grid = rb.gluons(0.3), rb.PhaseSpace(12, 2.0)
    start = {"g": rb.initial.step(0.5, 1.5, sampling="node")}
    ds = rb.solve(
        model, grid, start, end=30.0, every=1.0, snapshots=[30.0], samples=16, **quiet(where)
    )
    assert not ds.charge_drift.values.any() and not ds.momentum_drift.values.any()
    energy = ds.energy_total.values
    assert abs(energy / energy[0] - 1).max() < 2e-6
    assert (np.diff(ds.entropy.values) > -1e-12 * ds.entropy.values[0]).all()
    t, mu, m2 = (float(ds[k].values[-1].squeeze()) for k in
                 ("temperature", "chemical_potential", "mass_squared"))  # fmt: skip
    bose = equilibrium.thermal(grid, model, t, np.array([mu]), np.zeros(3), np.array([m2]))
    assert ds.f.values[-1].ravel() == pytest.approx(bose.ravel(), rel=1e-6)
    assert t == pytest.approx(float(ds.equilibrium_temperature), rel=1e-5)
    assert mu == pytest.approx(float(ds.equilibrium_chemical_potential[0]), rel=1e-5)
    assert m2 == pytest.approx(float(ds.equilibrium_mass_squared[0]), rel=1e-5)


@BY_NAME
def test_a_mixture_keeps_its_charges_and_turns_gluons_into_quarks(where):
    """Net flavours stay exactly 0, total energy holds, quarks approach their predicted share."""
    ds = rb.solve(
        QCD, rb.PhaseSpace(10, 2.0), {"g": rb.initial.step(0.5, 1.5)}, end=8.0, every=1.0,
        samples=8, **quiet(where),
    )  # fmt: skip
    assert not ds.charge_drift.values.any() and not ds.momentum_drift.values.any()
    energy = ds.energy_total.values
    assert abs(energy / energy[0] - 1).max() < 1e-5
    quarks = 1 - ds.number.sel(species="g") / ds.number.sum("species")
    assert (np.diff(quarks) > 0).all() and 0.3 < float(quarks[-1]) < 0.69
    by_flavour = ds.number.isel(time=-1).sel(species=["u", "d", "s", "ubar", "dbar", "sbar"])
    assert by_flavour.values == pytest.approx(float(by_flavour.mean()), rel=0.01)
    assert float(by_flavour.sel(species="u")) == pytest.approx(
        float(by_flavour.sel(species="ubar")), rel=1e-13
    )
