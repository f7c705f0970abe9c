"""Workers that share a state: how it is cut, what they exchange, the bits of one process."""

import itertools
import socket
import threading
import time

import numpy as np
import pytest
from begun import backend_of, begun, course_of, team_of
from thread_workers import ThreadWorkerPool, together

import relboltz as rb
from relboltz.backends.team.division import Division
from relboltz.backends.team.exchange import (
    ExchangeAborted,
    ThreadExchange,
    WorkerLost,
    concatenated,
    total,
)
from relboltz.backends.team.sockets import SocketExchange, listen
from relboltz.stepping.accuracy_watch import Interrupt
from relboltz.stepping.state import State
from relboltz.stepping.step import begin
from relboltz.transport.ledger import LostQuanta
from relboltz.transport.moments import AXES
from relboltz.util.errors import Halted

MIXTURE = rb.qcd(0.3, flavors=1)


def by_sockets(size, token=b"k" * 16):
    """Connections between threads."""
    listeners = [listen("127.0.0.1") for _ in range(size)]
    addresses = [("127.0.0.1", one.getsockname()[1]) for one in listeners]
    return together(
        [lambda k=k: SocketExchange(k, addresses, listeners[k], token) for k in range(size)]
    )


EXCHANGES = pytest.mark.parametrize("among", [ThreadExchange.among, by_sockets])


# --- exchange -----------------------------------------------------------------------------------


@EXCHANGES
@pytest.mark.parametrize("size", [2, 3])
def test_everybody_gets_what_was_meant_for_him(among, size):
    """Also arrays of no entries, and ones that no buffer of the system holds at once."""
    count = 300_000

    def work(exchange):
        mine = exchange.rank
        parts = [np.full(count * k, 10 * mine + k) for k in range(size)]
        rooms = [np.zeros(count * mine, np.int64) for _ in range(size)]
        for _ in range(2):
            exchange.swap(parts, rooms)
        for k in exchange.others:
            assert (rooms[k] == 10 * k + mine).all()
        return exchange.waited

    waited = together([lambda e=e: work(e) for e in among(size)])
    assert all(isinstance(seconds, float) and seconds > 0 for seconds in waited)


@EXCHANGES
def test_sums_and_rows_of_all(among):
    rng = np.random.default_rng(1)
    numbers = rng.integers(-(2**61), 2**61, (3, 2, 5))
    rows = [rng.random((n, 2)) for n in (2, 0, 3)]

    def work(exchange):
        mine = exchange.rank
        return total(exchange, numbers[mine]), concatenated(exchange, rows[mine], (2, 0, 3))

    for found, joined in together([lambda e=e: work(e) for e in among(3)]):
        assert np.array_equal(found, numbers.sum(axis=0))
        assert np.array_equal(joined, np.concatenate(rows))


@EXCHANGES
def test_one_who_gives_up_is_heard_by_all(among):
    """At their next swap, whichever it is; nobody waits."""

    def work(exchange):
        exchange.agree()
        if exchange.rank == 1:
            exchange.give_up()
            return "gave up"
        exchange.swap([np.zeros(3)] * 3, [np.zeros(3)] * 3)
        return "went on"

    told = together([lambda e=e: work(e) for e in among(3)])
    assert told[1] == "gave up" and all(isinstance(told[k], ExchangeAborted) for k in (0, 2))


def test_one_who_is_gone_is_missed_by_all():
    exchanges = by_sockets(3)
    exchanges[2].close()
    told = together([lambda e=e: e.agree() for e in exchanges[:2]])
    assert all(isinstance(one, WorkerLost) for one in told)


def test_one_who_leaves_wakes_his_own_swap():
    """Another thread makes him leave while he waits for somebody who never comes."""
    waits, _ = by_sockets(2)
    told = []

    def wait():
        try:
            waits.agree()
        except WorkerLost as error:
            told.append(error)

    thread = threading.Thread(target=wait)
    thread.start()
    time.sleep(0.1)
    waits.leave()
    thread.join(10.0)
    assert not thread.is_alive() and len(told) == 1


def test_strangers_are_not_let_in():
    """Without the token a connection is closed, and the workers meet all the same."""
    listeners = [listen("127.0.0.1") for _ in range(2)]
    addresses = [("127.0.0.1", one.getsockname()[1]) for one in listeners]
    stranger = socket.create_connection(addresses[0])
    stranger.sendall(b"x" * 16 + (1).to_bytes(4, "big"))
    one, two = together(
        [lambda k=k: SocketExchange(k, addresses, listeners[k], b"k" * 16) for k in range(2)]
    )
    told = together([one.agree, two.agree])
    assert told == [None, None] and stranger.recv(1) == b""


# --- division -----------------------------------------------------------------------------------


@pytest.mark.parametrize("cells", [(8, 4, 1), (24, 2, 1), (1, 6, 1), (2, 3, 4), (1, 1, 5)])
@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_every_site_and_every_pencil_has_one_worker(cells, size):
    grid = rb.PhaseSpace([4, 3, 5], 2.0, cells)
    division = Division.of(grid, size)
    sites = [np.arange(grid.sites)[division.sites(k)] for k in range(size)]
    assert np.array_equal(np.concatenate(sites), np.arange(grid.sites))
    assert (
        [len(s) for s in sites] == division.counts == [division.slab(k).sites for k in range(size)]
    )
    assert max(division.counts) <= min(division.counts) + grid.sites // np.prod(
        cells[: division.depth]
    )
    for axis in range(3):
        nodes = [division.nodes(axis, share) for share in division.pencils(axis)]
        assert np.array_equal(np.sort(np.concatenate(nodes)), np.arange(grid.size))
        if not division.cuts(axis) and cells[axis] > 1:  # then they lie within a slab
            step = int(np.prod(cells[axis + 1 :]))
            edges = [division.sites(k).start for k in range(size)]
            assert all(edge % (step * cells[axis]) == 0 for edge in edges)


def test_more_workers_than_sites_are_refused():
    with pytest.raises(rb.InputError, match=r"run\.workers = 9: .* use at most 8"):
        Division.of(rb.PhaseSpace(3, 2.0, [2, 4, 1]), 9)


@pytest.mark.parametrize("size", [2, 3, 7])
def test_marginals_of_slabs_are_those_of_all(size):
    grid = rb.PhaseSpace([2, 3, 2], 2.0, [2, 2, 3])
    number = np.random.default_rng(2).integers(0, 2**60, (grid.sites, 2, grid.size))
    model = rb.Model([rb.Species("a", 1, 1), rb.Species("b", 1, 1)], [], masses={"a": 0, "b": 0})
    one, team = backend_of(grid, model), team_of(grid, model, size)
    for backend in (one, team):
        backend.put(number, 44)
    kept = [c for n in range(4) for c in itertools.combinations(AXES, n)]
    for some in kept[::3]:
        for a, b in zip(one.marginal(some), team.marginal(some), strict=True):
            assert np.array_equal(a, b)


# --- the bits of one process --------------------------------------------------------------------


def waves(x, y, z, px, py, pz):
    """Different everywhere."""
    f = np.exp(-(px**2) - py**2 - pz**2 + 0.2 * px - 0.1 * py)
    return 0.4 * f * (1 + 0.4 * np.cos(np.pi * x / 3) + 0.1 * y)


EMPTY = {"g": rb.initial.step(0.5, 1.5)}
"""Quarks come into being: limits are needed."""
SYSTEMS = {
    "planes": ([4, 2, 1], "open", 3),
    "uneven": ([3, 2, 1], "periodic", 2),
    "rows": ([2, 3, 2], ["reflecting", "open", "periodic"], 5),
    "homogeneous": (1, "periodic", 3),
}


def begun_as(name, team, **options):
    cells, walls, size = SYSTEMS[name]
    grid = rb.PhaseSpace(5, 2.0, cells, 3.0, walls)
    start = {"g": rb.initial.from_function(waves), "u": rb.initial.from_function(waves)}
    if grid.sites == 1:
        start = EMPTY
    f = rb.initial.evaluate(start, grid, MIXTURE)
    f = f.reshape(grid.sites, len(MIXTURE.species), grid.size)
    backend = (
        team_of(grid, MIXTURE, size, samples=2, **options)
        if team
        else backend_of(grid, MIXTURE, samples=2)
    )
    return backend, begin(backend, f)


def arrived(backend, state, stops=(0.02, 0.03)):
    """A run receives segments with rates, then all that is left."""
    flows, speeds = [], iter((0.3, 0.2))
    for stop in stops:
        for leg in backend.advance(state, course_of(backend.grid), stop):
            flows.append(leg.flows)
        state.watch.since_last_record()
        below = np.array([0.1])
        state.watch.note({"velocity": np.array([[next(speeds)]]), "negative_weight": below})
    nothing = np.zeros((len(MIXTURE.species), backend.grid.size))
    moments = backend.moments(state.squares, nothing)
    return {
        "number": backend.get(), **state.packed(), "flows": flows[0].forward,
        "sums": moments.sums, "shells": moments.shells, "plane": moments.planes[1],
    }  # fmt: skip


def assert_same(found, expected):
    assert found.keys() == expected.keys()
    for name, values in expected.items():
        np.testing.assert_array_equal(found[name], values, err_msg=name)


@pytest.fixture(scope="module")
def alone():
    """Runs in one process."""
    return {name: arrived(*begun_as(name, team=False)) for name in SYSTEMS}


@pytest.mark.parametrize("name", SYSTEMS)
def test_a_team_has_the_bits_of_one_process(name, alone):
    """State, masses, their history, what left, what is watched, rates, records."""
    team, state = begun_as(name, team=True)
    assert_same(arrived(team, state), alone[name])
    load = team.load()
    assert load["workers"] == SYSTEMS[name][2] == len(load["worker_waiting"])
    assert all(
        0 < w < s for w, s in zip(load["worker_waiting"], load["worker_seconds"], strict=True)
    )


# --- workers that fail --------------------------------------------------------------------------


class Mortal(ThreadWorkerPool):
    """A worker is gone whenever its hour has come."""

    hours: set[int]
    asked = 0

    def ask(self, name, *common, each=None, only=None):
        self.asked += 1
        if self.asked in self.hours:
            self.workers = []
            raise WorkerLost("worker 1 is gone: kill")
        answers = super().ask(name, *common, each=each, only=only)
        if -self.asked in self.hours:  # it was done, but nobody heard of it
            self.workers = []
            raise WorkerLost("worker 1 is gone: kill")
        return answers


@pytest.mark.parametrize("hours", [{2}, {-4}, {6, 7, 8}, {-5, -9, 12}])
@pytest.mark.parametrize("name", ["uneven", "homogeneous"])
def test_a_worker_that_is_lost_changes_no_bit(name, hours, alone):
    """Whenever that happens, before or after something was done; also while others make up."""
    crew = type("Doomed", (Mortal,), {"hours": hours})
    with pytest.warns(rb.BackendNotice, match="worker 1 is gone"):
        team, state = begun_as(name, team=True, crew=crew)
        assert_same(arrived(team, state), alone[name])
    assert team.crew.asked > max(map(abs, hours))


class Leaving(ThreadWorkerPool):
    """A worker is gone at the first steps after the state was fetched."""

    fetched, gone = False, False

    def ask(self, name, *common, each=None, only=None):
        if name == "get":
            self.fetched = True
        if name == "advance" and self.fetched and not self.gone:
            self.gone, self.workers = True, []
            raise WorkerLost("worker 1 is gone: kill")
        return super().ask(name, *common, each=each, only=only)


@pytest.mark.parametrize("name", ["uneven", "homogeneous"])
def test_a_worker_lost_right_after_a_checkpoint_changes_no_bit(name, alone):
    """The new one knows nothing, and nothing has to be done again."""
    team, state = begun_as(name, team=True, crew=Leaving)
    stops = (0.02, 0.03)
    for _ in team.advance(state, course_of(team.grid), stops[0]):
        pass
    expected, plain = begun_as(name, team=False)
    for _ in expected.advance(plain, course_of(expected.grid), stops[0]):
        pass
    team.get()
    with pytest.warns(rb.BackendNotice, match="worker 1 is gone"):
        for one, now in ((team, state), (expected, plain)):
            for _ in one.advance(now, course_of(one.grid), stops[1]):
                pass
    np.testing.assert_array_equal(team.get(), expected.get())


def test_a_signal_that_a_follower_got_is_one_of_the_run():
    """It ends with that signal's code."""
    team, _ = begun_as("uneven", team=True)
    team.interrupt = Interrupt()
    team._hear(Halted(10))
    assert team.interrupt.signal == 10
    team._hear(Halted(15))
    assert team.interrupt.signal == 10  # the first one counts


def test_workers_that_are_lost_again_and_again_end_a_run():
    crew = type("Doomed", (Mortal,), {"hours": set(range(4, 100))})
    team, state = begun_as("uneven", team=True, crew=crew)
    with pytest.raises(rb.RunError, match="again and again"), pytest.warns(rb.BackendNotice):
        arrived(team, state)


class Cursed(ThreadWorkerPool):
    """Somebody always dies in the same step."""

    def ask(self, name, *common, each=None, only=None):
        told = super().ask(name, *common, each=each, only=only)
        if name == "advance" and told[0].step >= 4:
            raise WorkerLost("worker 1 is gone: the same step again")
        return told


def test_a_step_that_always_kills_is_not_tried_for_ever():
    """Also not if other steps are done again before it."""
    team, state = begun_as("uneven", team=True, crew=Cursed)
    with (
        pytest.raises(rb.RunError, match="again and again: .*the same step again"),
        pytest.warns(rb.BackendNotice, match=r"\d steps are done again"),
    ):
        arrived(team, state)


@pytest.mark.parametrize("name", ["homogeneous", "uneven"])
@pytest.mark.parametrize("part", ["masses", "collide"])
def test_workers_end_a_step_together_or_none_does(name, part, monkeypatch):
    """One fails in the last thing that he does; what is kept is the step that all know."""
    team, state = begun_as(name, team=True)
    list(team.advance(state, course_of(team.grid), 0.01))
    before, number, packed = state.step, team.get().copy(), state.packed()
    worker = team.crew.workers[1]
    member = worker.member if name == "homogeneous" else worker.member.own
    verb = part if part == "masses" or name == "homogeneous" else "collided"
    real, calls = getattr(member, verb), itertools.count()

    def fails(*arguments):
        if next(calls) == 1:
            raise MemoryError("full")
        return real(*arguments)

    monkeypatch.setattr(member, verb, fails)
    with pytest.raises(rb.RunError, match="MemoryError: full"):
        list(team.advance(state, course_of(team.grid), 0.03))
    steps = {worker._state.step for worker in team.crew.workers}
    assert steps == {state.step} and state.step in (before, before + 1)
    if state.step == before:
        assert np.array_equal(team.get(), number)
        assert_same(state.packed(), packed)


def test_an_error_of_one_worker_is_that_of_the_team():
    """Others do not wait for it, and the last state that stands is kept."""
    team, state = begun_as("planes", team=True)
    before = team.get()

    def fails(*_):
        raise rb.RunError("no luck in this slab")

    team.crew.workers[1].member.own.collided = fails
    with pytest.raises(rb.RunError, match="no luck in this slab"):
        list(team.advance(state, course_of(team.grid), 0.1))
    assert np.array_equal(team.get(), before) and state.step == 0


def test_an_interrupt_leaves_the_last_step_that_stands(alone):
    """And a run that goes on from there has the same bits."""
    team, state = begun_as("uneven", team=True)
    step_plan, steps = course_of(team.grid), itertools.count()

    class Soon:
        def __bool__(self):
            return next(steps) > 1500

    team.interrupt = Soon()
    with pytest.raises(Halted):
        for stop in (0.02, 0.03):
            for _ in team.advance(state, step_plan, stop):
                pass
            state.watch.since_last_record()
    assert state.time < 0.02 and state.step > 0
    team.interrupt = False
    number, packed = team.get(), state.packed()
    again, _ = begun_as("uneven", team=True)
    again.put(number, state.bits)
    resumed = State.unpacked(packed, LostQuanta(team.grid, MIXTURE))
    found, expected = arrived(again, resumed), alone["uneven"]
    del found["flows"], expected["flows"]  # those of the first step after a stop
    assert_same(found, expected)


def test_workers_hold_a_part_each_and_the_leader_only_what_it_fetched():
    team, _ = begun_as("planes", team=True)
    held = [worker.member.own.number.shape[0] for worker in team.crew.workers]
    assert held == team.division.counts and sum(held) == team.grid.sites


def test_a_run_with_forces_from_outside_is_shared_as_well():
    class Field:
        axis = 0

        def field(self, time, squares, grid, model):
            push = np.zeros((grid.sites, len(model.species), 2))
            push[..., 0] = 0.3 * np.cos(np.arange(grid.sites))[:, None]
            return push

    grid = rb.PhaseSpace(4, 2.0, [4, 1, 1], 3.0, "open")
    model, found = rb.gluons(0.3), []
    step_plan = course_of(grid, 0.01, forces=(Field(),))
    for where in ("cpu", "team"):
        backend, state = begun(grid, model, {"g": rb.initial.step(0.3, 1.5)}, where, samples=1)
        list(backend.advance(state, step_plan, 0.03))
        found.append({"number": backend.get(), **state.packed()})
    assert_same(found[1], found[0])
