"""Sums over the nodes of many sites on a GPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numba import float64, int64

from ...grid.phase_space import PhaseSpace
from ...transport.moments import FIT_SUMS, FUNCTIONS, SUMS, Marginal, Moments, Shells
from ...util.arrays import Array, Integers
from ...util.jit import build
from . import driver
from . import layout as k
from .driver import device_function, kernel
from .layout import THREADS
from .physics import column_sums, cuda, momentum_at, physics

if TYPE_CHECKING:
    from .device_buffers import DeviceBuffers

ROOM, FIT_ROOM = -(-SUMS // 2) * THREADS, -(-FIT_SUMS // 2) * THREADS
"""Shared-memory numbers for sums in two rounds, so that they fit in a block's shared memory."""
EACH = 16
"""Nodes per thread: several blocks share the nodes of a species at a site."""
compiled = build(FUNCTIONS, device_function)


@kernel
def measure(number, unit, at_rest, species, squares, packed, shell, momentum, geometry, final,
            counts, sums):  # fmt: skip
    """Sum over a part of the nodes of one species at one site: blocks (parts, rows).

    momentum : nodes along the three axes, one after the other; geometry : counts and spacings of
    the nodes; counts : quanta on the momentum planes of every site, ordered as momentum, followed
    by quanta in the shells of every row; sums : (rows, parts, SUMS)
    """
    shared = cuda.shared.array(ROOM, float64)
    part, row = cuda.blockIdx.x, cuda.blockIdx.y
    site, a = row // species.shape[0], row % species.shape[0]
    n, nx, ny = packed.size, int64(geometry[0]), int64(geometry[1])
    planes = site * momentum.size
    behind = squares.shape[0] * momentum.size
    shells = behind + row * ((counts.size - behind) // cuda.gridDim.y)
    scale, eta, m2 = unit / species[a, 0], species[a, 1], squares[site, a]
    halves = (0.5 * geometry[3], 0.5 * geometry[4], 0.5 * geometry[5])
    s = cuda.local.array(SUMS, float64)
    for j in range(SUMS):
        s[j] = 0.0
    first = part * EACH * THREADS
    for i in range(first + cuda.threadIdx.x, min(first + EACH * THREADS, n), THREADS):
        held = number[row * n + i]
        cuda.atomic.add(counts, planes + physics.packed_index(packed[i], 0), held)
        cuda.atomic.add(counts, planes + nx + physics.packed_index(packed[i], 1), held)
        cuda.atomic.add(counts, planes + nx + ny + physics.packed_index(packed[i], 2), held)
        cuda.atomic.add(counts, shells + shell[i], held)
        compiled.add_moments(
            held * scale, momentum_at(packed[i], momentum, geometry), halves, m2, eta, at_rest,
            final[a * n + i], s,
        )  # fmt: skip
    column_sums(shared, s, SUMS, sums[row, part])


class MomentMeasurer:
    """Computes the moments of the states in the buffers."""

    def __init__(self, buffers: DeviceBuffers, grid: PhaseSpace):
        shells = Shells.of(grid)
        self._buffers, self._grid = buffers, grid
        rows, parts = grid.sites * buffers.species, -(-grid.size // (EACH * THREADS))
        self._shell = buffers.to(shells.index, np.int32)
        self._behind = grid.sites * sum(grid.momentum_cells)
        self._counts = buffers.new(self._behind + rows * len(shells.p), np.int64)
        self._sums = buffers.new((rows, parts, SUMS), np.float64)
        self._final = buffers.new(buffers.cells, np.float64)
        self._rows = [buffers.number[0], buffers.number[1]]
        self._copies = driver.HostCopies(buffers.stream, self._counts, self._sums)
        self._works: dict[tuple[int, float, int], driver.RepeatedLaunch] = {}
        self._given: Array | None = None

    def set_momentum_grid(self, grid: PhaseSpace) -> None:
        """Switch to the momentum nodes of another grid."""
        self._grid = grid
        self._works.clear()

    def moments(self, row: int, unit: float, squares: Any, final: Array) -> Moments:
        """Return moments of a row of ``number``; squares : on GPU; final : predicted f or NaN."""
        buffers, grid = self._buffers, self._grid
        if final is not self._given:  # large, and rarely changed
            self._final.copy_to_device(np.nan_to_num(final).ravel())
            self._given, self._known = final, bool(np.isfinite(final).all())

        def work() -> None:
            rows, parts, _ = self._sums.shape
            driver.clear(self._counts, buffers.stream)
            buffers.launch(
                measure, (parts, rows), self._rows[row], unit, grid.rest_inverse_energy,
                buffers.species_numbers, squares, buffers.packed, self._shell, buffers.momentum,
                buffers.geometry, self._final, self._counts, self._sums,
            )  # fmt: skip
            self._copies.launch()

        self._works.setdefault(
            (row, unit, id(squares)), driver.RepeatedLaunch(buffers.stream, work)
        )()
        counts, parts = self._copies.arrived()
        planes, shells = np.split(counts, [self._behind])
        edges = np.cumsum(grid.momentum_cells)[:-1]
        x, y, z = np.split(planes.reshape(grid.sites, -1), edges, axis=1)
        sums = parts.sum(axis=1).reshape(grid.sites, buffers.species, SUMS)
        if not self._known:
            sums[:, :, k.DISTANCE] = np.nan
        return Moments((x, y, z), shells.reshape(grid.sites, buffers.species, -1), sums)


@kernel
def fit_sums(theta, squares, which, species, packed, momentum, geometry, sums):
    """Sum over the nodes of one species at one site, as on the CPU.

    momentum : nodes along the three axes, one after the other; geometry begins with their counts
    """
    shared = cuda.shared.array(FIT_ROOM, float64)
    row = cuda.blockIdx.x
    at, a = row // species.shape[0], row % species.shape[0]
    alpha, m2, eta = theta[at, 4 + a], squares[which[at], a], species[a, 1]
    s = cuda.local.array(FIT_SUMS, float64)
    for j in range(FIT_SUMS):
        s[j] = 0.0
    for i in range(cuda.threadIdx.x, packed.size, THREADS):
        p = momentum_at(packed[i], momentum, geometry)
        compiled.add_fit_terms(theta[at], alpha, p, m2, eta, 1.0, s)
    column_sums(shared, s, FIT_SUMS, sums[row])


@kernel
def add_up(control, number, sites, nodes, into):
    """Add every cell to its marginal sum, which is kept as a high and a low word.

    Blocks of threads form a grid (nodes, rows).
    """
    i, row = cuda.grid(1), cuda.blockIdx.y
    if i < nodes.size:
        held = number[control[k.SOURCE], row * nodes.size + i]
        site, a = row // into.shape[1], row % into.shape[1]
        place = sites[site] + nodes[i]
        cuda.atomic.add(into, (0, a, place), held >> 32)
        cuda.atomic.add(into, (1, a, place), held & int64(0xFFFFFFFF))


class MarginalSums:
    """Marginal sums of a state over all axes of phase space except some."""

    def __init__(self, buffers: DeviceBuffers, grid: PhaseSpace, kept: Sequence[str]):
        into = Marginal.of(grid, buffers.species, kept)
        self._buffers, self._shape = buffers, (2, *into.shape)
        self._blocks = (-(-grid.size // THREADS), grid.sites * buffers.species)
        self._places = [buffers.to(place, np.int64) for place in (into.sites, into.nodes)]
        self._words = buffers.new((2, buffers.species, int(np.prod(into.shape[1:]))), np.int64)

    def of_state(self) -> tuple[Integers, Integers]:
        """Return the sums of the source row of ``number``, as high and low words."""
        buffers = self._buffers
        driver.clear(self._words, buffers.stream)
        buffers.launch(
            add_up,
            self._blocks,
            buffers.context.control,
            buffers.number,
            *self._places,
            self._words,
        )
        high, low = buffers.fetch(self._words).reshape(self._shape)
        return high, low
