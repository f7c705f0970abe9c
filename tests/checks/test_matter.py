"""Totals and masses of a start: moments of its sites against its f."""

from types import SimpleNamespace

import numpy as np
import pytest
from begun import begun

import relboltz as rb
from relboltz.checks import matter

MODEL = rb.qcd(0.3, flavors=1)
STARTS = (
    {"g": rb.initial.thermal(0.4), "u": rb.initial.thermal(0.3, velocity=[0.2, 0.0, 0.1])},
    {"g": rb.initial.step(0.5, 1.2), "ubar": rb.initial.gaussian(0.3, 0.6)},
)


def sites_of(grid, starts):
    """f, squares (sites, species + screenings) and moments of one start a site, and the quantum."""
    one = grid.without_space
    f = np.stack([rb.initial.evaluate(s, one, MODEL) for s in starts])
    backend, state = begun(grid, MODEL, f)
    return f, state.squares, backend.moments(state.squares, np.zeros(f.shape[1:])), state.unit


def test_totals_of_one_site_are_those_of_its_f():
    grid = rb.PhaseSpace(10, 2.0)
    (f,), squares, moments, unit = sites_of(grid, STARTS[:1])
    for found, wanted in zip(
        matter.totals_of_sites(grid, MODEL, moments, squares, unit),
        matter.totals(grid, MODEL, f),
        strict=True,
    ):
        np.testing.assert_allclose(found, wanted, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("boundary", ["periodic", "reflecting"])
def test_totals_of_sites_are_their_averages_and_walls_take_up_momentum(boundary):
    grid = rb.PhaseSpace(10, 2.0, [2, 1, 1], 3.0, boundary)
    fs, squares, moments, unit = sites_of(grid, STARTS)
    parts = [matter.totals(grid.without_space, MODEL, f) for f in fs]
    wanted = [sum(values) / 2 for values in zip(*parts, strict=True)]
    numbers, momentum, energy = matter.totals_of_sites(grid, MODEL, moments, squares, unit)
    np.testing.assert_allclose(numbers, wanted[0], rtol=1e-11)
    assert energy == pytest.approx(wanted[2], rel=1e-11)
    assert wanted[1][0] > 0.01 and wanted[1][2] > 0.01
    along = wanted[1][0] if boundary == "periodic" else 0.0
    np.testing.assert_allclose(momentum, [along, 0, wanted[1][2]], rtol=1e-10, atol=1e-10)


def test_typical_masses_are_those_of_the_average_particle():
    grid = rb.PhaseSpace(10, 2.0, [2, 1, 1], 3.0)
    _, squares, moments, _ = sites_of(grid, STARTS)
    weight = moments.totals.sum(axis=1) / moments.totals.sum()
    m2, screening2 = matter.typical_masses(MODEL, moments, squares)
    np.testing.assert_allclose([*m2, *screening2], weight @ squares, rtol=1e-14)
    assert len(m2) == len(MODEL.species) and len(screening2) == len(MODEL.screenings)
    alone = matter.typical_masses(MODEL, SimpleNamespace(totals=moments.totals[:1]), squares[:1])
    assert (np.concatenate(alone) == squares[0]).all()


def test_extreme_masses_are_the_largest_and_the_least_together():
    squares = np.array([[0.2, 0.1, 0.1, 0.2], [0.5, 0.2, 0.2, 0.5], [0.3, 0.1, 0.1, 0.3]])
    (most, screening), (least, _) = matter.extreme_masses(MODEL, squares)
    assert most.tolist() == [0.5, 0.2, 0.2] and screening.tolist() == [0.5]
    assert least.tolist() == [0.2, 0.1, 0.1]


def test_only_open_walls_in_a_moving_direction_leak():
    assert matter.leaks(rb.PhaseSpace(8, 2.0, [2, 1, 1], 3.0, "open"))
    assert not matter.leaks(rb.PhaseSpace(8, 2.0, [2, 1, 1], 3.0, ["periodic", "open", "open"]))


def test_more_matter_than_memory_is_refused():
    vast = rb.PhaseSpace(100, 2.0, [1000, 1000, 1], 3.0)
    with pytest.raises(rb.InputError, match=r"needs .* GiB, and this machine has .* GiB free"):
        matter.check_host_memory(vast, MODEL)
    matter.check_host_memory(rb.PhaseSpace(8, 2.0, [2, 1, 1], 3.0), MODEL)


def test_the_largest_grid_that_fits_is_told(monkeypatch):
    """Also without space, and before a box is chosen; what is told fits."""
    monkeypatch.setattr(matter, "free_memory", lambda: 2.0**34)
    for grid in (rb.PhaseSpace(1024, 2.0), 1024):
        with pytest.raises(rb.InputError, match=r"momentum_cells = \[1024, 1024, 1024\]") as caught:
            rb.solve(MODEL, grid, STARTS[1], end=1.0, backend="cpu", threads=1)
    assert "this machine has 16.0 GiB free; use at most [" in str(caught.value)
    fits = int(str(caught.value).split(", ")[-1].rstrip("]"))
    room = {"samples": 16, "threads": 1}
    assert matter.host_memory(rb.PhaseSpace(fits, 2.0), MODEL, **room) <= 2**34
    assert matter.host_memory(rb.PhaseSpace(int(1.03 * fits), 2.0), MODEL, **room) > 2**34


def test_memory_that_is_foretold_is_taken():
    """The prediction includes what a collider of 24^3 nodes reports: events and sums."""
    grid = rb.PhaseSpace(24, 2.0)
    backend, _ = begun(grid, MODEL, rb.initial.evaluate(STARTS[1], grid, MODEL)[None])
    foretold = matter.host_memory(grid, MODEL, backend.sampling.samples, backend.count)
    assert backend.memory <= foretold < 1.5 * backend.memory
