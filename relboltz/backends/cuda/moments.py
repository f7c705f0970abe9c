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
"""Sums are added up in two rounds, so that they fit a block's shared memory."""
EACH = 16
"""Nodes of a thread: blocks share out the nodes of a species at a site."""
compiled = build(FUNCTIONS, device_function)


@kernel
def measure(number, unit, at_rest, species, squares, packed, shell, momentum, geometry, final,
            counts, sums):  # fmt: skip
    """Sums over a part of the nodes of one species at one site: blocks (parts, rows).

    momentum : nodes along the three axes, one after the other; geometry : counts and spacings of
    the nodes; counts : quanta on the planes of every site, as momentum has them, and behind them
    in the shells of every row; sums : (rows, parts, SUMS)
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
    """Measures the states of a machine."""

    def __init__(self, machine: DeviceBuffers, grid: PhaseSpace):
        shells = Shells.of(grid)
        self._machine, self._grid = machine, grid
        rows, parts = grid.sites * machine.species, -(-grid.size // (EACH * THREADS))
        self._shell = machine.to(shells.index, np.int32)
        self._behind = grid.sites * sum(grid.momentum_cells)
        self._counts = machine.new(self._behind + rows * len(shells.p), np.int64)
        self._sums = machine.new((rows, parts, SUMS), np.float64)
        self._final = machine.new(machine.cells, np.float64)
        self._rows = [machine.number[0], machine.number[1]]
        self._copies = driver.HostCopies(machine.stream, self._counts, self._sums)
        self._works: dict[tuple[int, float, int], driver.RepeatedLaunch] = {}
        self._given: Array | None = None

    def set_momentum_grid(self, grid: PhaseSpace) -> None:
        """The nodes are now those of this grid."""
        self._grid = grid
        self._works.clear()

    def moments(self, row: int, unit: float, squares: Any, final: Array) -> Moments:
        """Of a row of numbers; squares : masses on the GPU; final : f it should end at, or NaN."""
        machine, grid = self._machine, self._grid
        if final is not self._given:  # large, and mostly the same
            self._final.copy_to_device(np.nan_to_num(final).ravel())
            self._given, self._known = final, bool(np.isfinite(final).all())

        def work() -> None:
            rows, parts, _ = self._sums.shape
            driver.clear(self._counts, machine.stream)
            machine.launch(
                measure, (parts, rows), self._rows[row], unit, grid.rest_inverse_energy,
                machine.species_numbers, squares, machine.packed, self._shell, machine.momentum,
                machine.geometry, self._final, self._counts, self._sums,
            )  # fmt: skip
            self._copies.launch()

        self._works.setdefault(
            (row, unit, id(squares)), driver.RepeatedLaunch(machine.stream, work)
        )()
        counts, parts = self._copies.arrived()
        planes, shells = np.split(counts, [self._behind])
        edges = np.cumsum(grid.momentum_cells)[:-1]
        x, y, z = np.split(planes.reshape(grid.sites, -1), edges, axis=1)
        sums = parts.sum(axis=1).reshape(grid.sites, machine.species, SUMS)
        if not self._known:
            sums[:, :, k.DISTANCE] = np.nan
        return Moments((x, y, z), shells.reshape(grid.sites, machine.species, -1), sums)


@kernel
def fit_sums(theta, squares, which, species, packed, momentum, geometry, sums):
    """Sums over the nodes of one species at one site; as on the CPU.

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
def add_up(control, number, sites, nodes, description):
    """Add all cells to their sums, as two words, high and low: blocks (nodes, rows)."""
    i, row = cuda.grid(1), cuda.blockIdx.y
    if i < nodes.size:
        held = number[control[k.SOURCE], row * nodes.size + i]
        site, a = row // description.shape[1], row % description.shape[1]
        place = sites[site] + nodes[i]
        cuda.atomic.add(description, (0, a, place), held >> 32)
        cuda.atomic.add(description, (1, a, place), held & int64(0xFFFFFFFF))


class MarginalSums:
    """Sums of a state that keep some axes of phase space."""

    def __init__(self, machine: DeviceBuffers, grid: PhaseSpace, kept: Sequence[str]):
        into = Marginal.of(grid, machine.species, kept)
        self._machine, self._shape = machine, (2, *into.shape)
        self._blocks = (-(-grid.size // THREADS), grid.sites * machine.species)
        self._places = [machine.to(place, np.int64) for place in (into.sites, into.nodes)]
        self._words = machine.new((2, machine.species, int(np.prod(into.shape[1:]))), np.int64)

    def of_state(self) -> tuple[Integers, Integers]:
        """As on the CPU, of the row of numbers that is to be read."""
        machine = self._machine
        driver.clear(self._words, machine.stream)
        machine.launch(
            add_up, self._blocks, machine.desk.control, machine.number, *self._places, self._words
        )
        high, low = machine.fetch(self._words).reshape(self._shape)
        return high, low
