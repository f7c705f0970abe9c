"""A step of collisions at one site: order, crossed halves, noise, limits."""

from dataclasses import replace

import numpy as np
import pytest
from begun import backend_of, begun, f_of

import relboltz as rb
from relboltz.backends.cpu.collider import Collider
from relboltz.backends.cpu.stages import noise_sums
from relboltz.events.collisions import DrawInput

GLUONS = rb.gluons(0.3)
START = {"g": rb.initial.step(0.5, 1.5)}


def matter(cells=10, samples=8, model=GLUONS, start=START, **options):
    return begun(rb.PhaseSpace(cells, 2.0), model, start, samples=samples, **options)


class Twins(Collider):
    """Both sets hold the same events: every event sees itself, as in Heun's method."""

    def _generate(self, scratch, group, events, sums):
        super()._generate(scratch, replace(group, which=0), events, sums)


def test_a_step_is_of_second_order():
    """Compare one step of t with two of t/2 on equal events: the difference falls as t^3 per step.

    Seed, masses and (uniform) pairs are the same in all steps, and both sets have the same events
    (the noise between them is of the order of t^2): nothing but the order is measured.
    """
    model = rb.gluons(0.3, masses={"g": 0.7})
    start = {"g": rb.initial.gaussian(0.5, [0.6, 0.8, 1.0])}
    backend, state = matter(10, 8, model, start, pair_sampling="uniform")
    for collider in backend.colliders:
        collider.__class__ = Twins
    number = backend.get().copy()

    def after(steps, length):
        backend.put(number, state.bits)
        for _ in range(steps):
            backend.collide(0, length / steps, state.squares)
        return f_of(backend, state)

    differences = [np.abs(after(1, t) - after(2, t)).sum() for t in (0.08, 0.04, 0.02)]
    orders = np.log2(np.array(differences[:-1]) / differences[1:])
    assert orders == pytest.approx(3.0, abs=0.3)


def late_rate(samples, seeds, **options):
    """Decay rate [1/fm] of the distance from equilibrium between 3 and 5 fm."""
    rates = []
    for seed in seeds:
        ds = rb.solve(
            GLUONS, rb.PhaseSpace(14, 2.5), START, end=5.0, every=1.0, samples=samples, seed=seed,
            backend="cpu", progress=False, **options,
        )  # fmt: skip
        far = ds.equilibrium_distance.values
        rates.append(np.log(far[3] / far[5]) / 2)
    return np.mean(rates), np.std(rates) / np.sqrt(max(len(rates) - 1, 1))


def test_relaxation_is_not_slowed_by_few_samples(monkeypatch):
    """No event is evaluated on what it moved itself.

    The late rate with 2 samples is that with 64 and shorter steps, within 2 % (its error between
    seeds is 0.3 %). Events that see themselves saturate: more than 5 % too slow.
    """
    many, _ = late_rate(64, [0], tolerance=1e-4)  # its own error is 0.2 %
    few, error = late_rate(2, range(6))
    assert error < 0.01 * many
    assert few == pytest.approx(many, rel=0.02)
    monkeypatch.setattr("relboltz.backends.cpu.backend.Collider", Twins)
    twins, _ = late_rate(2, range(3))
    assert twins < 0.95 * many


def test_the_late_rate_of_gluons_is_the_converged_one():
    """20^3 nodes, box 2.5 GeV, defaults: 1.1534 per fm (256 samples, steps of 0.005 fm).

    Steps make it 0.2 % too small; the error between seeds is 0.1 %.
    """
    rates = []
    for seed in (0, 1):
        ds = rb.solve(
            GLUONS, rb.PhaseSpace(20, 2.5), START, end=8.0, every=1.0, seed=seed, backend="cpu",
            progress=False,
        )  # fmt: skip
        far = ds.equilibrium_distance.values
        rates.append(np.log(far[5] / far[8]) / 3)
    assert np.mean(rates) == pytest.approx(1.1534, rel=0.01)


def test_the_noise_of_a_step_is_the_scatter_between_seeds():
    """|A - B|/2 is the standard error of C: its square over C^2, against the spread of 40 draws."""
    nets, told = [], []
    for seed in range(40):
        backend, state = matter(seed=seed)
        collider, number = backend.colliders[0], backend.get().ravel().copy()
        told.append(backend.collide(0, 1e-3, state.squares).noise_ratio)
        table, occupancy = collider.tables(number, state.unit)
        collider.draw(DrawInput.of(0, state.squares[0], 1), table, occupancy)
        nets.append(collider.net((table, table), 1e15)[0].sum(axis=0))
    spread = np.var(nets, axis=0, ddof=1).sum()
    size = np.square(np.array(nets, float)).sum(axis=1).mean()
    assert np.mean(told) == pytest.approx(spread / size, rel=0.1)
    assert noise_sums(np.array([[3, -1], [1, 5]])) == (4.0 + 36.0, 16.0 + 16.0)


def test_another_seed_is_another_draw_of_the_same_physics():
    """Different bits, the same change of the second moment within its scatter."""
    changes = []
    for seed in (1, 2, 3, 4):
        backend, state = matter(10, 64, seed=seed)
        weight, before = backend.grid.momentum_squared**2, backend.get().astype(float)
        backend.collide(0, 0.1, state.squares)
        changes.append(float(((backend.get() - before) * weight).sum() / (before * weight).sum()))
    assert len(set(changes)) == 4
    assert np.mean(changes) > 0.01
    assert np.std(changes) < 0.05 * np.mean(changes)


def test_flows_are_the_rates_of_change_of_number():
    """u ubar -> g g forward minus backward is the gain of gluon pairs that the step makes."""
    full = rb.qcd(0.3, flavors=1)
    process = next(p for p in full.processes if p.name == "u ubar -> g g")
    masses = {"g": 0.6, "u": 0.4, "ubar": 0.4}
    model = rb.Model(full.species, [process], masses=masses, screening=0.6)
    start = {"g": rb.initial.step(0.5, 1.5), "u": rb.initial.step(0.1, 1.0)}
    backend, state = matter(10, 16, model, start)
    length, before = 1e-4, backend.get().copy()
    report = backend.collide(0, length, state.squares)
    gained = (backend.get() - before)[0].sum(axis=1) * state.unit / length
    net = report.flows.forward[0] - report.flows.backward[0]
    assert net < 0
    assert gained == pytest.approx([2 * net, -net, -net], rel=1e-3)


# --- limits -------------------------------------------------------------------------------------


def test_limits_are_what_keeps_long_steps_legal():
    """Without the limiter a long first step from a step function leaves negative cells."""
    model, grid = rb.qcd(0.3), rb.PhaseSpace(8, 2.0)
    backend, state = begun(grid, model, START, samples=4)
    for stages in backend._stages:
        stages._legal = lambda number: True
    backend.collide(0, 1.0, state.squares)
    assert (backend.get() < 0).any()


@pytest.mark.parametrize("length", [1e4, 1e7, 1e12])
def test_no_step_is_too_long_to_stay_legal(length):
    """Beyond what 64-bit sums of the demands can hold: still legal and conserving."""
    backend, state = matter(9, 4)
    before = int(backend.get().sum())
    report = backend.collide(0, length, state.squares)
    assert (backend.get() >= 0).all() and int(backend.get().sum()) == before
    assert 0 < report.limited_weight <= 1


def test_unsymmetrical_events_that_do_not_fit_are_an_error():
    """They cannot be scaled as a whole: f is clipped, and sums beyond 64 bits are refused."""
    backend, state = matter(
        9, 4, rb.gluons(0.3, masses={"g": 0.7}), projection="nearest", symmetrical=False
    )
    backend.collide(0, 0.01, state.squares)
    assert (backend.get() >= 0).all()
    with pytest.raises(rb.RunError, match="far too long"):
        backend.collide(0, 1e12, state.squares)


def test_collisions_at_a_site_are_those_of_a_homogeneous_system():
    """A site draws the events that a homogeneous system with its site number draws."""
    model = rb.gluons(0.3, masses={"g": 0.7})
    grid = rb.PhaseSpace(5, 2.0, [3, 1, 2], 3.0)

    def hump(x, y, z, px, py, pz):
        return 0.4 * np.exp(-(px**2) / 1.2 - py**2 - pz**2) * (1 + 0.5 * np.cos(np.pi * x / 3))

    start = {"g": rb.initial.from_function(hump)}
    backend, state = begun(grid, model, start, samples=3, seed=11)
    number, squares = backend.get().copy(), np.tile([0.49, 0.36], (grid.sites, 1))
    backend.collide(7, 0.05, squares)
    one = grid.without_space
    for site in range(grid.sites):
        alone = backend_of(one, model, numbers=np.array([site]), threads=1, samples=3, seed=11)
        alone.put(number[site : site + 1], state.bits)
        alone.collide(7, 0.05, squares[:1])
        assert (backend.get()[site] == alone.get()[0]).all()
    other = backend_of(one, model, numbers=np.array([1]), threads=1, samples=3, seed=11)
    other.put(number[:1], state.bits)
    other.collide(7, 0.05, squares[:1])
    assert (backend.get()[0] != other.get()[0]).any()
