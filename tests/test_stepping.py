"""Time steps: order, limits, fixed point, and independence of how the work is organised."""

from dataclasses import replace

import numpy as np
import pytest
from relboltz.stepping.stepper import (
    StepControl,
    Stepper,
    StepReport,
    fraction_bits,
    initial_state,
    mass_rate,
    noise_sums,
)

import relboltz as rb
from relboltz.backends.cpu import collider as cpu
from relboltz.backends.cpu.collider import CpuBackend, Draw, Flows
from relboltz.settings import Sampling
from relboltz.stepping.control import CHANGE, FIRST_STEP, GROWTH, largest_change, mean_ahead

GLUONS = rb.gluons(0.3)
START = {"g": rb.initial.step(0.5, 1.5)}


def begin(cells=10, samples=8, model=GLUONS, start=START, **options):
    grid = rb.PhaseSpace(cells, 2.0)
    state = initial_state(grid, model, rb.initial.evaluate(start, grid, model))
    backend = CpuBackend(grid, model, Sampling(samples=samples, **options), 2)
    return Stepper(backend, state.bits), state


def test_total_energy_drifts_at_second_order_or_better():
    """With masses extrapolated to the mean of a step, half the step leaves at most a quarter.

    A mean over four seeds: 12^3 nodes, 1 fm, steps of 0.12, 0.06, 0.03 fm.
    """
    grid = rb.PhaseSpace(12, 2.0)
    drift = []
    for step in (0.12, 0.06, 0.03):
        runs = [
            rb.solve(GLUONS, grid, START, end=0.96, step=step, every=0.96, samples=32, seed=seed)
            for seed in (1, 2, 3, 4)
        ]
        drift.append(np.mean([float(ds.energy_total[-1] / ds.energy_total[0] - 1) for ds in runs]))
    assert abs(drift[1]) < abs(drift[0]) / 3.5
    assert abs(drift[2]) < abs(drift[1]) / 3.5
    assert abs(drift[2]) < 1e-7


def test_the_extrapolated_mean_is_exact_for_parabolas():
    """Values 1 + t + t^2 at uneven times; a straight line with one past value; never below half."""
    values = [1 + t + t * t for t in (-0.3, -0.1, 0.0, 0.2)]
    mean = mean_ahead(values[2], values[1], 0.1, values[0], 0.2, 0.2)
    assert mean == pytest.approx(0.5 * (values[2] + values[3]), rel=1e-14)
    assert mean_ahead(2.0, 1.0, 0.1, 0.0, 0.0, 0.2) == pytest.approx(3.0)
    assert mean_ahead(1.0, 2.0, 0.1, 0.0, 0.0, 0.5) == pytest.approx(0.5)


def test_the_rate_of_change_of_masses_is_exact_for_parabolas():
    """Values 1 + t + t^2 at uneven times: at the state, one and two steps ago."""
    _, state = begin()
    now, before, first = (np.array([1 + t + t * t]) for t in (0.0, -0.1, -0.3))
    past = ((before, 0.0, 0.1), (first, 0.0, 0.2))
    state = replace(state, mass_squared=now, past=past)
    rates = [float(mass_rate(state, ago)[0]) for ago in range(3)]
    assert rates == pytest.approx([1.0, 0.8, 0.4], rel=1e-13)
    assert mass_rate(replace(state, past=past[:1])) == pytest.approx(0.9)
    assert np.isnan(mass_rate(replace(state, past=()))).all()


class Twins(CpuBackend):
    """Both sets hold the same events: every event sees itself, as in Heun's method."""

    def _generate(self, scratch, group, events, sums):
        super()._generate(scratch, replace(group, which=0), events, sums)


def test_a_step_is_of_second_order():
    """The same events, one step of t against two of t/2: the difference falls as t^3 per step.

    Seed, masses and (uniform) pairs are the same in all steps, and both sets have the same events
    (the noise between them is of the order of t^2): nothing but the order is measured.
    """
    model = rb.gluons(0.3, masses={"g": 0.7})
    start = {"g": rb.initial.gaussian(0.5, [0.6, 0.8, 1.0])}
    stepper, state = begin(10, 8, model, start, pairs="uniform")
    stepper.backend.__class__ = Twins

    squares = np.append(state.mass_squared, 0.49)

    def advance(parts, length):
        now = state
        for _ in range(parts):
            now, _ = stepper._attempt(replace(now, step=0), length / parts, squares)
        return now.occupation(model)

    differences = [np.abs(advance(1, t) - advance(2, t)).sum() for t in (0.08, 0.04, 0.02)]
    orders = np.log2(np.array(differences[:-1]) / differences[1:])
    assert orders == pytest.approx(3.0, abs=0.3)


def late_rate(samples, seeds, monkeypatch=None, **options):
    """Decay rate [1/fm] of the distance from equilibrium between 3 and 5 fm; twins if patched."""
    if monkeypatch is not None:
        monkeypatch.setattr("relboltz.backends.cpu.collider.CpuBackend", Twins)
    rates = []
    for seed in seeds:
        ds = rb.solve(
            GLUONS, rb.PhaseSpace(14, 2.5), START, end=5.0, every=1.0, samples=samples, seed=seed,
            backend="cpu", **options,
        )  # fmt: skip
        far = ds.equilibrium_distance.values
        rates.append(np.log(far[3] / far[5]) / 2)
    return np.mean(rates), np.std(rates, ddof=1) / np.sqrt(len(rates))


def test_relaxation_is_not_slowed_by_few_samples(monkeypatch):
    """No event is evaluated on what it moved itself.

    The late rate with 2 samples is that with 64 and shorter steps, within 2 % (its error between
    seeds is 0.3 %). Events that see themselves saturate: more than 5 % too slow.
    """
    many, _ = late_rate(64, range(2), tolerance=1e-4)
    few, error = late_rate(2, range(6))
    assert error < 0.01 * many
    assert few == pytest.approx(many, rel=0.02)
    twins, _ = late_rate(2, range(3), monkeypatch)
    assert twins < 0.95 * many


def test_the_late_rate_of_gluons_is_the_converged_one():
    """20^3 nodes, box 2.5 GeV, defaults: 1.1534 per fm (256 samples, steps of 0.005 fm).

    Steps make it 0.2 % too small; the error between seeds is 0.1 %.
    """
    rates = []
    for seed in (0, 1):
        ds = rb.solve(
            GLUONS, rb.PhaseSpace(20, 2.5), START, end=8.0, every=1.0, seed=seed, backend="cpu"
        )
        far = ds.equilibrium_distance.values
        rates.append(np.log(far[5] / far[8]) / 3)
    assert np.mean(rates) == pytest.approx(1.1534, rel=0.01)


def test_the_noise_of_a_step_is_the_scatter_between_seeds():
    """|A - B|/2 is the standard error of C: its square over C^2, against the spread of 40 draws."""
    nets, told = [], []
    for seed in range(40):
        stepper, state = begin(10, 8, seed=seed)
        _, report = stepper._attempt(state, 1e-3, np.append(state.mass_squared, state.screening2))
        table, occupancy = stepper.backend.tables(state.number, state.unit)
        stepper.backend.draw(Draw(0, state.mass_squared, state.screening2), occupancy)
        nets.append(stepper.backend.net((table, table), 1e15)[0].sum(axis=0))
        told.append(report.noise_ratio)
    spread = np.var(nets, axis=0, ddof=1).sum()
    size = np.square(np.array(nets, float)).sum(axis=1).mean()
    assert np.mean(told) == pytest.approx(spread / size, rel=0.1)
    assert noise_sums(np.array([[3, -1], [1, 5]])) == (4.0 + 36.0, 16.0 + 16.0)


def test_smaller_tolerances_come_closer():
    """Against a run of ten times smaller tolerance the error falls with the tolerance.

    Mean squares over six shells; 400 samples leave a noise of 0.04 % beside 0.16 % for 1e-2.
    """
    grid = rb.PhaseSpace(10, 2.0)

    def soft(tolerance):
        ds = rb.solve(GLUONS, grid, START, end=0.5, every=0.5, tolerance=tolerance, samples=400)
        return ds.spectrum.values[-1, 0, :6]

    fine = soft(1e-5)
    coarse, medium = (np.sqrt(np.mean((soft(t) / fine - 1) ** 2)) for t in (1e-2, 1e-4))
    assert medium < 0.5 * coarse
    assert medium < 0.01


def test_events_drawn_again_are_the_same_bits(monkeypatch):
    """A state too large to keep its events is stepped through redrawn ones, to the same result."""
    stepper, state = begin()
    kept, _ = stepper.step(state, 0.02)
    monkeypatch.setattr(cpu, "STORE_LIMIT", 0)
    stepper, state = begin()
    again, _ = stepper.step(state, 0.02)
    assert not stepper.backend._stored
    assert np.array_equal(kept.number, again.number)
    assert np.array_equal(kept.mass_squared, again.mass_squared)


def test_another_seed_is_another_draw_of_the_same_physics():
    """Different bits, the same change of the second moment within its scatter."""
    moments = []
    for seed in (1, 2, 3, 4):
        stepper, state = begin(10, 64, seed=seed)
        new, _ = stepper.step(state, 0.1)
        moments.append(float((new.number * stepper.grid.momentum_squared**2).sum()))
    assert len(set(moments)) == 4
    assert np.std(moments) < 5e-3 * np.mean(moments)


def test_the_quantum_leaves_room_for_all_particles_in_one_cell():
    """44 bits behind the point, fewer for huge totals; never an overflow."""
    few, many = np.full((1, 27000), 0.2), np.full((1, 10**6), 50.0)
    assert fraction_bits(few, GLUONS) == 44
    bits = fraction_bits(many, GLUONS)
    assert bits < 44 and (many * 16).sum() * 2.0**bits < 2**62


def test_flows_are_the_rates_of_change_of_number():
    """u ubar -> g g forward minus backward is the gain of gluon pairs that the step makes."""
    full = rb.qcd(0.3, flavors=1)
    process = next(p for p in full.processes if p.name == "u ubar -> g g")
    masses = {"g": 0.6, "u": 0.4, "ubar": 0.4}
    model = rb.Model(full.species, [process], masses=masses, screening=0.6)
    start = {"g": rb.initial.step(0.5, 1.5), "u": rb.initial.step(0.1, 1.0)}
    stepper, state = begin(10, 16, model, start)
    length = 1e-4
    new, report = stepper._attempt(state, length, np.append(state.mass_squared, 0.36))
    gained = (new.number - state.number).reshape(3, -1).sum(axis=1) * state.unit / length
    net = report.flows.forward[0] - report.flows.backward[0]
    assert net < 0
    assert gained == pytest.approx([2 * net, -net, -net], rel=1e-3)


def report_of(length, error, ratio):
    flows, total = Flows(np.zeros(1), np.zeros(1), 0.0, 0.0), 10**15
    difference = round(error * total)
    moved = round(difference / ratio)
    return StepReport(length, difference, moved, total, flows, (1.0, 0.0), 0.0, (0.0, 1.0))


def test_step_control_follows_error_and_change():
    """Grows while both are small, shrinks with either, rejects what was far too long."""
    control = StepControl("auto", 1e-3)
    assert control.length(10.0) == FIRST_STEP
    assert control.learn(report_of(FIRST_STEP, 1e-6, 0.01))
    assert control.length(10.0) == pytest.approx(GROWTH * FIRST_STEP)
    assert not control.learn(report_of(0.1, 1e-2, 0.1))
    assert control.length(10.0) < 0.1 * 0.35
    assert not control.learn(report_of(0.1, 1e-5, 3 * CHANGE))
    assert largest_change(1e-5, 0.0) == pytest.approx(0.1 * CHANGE)  # finer with the tolerance
    assert largest_change(1e-3, 0.25) == pytest.approx(0.5 * CHANGE)  # and where there is noise
    fixed = StepControl(0.25, 1e-3)
    assert fixed.learn(report_of(0.25, 1.0, 9.0)) and fixed.length(10.0) == 0.25


def test_stops_are_met_without_tiny_steps():
    """A stop within reach is hit, one just beyond is split in two."""
    control = StepControl("auto", 1e-3)
    control.wanted = 0.1
    assert control.length(0.1) == 0.1
    assert control.length(0.11) == pytest.approx(0.055)
    assert control.length(0.3) == 0.1


def test_lost_weight_is_the_part_of_collisions_without_a_place():
    """A box twice as large loses almost nothing of what a tight one loses."""
    lost = []
    for half_width in (1.2, 2.4):
        grid = rb.PhaseSpace(12, half_width)
        model = rb.gluons(0.3, masses={"g": 0.7})
        f = rb.initial.evaluate({"g": rb.initial.thermal(0.3)}, grid, model)
        state = initial_state(grid, model, f)
        backend = CpuBackend(grid, model, Sampling(samples=16), 2)
        _, occupancy = backend.tables(state.number, state.unit)
        total, gone = backend.draw(Draw(0, state.mass_squared, 0.49), occupancy)
        lost.append(gone / total)
    assert lost[0] > 0.05 and lost[1] < 0.1 * lost[0]


@pytest.mark.parametrize("length", [1e4, 1e7, 1e12])
def test_no_step_is_too_long_to_stay_legal(length):
    """Beyond what 64-bit sums of the demands can hold: still legal and conserving."""
    stepper, state = begin(9, 4)
    new, report = stepper._attempt(state, length, np.append(state.mass_squared, state.screening2))
    assert (new.number >= 0).all() and int(new.number.sum()) == int(state.number.sum())
    assert 0 < report.limited_weight <= 1


def test_slow_gases_take_long_steps():
    """A coupling so weak that nothing happens within 1e-3 fm must not need 1e-3 fm steps."""
    model = rb.Model(
        [rb.Species("a", 1, 1)], [rb.Process("a a -> a a", lambda s: 25.0)], masses={"a": 0.5}
    )
    start = {"a": rb.initial.gaussian(0.5, [0.5, 0.5, 0.25])}
    ds = rb.solve(model, rb.PhaseSpace(9, 2.0), start, end=20.0, every=10.0, samples=4)
    assert ds.attrs["steps"] < 80
