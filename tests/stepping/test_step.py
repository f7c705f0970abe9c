"""From one stop to the next: order in dt, the first step, refusals and failures, forces."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from begun import BY_NAME, EVERYWHERE, advanced, begun, course_of, f_of

import relboltz as rb
from relboltz.backends.cpu.backend import CpuBackend
from relboltz.events.collisions import Flows
from relboltz.grid.expansion import Expansion
from relboltz.stepping.control import FIRST_STEP
from relboltz.stepping.expanding import ExpansionSchedule
from relboltz.stepping.state import State
from relboltz.stepping.step import StepPlan, advance
from relboltz.stepping.step_report import StepReport
from relboltz.transport.ledger import LostQuanta
from relboltz.util.errors import Halted

GLUONS = rb.gluons(0.3)
START = {"g": rb.initial.step(0.5, 1.5)}
QUIET = dict(backend="cpu", progress=False)


def hump(x, y, z, px, py, pz):
    """Denser in the middle, faster than thermal along x."""
    return 0.4 * np.exp(-(px**2) / 1.2 - py**2 - pz**2) * (1 + 0.5 * np.cos(np.pi * x / 3))


# --- order --------------------------------------------------------------------------------------


def test_total_energy_drifts_at_second_order_or_better():
    """With masses extrapolated to the mean of a step, half the step leaves at most a quarter.

    A mean over four seeds: 12^3 nodes, 1 fm, steps of 0.12, 0.06, 0.03 fm.
    """
    grid = rb.PhaseSpace(12, 2.0)
    drift = []
    for step in (0.12, 0.06, 0.03):
        runs = [
            rb.solve(
                GLUONS, grid, START, end=0.96, step=step, every=0.96, samples=32, seed=seed, **QUIET
            )
            for seed in (1, 2, 3, 4)
        ]
        drift.append(np.mean([float(ds.energy_total[-1] / ds.energy_total[0] - 1) for ds in runs]))
    assert abs(drift[1]) < abs(drift[0]) / 3.5
    assert abs(drift[2]) < abs(drift[1]) / 3.5
    assert abs(drift[2]) < 1e-7


def test_smaller_tolerances_come_closer():
    """Against a run of ten times smaller tolerance the error falls with the tolerance.

    Mean squares over six shells; 400 samples leave a noise of 0.04 % beside 0.16 % for 1e-2.
    """
    grid = rb.PhaseSpace(10, 2.0)

    def soft(tolerance):
        ds = rb.solve(
            GLUONS, grid, START, end=0.5, every=0.5, tolerance=tolerance, samples=400, **QUIET
        )
        return ds.spectrum.values[-1, 0, :6]

    fine = soft(1e-5)
    coarse, medium = (np.sqrt(np.mean((soft(t) / fine - 1) ** 2)) for t in (1e-2, 1e-4))
    assert medium < 0.5 * coarse
    assert medium < 0.01


def test_slow_gases_take_long_steps():
    """A coupling so weak that nothing happens within 1e-3 fm must not need 1e-3 fm steps."""
    model = rb.Model(
        [rb.Species("a", 1, 1)], [rb.Process("a a -> a a", lambda s: 25.0)], masses={"a": 0.5}
    )
    start = {"a": rb.initial.gaussian(0.5, [0.5, 0.5, 0.25])}
    ds = rb.solve(model, rb.PhaseSpace(9, 2.0), start, end=20.0, every=10.0, samples=4, **QUIET)
    assert ds.attrs["steps"] < 80


# --- the course of a run ------------------------------------------------------------------------


def report_of(length, error, ratio):
    flows, total = Flows(np.zeros(1), np.zeros(1), 0.0, 0.0), 10**15
    difference = round(error * total)
    moved = round(difference / ratio)
    return StepReport(length, [(difference, moved, total)], flows, (1.0, 0.0), noise=(0.0, 1.0))


def test_a_course_judges_automatic_steps_and_lets_given_ones_stand():
    automatic = course_of(rb.PhaseSpace(4, 1.0))
    state = State(44, np.ones((1, 2)), 1, FIRST_STEP, LostQuanta(automatic.grid, GLUONS))
    assert automatic.automatic and automatic.wanted(state) == FIRST_STEP
    assert automatic.judge(report_of(0.1, 1e-6, 0.01), 0.1)[0]
    stands, wanted = automatic.judge(report_of(0.1, 1e-2, 0.1), 0.1)
    assert not stands and wanted < 0.1 * 0.35
    fixed = replace(automatic, step=0.25)
    assert fixed.judge(report_of(0.25, 1.0, 9.0), 0.25) == (True, 0.25)
    assert fixed.length(state, 10.0) == fixed.wanted(state) == 0.25
    assert fixed.length(state, 10.0, 0.2) == 0.2  # as far as streaming goes


def test_steps_of_expanding_matter_are_short_where_it_is_driven_and_only_there():
    """C may change by a third of what it may at rest; errors of 1e-2 tolerances shorten nothing."""
    still = course_of(rb.PhaseSpace(4, 1.0))
    flowing = replace(still, schedule=ExpansionSchedule(Expansion("bjorken"), 1.0))
    assert still.judge(report_of(0.1, 1e-4, 0.2), 0.1)[1] > 0.1
    stands, wanted = flowing.judge(report_of(0.1, 1e-4, 0.2), 0.1)
    assert not stands and wanted == pytest.approx(0.1 * 0.9 * 0.1 / 0.2)
    assert flowing.judge(report_of(0.1, 0.9e-5, 0.9), 0.1) == (True, 0.1)
    assert not flowing.judge(report_of(0.1, 1.1e-5, 0.9), 0.1)[0]
    many = report_of(0.1, 1e-4, 0.04)  # and a thin place beside it, whose C changes by all of it
    counts = [*many.counts, (3 * 10**6, 10**6, 10**7)]
    many = StepReport(0.1, counts, many.flows, (1.0, 0.0), noise=(0.0, 1.0))
    assert flowing.judge(many, 0.1)[0] and not still.judge(many, 0.1)[0]


def test_times_as_near_as_rounding_are_the_stop():
    step_plan = StepPlan("auto", 1e-3, 1e-9, rb.PhaseSpace(4, 1.0))
    assert step_plan.met(0.3 + 1e-16, 0.3) == 0.3 and step_plan.met(0.29, 0.3) == 0.29


# --- the first step, refusals, failures ---------------------------------------------------------


@BY_NAME
def test_the_first_step_is_done_twice_and_leaves_one_trace(where):
    """A trial tells how the masses change; with constant masses there is nothing to learn."""
    grid = rb.PhaseSpace(5, 2.0, [4, 1, 1], 3.0, "open")
    for model, times in ((GLUONS, 2), (rb.gluons(0.3, masses={"g": 0.7}), 1)):
        backend, state = begun(grid, model, {"g": rb.initial.from_function(hump)}, where, samples=1)
        before, calls, collide = backend.get().copy(), [], backend.collide

        def counted(*arguments, calls=calls, collide=collide):
            calls.append(arguments)
            return collide(*arguments)

        backend.collide = counted
        advanced(backend, state, 0.1)
        assert len(calls) == times and {call[0] for call in calls} == {0}
        assert state.step == state.watch.steps == 1
        left = sum(int(words[0].sum()) * 2**32 + int(words[1].sum())
                   for words in state.ledger.left.values())  # fmt: skip
        assert int(backend.get().sum()) + left == int(before.sum()) and left > 0


def test_a_rejected_step_leaves_no_trace(monkeypatch):
    """State and ledger are those of a run that never tried it."""
    grid = rb.PhaseSpace(5, 2.0, [4, 1, 1], 3.0, "open")
    options = dict(end=0.2, every=0.2, samples=2, snapshots=[0.2], **QUIET)
    plain = rb.solve(GLUONS, grid, {"g": hump}, step=0.05, **options)
    judge, refusals = StepPlan.judge, iter([True, False, False, True, False])

    def moody(self, report, wanted):
        stands, wanted = judge(self, report, wanted)
        return stands and next(refusals, True), wanted

    monkeypatch.setattr(StepPlan, "judge", moody)
    tried = rb.solve(GLUONS, grid, {"g": hump}, step=0.05, **options)
    for name in ("f", "left_number", "left_energy", "mass_squared", "refused_number"):
        assert np.array_equal(plain[name], tried[name]), name
    assert next(refusals, None) is None


@BY_NAME
@pytest.mark.parametrize("verb", ["stream", "collide", "masses"])
def test_a_failure_within_a_step_restores_the_state_before_it(where, verb):
    """To the last bit, wherever it happens."""
    grid = rb.PhaseSpace(5, 2.0, [4, 1, 1], 3.0)
    backend, state = begun(grid, GLUONS, {"g": rb.initial.from_function(hump)}, where, samples=1)
    advanced(backend, state, 0.05)
    before, squares = backend.get().copy(), state.squares.copy()

    working, left = getattr(backend, verb), iter([1] if verb != "collide" else [])

    def fails(*arguments):
        if next(left, 0):
            return working(*arguments)
        raise RuntimeError("a bolt of lightning")

    setattr(backend, verb, fails)
    with pytest.raises(RuntimeError, match="lightning"):
        advanced(backend, state, 0.05)
    assert np.array_equal(backend.get(), before) and np.array_equal(state.squares, squares)
    assert state.step == 1 and state.time == 0.05


def test_a_failure_keeps_the_last_good_state(monkeypatch, tmp_path):
    """Collisions that fail in the middle of a step: the state before it is on disk."""
    grid = rb.PhaseSpace(5, 2.0, [4, 1, 1], 3.0)
    options = dict(step=0.05, every=0.1, samples=2, **QUIET)
    good = rb.solve(GLUONS, grid, {"g": hump}, end=0.1, snapshots=[0.1], **options)
    collide, calls = CpuBackend.collide, []

    def fails(self, *arguments):
        calls.append(1)
        if len(calls) == 4:  # the first step is done twice
            raise RuntimeError("a bolt of lightning")
        return collide(self, *arguments)

    monkeypatch.setattr(CpuBackend, "collide", fails)
    with pytest.raises(rb.RunError, match="lightning"):
        rb.solve(GLUONS, grid, {"g": hump}, end=1.0, file=tmp_path / "run.nc", **options)
    kept = rb.load(tmp_path / "run.nc")
    assert float(kept.snapshot[-1]) == pytest.approx(0.1)
    assert (kept.f[-1].values == good.f[-1].values).all()


# --- forces from outside ------------------------------------------------------------------------


@dataclass
class Pull:
    """Force that is equal for all sites and species."""

    axis: int
    strength: float

    def field(self, time, squares, grid, model):
        push = np.zeros((grid.sites, len(model.species), 2))
        push[..., 0] = self.strength
        return push


@EVERYWHERE
@pytest.mark.parametrize("cells", [1, 3])
def test_a_force_from_outside_moves_the_mean_momentum_of_matter_that_collides(where, cells):
    """By force times time, along any axis, streaming or not; collisions change nothing of it.

    What is left is the nonlinear reconstruction where f bends.
    """
    model, grid = rb.gluons(0.3, masses={"g": 0.7}), rb.PhaseSpace(12, 3.0, [1, 1, cells], 2.0)
    forces, time = [Pull(0, 0.3), Pull(2, -0.2), Pull(0, 0.1)], 0.4
    backend, state = begun(grid, model, {"g": rb.initial.gaussian(0.2, 0.7)}, where, samples=1)

    def mean():
        f = f_of(backend, state).sum(axis=(0, 1))
        return grid.momenta @ f / f.sum()

    before, quanta = mean(), int(backend.get().sum())
    state.wanted = 0.1
    for _ in backend.advance(state, course_of(grid, 0.1, forces=forces), time):
        pass
    assert state.step >= 4 and int(backend.get().sum()) == quanta
    assert mean() - before == pytest.approx([0.4 * time, 0.0, -0.2 * time], rel=0.01, abs=1e-4)


# --- forces from outside ------------------------------------------------------------------------


@dataclass(frozen=True)
class Swing:
    """F = 0.6 cos(pi t / 2) GeV/fm along x."""

    axis: int = 0

    def field(self, time, squares, grid, model):
        push = np.zeros((grid.sites, len(model.species), 2))
        push[:, :, 0] = 0.6 * np.cos(0.5 * np.pi * time)
        return push


def test_a_force_that_changes_in_time_is_of_second_order():
    """Mean momentum after 1 fm, exactly 1.2/pi; what momentum cells do is the same for any step."""
    grid = rb.PhaseSpace([48, 3, 3], [4.0, 1.0, 1.0])
    free = rb.Model([rb.Species("a", 1, 0)], [], masses={"a": 0.5})
    f = np.exp(-((grid.momenta[0] / 0.7) ** 2))[None, None]
    found = []
    for step in (0.2, 0.1, 0.05):
        backend, state = begun(grid, free, f)
        for _ in backend.advance(state, course_of(grid, step, forces=[Swing()]), 1.0):
            pass
        number = backend.get()[0, 0]
        found.append(grid.momenta[0] @ number / number.sum())
    errors = np.array(found) - 1.2 / np.pi
    assert abs(errors[2]) < 2e-3
    assert 3.5 < (found[0] - found[1]) / (found[1] - found[2]) < 4.5


def test_a_step_that_is_dropped_leaves_the_length_wanted_alone():
    """Else what is done again would not be the same."""
    grid = rb.PhaseSpace(5, 2.0, [4, 1, 1], 3.0)
    backend, state = begun(grid, GLUONS, {"g": rb.initial.step(0.5, 1.5)}, samples=1)
    for _ in advance(backend, state, course_of(grid), 1.0):
        if state.step == 3:
            break
    wanted, stream, calls = state.wanted, backend.stream, []

    def fails(*arguments):
        calls.append(arguments)
        if len(calls) == 2:  # the half behind the collisions
            raise Halted
        return stream(*arguments)

    backend.stream = fails
    with pytest.raises(Halted):
        next(advance(backend, state, course_of(grid), 1.0))
    assert state.wanted == wanted > 0 and len(calls) == 2
