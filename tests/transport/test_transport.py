"""Streaming and force: free streaming, Liouville, walls, bounds."""

import numpy as np
import pytest
from begun import backend_of

import relboltz as rb
from relboltz.studies.validation import ValidationEffort
from relboltz.studies.validation.streaming import free_gas, streamed
from relboltz.transport import plane as transport

WALLS = ("periodic", "reflecting", "open")


def holding(grid, model, f, bits=44):
    """A state f (sites, species, nodes) on the CPU."""
    backend = backend_of(grid, model)
    number = np.rint(f * model.degeneracy[:, None] * 2.0**bits).astype(np.int64)
    backend.put(np.broadcast_to(number, backend.shape), bits)
    return backend


def test_reconstruction_is_of_fifth_order():
    errors = []
    for n in (32, 64, 128):
        h = 2 * np.pi / n
        x = h * (np.arange(5) - 2) + 0.3
        means = [(np.sin(c + h / 2) - np.sin(c - h / 2)) / h for c in x]
        errors.append(abs(transport.reconstruct(*means) - np.cos(0.3 + h / 2)))
    assert np.log2(errors[0] / errors[1]) > 4.7 and np.log2(errors[1] / errors[2]) > 4.8


def test_reconstruction_at_a_jump_stays_between_the_values():
    for jump in range(1, 5):
        cells = [1.0] * jump + [0.0] * (5 - jump)
        assert -1e-3 < transport.reconstruct(*cells) < 1 + 1e-3


def test_velocity_and_force_come_from_one_energy():
    """Differences of E on the corners, without loss of digits."""
    p, h, q2, m2, after, dx = 0.7, 0.2, 0.3, 0.4, 0.5, 0.6

    def e(edge, mass):
        return np.sqrt(edge**2 + q2 + mass)

    low, high = p - h / 2, p + h / 2
    u = transport.velocity(p, low**2, high**2, q2, m2)
    assert u == pytest.approx((e(high, m2) - e(low, m2)) / h, rel=1e-13)
    a = transport.force(high**2, q2, m2, after, dx)
    assert a == pytest.approx(-(e(high, after) - e(high, m2)) / dx, rel=1e-13)
    assert transport.force(0.0, 0.0, 0.0, 0.0, dx) == 0.0


@pytest.mark.parametrize(("mass", "axis"), [(0.0, 0), (0.5, 0), (0.5, 1), (0.0, 2)])
def test_free_streaming_moves_f_along_with_the_velocity_of_the_grid(mass, axis):
    """f0(x - v t, p) at order 3 at least; number exact."""
    effort = ValidationEffort(backend="cpu", threads=2)
    errors, lost = zip(*(streamed(n, axis, mass, effort) for n in (12, 24, 48)), strict=True)
    orders = np.log2(np.array(errors[:-1]) / errors[1:])
    assert (orders > 3).all(), (errors, orders)
    assert lost == (0, 0, 0)


@pytest.mark.parametrize("wall", WALLS)
@pytest.mark.parametrize("statistics", [1, -1])
def test_rough_states_stay_legal_and_nothing_is_lost(wall, statistics):
    """0 <= f, fermions f <= 1, and all quanta are inside or in the ledger."""
    grid = rb.PhaseSpace([6, 5, 3], 2.0, [6, 5, 4], 3.0, wall)
    rng = np.random.default_rng(5)
    f = (rng.random((grid.sites, 1, grid.size)) > 0.5).astype(float)
    backend = holding(grid, free_gas(statistics), f)
    total, left = int(backend.get().sum()), 0
    squares = np.repeat(rng.uniform(0.0, 1.0, (grid.sites, 1)), 2, axis=1)
    for _ in range(10):
        for axis in (0, 1, 2):
            left += int(backend.stream(axis, 0.25, squares).left.sum())
    number = backend.get()
    assert number.min() >= 0 and int(number.sum()) + left == total
    assert number.max() <= 2**44 or statistics > 0
    assert (left > 0) == (wall == "open")


def test_full_fermions_at_closed_momentum_faces_never_exceed_one():
    """A force that pushes a full sea against the edge is refused, and that is counted."""
    grid = rb.PhaseSpace([4, 3, 3], 0.5, [6, 1, 1], 3.0)
    backend = holding(grid, free_gas(-1), np.ones((1, 1, grid.size)))
    squares = np.repeat(np.linspace(0.0, 2.0, 6)[:, None], 2, axis=1)
    refused = sum(backend.stream(0, 0.05, squares).refused.sum() for _ in range(10))
    number = backend.get()
    assert number.max() <= 2**44 and number.min() >= 0
    assert int(number.sum()) == number.size * 2**44
    assert refused > 1e-3 * number.sum()


def test_walls_reflect_to_the_last_quantum():
    """With constant masses every |p_x| keeps its quanta, so number and energy are exact."""
    grid = rb.PhaseSpace([7, 4, 3], 2.0, [5, 3, 1], 3.0, "reflecting")
    rng = np.random.default_rng(7)
    f = rng.random((grid.sites, 1, grid.size))
    backend = holding(grid, free_gas(), f)
    squares = np.full((grid.sites, 2), 0.25)

    def by_size():
        """Quanta by |p_x|, |p_y|, p_z, all of space together."""
        cube = backend.get().sum(axis=(0, 1)).reshape(grid.momentum_cells)
        cube = cube + cube[::-1]
        return cube + cube[:, ::-1]

    before = by_size()
    for _ in range(20):
        for axis in (0, 1):
            backend.stream(axis, 0.3, squares)
    assert (by_size() == before).all()


def test_a_mirror_image_stays_a_mirror_image():
    """x -> -x with p -> -p, between walls and with a force."""
    grid = rb.PhaseSpace([6, 3, 3], 2.0, [6, 1, 1], 3.0, "reflecting")
    f = np.random.default_rng(9).random((6, 1, 6, 3, 3))
    f += f[::-1, :, ::-1]
    backend = holding(grid, free_gas(), f.reshape(6, 1, -1) / 2)
    profile = np.array([0.1, 0.4, 0.5, 0.5, 0.4, 0.1])
    squares = np.repeat(profile[:, None], 2, axis=1)
    for _ in range(10):
        backend.stream(0, 0.2, squares)
    now = backend.get().reshape(6, 6, 3, 3)
    assert np.abs(now - now[::-1, ::-1]).max() <= 20  # quanta: rounding is not mirrored


def slab(n, shape, wide, axis=0):
    """Free matter within 3 fm of the middle, after 2 and 4 fm, in a box so many times as wide.

    Returns f (times, cells, nodes) within 3 fm, and the run there.
    """
    cells, widths = [1, 1, 1], [1.0, 1.0, 1.0]
    cells[axis], widths[axis] = n * wide, 3.0 * wide

    def start(x, y, z, px, py, pz):
        place = (x, y, z)[axis]
        e = np.sqrt(px**2 + py**2 + pz**2 + 0.25)
        return np.where(np.abs(place) < 3, shape(place), 0.0) * np.exp(-e / 0.4)

    momenta = [3, 3, 3]
    momenta[axis] = 8
    grid = rb.PhaseSpace(momenta, 2.0, cells, widths, "open")
    ds = rb.solve(
        free_gas(0), grid, {"a": start}, end=4.0, step=2.4 / n, every=2.0, snapshots=[2.0, 4.0],
        backend="cpu", progress=False,
    )  # fmt: skip
    inside = {"xyz"[axis]: slice((wide - 1) * n // 2, (wide + 1) * n // 2)}
    ds = ds.isel(inside)
    return ds.f.values.reshape(2, n, -1), ds


@pytest.mark.parametrize("axis", [0, 1])
def test_matter_at_an_open_wall_expands_as_into_a_larger_box(axis):
    """Nothing comes back: f, T and v in every cell are those of a box with its walls far away.

    In the large box the front begins at the wall, and ``ROUGH`` lets about 1e-3 of it into the
    values on its smooth side: f differs by 1.1e-3 of its largest, T [GeV] and v by 1.6e-4.
    """
    (small, few), (large, many) = (slab(24, np.ones_like, wide, axis) for wide in (1, 3))
    assert np.abs(small - large).max() < 2e-3 * large.max()
    for name, tolerance in (("temperature", 3e-4), ("velocity", 3e-4)):
        apart = np.abs(few[name].values - many[name].values)
        assert np.nanmax(apart) < tolerance, name
    assert float(few.velocity[-1, axis].max()) > 0.3


def test_what_leaves_through_an_open_wall_leaves_at_third_order():
    """A smooth slab that flows out, f of all cells against a box three times as wide."""
    errors = []
    for n in (12, 24, 48):
        small, large = (
            slab(n, lambda x: np.cos(np.pi * x / 6) ** 4, wide)[0] for wide in (1, 3)
        )  # fmt: skip
        errors.append(np.abs(small - large).max() / large.max())
    orders = np.log2(np.array(errors[:-1]) / errors[1:])
    assert (orders > 2.7).all() and errors[-1] < 5e-4, (errors, orders)


def test_noise_does_not_bend_the_reconstruction():
    """Noise of 0.3 % keeps the linear weights of fifth order to 5 % of itself; a front does not.

    Weights that follow it (as with 1e-10 in place of ``ROUGH``) would be off by 44 % of it.
    """
    rng, linear = np.random.default_rng(1), np.array([2, -13, 47, 27, -3]) / 60
    for noise, largest in ((1e-3, 0.01), (3e-3, 0.1)):
        rows = 1 + noise * rng.standard_normal((2000, 5))
        bent = np.array([transport.reconstruct(*row) for row in rows]) - rows @ linear
        assert np.sqrt(np.mean(bent**2)) < largest * noise
    assert transport.reconstruct(1.0, 1.0, 1.0, 0.0, 0.0) == pytest.approx(1.0, abs=1e-3)
    assert linear @ [1.0, 1.0, 1.0, 0.0, 0.0] < 0.7


def test_rows_go_on_beyond_a_wall_as_parabolas_and_never_below_zero():
    """Exact for parabolas; a front that arrives and a steep tail make no extremum."""
    row = [1 + 0.3 * x - 0.05 * x * x for x in range(5)]
    assert transport.extrapolated(*row[:3]) == pytest.approx(row[3:], rel=1e-14)
    for cells in ((0, 0, 1), (1, 1, 0), (0, 1, 0), (1, 0, 0)):
        assert transport.extrapolated(*cells) == (cells[2], cells[2])
    near, far = transport.extrapolated(1.0, 0.3, 0.05)
    assert 0 <= far <= near <= 0.05
    for cells in np.random.default_rng(1).random((1000, 3)) ** 4:
        assert min(transport.extrapolated(*cells)) >= 0


def test_vacuum_is_what_comes_in_through_an_open_wall():
    """Cells beyond it count as empty where particles come from, as smooth where they go to."""
    f = [0.5, 0.6, 0.7, 0.8, 0.9]
    at_wall = transport.reconstruct_at_wall
    assert at_wall(*f, 0, 0) == transport.reconstruct(*f)
    assert at_wall(9.0, 9.0, *f[2:], 2, 0) == transport.reconstruct(0.0, 0.0, *f[2:])
    assert at_wall(*f[:3], 9.0, 9.0, 0, 2) == pytest.approx(0.75)
    assert at_wall(*f[:4], 9.0, 0, 1) == pytest.approx(0.75)
    assert at_wall(1.0, 0.5, 0.0, 9.0, 9.0, 0, 2) >= 0


@pytest.mark.parametrize("cells", [2, 3, 4, 7])
def test_cells_beyond_an_open_wall_are_counted(cells):
    """Compute the five values of a stencil by hand, for both directions."""
    shape = (cells, 2, 1, transport.OPEN, transport.CLOSED)
    for i in range(cells + 1):
        for j, sign in ((0, -1), (1, 1)):
            centre = i - 1 if sign > 0 else i
            beyond = [not 0 <= centre + sign * k < cells for k in range(-2, 3)]
            if not beyond[2]:  # else nothing passes
                found = transport.outside_along(i, j, shape)
                assert found == (sum(beyond[:2]), sum(beyond[3:]))
    assert transport.outside_along(0, 0, (*shape[:3], transport.PERIODIC, 0)) == (0, 0)


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_a_beam_leaves_through_the_wall_it_flies_to(axis):
    """Wall and sign of momentum, axis by axis; the other walls see nothing."""
    cells = [1, 1, 1]
    cells[axis] = 4
    grid = rb.PhaseSpace(4, 2.0, cells, 3.0, "open")
    f = np.zeros((4, 4, 4))
    f[tuple(0 if i == axis else 2 for i in range(3))] = 0.5  # flies to the low side
    ds = rb.solve(
        free_gas(), grid, {"a": f}, end=20.0, step=1.0, every=20.0, backend="cpu", progress=False
    )
    wall = "xyz"[axis] + "-"
    left = ds.left_number.sum("species").isel(time=-1)
    assert float(left.sel(wall=wall)) == pytest.approx(float(ds.total_number[0].sum()), rel=1e-3)
    assert float(left.sum()) == float(left.sel(wall=wall))
    momentum = ds.left_momentum.isel(time=-1).sel(wall=wall)
    assert momentum.values == pytest.approx(ds.total_momentum.values[0], rel=1e-3)
    assert float(momentum[axis]) < 0


def test_the_ledger_holds_more_than_64_bits():
    """Dense matter that leaves many sites: momentum inside and in the ledger does not change."""
    grid = rb.PhaseSpace(9, 2.0, [16, 16, 1], 8.0, "open")
    model = free_gas(degeneracy=16)
    start = {"a": rb.initial.from_function(lambda px, py, pz: 1.0 + 0 * px)}
    ds = rb.solve(model, grid, start, end=30.0, step=1.5, every=30.0, backend="cpu", progress=False)
    quanta = float(ds.left_number.sum()) / (2.0**-44 * grid.measure / grid.sites)
    assert quanta > 2.0**64
    assert np.abs(ds.charge_drift).max() == 0 and np.abs(ds.momentum_drift).max() == 0
    inside = ds.total_momentum + ds.left_momentum.sum("wall")
    assert np.allclose(inside, inside[0], atol=1e-9)


def test_refused_flux_is_what_the_force_would_have_carried_out():
    """f = 1 everywhere: force times time over dp, at both edges of p_x."""
    grid = rb.PhaseSpace([4, 1, 1], [1.0, 0.5, 0.5], [8, 1, 1], 4.0, "reflecting")
    backend = holding(grid, free_gas(), np.ones((1, 1, grid.size)))
    m2 = np.linspace(0.5, 1.2, 8)
    squares = np.repeat(m2[:, None], 2, axis=1)
    edge = np.concatenate([m2[:1], 0.5 * (m2[1:] + m2[:-1]), m2[-1:]])
    force = -np.diff(np.sqrt(1.0 + edge))  # dx = 1 fm, |p| = 1 GeV at the edge
    refused = backend.stream(0, 0.1, squares).refused[:, 0] * 2.0**-44
    assert refused[0] == pytest.approx(0.1 / 0.5 * -force.sum(), rel=1e-9)
    assert refused[1] == 0


def test_everything_leaves_through_open_walls():
    """The ledger ends with all that was inside: number exactly, energy to rounding."""
    grid = rb.PhaseSpace([4, 3, 3], 2.0, [6, 1, 1], 3.0, "open")
    start = {"a": rb.initial.gaussian(0.5, 1.0)}
    ds = rb.solve(
        free_gas(), grid, start, end=40.0, step=0.5, every=20.0, backend="cpu", progress=False
    )
    first, last = ds.isel(time=0), ds.isel(time=-1)
    assert float(last.total_number.sum()) < 0.01 * float(first.total_number.sum())
    assert int(np.abs(ds.charge_drift).max()) == 0 and int(np.abs(ds.momentum_drift).max()) == 0
    inside = ds.total_energy_total.values + ds.left_energy.sum("wall").values
    assert inside == pytest.approx(inside[0], rel=1e-12)
    walls = last.left_number.sum("species")
    assert float(walls.sel(wall="x-")) == pytest.approx(float(walls.sel(wall="x+")), rel=1e-9)
    assert float(walls.sel(wall=["y-", "y+", "z-", "z+"]).sum()) == 0
