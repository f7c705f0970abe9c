"""Particles that leave the box: the flux of one sweep, and the ledger of all losses so far."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..grid.phase_space import PhaseSpace
from ..model.model import Model
from ..util.arrays import Array, Integers

LOW_WORD = 0xFFFFFFFF


@dataclass(frozen=True)
class WallFlux:
    """Particles that left through the walls of an axis, and flux blocked by closed p faces."""

    axis: int
    left: Integers
    """Quanta by side, species and node; no sides if the walls are not open."""
    energy: Array
    """Escaped energy by side, in quanta times GeV."""
    refused: Array
    """Quanta by side and species."""


class LostQuanta:
    """Ledger of all particles that left the box, and of flux blocked at the momentum cut-off."""

    def __init__(self, grid: PhaseSpace, model: Model):
        species = len(model.species)
        self.left = {
            axis: np.zeros((2, 2, species, grid.size), np.int64)
            for axis in grid.moving_axes
            if grid.boundary[axis] == "open"
        }
        """Quanta by side, species and node, in two words: 2^32 times the first plus the second."""
        self.energy = np.zeros((3, 2))
        self.refused = np.zeros((3, 2, species))

    def enter(self, passages: Sequence[WallFlux]) -> None:
        """Add the losses of an accepted step."""
        for passage in passages:
            if len(passage.left):
                high, low = self.left[passage.axis]
                low += passage.left & LOW_WORD
                high += (passage.left >> 32) + (low >> 32)
                low &= LOW_WORD
            self.energy[passage.axis] += passage.energy
            self.refused[passage.axis] += passage.refused

    def widen(self, grid: PhaseSpace, axis: int, extra: int) -> None:
        """Double the node spacing along an axis and refine the quanta; keep number and momentum.

        extra : binary digits of quanta beyond the one for the spacing
        """
        self.energy *= 2.0**extra
        self.refused *= 2.0**extra
        m, per_side = grid.momentum_cells[axis], 2**extra
        twice = 2 * np.arange(m) + m - 1  # four times the places among the new nodes
        low_node, rest = twice // 4, twice % 4
        for words in self.left.values():
            shape = (2, words.shape[2], *grid.momentum_cells)
            whole = (words[0].astype(object) << 32) + words[1]
            old = np.moveaxis(whole.reshape(shape), axis + 2, -1) * per_side
            new = np.zeros(old.shape, object)
            for i in range(m):
                right = old[..., i] * int(rest[i]) // 4
                new[..., low_node[i]] += old[..., i] - right
                if rest[i]:
                    new[..., low_node[i] + 1] += right
            flat = np.moveaxis(new, -1, axis + 2).reshape(words.shape[1:])
            words[0], words[1] = flat >> 32, flat & LOW_WORD

    def packed(self) -> dict[str, Any]:
        """Return the whole ledger as arrays for a checkpoint."""
        left = {f"left {axis}": words.copy() for axis, words in self.left.items()}
        return {"left energy": self.energy.copy(), "refused": self.refused.copy(), **left}

    def unpack(self, arrays: Mapping[str, Any]) -> None:
        """Restore the ledger from the arrays of ``packed``."""
        for axis in self.left:
            self.left[axis] = np.array(arrays[f"left {axis}"])
        self.energy, self.refused = np.array(arrays["left energy"]), np.array(arrays["refused"])
