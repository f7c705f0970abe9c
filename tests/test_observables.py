"""Observables: sums over the nodes that mean what they say."""

from dataclasses import replace

import numpy as np
import pytest

import relboltz as rb
from relboltz.backends.cpu.collider import CpuBackend
from relboltz.backends.cpu.moments import measure
from relboltz.equilibrium import states as equilibrium
from relboltz.records.moments import Shells
from relboltz.records.observables import (
    charges,
    coupling_integrals,
    energy_momentum,
    entropy,
    momentum_flux,
)
from relboltz.stepping.stepper import exact_sum, initial_state
from relboltz.units import HBARC

GRID = rb.PhaseSpace(24, 4.0)
QCD = rb.qcd(0.3, masses={"g": 0.7, "quarks": 0.4})


def thermal(velocity=(0, 0, 0), temperature=0.3, mu=0.1):
    m2 = QCD.constant_mass_squared
    return equilibrium.thermal(GRID, QCD, temperature, np.full(7, mu), np.array(velocity), m2)


def sums(f, m2, grid=GRID, model=QCD):
    """Moments of f with given masses, and the quantum of their whole numbers."""
    state = replace(initial_state(grid, model, f), mass_squared=np.asarray(m2))
    return measure(grid, model, state, Shells.of(grid), f), state.unit


def tensor_of(f, m2):
    return energy_momentum(GRID, QCD, *sums(f, m2))


def test_the_trace_is_the_mass_term():
    """T^00 - Sum T^ii = Sum m^2 Y, and 0 for massless particles."""
    f, m2 = thermal(), QCD.constant_mass_squared
    tensor = tensor_of(f, m2)
    y = equilibrium.coupling_integrals(GRID, QCD, f, m2)
    assert coupling_integrals(GRID, QCD, sums(f, m2)[0]) == pytest.approx(y, rel=1e-9)
    assert tensor[0, 0] - np.trace(tensor[1:, 1:]) == pytest.approx(m2 @ y / HBARC**3, rel=1e-9)
    massless = tensor_of(f, np.zeros(7))
    assert massless[0, 0] == pytest.approx(np.trace(massless[1:, 1:]), rel=1e-12)


def test_the_tensor_is_symmetric_and_isotropic_at_rest():
    """T^ij = P delta^ij, no momentum; T^{mu nu} = T^{nu mu} with flow as well."""
    tensor = tensor_of(thermal(), QCD.constant_mass_squared)
    pressure = tensor[1, 1]
    assert tensor[1:, 1:] == pytest.approx(pressure * np.eye(3), abs=1e-12 * pressure)
    assert abs(tensor[0, 1:]).max() < 1e-12 * pressure
    flow = tensor_of(thermal((0.1, 0.2, -0.3)), QCD.constant_mass_squared)
    assert np.array_equal(flow, flow.T)
    assert flow[0, 1] > 0 > flow[0, 3]


def test_the_flux_of_momentum_tends_to_the_tensor_on_fine_nodes():
    """Velocities of the grid differ from p/E by O(dp^2), for every component."""
    apart = []
    for n in (8, 16, 32):
        grid = rb.PhaseSpace(n, 3.0)
        m2, v = QCD.constant_mass_squared, np.array([0.3, -0.2, 0.4])
        f = equilibrium.thermal(grid, QCD, 0.3, np.zeros(7), v, m2)
        moments, unit = sums(f, m2, grid)
        flux = momentum_flux(grid, QCD, moments)
        tensor = energy_momentum(grid, QCD, moments, unit)[1:, 1:]
        apart.append(np.abs(flux / tensor - 1))
    assert (apart[0] / apart[1] > 3).all() and (apart[1] / apart[2] > 3.5).all()
    assert apart[2].max() < 0.02


def test_entropy_obeys_the_thermodynamic_relation():
    """T s = e + P - mu n in equilibrium, for Bose and Fermi gases together."""
    f = thermal()
    tensor = tensor_of(f, QCD.constant_mass_squared)
    n = (QCD.degeneracy[:, None] * f).sum() * GRID.measure
    expected = (tensor[0, 0] + tensor[1, 1] - 0.1 * n) / 0.3
    assert entropy(GRID, QCD, f) == pytest.approx(expected, rel=1e-3)


def sources(steps):
    """A run of 0.6 fm, recorded after every step; all steps draw the same events."""
    return rb.solve(
        rb.gluons(0.3), rb.PhaseSpace(8, 2.0), {"g": rb.initial.gaussian(0.5, [0.6, 0.8, 1.0])},
        end=0.6, step=0.6 / steps, every=0.6 / steps, samples=512, pairs="uniform", progress=False,
        backend="cpu",
    )  # fmt: skip


def test_the_source_is_of_second_order_and_adds_up_to_the_change_of_kinetic_energy(monkeypatch):
    """d T^00/dt = S_ex^0 (paper, Fig. 6): the masses' change is all that moves kinetic energy.

    Errors fall by 16 when steps are quartered: of S at 0, 0.2, 0.4 and 0.6 fm, the largest, and of
    its integral over the records. Events land elsewhere when masses change, by jumps that many
    samples make small; a difference over the last step would gain a factor of 4.
    """
    draw = CpuBackend.draw
    monkeypatch.setattr(
        CpuBackend, "draw", lambda self, d, *rest: draw(self, replace(d, step=0), *rest)
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


def test_spectra_are_averages_over_shells():
    """Every node in one shell; a function of |p| alone is reproduced to the width of a shell."""
    shells = Shells.of(GRID)
    assert shells.count.sum() == GRID.size
    p = np.sqrt(GRID.momentum_squared)
    assert shells.average(p) == pytest.approx(shells.p)
    assert shells.average(np.exp(-p)) == pytest.approx(np.exp(-shells.p), rel=0.02)


def test_sums_of_integers_do_not_wrap():
    """Beyond 64 bits, with signs."""
    big = np.full(1000, 2**62, np.int64)
    assert exact_sum(big) == 1000 * 2**62
    assert exact_sum(np.array([-(2**62)] * 3 + [5], np.int64)) == -3 * 2**62 + 5


def test_charges_and_momentum_are_exact_integers():
    """Net flavours and momentum of a state, counted by hand."""
    grid = rb.PhaseSpace([4, 3, 5], 1.0)
    model = rb.qcd(0.3)
    f = np.zeros((7, *grid.momentum_cells))
    f[1, 3, 1, 0] = 0.5  # one u quark cell at p = (+3, 0, -4) half spacings
    f[4, 0, 2, 2] = 0.25  # one ubar cell at (-3, +2, 0)
    state = initial_state(grid, model, f.reshape(7, -1))
    quark, antiquark = 3 * 2**state.bits, 3 * 2**state.bits // 2
    moments = measure(grid, model, state, Shells.of(grid), f.reshape(7, -1))
    assert charges(model, moments) == [quark + antiquark, quark - antiquark, 0, 0]
    assert moments.momentum_quanta == [
        3 * quark - 3 * antiquark, 2 * antiquark, -4 * quark,
    ]  # fmt: skip


def test_an_anisotropic_start_relaxes_to_equal_pressures():
    """P_L/P_T rises from its start towards 1."""
    ds = rb.solve(
        rb.gluons(0.3), rb.PhaseSpace(13, 2.5), {"g": rb.initial.gaussian(0.5, [0.8, 0.8, 0.3])},
        end=4.0, every=1.0, samples=8,
    )  # fmt: skip
    ratio = ds.pressure_ratio.values
    assert ratio[0] < 0.35 and (np.diff(ratio) > 0).all() and ratio[-1] > 0.9
