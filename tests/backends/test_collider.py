"""Collisions at one site: events that are kept or drawn again, weight that finds no place."""

import numpy as np
import pytest
from begun import advanced, begun

import relboltz as rb
from relboltz.backends.cpu import collider as module
from relboltz.config.settings import Sampling
from relboltz.events.collisions import DrawInput

START = {"g": rb.initial.step(0.5, 1.5)}


def test_events_drawn_again_are_the_same_bits(monkeypatch):
    """A state too large to keep its events is stepped through redrawn ones, to the same result."""
    results = []
    for limit in (module.STORE_LIMIT, 0):
        monkeypatch.setattr(module, "STORE_LIMIT", limit)
        backend, state = begun(rb.PhaseSpace(10, 2.0), rb.gluons(0.3), START, samples=8)
        advanced(backend, state, 0.02)
        assert backend.colliders[0]._stored == (limit > 0)
        results.append((backend.get().copy(), state.squares))
    assert all(np.array_equal(one, two) for one, two in zip(*results, strict=True))


def test_lost_weight_is_the_part_of_collisions_without_a_place():
    """A box twice as large loses almost nothing of what a tight one loses."""
    lost, model = [], rb.gluons(0.3, masses={"g": 0.7})
    for half_width in (1.2, 2.4):
        grid = rb.PhaseSpace(12, half_width)
        backend, state = begun(grid, model, {"g": rb.initial.thermal(0.3)}, samples=16)
        lost.append(backend.collide(0, 0.0, state.squares).null_weight)
    assert lost[0] > 0.05 and lost[1] < 0.1 * lost[0]


@pytest.mark.parametrize("sampling", ["cm", "k2"])
def test_a_chunk_is_judged_by_sums_not_by_its_worst_element(sampling):
    """A few of -1e-8 among thousands of 1 are rounding and are weighed; a few of -1e-4 are not."""
    grid, mass = rb.PhaseSpace(12, 2.0), np.array([0.09])
    keys = {"kinematics": sampling, "projection": "conserving" if sampling == "cm" else "nearest"}

    def weighed(low):
        process = rb.Process("a a -> a a", lambda s, low=1.0: -low if s < 0.5 else 1.0, low=low)
        model = rb.Model([rb.Species("a")], [process])
        collider = module.Collider(grid, module.Elements(model), Sampling(samples=16, **keys))
        return collider.negative_weight(DrawInput(0, mass, np.zeros(1)), np.full(grid.size, 0.3))[0]

    assert 1e-13 < weighed(1e-8) < 1e-9
    with pytest.raises(rb.InputError, match=r"is -0.0001 at s = 0\.[345]"):
        weighed(1e-4)
