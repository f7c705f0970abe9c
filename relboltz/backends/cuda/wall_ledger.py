"""What leaves the box while a GPU steps ahead: kept there, and entered when a step stands."""

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
    """Energy that left and quanta that were refused in a sweep: a block for every species.

    energies, refused : of the blocks of a sweep, low and high side, in two numbers each, and
    refused by species; again : the second sweep of a step along this axis; passed : (axis, species,
    energy and refused, side, numbers); all energy counts as that of the first species
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
    """Enter what a step let out, if it stands, and clear it; words : high and low ones."""
    i = cuda.grid(1)
    if i >= step.size:
        return
    if control[k.STATUS] == k.GO and control[k.PHASE] == k.REAL:
        low = words[1, i] + (step[i] & int64(LOW_WORD))
        words[0, i] += (step[i] >> 32) + (low >> 32)
        words[1, i] = low & int64(LOW_WORD)
    step[i] = 0


class WallLedger:
    """All that ever left the box, as ``transport.ledger`` has it, on a GPU."""

    def __init__(self, machine: DeviceBuffers, pencils: dict[int, Pencils]):
        self.machine, self._pencils = machine, pencils
        self._fine = np.ones((3, 1))
        for axis, lines in pencils.items():
            self._fine[axis] = fineness(lines)
        size = 12 * machine.species
        self.passed, self.all = machine.new(2 * size, np.float64), machine.new(size, np.float64)
        self.words: dict[int, Any] = {
            axis: machine.new((2, 2 * machine.cells), np.int64)
            for axis, lines in pencils.items()
            if lines.open
        }

    def see(self, axis: int, energies: Any, refused: Any, again: bool) -> None:
        """Take note of a sweep."""
        machine, pencils = self.machine, self._pencils[axis]
        if pencils.open or pencils.walls[1] == CLOSED:
            machine.launch(
                add_passage, machine.species, machine.desk.control, energies, refused, axis,
                int(again), self.passed,
            )  # fmt: skip

    def enter(self, steps: dict[int, Any]) -> None:
        """Enter what left through open walls; steps : quanta that left in a step, by axis."""
        machine = self.machine
        for axis, words in self.words.items():
            blocks = -(-steps[axis].size // k.THREADS)
            machine.launch(enter, blocks, machine.desk.control, steps[axis], words)

    def upload(self, ledger: HostLedger) -> None:
        """Go on from what a host knows."""
        self.all.copy_to_device(self._flat(ledger))
        for axis, words in self.words.items():
            words.copy_to_device(ledger.left[axis].reshape(2, -1))

    @property
    def arrays(self) -> list[Any]:
        """What a host needs to know of it: none where nothing streams."""
        return [self.all, *self.words.values()] if self._pencils else []

    def read(self, arrays: list[NDArray[Any]], ledger: HostLedger) -> None:
        """Tell a host what copies of ``arrays`` show."""
        if not arrays:
            return
        table = arrays[0].reshape(3, -1, 2, 2)
        ledger.energy = table[:, :, 0].sum(axis=1) / self._fine
        ledger.refused = table[:, :, 1].transpose(0, 2, 1).copy()
        for axis, words in zip(self.words, arrays[1:], strict=True):
            ledger.left[axis] = words.reshape(ledger.left[axis].shape)

    def _flat(self, ledger: HostLedger) -> Array:
        table = np.zeros((3, self.machine.species, 2, 2))
        table[:, 0, 0] = ledger.energy * self._fine
        table[:, :, 1] = ledger.refused.transpose(0, 2, 1)
        return table.ravel()
