"""The contract of backends (``backends.contract``), tested on every backend of this machine.

All systems are tiny: the same file runs in Numba's CUDA simulator (``test_cuda``).
"""

import itertools
from functools import cache

import numpy as np
import pytest
from begun import EVERYWHERE, advanced, backend_of, begun, course_of, f_of

import relboltz as rb
from relboltz import thermodynamics as equilibrium
from relboltz.backends.cpu.backend import CpuBackend
from relboltz.config.settings import Sampling
from relboltz.stepping.step import advance, begin
from relboltz.transport.forces import courant_limit
from relboltz.transport.moments import AXES, FIT_SUMS, SUMS, Shells, add_moments, halves_of, whole
from relboltz.util.errors import Halted

ONE = rb.PhaseSpace([4, 3, 3], 2.0)
FOUR = rb.PhaseSpace([4, 3, 3], 1.5, [2, 1, 2], 3.0, ["periodic", "periodic", "open"])
GLUONS = rb.gluons(0.3)


def exchange(s, t, ma2, mb2, screening2):
    return 20000.0 * (t - 4 * ma2) * (t - 4 * mb2) / (t - screening2) ** 2


PAIR = rb.Model(
    [rb.Species("a", 2, -1), rb.Species("b", 3, 1)],
    [rb.Process("a b -> a b", exchange, peak="t")],
    masses={"a": 0.3, "b": 0.4}, screening=0.5,
)  # fmt: skip


def tilted(x, y, z, px, py, pz):
    """Different at every place and momentum."""
    f = np.exp(-(px**2) - py**2 - pz**2 + 0.2 * px - 0.1 * py)
    return 0.4 * f * (1 + 0.4 * np.cos(np.pi * x / 3) + 0.1 * z)


def in_space(model, where, grid=FOUR, **options):
    shapes = {name: rb.initial.from_function(tilted) for name in model.names}
    return begun(grid, model, shapes, where, **{"samples": 1} | options)


def total(number):
    """Exact sum."""
    return sum(int(n) for n in number.ravel())


# --- the state ----------------------------------------------------------------------------------


@EVERYWHERE
def test_a_state_is_held_to_the_last_bit(where):
    """Also numbers that a float cannot hold; what was handed over may change afterwards."""
    backend = backend_of(FOUR, PAIR, where, samples=1)
    rng = np.random.default_rng(1)
    number = rng.integers(0, 2**57, (4, 2, FOUR.size)) | 1
    backend.put(number, 44)
    handed = number.copy()
    number += 1
    assert backend.get().dtype == np.int64 and backend.get().shape == (4, 2, FOUR.size)
    assert np.array_equal(backend.get(), handed)
    backend.put(handed[:, :, ::-1], 40)  # another state, another quantum
    assert np.array_equal(backend.get(), handed[:, :, ::-1])


@EVERYWHERE
def test_what_is_saved_comes_back(where):
    """After streaming and collisions, as often as one likes."""
    backend, state = in_space(PAIR, where)
    before = backend.get().copy()
    backend.save()
    for _ in range(2):
        backend.stream(0, 0.1, state.squares, None)
        backend.collide(0, 0.05, state.squares)
        assert (backend.get() != before).any()
        backend.restore()
        assert np.array_equal(backend.get(), before)


@EVERYWHERE
def test_a_backend_says_what_it_is_and_what_it_takes(where):
    backend, _ = in_space(PAIR, where)
    words = "2 workers (threads), each: cpu, 1 thread, " if where == "team" else f"{where}, "
    assert backend.name == ("cuda" if where == "cuda" else "cpu")
    assert backend.description.startswith(words)
    assert backend.description.endswith("float64")
    assert backend.memory >= 2 * backend.get().nbytes
    assert backend.site_ids.tolist() == [0, 1, 2, 3]
    assert (backend.grid, backend.model) == (FOUR, PAIR) and backend.sampling.samples == 1
    assert backend.elements.model is PAIR and not backend.interrupt


@EVERYWHERE
@pytest.mark.parametrize("verb", ["stream", "collide"])
def test_an_interrupt_ends_work_in_hand(where, verb):
    backend, state = in_space(PAIR, where)
    work = {"stream": lambda: backend.stream(0, 0.1, state.squares, None),
            "collide": lambda: backend.collide(0, 0.1, state.squares)}[verb]  # fmt: skip
    backend.interrupt = True
    with pytest.raises(Halted):
        work()
    backend.interrupt = False
    work()


@pytest.mark.parametrize("threads", [1, 2])
def test_an_interrupt_is_heard_within_a_site(threads):
    """Whoever draws its events."""
    grid = rb.PhaseSpace(8, 2.0)
    backend = CpuBackend(grid, GLUONS, Sampling(samples=4), threads)
    state = begin(backend, np.full((1, 1, grid.size), 0.3))
    backend.interrupt = True
    with pytest.raises(Halted):
        backend.collide(0, 0.01, state.squares)


@EVERYWHERE
def test_what_was_fetched_or_packed_stays_as_it_was(where):
    """Whatever happens to the state afterwards: both make a checkpoint."""
    backend, state = in_space(PAIR, where)
    advanced(backend, state, 0.05)
    number, arrays = backend.get(), state.packed()
    kept = [np.array(values) for values in (number, *arrays.values())]
    advanced(backend, state, 0.05)
    for before, now in zip(kept, (number, *arrays.values()), strict=True):
        np.testing.assert_array_equal(before, now)
    assert (backend.get() != number).any()


@EVERYWHERE
def test_a_backend_that_is_given_another_state_forgets_the_first(where):
    """A reused backend gives the same bits as a fresh one, even if it held much more before."""
    small, large = np.full((1, 1, ONE.size), 0.05), np.full((1, 1, ONE.size), 5.0)
    found = []
    for starts in ([small], [large, small]):
        backend = backend_of(ONE, GLUONS, where, samples=1)
        for f in starts:
            state = begin(backend, f * (1 + 0.5 * np.sin(np.arange(ONE.size))))
            advanced(backend, state, 1e-3)
            advanced(backend, state, 1e-3)
        found.append(backend.get())
    np.testing.assert_array_equal(*found)


@EVERYWHERE
def test_a_given_step_is_taken_and_a_new_one_too(where):
    backend, state = begun(ONE, GLUONS, {"g": rb.initial.gaussian(0.5, [0.8, 0.8, 0.5])}, where,
                           samples=1)  # fmt: skip
    for step in (2e-3, 1e-3):
        stop, before = state.time + 4e-3, state.step
        for _ in backend.advance(state, course_of(ONE, step), stop):
            pass
        assert state.step - before == round(4e-3 / step) and state.time == stop


# --- what happens to it -------------------------------------------------------------------------


@EVERYWHERE
def test_no_time_moves_nothing_and_tells_the_rates_of_a_step(where):
    """Rates and lost weight of the same events; a run in between goes on as if nothing was."""
    backend, state = in_space(PAIR, where)
    before = backend.get().copy()
    look = backend.collide(3, 0.0, state.squares)
    assert np.array_equal(backend.get(), before)
    report = backend.collide(3, 1e-3, state.squares)
    assert (backend.get() != before).any()
    for name in ("forward", "backward"):
        rate = getattr(report.flows, name)
        assert rate.shape == (1,) and (rate > 0).all()
        assert getattr(look.flows, name) == pytest.approx(rate, rel=1e-12)
    assert look.null_weight == pytest.approx(report.null_weight, rel=1e-12, abs=1e-15)
    assert look.error == look.limited_weight == 0 and look.length == 0
    assert report.error > 0 and report.length == 1e-3


@EVERYWHERE
@pytest.mark.parametrize("length", [0.01, 0.5])
def test_collisions_conserve_at_every_site_and_stay_legal(where, length):
    """Numbers and momentum exactly, energy to rounding, 0 <= f, fermions f <= 1."""
    backend, state = in_space(PAIR, where)
    m2, before = PAIR.constant_mass_squared, backend.get().copy()
    old = f_of(backend, state)
    report = backend.collide(0, length, state.squares)
    after, new = backend.get(), f_of(backend, state)
    assert after.sum(axis=2).tolist() == before.sum(axis=2).tolist()
    steps = np.rint(2 * FOUR.momenta / np.array(FOUR.spacing)[:, None]).astype(int).tolist()
    for site, axis in itertools.product(range(4), range(3)):
        moved = (after[site] - before[site]).sum(axis=0).tolist()
        assert sum(p * n for p, n in zip(steps[axis], moved, strict=True)) == 0
    for site in range(4):
        energy = [
            equilibrium.kinetic_energy(FOUR.without_space, PAIR, f[site], m2) for f in (old, new)
        ]
        assert energy[1] == pytest.approx(energy[0], rel=1e-13)
    assert (after >= 0).all() and (new[:, 0] <= 1).all() and (after != before).any()
    assert len(report.counts) == len(report.limited) == 4
    assert [c[2] for c in report.counts] == [total(site) for site in before]


@EVERYWHERE
def test_equilibrium_gives_nothing(where):
    """With flow and two potentials: not a quantum in a step of 0.1 fm, but for rounding."""
    m2 = PAIR.constant_mass_squared
    mu, velocity = np.array([0.05, -0.1]), np.array([0.2, -0.1, 0.3])
    f = equilibrium.thermal(ONE, PAIR, 0.35, mu, velocity, m2)
    backend, state = begun(ONE, PAIR, f, where, samples=2)
    before = backend.get().copy()
    backend.collide(0, 0.1, state.squares)
    assert np.abs(backend.get() - before).max() <= 10
    found = backend.estimates(f, state.squares[0], range(1))()
    assert found.gain.max() > 0
    assert np.abs(found.net).max() < 1e-12 * found.gain.max()


@EVERYWHERE
@pytest.mark.parametrize("halves", [([0, 1], [2, 3]), ([0, 2], [3, 1])], ids=str)
def test_the_number_of_a_site_decides_on_its_events_and_not_its_place(where, halves):
    """Two backends that hold half of the sites each collide to the bits of one that holds all."""
    grid = rb.PhaseSpace([4, 3, 3], 1.5, [4, 1, 1], 3.0)
    backend, state = in_space(PAIR, where, grid, seed=5)
    number = backend.get().copy()
    report = backend.collide(7, 0.05, state.squares)
    part = rb.PhaseSpace([4, 3, 3], 1.5, [2, 1, 1], 1.5)
    for sites in halves:
        half = backend_of(part, PAIR, where, np.array(sites), samples=1, seed=5)
        half.put(number[sites], state.bits)
        found = half.collide(7, 0.05, state.squares[sites])
        assert np.array_equal(half.get(), backend.get()[sites])
        assert list(found.counts) == [report.counts[site] for site in sites]
    other = backend_of(part, PAIR, where, np.array([1, 0]), samples=1, seed=5)
    other.put(number[:2], state.bits)
    other.collide(7, 0.05, state.squares[:2])
    assert (other.get() != backend.get()[:2]).any()


@EVERYWHERE
def test_streaming_loses_nothing_that_is_not_in_its_passage(where):
    """By wall, species and node; energies that left; refusals at closed faces; a single cell."""
    backend, state = in_space(PAIR, where)
    before = backend.get().copy()
    passage = backend.stream(2, 0.4, state.squares, None)
    assert passage.axis == 2 and passage.left.shape == (2, 2, FOUR.size)
    assert passage.energy.shape == (2,) and passage.refused.shape == (2, 2)
    left = passage.left.sum(axis=(0, 2))
    assert (backend.get().sum(axis=(0, 2)) + left == before.sum(axis=(0, 2))).all()
    assert (left > 0).all() and (backend.get() >= 0).all()
    pz = FOUR.momenta[2]
    assert not passage.left[0][:, pz >= 0].any() and not passage.left[1][:, pz <= 0].any()
    energies = np.stack([FOUR.energies(m2) for m2 in PAIR.constant_mass_squared])
    assert passage.energy == pytest.approx((passage.left * energies).sum(axis=(1, 2)), rel=1e-12)
    before = backend.get().copy()
    closed = backend.stream(0, 0.4, state.squares, None)
    assert closed.left.size == 0 and total(backend.get()) == total(before)
    before = backend.get().copy()
    backend.stream(1, 0.4, state.squares, None)
    assert np.array_equal(backend.get(), before)
    push = np.zeros((4, 2, 2))
    push[..., 0] = 0.5
    pushed = backend.stream(1, 0.4, state.squares, push)
    assert total(backend.get()) == total(before) and (backend.get() != before).any()
    assert (pushed.refused[1] > 0).all() and not pushed.refused[0].any()


@EVERYWHERE
@pytest.mark.parametrize("step", [0.02, "auto"])
def test_a_backend_advances_as_the_generic_step_does(where, step):
    """Lengths, state, masses and what is watched, with thermal masses and a stop to meet."""
    step_plan, found = course_of(ONE, step), []
    stop = 0.06 if step != "auto" else 0.0035
    for through in ("advance", "generic"):
        backend, state = begun(ONE, GLUONS, {"g": rb.initial.gaussian(0.5, [0.8, 0.8, 0.5])}, where,
                               samples=1)  # fmt: skip
        taken = backend.advance if through == "advance" else lambda *a, b=backend: advance(b, *a)
        legs = list(taken(state, step_plan, stop))
        assert state.time == stop and state.step == state.watch.steps == 3
        assert legs[0].flows is not None and 0 <= legs[0].null_weight < 1
        found.append((backend, state, legs))
    (one, first, legs), (two, second, others) = found
    assert len(legs) == len(others) or where == "cuda"
    assert np.abs(one.get() - two.get()).max() <= 1e-11 * one.get().max()
    for name in ("squares", "wanted"):
        assert getattr(first, name) == pytest.approx(getattr(second, name), rel=1e-9)
    for name in ("noise", "scatter", "moved", "null_max", "changed", "elapsed", "length"):
        assert getattr(first.watch, name) == pytest.approx(getattr(second.watch, name), rel=1e-6)
    for (rate, last), (other, length) in zip(first.past, second.past, strict=True):
        assert rate == pytest.approx(other, rel=1e-6) and last == pytest.approx(length)
    assert legs[0].flows.forward == pytest.approx(others[0].flows.forward, rel=1e-9)


@EVERYWHERE
def test_steps_in_space_are_those_of_the_generic_step(where):
    """Lengths, rejected ones, masses, what left, what is watched: open walls, two stops to meet."""
    grid, found = rb.PhaseSpace(3, 2.0, [3, 1, 1], 0.5, "open"), []
    f = 0.5 * np.random.default_rng(1).random((3, 1, grid.size))
    for through in ("advance", "generic"):
        backend, state = begun(grid, rb.gluons(0.5), f, where, samples=1)
        state.wanted = 0.3  # much too long
        taken = backend.advance if through == "advance" else lambda *a, b=backend: advance(b, *a)
        legs = [leg for stop in (0.02, 0.022) for leg in taken(state, course_of(grid), stop)]
        assert state.time == 0.022 and state.step == state.watch.steps > 4
        found.append((backend.get(), state, legs))
    (one, first, legs), (two, second, others) = found
    assert legs[0].length < 0.015 and legs[0].length == pytest.approx(others[0].length, rel=1e-9)
    assert first.step == second.step and np.abs(one - two).max() <= 1e-11 * one.max()
    assert first.squares == pytest.approx(second.squares, rel=1e-9)
    assert first.wanted == pytest.approx(second.wanted, rel=1e-9)
    for name in ("noise", "scatter", "moved", "null_max", "changed", "elapsed", "length"):
        assert getattr(first.watch, name) == pytest.approx(getattr(second.watch, name), rel=1e-6)
    for one, two in zip((first.past, *first.by_part), (second.past, *second.by_part), strict=True):
        for (rate, last), (other, length) in zip(one, two, strict=True):
            assert rate == pytest.approx(other, rel=1e-6, abs=1e-9) and last == pytest.approx(
                length
            )
    assert first.ledger.energy == pytest.approx(second.ledger.energy) and first.ledger.energy.any()
    assert first.ledger.refused == pytest.approx(second.ledger.refused)
    assert np.array_equal(first.ledger.left[0], second.ledger.left[0])


@EVERYWHERE
def test_a_step_is_no_longer_than_streaming_and_the_mean_field_allow(where):
    """Given steps are cut to the Courant limit of the masses as they are; nothing collides."""
    model = rb.Model([rb.Species("a", 1, 1)], [], masses={"a": 0.1}, mass_coupling=[[400.0]])
    grid = rb.PhaseSpace(3, 2.0, [3, 1, 1], 0.5, "reflecting")
    f = (
        np.random.default_rng(4).random((3, 1, grid.size))
        * np.array([1.0, 0.1, 3.0])[:, None, None]
    )
    backend, state = begun(grid, model, f, where, samples=1)
    limit = courant_limit(grid, state.mass_squared)
    still = courant_limit(grid, np.tile(state.mass_squared[:1], (3, 1)))
    before = backend.get()
    legs = list(backend.advance(state, course_of(grid, 10.0), 1.2 * limit))
    assert limit < 0.9 * still and legs[0].length == pytest.approx(limit, rel=1e-12)
    assert state.time == 1.2 * limit and (backend.get() != before).any()
    assert backend.get().sum() == before.sum()


def unphysical(s, t):
    """Negative for the hardest collisions."""
    return 1e5 * (22.0 - s)


@EVERYWHERE
@pytest.mark.parametrize("sites", [1, 2])
def test_an_illegal_matrix_element_ends_a_step_and_leaves_the_state(where, sites):
    """It is named with its value and place, as found before the step changed anything."""
    process = rb.Process("a a -> a a", unphysical)
    model = rb.Model([rb.Species("a", 1, 1)], [process], masses={"a": 0.5})
    grid = rb.PhaseSpace(4, 2.0, [sites, 1, 1], 3.0)
    f, said = np.random.default_rng(5).random((sites, 1, grid.size)) ** 6, []
    for place in dict.fromkeys(("cpu", where)):
        backend, state = begun(grid, model, f, place, samples=1)
        before = backend.get()
        with pytest.raises(rb.InputError, match="a a -> a a: .* is -.* at s = ") as error:
            advanced(backend, state, 0.3)
        assert state.time == 0.0 and np.array_equal(backend.get(), before)
        said.append(str(error.value))
    assert said[0] == said[-1]


@EVERYWHERE
@pytest.mark.parametrize("sites", [1, 2])
def test_masses_of_many_species(where, sites):
    """More than fit into the fast memory of a GPU: 22 species with masses of their own."""
    many = np.arange(1.0, 23.0)
    model = rb.Model(
        [rb.Species(f"s{i}", 1, 1) for i in range(22)], [], masses={"s3": 0.2},
        mass_coupling=np.outer(many, many) / 500.0,
    )  # fmt: skip
    grid = rb.PhaseSpace(2, 1.0, [sites, 1, 1], 1.0)
    f = np.random.default_rng(2).random((sites, 22, grid.size))
    backend, state = begun(grid, model, f, where)
    for site in range(sites):
        m2, f_here = state.mass_squared[site], f_of(backend, state)[site]
        energy = np.sqrt(grid.momentum_squared + m2[:, None])
        y = (f_here / energy).sum(axis=1) * grid.cell_volume / (2 * np.pi) ** 3
        assert m2 == pytest.approx(model.mass_squared(y), rel=1e-12)


@EVERYWHERE
def test_looking_at_rates_between_two_stops_changes_nothing(where):
    """As a run does that is asked for its rates: the same bits afterwards."""
    results = []
    for looks in (False, True):
        backend, state = begun(ONE, GLUONS, {"g": rb.initial.step(0.5, 1.5)}, where, samples=1)
        advanced(backend, state, 0.01)
        if looks:
            backend.collide(state.step, 0.0, state.squares)
            backend.moments(state.squares, np.zeros((1, ONE.size)))
            backend.estimates(f_of(backend, state)[0], state.squares[0], range(9, 10))()
        advanced(backend, state, 0.01)
        results.append(backend.get().copy())
    assert np.array_equal(*results)


# --- what is asked about it ---------------------------------------------------------------------


@cache
def three_steps(where, early, asked=None):
    """Numbers and state after them; early : they are set out before anyone asks for them."""
    backend, state = in_space(GLUONS, where)
    step_plan = course_of(FOUR, 0.01)
    for stop in (0.01, 0.02, 0.03):
        before = state.time, state.step, state.squares
        if early:
            backend.launch_steps(state, step_plan, stop)
            assert (state.time, state.step, state.squares) == before
        if asked == "numbers":
            backend.get()  # the state is that of the numbers
            ahead = where == "cuda" and stop > 0.01  # a trial comes before the first step
            assert state.time == (stop if ahead else before[0])
            solved = backend.masses(state.squares)
            np.testing.assert_allclose(solved, state.squares, rtol=1e-14)
        for _ in backend.advance(state, step_plan, stop):
            pass
    return backend.get(), state.packed()


@EVERYWHERE
@pytest.mark.parametrize("asked", ["nothing", "numbers"])
def test_steps_may_begin_before_they_are_asked_for(where, asked):
    """Until anything needs the numbers the state is as it was; the steps are the same."""
    (number, state), (expected, plain) = three_steps(where, True, asked), three_steps(where, False)
    np.testing.assert_array_equal(number, expected)
    for name, values in plain.items():
        np.testing.assert_array_equal(state[name], values)


@EVERYWHERE
def test_masses_solve_the_gap_equation_of_every_site_from_any_start(where):
    model = rb.qcd(0.1, flavors=1, screening="ekt")
    backend, state = in_space(model, where)
    f, one = f_of(backend, state), FOUR.without_space
    for start in (state.squares, 2 * state.squares, np.full(state.squares.shape, 1e-3)):
        squares = backend.masses(start)
        for site in range(4):
            m2 = equilibrium.masses(one, model, f[site])
            screening = model.screening_squared(
                equilibrium.coupling_integrals(one, model, f[site], m2)
            )
            assert squares[site] == pytest.approx([*m2, *screening], rel=1e-9)
            assert backend.squares(f[site]) == pytest.approx([*m2, *screening], rel=1e-12)
    assert np.ptp(squares[:, 0]) > 0


@EVERYWHERE
def test_masses_are_the_same_from_near_and_from_far(where):
    """However they are found, to the rounding of sums over 36 nodes."""
    backend, state = in_space(rb.gluons(0.3), where)
    for off in (1e-7, 1e-4, 0.02, 0.5):
        squares = backend.masses(state.squares * (1 + off * np.array([[1], [-1], [0.1], [0]])))
        assert squares == pytest.approx(state.squares, rel=36 * 2.0**-53)


@EVERYWHERE
def test_moments_are_sums_over_the_nodes(where):
    """Whole numbers exactly; the rest as ``add_moments`` adds them, node by node."""
    backend, state = in_space(PAIR, where)
    final = np.full((2, FOUR.size), 0.1)
    moments, number = backend.moments(state.squares, final), backend.get()
    cube = number.reshape(4, 2, *FOUR.momentum_cells)
    for axis, planes in enumerate(moments.planes):
        others = tuple(k for k in range(1, 5) if k != axis + 2)
        assert np.array_equal(planes, cube.sum(axis=others))
    shells = Shells.of(FOUR)
    for shell in range(len(shells.p)):
        inside = number[:, :, shells.index == shell].sum(axis=2)
        assert np.array_equal(moments.shells[:, :, shell], inside)
    assert np.array_equal(moments.totals, number.sum(axis=2))
    f = f_of(backend, state)
    for site, a in np.ndindex(4, 2):
        sums = np.zeros(SUMS)
        for i in range(FOUR.size):
            add_moments(f[site, a, i], FOUR.momenta[:, i], halves_of(FOUR),
                        state.squares[site, a], PAIR.statistics[a], FOUR.rest_inverse_energy,
                        final[a, i], sums)  # fmt: skip
        assert moments.sums[site, a] == pytest.approx(sums, rel=1e-12, abs=1e-14)
    steps = np.rint(2 * FOUR.momenta / np.array(FOUR.spacing)[:, None]).astype(np.int64)
    assert whole(moments.momentum_words) == [
        total(step * number.sum(axis=(0, 1))) for step in steps
    ]


@EVERYWHERE
@pytest.mark.parametrize("kept", ["x", "z px", "py pz", "x y z", ""], ids=str)
def test_marginals_are_exact_whatever_is_kept(where, kept):
    """Sums beyond 64 bits: two words."""
    backend = backend_of(FOUR, PAIR, where, samples=1)
    number = np.random.default_rng(2).integers(2**58, 2**60, (4, 2, FOUR.size))
    backend.put(number, 44)
    high, low = backend.marginal(kept.split())
    cube = number.astype(object).reshape(2, 1, 2, 2, 4, 3, 3)
    cube = np.moveaxis(cube, 3, 0)  # species, x, y, z, px, py, pz
    gone = tuple(1 + AXES.index(axis) for axis in AXES if axis not in kept.split())
    expected = cube.sum(axis=gone)
    assert high.shape == low.shape == expected.shape
    found = high.astype(object) * 2**32 + low.astype(object)
    assert (found == expected).all()


@EVERYWHERE
def test_fits_are_sums_of_thermal_states_at_the_sites_asked_for(where):
    """Node by node; an absent species has none, a state outside the domain has ln Z = inf."""
    backend, state = in_space(PAIR, where)
    which = np.array([3, 1, 0])
    theta = np.array([
        [2.0, 0.1, -0.2, 0.3, -0.5, -0.6],
        [3.0, 0.0, 0.0, 0.0, 0.2, -np.inf],
        [2.0, 0.0, 0.0, 0.0, 0.1, 5.0],
    ])  # fmt: skip
    sums = backend.fits(theta, state.squares, which)
    assert sums.shape == (3, 2, FIT_SUMS)
    px, py, pz = p = FOUR.momenta
    for row, a in ((0, 0), (0, 1), (1, 0), (2, 0)):
        e, eta = FOUR.energies(state.squares[which[row], a]), PAIR.statistics[a]
        x = theta[row, 0] * e - theta[row, 1:4] @ p - theta[row, 4 + a]
        f = 1 / (np.exp(x) - eta)
        g = f * (1 + eta * f)
        terms = [
            -eta * np.log1p(-eta * np.exp(-x)), f, f * e, *(f * p), g, g * e, g * e * e,
            *(g * e * p), *(g * p), *(g * p * p), g * px * py, g * px * pz, g * py * pz,
        ]  # fmt: skip
        assert sums[row, a] == pytest.approx(np.sum(terms, axis=1), rel=1e-12, abs=1e-13)
    assert not sums[1, 1].any() and np.isinf(sums[2, 1, 0])
    assert backend.fits(theta[:0], state.squares, which[:0]).shape == (0, 2, FIT_SUMS)


@EVERYWHERE
def test_an_estimate_is_gain_less_loss_and_leaves_the_state_alone(where):
    """The state of the backend is untouched, and numbers of all species are conserved.

    Masses are so large that no event has more weight than a collision.
    """
    start = {"a": rb.initial.step(0.5, 1.5), "b": rb.initial.thermal(0.3)}
    backend, state = begun(ONE, PAIR, start, where, samples=2)
    before = backend.get().copy()
    f, squares = 0.5 * f_of(backend, state)[0], state.squares[0].copy()
    squares[:2] = 16 * ONE.spacing[1] ** 2
    found = backend.estimates(f, squares, range(4, 5))()
    assert found.net.shape == found.gain.shape == found.loss.shape == (2 * ONE.size,)
    largest = found.gain.max()
    assert found.net == pytest.approx(found.gain - found.loss, abs=1e-12 * largest)
    assert np.abs(found.net.reshape(2, -1).sum(axis=1)).max() < 1e-12 * found.gain.sum()
    assert (found.gain >= 0).all() and (found.loss >= 0).all() and 0 <= found.null_weight[0] < 1
    assert np.array_equal(backend.get(), before)
    again = backend.estimates(f, squares, range(4, 5))()
    assert np.array_equal(again.net, found.net) and np.isnan(found.error).all()
    other = backend.estimates(f, squares, range(5, 6))()
    assert (other.net != found.net).any()


@EVERYWHERE
def test_estimates_are_means_of_single_ones_with_their_standard_error(where):
    """Draw by draw, side by side or not; rates and lost weight of every one."""
    start = {"a": rb.initial.step(0.5, 1.5), "b": rb.initial.thermal(0.3)}
    backend, state = begun(ONE, PAIR, start, where, samples=2)
    f, squares = f_of(backend, state)[0], state.squares[0]
    together = backend.estimates(f, squares, range(3, 6))()
    alone = [backend.estimates(f, squares, range(b, b + 1))() for b in range(3, 6)]
    largest = together.gain.max()
    for name in ("net", "gain", "loss"):
        mean = np.mean([getattr(one, name) for one in alone], axis=0)
        assert getattr(together, name) == pytest.approx(mean, abs=1e-12 * largest)
    scatter = np.std([one.net for one in alone], axis=0, ddof=1) / np.sqrt(3)
    assert together.error == pytest.approx(scatter, abs=1e-12 * largest) and scatter.max() > 0
    for name in ("forward", "backward", "negative_weight"):
        each = np.concatenate([getattr(one.flows, name) for one in alone])
        assert getattr(together.flows, name) == pytest.approx(each, rel=1e-12) and len(each) == 3
    assert together.null_weight == pytest.approx([one.null_weight[0] for one in alone], rel=1e-12)


@EVERYWHERE
@pytest.mark.parametrize("off", [1.0, 2.0**-20, 16.0], ids=["turns", "too coarse", "too fine"])
def test_estimates_do_not_depend_on_how_a_gpu_makes_them(where, off, monkeypatch):
    """One draw after the other gives the same bits; quanta that do not fit are replaced."""
    start = {"a": rb.initial.step(0.5, 1.5), "b": rb.initial.thermal(0.3)}
    backend, state = begun(ONE, PAIR, start, where, samples=1)
    f, squares = f_of(backend, state)[0], state.squares[0]
    found = backend.estimates(f, squares, range(3))()
    if where == "cuda":
        from relboltz.backends.cuda import estimates

        choose = estimates.IndependentDraws._choose_scale
        monkeypatch.setattr(estimates, "SIDE_BY_SIDE", 1 if off == 1 else 2**20)
        monkeypatch.setattr(
            estimates.IndependentDraws, "_choose_scale", lambda draws: off * choose(draws)
        )
    again = backend.estimates(f, squares, range(3))()
    for name in ("net", "gain", "loss", "error"):
        one, two = getattr(found, name), getattr(again, name)
        if off == 1:
            assert np.array_equal(one, two)
        assert two == pytest.approx(one, abs=1e-12 * found.gain.max())
    assert np.array_equal(found.flows.forward, again.flows.forward)
    assert np.array_equal(found.null_weight, again.null_weight)
