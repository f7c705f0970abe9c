"""Runs of too many steps are refused, and of many are warned of, before the first one."""

import re

import numpy as np
import pytest
from test_accuracy import GLUONS, GRID, STEP, one, said

import relboltz as rb
from relboltz.checks import duration
from relboltz.run import runner as run


class Begun(Exception):
    """The run would have begun."""


@pytest.fixture
def warned(monkeypatch):
    """Return the warnings before the first step, which is not taken."""

    def begin(self, progress=None):
        raise Begun(self)

    monkeypatch.setattr(run.Run, "go", begin)

    def warned(grid=GRID, model=GLUONS, start=STEP, **options):
        with pytest.warns() as caught, pytest.raises(Begun):
            rb.solve(model, grid, {"g": start}, backend="cpu", **options)
        return [str(w.message) for w in caught]

    return warned


def test_space_cells_that_allow_tiny_steps_only():
    """A cell of 1e-9 fm is crossed in that time: 1.6e-9 fm a step, whatever the masses."""
    with pytest.raises(
        rb.InputError, match=r"would take \S+ steps, as a step in these space cells"
    ):
        said(grid=rb.PhaseSpace(7, 2.0, [2, 1, 1], 1e-9), end=5.0, every=1.0)


def test_many_steps_are_foretold(warned):
    small = rb.PhaseSpace(7, 2.0, [2, 1, 1], 1e-6)
    text = one(warned(small, end=5.0, every=1.0), "steps")
    assert text == (
        "time.end = 5 fm takes at least 3.1e+06 steps, as a step in these space cells is at most "
        "1.6e-06 fm"
    )
    text = one(warned(end=5.0, every=1.0, step=1e-6), "steps")
    assert text == "time.end = 5 fm takes at least 5.0e+06 steps, as time.step = 1e-06 fm"


def test_collisions_bound_automatic_steps(warned):
    """10 mean free times, from the rate of the start; tolerance shortens by its square root."""
    rate = float(rb.collision_term(GLUONS, GRID, {"g": STEP}, samples=64).rate.sum())
    f = rb.initial.evaluate({"g": STEP}, GRID, GLUONS)
    number = float(GLUONS.degeneracy @ f.sum(axis=1)) * GRID.measure
    for tolerance, times in ((1e-3, 10.0), (1e-5, 1.0)):
        text = one(warned(end=1e7, every=1e6, tolerance=tolerance), "takes at least")
        found = float(re.search(r"at most about (\S+) fm", text).group(1))
        assert found == pytest.approx(times * number / (2 * rate), rel=0.1)  # noise of 16 samples
    with pytest.raises(rb.InputError, match=r"time.end = .*: would take \S+ steps, .* use at most"):
        said(end=1e9, every=1e8, tolerance=1e-5)


def test_steps_stay_below_ten_mean_free_times():
    """A thermal start has the longest steps, on which the bound rests."""
    start = {"g": rb.initial.thermal(0.4, sampling="node")}
    ds, _ = said(grid=rb.PhaseSpace(8, 2.0), start=start, end=10.0, every=1.0, samples=16)
    free_time = ds.number.sum("species") / (2 * ds.rate.sum("process"))
    assert np.nanmax((ds.step / free_time).values) < 10


def test_ordinary_runs_pay_nothing(monkeypatch):
    """The rate is not measured for them."""
    monkeypatch.setattr(duration, "FREE_TIMES", None)
    said(end=5.0, step=5.0, every=5.0)
    with pytest.raises(TypeError):
        said(end=1e6, every=1e6)
