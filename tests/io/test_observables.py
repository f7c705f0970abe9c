"""Observables: sums over the nodes that mean what they say, and balances in space."""

from dataclasses import replace

import numpy as np
import pytest
from begun import EVERYWHERE, begun, observer_of

import relboltz as rb
from relboltz import thermodynamics as equilibrium
from relboltz.backends.cpu.collider import Collider
from relboltz.grid.units import HBARC
from relboltz.io.observables import charges, momentum

GRID = rb.PhaseSpace(24, 4.0)
QCD = rb.qcd(0.3, masses={"g": 0.7, "quarks": 0.4})
QUIET = dict(backend="cpu", progress=False)


def thermal(velocity=(0, 0, 0), temperature=0.3, mu=0.1):
    m2 = QCD.constant_mass_squared
    return equilibrium.thermal(GRID, QCD, temperature, np.full(7, mu), np.array(velocity), m2)


def recorded(f, grid=GRID, model=QCD, m2=None, where="cpu"):
    """Return the record of f, with its own masses or with given ones."""
    backend, state = begun(grid, model, f, where)
    if m2 is not None:
        state.squares[:, : len(model.species)] = m2
    record = observer_of(backend).record(state)
    return {name: np.squeeze(value) for name, value in record.items()}


def tensor_of(f, m2=None):
    return recorded(f, m2=m2)["energy_momentum"]


@EVERYWHERE
def test_the_trace_is_the_mass_term(where):
    """T^00 - Sum T^ii = Sum m^2 Y, and 0 for massless particles."""
    f, m2 = thermal(), QCD.constant_mass_squared
    record = recorded(f, where=where)
    tensor = record["energy_momentum"]
    y = equilibrium.coupling_integrals(GRID, QCD, f, m2)
    assert record["coupling_integrals"] == pytest.approx(y, rel=1e-9)
    assert tensor[0, 0] - np.trace(tensor[1:, 1:]) == pytest.approx(m2 @ y / HBARC**3, rel=1e-9)
    massless = tensor_of(f, np.zeros(7))
    assert massless[0, 0] == pytest.approx(np.trace(massless[1:, 1:]), rel=1e-12)


def test_the_tensor_is_symmetric_and_isotropic_at_rest():
    """T^ij = P delta^ij, no momentum; T^{mu nu} = T^{nu mu} with flow as well."""
    tensor = tensor_of(thermal())
    pressure = tensor[1, 1]
    assert tensor[1:, 1:] == pytest.approx(pressure * np.eye(3), abs=1e-12 * pressure)
    assert abs(tensor[0, 1:]).max() < 1e-12 * pressure
    flow = tensor_of(thermal((0.1, 0.2, -0.3)))
    assert np.array_equal(flow, flow.T)
    assert flow[0, 1] > 0 > flow[0, 3]


def test_the_flux_of_momentum_tends_to_the_tensor_on_fine_nodes():
    """Velocities of the grid differ from p/E by O(dp^2), for every component."""
    apart = []
    for n in (8, 16, 32):
        grid = rb.PhaseSpace(n, 3.0)
        m2, v = QCD.constant_mass_squared, np.array([0.3, -0.2, 0.4])
        record = recorded(equilibrium.thermal(grid, QCD, 0.3, np.zeros(7), v, m2), grid)
        tensor = record["energy_momentum"][1:, 1:]
        apart.append(np.abs(record["momentum_flux"] / tensor - 1))
    assert (apart[0] / apart[1] > 3).all() and (apart[1] / apart[2] > 3.5).all()
    assert apart[2].max() < 0.02


@EVERYWHERE
def test_entropy_obeys_the_thermodynamic_relation(where):
    """T s = e + P - mu n in equilibrium, for Bose and Fermi gases together."""
    f = thermal()
    record = recorded(f, where=where)
    tensor = record["energy_momentum"]
    n = (QCD.degeneracy[:, None] * f).sum() * GRID.measure
    expected = (tensor[0, 0] + tensor[1, 1] - 0.1 * n) / 0.3
    assert record["entropy"] == pytest.approx(expected, rel=1e-3)


def sources(steps):
    """A run of 0.6 fm, recorded after every step; all steps draw the same events."""
    return rb.solve(
        rb.gluons(0.3), rb.PhaseSpace(8, 2.0), {"g": rb.initial.gaussian(0.5, [0.6, 0.8, 1.0])},
        end=0.6, step=0.6 / steps, every=0.6 / steps, samples=512, pair_sampling="uniform",
        progress=False, backend="cpu",
    )  # fmt: skip


def test_the_source_is_of_second_order_and_adds_up_to_the_change_of_kinetic_energy(monkeypatch):
    """d T^00/dt = S_ex^0 (paper, Fig. 6): the masses' change is all that moves kinetic energy.

    Errors fall by 16 when steps are quartered: of S at 0, 0.2, 0.4 and 0.6 fm, the largest, and of
    its integral over the records. Events land elsewhere when masses change, by jumps that many
    samples make small; a difference over the last step would gain a factor of 4.
    """
    draw = Collider.draw
    monkeypatch.setattr(
        Collider, "draw", lambda self, d, *rest: draw(self, replace(d, step=0), *rest)
    )
    coarse, fine, finest = (sources(n) for n in (3, 12, 48))

    def error(ds):
        every = (len(ds.time) - 1) // 3
        return float(np.abs(ds.source.values[::every] - finest.source.values[::16]).max())

    assert error(fine) < error(coarse) / 9
    assert error(fine) < 0.002 * float(np.abs(finest.source).max())

    def rest(ds):
        change = ds.energy_kinetic.values[-1] - ds.energy_kinetic.values[0]
        return abs(1 - np.trapezoid(ds.source, ds.time) / change)

    assert rest(finest) < rest(fine) / 9 and rest(finest) < 1e-4


def test_the_source_of_the_first_records_follows_from_the_first_two_steps():
    """Masses at three times, uneven: S at each of them is that of their parabola."""
    ds = rb.solve(
        rb.gluons(0.3), rb.PhaseSpace(8, 2.0), {"g": rb.initial.step(0.5, 1.5)}, end=0.05,
        step=0.03, every=0.03, samples=4, progress=False, backend="cpu",
    )  # fmt: skip
    t, m2 = ds.time.values, ds.mass_squared.values[:, 0]
    assert t == pytest.approx([0.0, 0.03, 0.05])
    slope = np.polynomial.Polynomial.fit(t, m2, 2).deriv()(t)
    y = m2 / rb.gluons(0.3).mass_coupling[0, 0]
    assert ds.source.values == pytest.approx(0.5 * slope * y / HBARC**3, rel=1e-9)


def test_numbers_and_energies_by_species_add_up():
    """Densities from the integers are those of f; energies add up to T^00."""
    ds = rb.solve(
        QCD, rb.PhaseSpace(9, 2.0), {"g": rb.initial.step(0.5, 1.5)}, end=0.05, every=0.05,
        samples=2,
    )  # fmt: skip
    grid = rb.PhaseSpace(9, 2.0)
    f = ds.f.values[-1].reshape(7, -1)
    assert ds.number.values[-1] == pytest.approx(QCD.degeneracy * f.sum(axis=1) * grid.measure)
    total = ds.energy_by_species.sum("species").values
    assert total == pytest.approx(ds.energy_kinetic.values, rel=1e-13)
    assert ds.energy_kinetic.values == pytest.approx(ds.energy_total.values, rel=1e-13)


@EVERYWHERE
def test_charges_and_momentum_are_exact_integers(where):
    """Net flavours and momentum of a state, counted by hand; sites and all that left add up."""
    grid = rb.PhaseSpace([4, 3, 5], 1.0, [2, 1, 1], 1.0, "open")
    model = QCD
    f = np.zeros((2, 7, *grid.momentum_cells))
    f[0, 1, 3, 1, 0] = 0.5  # one u quark cell at p = (+3, 0, -4) half spacings
    f[1, 4, 0, 2, 2] = 0.25  # one ubar cell at (-3, +2, 0)
    backend, state = begun(grid, model, f, where)
    quark, antiquark = 3 * 2**state.bits, 3 * 2**state.bits // 2
    expected = ([quark + antiquark, quark - antiquark, 0, 0],
                [3 * quark - 3 * antiquark, 2 * antiquark, -4 * quark])  # fmt: skip
    for _ in range(2):
        moments = backend.moments(state.squares, np.zeros((7, grid.size)))
        assert charges(model, moments, state) == expected[0]
        assert momentum(grid, moments, state) == expected[1]
        state.ledger.enter([backend.stream(0, 0.4, state.squares, None)])
    assert state.ledger.left[0].any()


def test_an_anisotropic_start_relaxes_to_equal_pressures():
    """P_L/P_T rises from its start towards 1."""
    ds = rb.solve(
        rb.gluons(0.3), rb.PhaseSpace(13, 2.5), {"g": rb.initial.gaussian(0.5, [0.8, 0.8, 0.3])},
        end=4.0, every=1.0, samples=8,
    )  # fmt: skip
    ratio = ds.pressure_ratio.values
    assert ratio[0] < 0.35 and (np.diff(ratio) > 0).all() and ratio[-1] > 0.9


# --- in space -----------------------------------------------------------------------------------


def gas(collide=False):
    """Particles of constant mass."""
    processes = [rb.Process("a a -> a a", lambda s: 400.0 * s)] if collide else []
    return rb.Model([rb.Species("a", 2, 0)], processes, masses={"a": 0.3})


def changes(ds, axis):
    """d_t of the momentum (3, sites) at the last record but one, and d_x of a quantity there."""
    place = "xyz"[axis]
    dx = float(ds[place][1] - ds[place][0])
    t = ds.time.values
    rate = (ds.momentum.values[-1] - ds.momentum.values[-3]) / (t[-1] - t[-3])

    def along(values):
        return ((values.roll({place: -1}) - values.roll({place: 1})) / (2 * dx)).values.reshape(-1)

    return rate.reshape(3, -1), along


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_a_linear_profile_changes_by_exactly_the_divergence_of_the_flux(axis):
    """d_t T^{0i} = -d_j flux^{ij} to rounding, i, j = x, y, z; with p/E it is wrong by O(dp^2).

    Far from the walls a profile linear in x stays linear, so that nothing depends on dx or dt.
    """
    cells = [1, 1, 1]
    cells[axis] = 96
    grid = rb.PhaseSpace([6, 5, 4], 2.0, cells, 24.0, "open")

    def start(x, y, z, px, py, pz):
        place = (x, y, z)[axis]
        return (1 + 0.03 * place) * np.exp(-np.sqrt(0.1 + px**2 + py**2 + pz**2 - 0.5 * px * py
                                                   + 0.3 * pz * px + 0.4 * py * pz))  # fmt: skip

    shape = {"a": rb.initial.from_function(start, sampling="node")}
    ds = rb.solve(gas(), grid, shape, end=0.2, step=0.1, every=0.1, **QUIET)
    rate, along = changes(ds, axis)
    now, middle = ds.isel(time=-2), slice(47, 49)
    scale = np.abs(rate[:, middle]).max()
    for i, name in enumerate("xyz"):
        flux = along(now.momentum_flux.sel(axis=name, axis2="xyz"[axis]))
        assert rate[i, middle] == pytest.approx(-flux[middle], abs=1e-10 * scale)
    tensor = along(now.energy_momentum.sel(mu="xyz"[axis], nu="xyz"[axis]))
    assert np.abs(rate[axis, middle] + tensor[middle]).min() > 0.01 * scale


@pytest.mark.parametrize("collide", [False, True])
def test_the_balance_of_momentum_holds_with_the_flux_of_the_grid(collide):
    """d_t T^{0x} + d_x flux^{xx} falls as dx^2 on fixed momentum nodes, streaming or colliding.

    With T^{xx} instead it tends to a limit: its velocities p/E are not those of the transport.
    """

    def wave(x, y, z, px, py, pz):
        return 0.3 * np.exp(0.5 * np.sin(np.pi * x / 3) - (px - 0.2) ** 2 - py**2 - pz**2)

    flux, tensor = [], []
    for n in (16, 32, 64):
        grid = rb.PhaseSpace(5, 2.0, [n, 1, 1], 3.0)
        ds = rb.solve(
            gas(collide), grid, {"a": rb.initial.from_function(wave, sampling="node")},
            end=0.4 + 1.6 / n, step=1.6 / n, every=1.6 / n, samples=64, **QUIET,
        )  # fmt: skip
        rate, along = changes(ds, 0)
        now = ds.isel(time=-2)
        scale = np.abs(rate[0]).max()
        for apart, values in (
            (flux, now.momentum_flux.sel(axis="x", axis2="x")),
            (tensor, now.energy_momentum.sel(mu="x", nu="x")),
        ):
            apart.append(np.abs(rate[0] + along(values)).max() / scale)
    assert flux[0] / flux[1] > 3.5 and flux[1] / flux[2] > 3.5 and flux[2] < 0.005
    assert tensor[2] > 0.015 and tensor[2] > 0.8 * tensor[1]


def test_with_thermal_masses_the_pressure_of_the_field_makes_up_for_the_force():
    """d_t T^{0x} + d_x (flux^{xx} + B), B = E_kin - E_total, falls with dx and dp together."""

    def hump(x, y, z, px, py, pz):
        return 0.4 * np.exp(-(px**2) / 1.2 - py**2 - pz**2) * (1 + 0.5 * np.cos(np.pi * x / 3))

    left, force = [], []
    for n, nodes in ((8, 8), (16, 16)):
        grid = rb.PhaseSpace(nodes, 3.2, [n, 1, 1], 3.0)
        ds = rb.solve(
            rb.gluons(0.3), grid, {"g": rb.initial.from_function(hump, sampling="node")},
            end=6.4 / n, step=0.8 / n, every=0.8 / n, samples=8, **QUIET,
        )  # fmt: skip
        rate, along = changes(ds, 0)
        now = ds.isel(time=-2)
        flux = along(now.momentum_flux.sel(axis="x", axis2="x"))
        field = along(now.energy_kinetic - now.energy_total)
        scale = np.abs(rate[0]).max()
        left.append(np.abs(rate[0] + flux + field).max() / scale)
        force.append(np.abs(rate[0] + flux).max() / scale)
    assert left[1] < 0.4 * left[0] and left[1] < 0.15 * force[1]


def test_the_flux_of_momentum_is_that_of_f_and_not_symmetric():
    """Nine components in every cell, their averages, and the limit T^{ij} of fine nodes."""
    grid = rb.PhaseSpace([6, 5, 4], 2.0, [4, 3, 1], 3.0, ["periodic", "open", "periodic"])

    def tilted(x, y, z, px, py, pz):
        return np.exp(
            0.1 * x - (px - 0.3) ** 2 - (py - 0.2) ** 2 - pz**2 + 0.5 * px * py + 0.2 * pz
        )

    ds = rb.solve(
        rb.gluons(0.3), grid, {"g": tilted}, end=0.1, every=0.1, samples=1, snapshots=[0.1],
        **QUIET,
    )  # fmt: skip
    assert ds.momentum_flux.dims == ("time", "axis", "axis2", "x", "y", "z")
    f = ds.f.values[-1, 0, 2, 1, 0].ravel()
    m2 = float(ds.mass_squared.values[-1, 0, 2, 1, 0])
    p = grid.momenta
    for j in range(3):
        half = np.eye(3)[j][:, None] * grid.spacing[j] / 2
        high, low = (np.sqrt(((p + s * half) ** 2).sum(axis=0) + m2) for s in (1, -1))
        expected = 16 * grid.measure * (p * f * (high - low) / grid.spacing[j]).sum(axis=1)
        found = ds.momentum_flux.values[-1, :, j, 2, 1, 0]
        assert found == pytest.approx(expected, rel=1e-9, abs=1e-12)
    flux = ds.momentum_flux.isel(time=-1, x=2, y=1, z=0)
    assert abs(float(flux[0, 1] / flux[1, 0] - 1)) > 1e-3
    assert np.allclose(ds.total_momentum_flux, ds.momentum_flux.mean(("x", "y", "z")), rtol=1e-12)


def test_the_source_in_space_is_of_second_order_from_the_start_on():
    """Streaming and force, no collisions: errors at all sites fall by four when dt is halved."""

    def flowing(x, y, z, px, py, pz):
        f = np.exp(-((px - 0.4) ** 2) / 1.2 - py**2 - pz**2)
        return 0.4 * f * (1 + 0.5 * np.cos(np.pi * x / 3))

    model = rb.Model([rb.Species("g", 16, 1)], [], mass_coupling=rb.gluons(0.3).mass_coupling)
    grid = rb.PhaseSpace(7, 2.0, [6, 1, 1], 3.0)
    found = []
    for steps in (8, 16, 32, 64):
        ds = rb.solve(
            model, grid, {"g": flowing}, end=0.8, step=0.8 / steps, every=0.4, **QUIET
        )  # fmt: skip
        found.append(ds.source.values[..., 0, 0])
    apart = np.abs(np.diff(found, axis=0)).max(axis=2)  # (halvings, times)
    orders = np.log2(apart[:-1] / apart[1:])
    assert (orders > 1.7).all(), orders
    assert (apart[-1] < 2e-4 * np.abs(found[-1]).max()).all()
