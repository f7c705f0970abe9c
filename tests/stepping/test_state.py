"""The state of a run: rates of the masses, and a way to a file and back that loses no bit."""

import io

import numpy as np
import pytest
from begun import BY_NAME, backend_of, begun, course_of, f_of, observer_of

import relboltz as rb
from relboltz.stepping.state import State
from relboltz.transport.ledger import LostQuanta

GLUONS = rb.gluons(0.3)


def test_the_rate_of_change_of_masses_is_exact_for_parabolas():
    """Values 1 + t + t^2 at uneven times: at the state, one and two steps ago."""
    grid = rb.PhaseSpace(4, 2.0)
    now, before, first = (np.array([[1 + t + t * t, 9.0]]) for t in (0.0, -0.1, -0.3))
    state = State(44, now, 1, 0.1, LostQuanta(grid, GLUONS))
    assert np.isnan(state.mass_rate()).all()
    state.past = [((now - before) / 0.1, 0.1)]
    assert state.mass_rate() == pytest.approx(0.9)
    state.past.append(((before - first) / 0.2, 0.2))
    rates = [state.mass_rate(ago).item() for ago in range(3)]
    assert rates == pytest.approx([1.0, 0.8, 0.4], rel=1e-13)


def test_a_state_remembers_two_steps_as_a_whole_and_in_parts():
    state = State(44, np.array([[1.0, 2.0]]), 1, 0.1, LostQuanta(rb.PhaseSpace(4, 2.0), GLUONS))
    for k, length in enumerate((0.1, 0.2, 0.4)):
        rates = [np.array([[k + 0.1 * part, 0.0]]) for part in range(3)]
        state.step_taken(state.squares + length, rates, length, state.time + length)
    assert state.step == 3 and state.time == pytest.approx(0.7)
    assert [length for _, length in state.past] == [0.4, 0.2]
    assert all(rate == pytest.approx(1.0) for rate, _ in state.past)
    assert [[rate[0, 0] for rate, _ in history] for history in state.by_part] == [
        pytest.approx([2 + 0.1 * part, 1 + 0.1 * part]) for part in range(3)
    ]


def hump(x, y, z, px, py, pz):
    return 0.4 * np.exp(-((px - 0.2) ** 2) - py**2 - pz**2) * (1 + 0.5 * np.cos(np.pi * x / 3))


PLACES = {
    "homogeneous": (rb.PhaseSpace(7, 2.0), {"g": rb.initial.step(0.5, 1.5)}),
    "in space": (
        rb.PhaseSpace(5, 2.0, [4, 1, 2], 3.0, ["open", "periodic", "reflecting"]),
        {"g": rb.initial.from_function(hump)},
    ),
}


def travelled(state, grid, model):
    """Through a file."""
    file = io.BytesIO()
    np.savez(file, **state.packed())
    file.seek(0)
    return State.unpacked(dict(np.load(file)), LostQuanta(grid, model))


@BY_NAME
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("steps", [0, 1, 4])
def test_a_run_goes_on_to_the_same_bits_from_what_was_packed(place, where, steps):
    """Numbers, masses, step control, ledger, watch, fits and drifts: of all that follows."""
    grid, start = PLACES[place]
    model = rb.qcd(0.3, flavors=1)
    step_plan, options = course_of(grid), dict(samples=2, seed=3)

    def goes_on(backend, state):
        """Four more steps, and a record of the end."""
        observer = observer_of(backend, "px")
        lengths = []
        while len(lengths) < 4:
            for leg in backend.advance(state, step_plan, 1.0):
                lengths.append(leg.length)
                if len(lengths) == 4:
                    break
        return lengths, observer.record(state)

    backend, state = begun(grid, model, start, where, **options)
    observer_of(backend).record(state)  # from here drifts are counted
    if steps:
        for k, _ in enumerate(backend.advance(state, step_plan, 1.0), start=1):
            if k == steps:
                break
    packed, number = travelled(state, grid, model), backend.get().copy()
    assert packed.step == state.step >= steps
    expected = goes_on(backend, state)
    other = backend_of(grid, model, where, **options)
    other.put(number, packed.bits)
    found = goes_on(other, packed)
    assert found[0] == expected[0] and found[1].keys() == expected[1].keys()
    for name, value in expected[1].items():
        np.testing.assert_array_equal(found[1][name], value, name)
    assert f_of(other, packed).tobytes() == f_of(backend, state).tobytes()
    np.testing.assert_equal(vars(packed.watch), vars(state.watch))
    np.testing.assert_equal(packed.ledger.packed(), state.ledger.packed())
    assert packed.origin == state.origin and packed.wanted == state.wanted


def test_records_that_wait_travel_too():
    grid, start = PLACES["in space"]
    backend, state = begun(grid, GLUONS, start, samples=1)
    observer = observer_of(backend)
    state.pending = [observer.record(state)]
    step_plan = course_of(grid, 0.05)
    state.wanted = 0.05
    for _ in backend.advance(state, step_plan, 0.1):
        pass
    there = travelled(state, grid, GLUONS)
    (record,), (kept,) = there.pending, state.pending
    assert record.keys() == kept.keys()
    for name, value in kept.items():
        np.testing.assert_array_equal(record[name], value, name)
    np.testing.assert_array_equal(
        observer.sources(there, record)["source"], observer.sources(state, kept)["source"]
    )
