"""Landing on the grid: bracketing pairs of nodes with exact momentum, inside the box."""

import itertools

import numpy as np
import pytest

from relboltz.backends.cpu import collision_events as kernels
from relboltz.backends.physics import compiled
from relboltz.events import collisions, kinematics, projection
from relboltz.events.projection import FAR, WALK
from relboltz.grid.phase_space import PhaseSpace

GRIDS = [
    PhaseSpace(7, 2.0),
    PhaseSpace(8, 2.0),
    PhaseSpace((9, 6, 5), (2.0, 1.1, 3.0)),
    PhaseSpace((4, 3, 12), (1.0, 2.5, 2.0)),
]
ON_GRIDS = pytest.mark.parametrize(
    "grid", GRIDS, ids=lambda g: "x".join(map(str, g.momentum_cells))
)
MASSES2 = [(0.0, 0.0, 0.0, 0.0), (0.2, 0.2, 0.2, 0.2), (0.3, 0.05, 0.1, 0.25), (0.1, 0.1, 0.0, 0.0)]


def geometry(grid):
    """(cells, h) as the kernels take them."""
    return tuple(float(n) for n in grid.momentum_cells), tuple(float(h) for h in grid.spacing)


def pair_energy(grid, node, total, m2):
    """Energy of (node, total - node) from the grid's own axes, None outside the box."""
    squared = [0.0, 0.0]
    for i in range(3):
        partner = total[i] - node[i]
        if not (0 <= node[i] < grid.momentum_cells[i] and 0 <= partner < grid.momentum_cells[i]):
            return None
        axis = grid.axis(i)
        squared[0] += axis[node[i]] ** 2
        squared[1] += axis[partner] ** 2
    return float(np.sqrt(squared[0] + m2[0]) + np.sqrt(squared[1] + m2[1]))


def events(grid, seed, n):
    """Random node pairs scattered: (position of k1, total index, energy, squared masses)."""
    rng = np.random.default_rng(seed)
    cells, h = geometry(grid)
    while n > 0:
        ip, ik = (tuple(int(rng.integers(c)) for c in grid.momentum_cells) for _ in range(2))
        p, k3 = (tuple(float(grid.axis(i)[node[i]]) for i in range(3)) for node in (ip, ik))
        m2 = MASSES2[n % len(MASSES2)]
        draws = tuple(rng.random(2).tolist())
        k1, e, _, _, weight = kinematics.scatter(
            p, k3, m2, draws, (0.0, 0.0, 2.0), kinematics.NO_NODES
        )
        if weight > 0:
            position = tuple(projection.node_position(k1[i], cells[i], h[i]) for i in range(3))
            yield position, tuple(a + b for a, b in zip(ip, ik, strict=True)), e, m2[:2]
            n -= 1


def floats(total):
    """Indices as the kernels hold them."""
    return tuple(float(t) for t in total)


@ON_GRIDS
def test_nodes_sit_at_their_indices(grid):
    """node_momentum is the grid's axis to the last bit, node_position its inverse."""
    cells, h = geometry(grid)
    for i in range(3):
        for index, k in enumerate(grid.axis(i).tolist()):
            assert projection.node_momentum(float(index), cells[i], h[i]) == k
            assert projection.node_position(k, cells[i], h[i]) == pytest.approx(index, abs=1e-13)


def number(grid, node):
    """Where a node stands among all nodes."""
    _, ny, nz = grid.momentum_cells
    return (node[0] * ny + node[1]) * nz + node[2]


@ON_GRIDS
def test_brackets_are_the_closest_pairs_below_and_above_the_energy(grid):
    """Against all 8 corners: which, how far, with which energy, in the box, exact momentum."""
    cells, h = geometry(grid)
    found = {"low": 0, "high": 0, "both": 0, "none": 0}
    for position, total, e, m2 in events(grid, 1, 400):
        low, e_low, high, e_high = projection.bracket(position, floats(total), e, m2, cells, h)
        corner = np.floor(position).astype(int)
        below, above = {}, {}
        for bits in itertools.product((0, 1), repeat=3):
            node = tuple(int(c) + b for c, b in zip(corner, bits[::-1], strict=True))
            energy = pair_energy(grid, node, total, m2)
            if energy is None:
                continue
            distance = sum(((position[i] - node[i]) * h[i]) ** 2 for i in range(3))
            (below if energy <= e else above)[number(grid, node)] = (distance, energy)
        for which, energy, candidates in ((low, e_low, below), (high, e_high, above)):
            if not candidates:
                assert which == -1
                continue
            assert which in candidates  # in the box, on its side of the shell
            distance, expected = candidates[which]
            assert distance <= min(d for d, _ in candidates.values()) * (1 + 1e-12)
            assert energy == pytest.approx(expected, rel=1e-15)
        if low >= 0 and high >= 0:
            assert e_low <= e < e_high
            r = (e - e_low) / (e_high - e_low)
            assert 0 <= r <= 1
            assert (1 - r) * e_low + r * e_high == pytest.approx(e, rel=1e-14)
        kind = "both" if below and above else "low" if below else "high" if above else "none"
        found[kind] += 1
    assert found["both"] > 50 and found["none"] > 0


@ON_GRIDS
def test_the_walk_finds_a_pair_in_the_box_or_says_none(grid):
    """The energy of the node it names; FAR out of the box or above e; its end is P/2."""
    cells, h = geometry(grid)
    inside = outside = 0
    for position, total, e, m2 in events(grid, 2, 200):
        for step in range(1, WALK + 1):
            *node, energy = projection.walk(float(step), position, floats(total), e, m2, cells, h)
            assert all(x == int(x) for x in node)
            expected = pair_energy(grid, [int(x) for x in node], total, m2)
            if expected is None or expected > e:
                assert energy == FAR
                outside += 1
            else:
                assert energy == pytest.approx(expected, rel=1e-15)
                inside += 1
            part = step / WALK
            for i in range(3):
                way = position[i] + part * (0.5 * total[i] - position[i])
                assert abs(node[i] - way) <= 0.5 + 1e-12
    assert inside > 0 and outside > 0


OFFSETS = np.array([3, 2, 0, 1, 0, 1])
"""Which species, of those of k1, k2, k3 and p, the six cells of an event belong to."""


def step(grid):
    """f of four species that are full up to 1.3 GeV and empty beyond."""
    return np.tile(np.where(grid.momentum_squared < 1.3**2, 0.5, 0.0), 4)


def landed(grid, occupancy, m2=MASSES2[2], seed=3):
    """Nodes and split of events drawn at random and landed, and how many were drawn and lost."""
    count, cells_h = kernels.CHUNK, geometry(grid)
    rng = np.random.default_rng(seed)
    nodes = rng.integers(0, grid.size, 2 * kernels.CHUNK)
    p, k3 = nodes[:count], nodes[count:]
    index = np.array(np.unravel_index(np.arange(grid.size), grid.momentum_cells))
    w = np.zeros(kernels.ROWS * kernels.CHUNK)
    for i in range(3):
        w[kernels.PX + i * count : kernels.PX + (i + 1) * count] = grid.momenta[i, p]
        w[kernels.KX + i * count : kernels.KX + (i + 1) * count] = grid.momenta[i, k3]
        w[kernels.TX + i * count : kernels.TX + (i + 1) * count] = index[i, p] + index[i, k3]
    w[kernels.U0 : kernels.U0 + count] = rng.random(count)
    w[kernels.U1 : kernels.U1 + count] = rng.random(count)
    w[kernels.M2 : kernels.M2 + count] = w[kernels.INVERSE_Q : kernels.INVERSE_Q + count] = 1.0
    legs = np.empty((count, 6), np.int32)
    weights, ratios = np.empty(count), np.empty(count)
    offsets = tuple(i * grid.size for i in range(4))
    table = np.array([collisions.logarithms(f, 0.0) for f in occupancy.tolist()])
    levels = np.empty(len(occupancy), np.int16)
    state = occupancy, levels, table, 2 * kernels.fill_levels(table, levels)
    kernels.scatter_chunk(count, m2, (0.0, 0.0, 2.0), kinematics.NO_NODES, w)
    kernels.bracket_chunk(count, m2[:2], cells_h, 1.0, w)
    sums = np.zeros(5)
    number = kernels.land(
        count, True, m2, cells_h, 0.0, offsets, state, w, nodes, (legs, weights, ratios), sums
    )
    return legs[:number].T, ratios[:number], sums[0], sums[1]


@pytest.mark.parametrize("edge", [False, True])
@ON_GRIDS
def test_every_landed_event_conserves_momentum_and_energy(grid, edge):
    """The compiled chain from draw to legs: index sums exact, energy to 1e-14, number of legs."""
    index = np.array(np.unravel_index(np.arange(grid.size), grid.momentum_cells))
    energies = [grid.energies(m) for m in MASSES2[2]]
    occupancy = step(grid) if edge else np.random.default_rng(3).random(4 * grid.size)
    legs, r, everything, lost = landed(grid, occupancy)
    assert 100 < legs.shape[1] < kernels.CHUNK and 0 <= lost < everything
    cells = legs - OFFSETS[:, None] * grid.size
    assert cells.min() >= 0 and cells.max() < grid.size
    total = index[:, cells[0]] + index[:, cells[1]]
    assert np.array_equal(index[:, cells[2]] + index[:, cells[3]], total)
    assert np.array_equal(index[:, cells[4]] + index[:, cells[5]], total)
    e = energies[3][cells[0]] + energies[2][cells[1]]
    low = energies[0][cells[2]] + energies[1][cells[3]]
    high = energies[0][cells[4]] + energies[1][cells[5]]
    assert r.min() >= 0 and r.max() <= 1
    np.testing.assert_allclose((1 - r) * low + r * high, e, rtol=1e-14)


def test_events_beyond_a_front_land_on_nodes_that_hold_particles():
    """A step: of events between empty nodes more come from two full pairs, none from fewer.

    Where the closest pairs are a full and an empty one nothing could be taken. Other nodes than the
    closest are taken for these events alone.
    """
    grid, flat = PhaseSpace(14, 2.6), np.full(4 * 14**3, 0.5)
    f = step(grid)
    chunks = [[landed(grid, x, seed=seed)[:2] for seed in range(40)] for x in (flat, f)]
    (before, r0), (now, r1) = [
        (np.hstack([legs for legs, _ in some]), np.hstack([r for _, r in some])) for some in chunks
    ]
    empty = (f[now[0]] * f[now[1]]) == 0
    pairs = [(f[legs[2]] * f[legs[3]], f[legs[4]] * f[legs[5]]) for legs in (before, now)]
    full = [(low > 0) & (high > 0) for low, high in pairs]
    half = (pairs[0][0] > 0) != (pairs[0][1] > 0)
    moved = (before != now).any(axis=0)
    np.testing.assert_allclose(r1[~moved], r0[~moved], atol=1e-13)
    assert np.array_equal(before[:2], now[:2])
    assert not (full[0] & ~full[1]).any() and not (moved & ~(empty & half)).any()
    assert np.array_equal(moved, full[1] & ~full[0])
    assert moved.sum() > 20


@pytest.mark.parametrize("shift", [0.0, 0.3])
def test_smooth_states_land_on_the_closest_pairs(shift):
    """A thermal state, at rest or with flow, is landed as f = const is: it has no front."""
    grid = PhaseSpace(14, 2.6)
    e = np.sqrt(grid.momentum_squared + 0.2)
    smooth = np.tile(np.exp(-(e - shift * grid.momenta[0]) / 0.4), 4)
    (flat, r0, *_), (now, r1, *_) = landed(grid, np.full(4 * grid.size, 0.5)), landed(grid, smooth)
    assert np.array_equal(flat, now) and np.array_equal(r0, r1)


def test_a_front_fades_gradually():
    """Emptiness lengthens the way to a pair from no detour to one diagonal, without a jump."""
    h, near = (0.1, 0.2, 0.3), 0.02
    depths = np.linspace(0.0, 3 * projection.FRONT, 400)
    far = np.array([projection.detour(near, -d, -1e9, 0.0, h) for d in depths])
    assert far[0] == near and far[-1] == pytest.approx(near + 0.14)
    assert (np.diff(far) >= 0).all() and np.diff(far).max() < 0.14 / 100
    inside = projection.detour(near, -1e9, -0.5 * projection.FRONT, 0.0, h)
    assert inside == near  # nodes that hold particles need no others


@pytest.mark.parametrize("low, high", [(0.0, -9.0), (-9.0, 0.0)])
def test_a_front_is_a_drop_between_pairs_that_own_nodes_share(low, high):
    """Empty nodes and one empty pair make a front; full nodes, slopes and little f do not."""
    front = projection.at_front
    assert front(low, high, -9.0, 0.0)
    assert not front(low, high, -2.0, 0.0)  # the loss of full nodes is right
    assert not front(low / 5, high / 5, -9.0, 0.0)
    assert not front(low, high, -9.0, 8.0)  # a thousandth of the largest f f


def test_levels_miss_no_front():
    """Whole numbers tell beforehand where there is no front; where there is one they never do."""
    rng = np.random.default_rng(5)
    ln_f = rng.uniform(-12.0, 2.0, (20000, 6))
    ln_f[rng.random(ln_f.shape) < 0.2] = -690.0
    fronts = 0
    for pairs in ln_f:
        low, high, own = pairs.reshape(3, 2).sum(axis=1).tolist()
        below, above, mine = (
            int(sum(projection.level_of(x) for x in two)) for two in pairs.reshape(3, 2).tolist()
        )
        if projection.at_front(low, high, own, 2.0):
            fronts += 1
            assert projection.far_apart(below, above, 2.0)
            assert projection.may_be_front(below, above, mine)
    assert fronts > 1000


def test_compiled_projection_gives_the_same_numbers():
    """Python and compiled agree: the same corners, energies to 1e-12."""
    grid = GRIDS[2]
    cells, h = geometry(grid)
    for position, total, e, m2 in events(grid, 4, 100):
        arguments = (position, floats(total), e, m2, cells, h)
        expected = projection.bracket(*arguments)
        got = compiled.bracket(*arguments)
        assert (got[0], got[2]) == (expected[0], expected[2])
        assert got == pytest.approx(expected, rel=1e-12)
        assert compiled.walk(3.0, *arguments) == pytest.approx(
            projection.walk(3.0, *arguments), rel=1e-12
        )


def test_the_change_of_the_stress_is_that_of_the_four_particles():
    """|Q|^2 against matrices of NumPy; an event that changes nothing has none."""
    rng = np.random.default_rng(5)
    for _ in range(20):
        k1, k3, p = rng.normal(size=(3, 3))
        k2, m2 = p + k3 - k1, rng.random(4)
        q = np.zeros((3, 3))
        for k, mass, sign in zip((k1, k2, k3, p), m2, (1, 1, -1, -1), strict=True):
            q += sign * np.outer(k, k) / np.sqrt(k @ k + mass)
        found = projection.stress_change2(tuple(k1), tuple(k3), tuple(p), tuple(m2))
        assert found == pytest.approx((q**2).sum(), rel=1e-12)
    assert projection.stress_change2(tuple(k3), tuple(k3), tuple(p), (m2[0],) * 4) < 1e-28


def test_only_what_nodes_do_not_resolve_is_compensated():
    """1 for s above RESOLVED h^2 or without a spacing; between 1 and LARGEST, falling with s."""
    k1, k3, p, m2 = (0.3, 0.1, 0.0), (0.6, 0.0, 0.05), (0.1, 0.1, 0.0), (0.0,) * 4

    def factor(s, spacing2=0.04):
        return projection.compensation(k1, k3, p, m2, s, spacing2)

    assert factor(projection.RESOLVED * 0.04) == 1.0 and factor(1e-6, 0.0) == 1.0
    last = projection.RESOLVED * 0.04
    assert 1.0 < factor(last * (1 - 1e-6)) < 1.0 + 1e-4  # no jump
    factors = [factor(s) for s in np.geomspace(1e-3, last, 30)]
    assert factors[0] == projection.LARGEST
    assert all(1.0 <= b <= a for a, b in itertools.pairwise(factors))
    assert factors[-1] == pytest.approx(1.0, abs=1e-9)
