"""Ledger of what leaves the box, kept on the GPU and updated when a step is accepted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numba import float64, int64
from numpy.typing import NDArray

from ...transport.ledger import LOW_WORD
from ...transport.ledger import LostQuanta as HostLedger
from ...transport.pencils import Pencils
from ...transport.plane import CLOSED
from ...util.arrays import Array
from . import layout as k
from .driver import kernel
from .layout import THREADS
from .physics import cuda, keep_sums
from .sweeps import fineness

if TYPE_CHECKING:
    from .device_buffers import DeviceBuffers


@kernel
def add_passage(control, energies, refused, axis, again, passed):
    """Sum the energy that left and the quanta refused in a sweep; one block per species.

    energies, refused : sums of the blocks of a sweep, low and high side, two numbers each, refused
    also by species; again : second sweep of a step along this axis; passed : (axis, species, energy
    and refused, side, numbers), where all energy is assigned to the first species
    """
    shared = cuda.shared.array(THREADS, float64)
    if control[k.STATUS] != k.GO:
        return
    a, kinds = cuda.blockIdx.x, cuda.gridDim.x
    own = cuda.local.array(8, float64)
    row = passed[8 * (axis * kinds + a) : 8 * (axis * kinds + a) + 8]
    for j in range(8):
        own[j] = row[j] if again != 0 and cuda.threadIdx.x == 0 else 0.0
    for i in range(cuda.threadIdx.x, energies.shape[0], THREADS):
        for j in range(4):
            own[j] += energies[i, j] if a == 0 else 0.0
            own[4 + j] += refused[i * kinds + a, j]
    cuda.syncthreads()
    keep_sums(shared, (own[0], own[1], own[2], own[3], own[4], own[5], own[6], own[7]), row)


@kernel
def enter(control, step, words):
    """Add quanta that left to the ledger if the step is accepted; words : high, then low."""
    i = cuda.grid(1)
    if i >= step.size:
        return
    if control[k.STATUS] == k.GO and control[k.PHASE] == k.REAL:
        low = words[1, i] + (step[i] & int64(LOW_WORD))
        words[0, i] += (step[i] >> 32) + (low >> 32)
        words[1, i] = low & int64(LOW_WORD)
    step[i] = 0


class WallLedger:
    """Everything that has left the box, as in ``transport.ledger``, kept on a GPU."""

    def __init__(self, buffers: DeviceBuffers, pencils: dict[int, Pencils]):
        self.buffers, self._pencils = buffers, pencils
        self._fine = np.ones((3, 1))
        for axis, lines in pencils.items():
            self._fine[axis] = fineness(lines)
        size = 12 * buffers.species
        self.passed, self.all = buffers.new(2 * size, np.float64), buffers.new(size, np.float64)
        self.words: dict[int, Any] = {
            axis: buffers.new((2, 2 * buffers.cells), np.int64)
            for axis, lines in pencils.items()
            if lines.open
        }

    def see(self, axis: int, energies: Any, refused: Any, again: bool) -> None:
        """Record the energy that left and the quanta refused in a sweep."""
        buffers, pencils = self.buffers, self._pencils[axis]
        if pencils.open or pencils.walls[1] == CLOSED:
            buffers.launch(
                add_passage, buffers.species, buffers.context.control, energies, refused, axis,
                int(again), self.passed,
            )  # fmt: skip

    def enter(self, steps: dict[int, Any]) -> None:
        """Add what left through open walls; steps : quanta that left in a step, by axis."""
        buffers = self.buffers
        for axis, words in self.words.items():
            blocks = -(-steps[axis].size // k.THREADS)
            buffers.launch(enter, blocks, buffers.context.control, steps[axis], words)

    def upload(self, ledger: HostLedger) -> None:
        """Upload the ledger of the host."""
        self.all.copy_to_device(self._flat(ledger))
        for axis, words in self.words.items():
            words.copy_to_device(ledger.left[axis].reshape(2, -1))

    @property
    def arrays(self) -> list[Any]:
        """GPU arrays of the ledger that the host reads; empty where nothing streams."""
        return [self.all, *self.words.values()] if self._pencils else []

    def read(self, arrays: list[NDArray[Any]], ledger: HostLedger) -> None:
        """Update the host ledger from copies of ``arrays``."""
        if not arrays:
            return
        table = arrays[0].reshape(3, -1, 2, 2)
        ledger.energy = table[:, :, 0].sum(axis=1) / self._fine
        ledger.refused = table[:, :, 1].transpose(0, 2, 1).copy()
        for axis, words in zip(self.words, arrays[1:], strict=True):
            ledger.left[axis] = words.reshape(ledger.left[axis].shape)

    def _flat(self, ledger: HostLedger) -> Array:
        table = np.zeros((3, self.buffers.species, 2, 2))
        table[:, 0, 0] = ledger.energy * self._fine
        table[:, :, 1] = ledger.refused.transpose(0, 2, 1)
        return table.ravel()
