"""Input and output of the bracket kernel on a GPU: packs the tasks and gathers the sums."""

from itertools import pairwise
from typing import Any

import numpy as np

from ...events.collisions import illegal
from ...model.model import Model
from ...util.arrays import Array, Integers
from ...util.errors import InputError
from ..bracket_requests import BracketRequest, ChannelEvents
from ..cpu.brackets import measure as on_cpu
from ..elements import Elements
from . import layout as k
from .brackets import THREADS, bracket_kernel
from .draw import kinds_of
from .driver import toolkit

PART = 8192
"""Events per block of threads, unless a batch would then have more than MOST_PARTS blocks."""
MOST_PARTS = 64
FLAW, LEGAL = -1, -2
"""Ranks of the entries that sum illegal and legal matrix elements (``events.collisions``)."""


class BracketMeasurer:
    """Sums brackets of a model's trial functions on a GPU."""

    def __init__(self, model: Model):
        self.model = model
        self._kernels: dict[Any, Any] = {}

    def measure(self, elements: Elements, request: BracketRequest) -> Array:
        """Return sums over the events of every task and batch, as ``cpu.brackets.measure`` does."""
        cuda = toolkit()
        entries = _entries(request)
        blocks = _blocks(request)
        whole, numbers, own, edges, cumulative, fields, geometry = self._arrays(request)
        key = (request.trial.exponents.tobytes(), request.trial.counts.tobytes(), request.cells)
        if key not in self._kernels:
            self._kernels[key] = bracket_kernel(self.model, request, len(entries))
        sums = cuda.to_device(np.zeros((len(blocks), len(entries))))
        given = (blocks, whole, numbers, own, edges, cumulative, fields, geometry, entries)
        self._kernels[key][len(blocks), THREADS](
            *(cuda.to_device(np.ascontiguousarray(array)) for array in given),
            np.int64(request.seed), np.int64(request.first_batch), sums,
        )  # fmt: skip
        return self._gathered(elements, request, blocks, sums.copy_to_host())

    def _arrays(self, request: BracketRequest) -> tuple[Any, ...]:
        """Return the numbers that describe the tasks, and the tables that they share."""
        _, kinds, parameters = kinds_of(self.model.processes)
        tables: dict[int, int] = {}
        edges: list[Array] = []
        cumulative: list[Array] = []
        fields: list[Array] = []
        whole = np.zeros((len(request.tasks), 8), np.int64)
        numbers = np.zeros((len(request.tasks), 32))
        own = np.zeros((len(request.tasks), k.OWN + max(1, *(len(row) for row in parameters))))
        at_rest = 0.0 if request.grid is None else request.grid.rest_inverse_energy
        for i, task in enumerate(request.tasks):
            places = []
            for edge, chances in task.tables:
                if id(chances) not in tables:
                    tables[id(chances)] = sum(len(row) for row in cumulative)
                    cumulative.append(chances)
                    edges.append(edge if len(edge) else chances)
                places.append(tables[id(chances)])
            bins = len(task.tables[0][1]) - 1
            whole[i] = (kinds[task.process], task.samples, bins, 4 * i, *places)
            numbers[i] = (*_numbers(task), at_rest, *task.coarse)
            own[i, k.OWN : k.OWN + len(parameters[task.process])] = parameters[task.process]
            fields.append(task.fields if request.grid is not None else np.zeros((4, 1)))
        grid = request.grid
        geometry = (0.0,) * 6 if grid is None else (*grid.momentum_cells, *grid.spacing)
        return (
            whole, numbers, own, np.concatenate(edges), np.concatenate(cumulative),
            np.concatenate(fields), np.array(geometry, float),
        )  # fmt: skip

    def _gathered(
        self, elements: Elements, request: BracketRequest, blocks: Integers, sums: Array
    ) -> Array:
        """Add up the sums of the blocks in order, each at its place in the result."""
        result = np.zeros(request.shape)
        places = _places(request)
        for (task, batch, _, _), row in zip(blocks, sums, strict=True):
            if illegal(row[-2], row[-1]):
                self._fault(elements, request, int(task))
            flat = result[task, batch].reshape(-1)
            flat[places] += row[:-2]
        return result

    def _fault(self, elements: Elements, request: BracketRequest, task: int) -> None:
        """Draw the same events on the CPU, which names the illegal matrix element."""
        on_cpu(elements, request, threads=0)
        name = self.model.processes[request.tasks[task].process].name
        raise InputError(
            f"process {name}: the matrix element is negative or not a number; |M|^2 must be a "
            "number >= 0 everywhere it is reached"
        )


def _numbers(task: ChannelEvents) -> tuple[float, ...]:
    """Return the floating-point numbers of a task, except 1/E at rest and the coarse-grid ones."""
    return (
        *task.m2, *task.named, *task.screening, *task.alpha, *task.eta, *task.poles, task.span,
        task.factor, task.clamps, task.temperature, task.mirror,
    )  # fmt: skip


def _entries(request: BracketRequest) -> Integers:
    """Return rank, legs and power slots of every sum; the last two sum matrix elements."""
    trial, rows = request.trial, []
    for rank, many in enumerate(trial.counts):
        for a in range(request.cells):
            for b in range(a, request.cells):
                for i in trial.exponents[rank, :many]:
                    for j in trial.exponents[rank, :many]:
                        slots = (leg * trial.span + n - trial.lowest for leg, n in ((a, i), (b, j)))
                        rows.append((rank, a, b, *slots))
    return np.array([*rows, (FLAW, 0, 0, 0, 0), (LEGAL, 0, 0, 0, 0)], np.int64)


def _places(request: BracketRequest) -> Integers:
    """Return the positions of the entries among a batch's sums, in the order of ``_entries``."""
    shape = request.trial.shape(request.cells)
    inside = np.zeros(shape, bool)
    for rank, many in enumerate(request.trial.counts):
        inside[rank, :, :many, :many] = True
    return np.asarray(np.flatnonzero(inside), np.int64)


def _blocks(request: BracketRequest) -> Integers:
    """Return task, batch, first sample and number of samples of every block."""
    rows = []
    for i, task in enumerate(request.tasks):
        parts = min(MOST_PARTS, max(1, -(-task.samples // PART)))
        bounds = np.linspace(0, task.samples, parts + 1).astype(int)
        for batch in range(request.batches):
            rows += [(i, batch, a, b - a) for a, b in pairwise(bounds)]
    return np.array(rows, np.int64)
