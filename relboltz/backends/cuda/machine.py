"""Arrays of the CUDA backend and the order in which its kernels are launched."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import InputError, RunError
from ...events.collisions import (
    SETS,
    Draw,
    Estimate,
    Flows,
    channels,
    finest_scale,
    illegal,
)
from ...grid import PhaseSpace
from ...masses import MassModel
from ...model import Model
from ...settings import Sampling
from ...stepping.stepper import MOST_BITS
from ..cpu.collider import CpuBackend
from ..elements import Elements
from . import driver as engine
from . import kernels
from . import layout as k
from .draw import draw_kernel

cuda = engine.toolkit()

BATCH_BYTES = 3 * 8 + 4 * 8 + 4 + 8 + 2 * 4 + 4 * 8
"""Of every cell that collides: changes, logarithms, sampling tables, limits."""
CELL_BYTES = 2 * 8 + BATCH_BYTES + 8
"""Of every cell: states, what collisions need, final state."""
ESTIMATE_BYTES = 3 * 8
"""Of every cell while C[f] is taken apart: f, gain, loss."""
NODE_BYTES = 8 + 4 + 4
LEAST_EVENTS = 2**26
"""Bytes for events below which no run starts."""


def event_bytes(precision: str) -> int:
    """Of one kept event: four cells, weight, split."""
    return 4 * 4 + (4 if precision == "float32" else 8) + 8


def bytes_needed(nodes: int, species: int) -> int:
    """Memory of a state and everything beside it, without events."""
    buckets = 1 << max(0, (nodes - 1).bit_length())
    return nodes * (species * (CELL_BYTES + ESTIMATE_BYTES) + NODE_BYTES) + 4 * species * buckets


def check_memory(grid: PhaseSpace, model: Model, free: int) -> None:
    """Refuse grids that do not fit the GPU, and say which would."""
    species = len(model.species)
    room = 0.9 * free - LEAST_EVENTS
    needed = bytes_needed(grid.size, species)
    if needed <= room:
        return
    fits = 1
    while bytes_needed((fits + 1) ** 3, species) <= room:
        fits += 1
    remedy = f"[{fits}, {fits}, {fits}] would fit" if fits > 2 else "free some of it"
    raise InputError(
        f"grid.momentum_cells = {list(grid.momentum_cells)}: {species} species need "
        f"{(needed + LEAST_EVENTS) / 2**30:.1f} GiB, and the GPU has {free / 2**30:.1f} GiB free; "
        f"{remedy}, or use run.backend = 'cpu'"
    )


class Machine:
    """Arrays and kernels of one model on one grid."""

    def __init__(
        self,
        grid: PhaseSpace,
        model: Model,
        sampling: Sampling,
        precision: str,
        elements: Elements,
        sites: int = 1,
        batch: int = 1,
        most_events: float = math.inf,
    ):
        """sites : of the state; batch : sites that collide at once; most_events : bytes to keep"""
        self.sites, self.batch, self._most_events = sites, batch, most_events
        self.first_site, self.count = 0, batch
        self.grid, self.model, self.sampling = grid, model, sampling
        self.precision, self.elements = precision, elements
        self.channels = channels(model, sampling.symmetrical)
        self.species, self.nodes = len(model.species), grid.size
        self.width = self.species + len(model.screenings)
        self.cells = self.species * self.nodes
        self.tiles = -(-self.nodes // k.THREADS)
        self.roots = 1 if sampling.sampling == "cm" else 2
        self.conserving = int(sampling.projection == "conserving")
        self.stream: Any = 0 if engine.SIMULATED else cuda.stream()
        self.draw_kernel, kinds, parameters = draw_kernel(
            model.processes, sampling.projection, sampling.sampling
        )
        self._upload_constants(kinds, parameters)
        self._allocate_cells()
        self._allocate_events()
        self._graph: Callable[[], None] | None = None
        self._compiled = False
        self._compile_draw()

    @property
    def over_cells(self) -> tuple[tuple[int, int], int]:
        """Blocks and threads for all cells of the sites at work."""
        return (self.tiles, self.species * self.count), k.THREADS

    # -- memory ----------------------------------------------------------------------------------

    def to(self, values: Any, kind: Any) -> Any:
        """A copy on the GPU."""
        return cuda.to_device(np.ascontiguousarray(values, dtype=kind))

    def new(self, shape: Any, kind: Any) -> Any:
        """Zeros on the GPU."""
        return self.to(np.zeros(shape), kind)

    def _upload_constants(self, kinds: list[int], parameters: list[list[float]]) -> None:
        grid, model = self.grid, self.model
        self.p2 = self.to(grid.momentum_squared, np.float64)
        self.packed = self.to(grid.packed, np.int32)
        self.geometry = self.to([*grid.momentum_cells, *grid.spacing], np.float64)
        rows = np.stack([model.degeneracy, model.statistics.astype(float)], axis=1)
        self.species_numbers = self.to(rows, np.float64)
        integers, floats, blocks = self._plan(kinds, parameters)
        self.channel_integers = self.to(integers, np.int64)
        self.channel_floats = self.to(floats, np.float64)
        self.block_table = self.to(blocks, np.int64)
        self.blocks = len(blocks)
        self.first_blocks = integers[:, k.FIRST_BLOCK]
        masses = MassModel.of(grid, model)
        screening = [*masses.screening[:, :-1].ravel(), *masses.screening[:, -1]]
        numbers = [*masses.coupling.ravel(), *masses.constant, *screening]
        self.mass_model = self.to(numbers, np.float64)
        self.groups = self.to(masses.group, np.int64)

    def _plan(
        self, kinds: list[int], parameters: list[list[float]]
    ) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.int64]]:
        """Whole and other numbers of every channel, and what each block of threads works on."""
        model, grid = self.model, self.grid
        most = max((len(own) for own in parameters), default=0)
        integers = np.zeros((len(self.channels), k.LAST_BLOCK + 1), np.int64)
        floats = np.zeros((len(self.channels), k.OWN + most))
        blocks: list[tuple[int, int, int, int]] = []
        for c, channel in enumerate(self.channels):
            process = model.processes[channel.process]
            samples = self.sampling.samples_of(channel, grid.size)
            first_block = len(blocks)
            for which in range(SETS):
                for first in range(0, samples, k.SPAN):
                    blocks.append((c, first, min(k.SPAN, samples - first), which))
            legs = [model.index(leg) for leg in process.legs]
            integers[c] = (
                *channel.pair, *channel.nodes, channel.only_p, kinds[channel.process],
                process.built_in, model.exchange_row(process.legs[0]), samples, *legs,
                first_block, len(blocks),
            )  # fmt: skip
            folds = self.elements.folds[channel.process]
            factor = channel.weight(grid.cell_volume, SETS * samples)
            own = parameters[channel.process]
            floats[c, : k.OWN + len(own)] = (
                float(process.peak == "t"), 1.0 if folds else 2.0, factor, *own,
            )  # fmt: skip
        return integers, floats, np.array(blocks, np.int64).reshape(-1, 4)

    def _allocate_cells(self) -> None:
        s, n = self.species, self.nodes
        rows, cells = s * self.batch, self.cells * self.batch
        blocks = max(1, self.blocks * self.batch)
        bits = max(0, (n - 1).bit_length())
        self.shift = 32 - bits
        self.number = cuda.device_array((2, self.sites * self.cells), np.int64)
        self.change = self.new((SETS + 1, cells), np.int64)
        self.tables = self.new((SETS, cells, 2), np.float64)
        self.table = self.tables[0]  # of the state itself, until the sets predict
        self.prefix = self.new((rows, n), np.int32)
        self.tile_sums = self.new((rows, self.tiles), np.int64)
        self.cumulative = self.new((rows, n + 1), np.int64)
        self.guide = self.new((rows, 1 << bits), np.int32)
        self.highest = self.new((2, rows), np.int64)
        self.spread = self.new((rows * self.tiles, 5), np.float64)
        self.sums = self.new((blocks, k.SUMS), np.float64)
        self.sums_2 = self.new((blocks, k.SUMS), np.float64)
        self.flows = self.new((max(1, len(self.channels)), 4), np.float64)
        self.totals = self.new(k.SUMS + 2, np.float64)
        self.work = self.new(7 * self.width + 1 + s * s, np.float64)
        self.control = self.new(k.CONTROLS, np.int64)
        self.scalars = self.new(k.ROWS + k.MASS_ROWS * self.width, np.float64)
        self.squares = self.scalars[self.row(k.USED)].reshape(1, self.width)
        self.illegal = self.control[k.ILLEGAL : k.ILLEGAL + 1]
        self.counts = self.control[k.MOVED : k.MOVED + k.COUNTS]
        self.capacity = self.new(s, np.int64)
        self.nothing = self.to(np.empty(0), np.float64)
        self.final = self.new(self.cells, np.float64)
        self.limits = (
            *(self.new(cells, np.int64) for _ in range(2)),
            *(self.new(cells, np.float64) for _ in range(2)),
        )

    def _allocate_events(self) -> None:
        """Room for as many blocks of events as are needed, or as fit: then they are redrawn."""
        per_block = event_bytes(self.precision) * k.SPAN * self.roots
        room = 0.9 * engine.free_memory() - ESTIMATE_BYTES * self.cells
        room = min(room, self._most_events) / self.batch
        countable = (2**32 - 1) // (k.SPAN * self.roots)  # slots are counted in 32 bits
        self.slab = max(1, min(self.blocks, int(room / per_block), countable // self.batch))
        events = self.slab * self.batch * k.SPAN * self.roots
        weight = np.float32 if self.precision == "float32" else np.float64
        self.event_nodes = cuda.device_array((4, events), np.int32)
        self.event_weights = cuda.device_array(events, weight)
        self.event_ratios = cuda.device_array(events, np.float64)

    @property
    def samples_drawn(self) -> int:
        """Samples of a step, all channels together."""
        return SETS * sum(self.sampling.samples_of(c, self.nodes) for c in self.channels)

    @property
    def allocated(self) -> int:
        """Bytes of all arrays on the GPU."""
        views = (self.table, self.squares, self.illegal, self.counts)
        arrays = [v for v in (*vars(self).values(), *self.limits) if not any(v is w for w in views)]
        return sum(int(v.nbytes) for v in arrays if hasattr(v, "copy_to_host"))

    def _compile_draw(self) -> None:
        """Compile the model's matrix elements now: what is wrong with them is said before a run."""
        control = np.zeros(k.CONTROLS, np.int64)
        control[k.STATUS] = k.ARRIVED  # nothing is done
        self.control.copy_to_device(control)
        names = {getattr(p.matrix_element, "__name__", "?") for p in self.model.processes}
        try:
            if self.blocks:
                self.draw(0, 1, self.sums, False)
        except InputError:
            raise
        except Exception as error:  # compilers complain in many ways
            lines = [line.strip() for line in str(error).splitlines() if line.strip()]
            raise InputError(
                f"the matrix elements ({', '.join(sorted(names))}) do not compile for the GPU: "
                f"{lines[0] if lines else type(error).__name__}. Use plain arithmetic and "
                "functions of the math module, or run.backend = 'cpu'"
            ) from error

    # -- settings --------------------------------------------------------------------------------

    def fresh_control(self, unit: float) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Control and scalars of a state that has not moved yet."""
        control, scalars = np.zeros(k.CONTROLS, np.int64), np.zeros(len(self.scalars))
        sampling, model, grid = self.sampling, self.model, self.grid
        control[k.FAULT] = -1
        control[k.SYMMETRICAL] = sampling.symmetrical
        control[k.THERMAL] = model.thermal
        control[k.SINGLE] = self.precision == "float32"
        control[k.SEED] = sampling.seed
        control[k.IMPORTANCE] = sampling.pairs == "importance"
        control[k.NODES] = grid.size
        control[k.SPECIES] = self.species
        control[k.CELLS_X], control[k.CELLS_Y] = grid.momentum_cells[:2]
        scalars[k.UNIT] = unit
        scalars[k.NOISE] = np.nan
        scalars[k.P2_MIN] = grid.momentum_squared.min()
        moving = grid.momentum_squared[grid.momentum_squared > 0]
        scalars[k.P2_NEXT] = moving.min() if len(moving) else 1.0
        scalars[k.AT_REST] = grid.rest_inverse_energy
        scalars[k.CELL] = grid.cell_volume / (2 * np.pi) ** 3
        scalars[k.EKT] = self.elements.ekt
        return control, scalars

    def row(self, which: int) -> slice:
        """Where a row of squared masses and screening masses stands among the scalars."""
        return slice(k.ROWS + which * self.width, k.ROWS + (which + 1) * self.width)

    # -- launches --------------------------------------------------------------------------------

    def prepare(self, given: Any = None) -> None:
        """Logarithms and sampling tables of the state, or of a given f."""
        grid, threads = self.over_cells
        f = self.nothing if given is None else given
        kernels.prepare[grid, threads, self.stream](
            self.control, self.scalars, self.squares, f, self.number, self.species_numbers,
            self.highest, self.p2, self.tables, self.change, self.prefix, self.tile_sums,
            self.first_site,
        )  # fmt: skip
        kernels.cumulate[grid, threads, self.stream](
            self.control, self.prefix, self.tile_sums, self.shift, self.cumulative, self.guide
        )

    def slabs(self) -> Iterator[tuple[int, int]]:
        """First block and number of blocks whose events fit into memory together."""
        for first in range(0, self.blocks, self.slab):
            yield first, min(self.slab, self.blocks - first)

    def draw(self, first: int, count: int, sums: Any, use: bool, land: bool = True) -> None:
        """Draw and keep the events of some blocks; use: apply them as well."""
        self.draw_kernel[(count, self.count), k.THREADS, self.stream](
            self.control, self.scalars, self.squares, self.geometry, self.channel_integers,
            self.channel_floats, self.block_table, self.cumulative, self.guide, self.table,
            self.event_nodes, self.event_weights, self.event_ratios, self.change, sums,
            first, self.first_site, self.shift, int(land), int(use),
        )  # fmt: skip

    def draw_all(self, use: bool) -> None:
        """All events of a step; what does not fit into memory is drawn again when needed."""
        for first, count in self.slabs():
            self.draw(first, count, self.sums, use)

    def with_events(self, action: Callable[[int, int], None]) -> None:
        """Do something with the events of all blocks, drawn again if they were not kept."""
        for first, count in self.slabs():
            if self.slab < self.blocks:
                self.draw(first, count, self.sums_2, False)
            action(first, count)

    def _events(self) -> tuple[Any, ...]:
        return (
            self.control, self.scalars, self.channel_integers, self.block_table,
            self.event_nodes, self.event_weights, self.event_ratios, self.tables,
        )  # fmt: skip

    def apply(self, stage: int, limits: tuple[Any, Any] | None = None) -> None:
        """The kept events as a stage of a step."""
        low, high = limits or (self.nothing, self.nothing)

        def action(first: int, count: int) -> None:
            kernels.apply[(count, self.count), k.THREADS, self.stream](
                *self._events(), self.change, low, high, self.sums_2,
                first, self.roots, self.conserving, stage,
            )  # fmt: skip

        self.with_events(action)

    def predict(self) -> None:
        """Logarithms of what the two sets of events predict."""
        grid, threads = self.over_cells
        kernels.predict[grid, threads, self.stream](
            self.control, self.scalars, self.number, self.species_numbers, self.capacity,
            self.tables, self.change, self.first_site,
        )  # fmt: skip

    def update(self, beside: bool) -> None:
        """The new state, beside the old one or in its place."""
        grid, threads = self.over_cells
        kernels.update[grid, threads, self.stream](
            self.control, self.scalars, self.number, self.species_numbers, self.p2, self.capacity,
            self.change, self.highest, self.spread, self.illegal, self.counts, self.first_site,
            int(beside),
        )  # fmt: skip

    def conclude(self) -> None:
        """The new state, its masses, and the verdict on the step."""
        self.update(True)
        kernels.conclude[1, k.WIDE, self.stream](
            self.control, self.scalars, self.sums, self.sums_2, self.spread,
            self.channel_integers, self.number, self.groups, self.species_numbers, self.p2,
            self.mass_model, self.work, self.highest, self.flows,
            self.totals,
        )  # fmt: skip

    def steps(self, count: int) -> None:
        """Launch attempts at steps: the first one as it is, the others as a recorded graph."""
        if engine.SIMULATED or not self._compiled:
            self.step()
            self._compiled, count = True, count - 1
        if count > 0 and not engine.SIMULATED:
            if self._graph is None:
                self._graph = engine.recorded(self.stream, self.step)
            for _ in range(count):
                self._graph()

    def step(self) -> None:
        """One attempt at a step; nothing of it is waited for."""
        self.prepare()
        self.draw_all(True)
        self.predict()
        self.apply(k.LAST_STAGE)
        self.conclude()

    # -- with the host looking on ----------------------------------------------------------------

    def limited_step(self) -> None:
        """The same step with limits that keep every cell legal; the host waits for each stage."""
        control = self.control.copy_to_host()
        control[k.STATUS], control[k.MANUAL] = k.GO, 1
        self.control.copy_to_device(control)
        limited = self.limited_stages(np.zeros(1, bool))
        scalars = self.scalars.copy_to_host()
        scalars[k.LIMITED] = limited[0]
        self.scalars.copy_to_device(scalars)
        self.conclude()

    def limited_stages(self, spared: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Both stages, each limited where a cell asks for it; the part refused at every site.

        spared : sites that are known to need no limits
        """
        self.prepare()
        self.draw_all(False)
        limited = self._stage(k.FIRST_STAGE, spared)
        rows = self.blocks * self.batch
        kernels.merge[-(-rows // k.THREADS), k.THREADS, self.stream](self.sums, self.sums_2)
        self.predict()
        return np.maximum(limited, self._stage(k.LAST_STAGE, spared))

    def site_sums(self, sums: Any, column: int) -> NDArray[np.float64]:
        """Sums of a column over the blocks of every site at work."""
        values = sums.copy_to_host()[: self.blocks * self.count, column]
        return values.reshape(self.count, -1).sum(axis=1)

    def _stage(self, stage: int, spared: NDArray[np.bool_]) -> NDArray[np.float64]:
        """A stage, limited only at sites that ask for it; the part that limits refused there."""
        self.apply(stage)
        scale = float(self.scalars.copy_to_host()[k.SCALE])
        wanted = scale * self.site_sums(self.sums_2, k.MOVES)
        fits = ~(wanted >= k.LARGEST_SUM)
        nothing = np.zeros(self.count)
        if not self.sampling.symmetrical:
            if fits.all():
                return nothing
            raise RunError("the step is far too long: what it moves does not fit 64-bit numbers")
        legal = spared | (fits & self.legal(stage))
        if legal.all():
            return nothing
        excess = np.maximum(wanted / k.LARGEST_SUM, 1.0)
        coarser = np.where(fits, 1.0, 2.0 ** np.ceil(np.log2(excess)))
        coarser_there = self.to(coarser, np.float64)
        loss, gain, low, high = self.limits
        for demand in (loss, gain):
            demand.copy_to_device(np.zeros(self.cells * self.batch, np.int64))

        def add_demands(first: int, count: int) -> None:
            kernels.demands[(count, self.count), k.THREADS, self.stream](
                *self._events(), loss, gain, first, self.roots, self.conserving, stage,
                coarser_there,
            )  # fmt: skip

        self.with_events(add_demands)
        allowance = np.where(legal, 0.0, 0.5)
        grid, threads = self.over_cells
        for _ in range(20):
            kernels.limits[grid, threads, self.stream](
                self.control, self.number, self.change, self.species_numbers, self.capacity, loss,
                gain, low, high, self.to(allowance / coarser, np.float64), stage, self.first_site,
            )  # fmt: skip
            self.apply(stage, (low, high))
            legal = spared | self.legal(stage)
            if legal.all():
                moves = self.site_sums(self.sums_2, k.MOVES)
                refused = self.site_sums(self.sums_2, k.NEGATIVE)
                return np.divide(refused, moves, out=nothing, where=moves > 0)
            allowance = np.where(legal, allowance, np.maximum(0.25 * allowance, 1e-12))
        raise RunError("the limiter found no legal step; shorten time.step")

    def legal(self, stage: int) -> NDArray[np.bool_]:
        """Whether the stage leaves every cell within its bounds, by site."""
        self.clear_illegal()
        grid, threads = self.over_cells
        kernels.check[grid, threads, self.stream](
            self.control, self.number, self.capacity, self.change, self.illegal, stage,
            self.first_site,
        )  # fmt: skip
        found = self.illegal.copy_to_host()[: self.count] == 0
        self.clear_illegal()
        return found

    def clear_illegal(self) -> None:
        """No site is known to have left its bounds."""
        self.illegal.copy_to_device(np.zeros(self.illegal.shape, np.int64))

    def flows_of(self, channel_flows: NDArray[np.float64]) -> Flows:
        """Flows of processes from those of channels: ahead, back, weight above and below 0."""
        totals = np.zeros((2, len(self.model.processes)))
        signed = np.zeros_like(totals)
        for channel, (ahead, back, *weights) in zip(self.channels, channel_flows, strict=False):
            share = 0.25 if channel.only_p else 1.0
            rows = (0, 1) if channel.forward else (1, 0)
            totals[rows[0], channel.process] += share * ahead
            totals[rows[1], channel.process] += share * back
            signed[:, channel.process] += weights
        return Flows(totals[0], totals[1], 0.0, 0.0, signed)

    def channel_flows(self, sums: NDArray[np.float64]) -> NDArray[np.float64]:
        """Flows of the channels (..., channels, 4) from the sums (..., blocks, SUMS)."""
        by_channel = np.add.reduceat(sums, self.first_blocks, axis=-2)
        ahead, net = by_channel[..., k.FORWARD], by_channel[..., k.NET]
        weights = by_channel[..., k.EVERYTHING], by_channel[..., k.BELOW]
        return np.stack([ahead, np.maximum(ahead - net, 0.0), *weights], axis=-1)

    def _look(self) -> tuple[Flows, float]:
        """Flows and lost part from the sums of the events just drawn."""
        sums = self.sums.copy_to_host()[: self.blocks]
        flows = self.flows_of(self.channel_flows(sums) if len(sums) else np.zeros((0, 4)))
        total, lost = sums[:, k.EVERYTHING].sum(), sums[:, k.LOST].sum()
        return flows, float(lost / total) if total > 0 else 0.0

    def evaluate(self) -> tuple[Flows, float]:
        """Flows and lost part of the state as it is; nothing moves."""
        control, scalars = self.control.copy_to_host(), self.scalars.copy_to_host()
        trial, numbers = control.copy(), scalars.copy()
        trial[k.STATUS] = k.GO
        numbers[k.SCALE] = 0.0
        numbers[self.row(k.USED)] = numbers[self.row(k.NOW)]
        self.control.copy_to_device(trial)
        self.scalars.copy_to_device(numbers)
        self.prepare()
        self.draw_all(True)
        used = numbers[self.row(k.USED)]
        draw = Draw.of(int(control[k.STEP]), used, self.species)
        self._fault(draw, lambda: self.occupation(int(control[k.CURRENT]), float(scalars[k.UNIT])))
        result = self._look()
        self.control.copy_to_device(control)
        self.scalars.copy_to_device(scalars)
        return result

    def occupation(self, row: int, unit: float) -> NDArray[np.float64]:
        """f of every species at every node, from a row of the state."""
        number = self.number.copy_to_host()[row].reshape(self.species, -1)
        return number * (unit / self.model.degeneracy[:, None])

    def estimate(self, f: NDArray[np.float64], draw: Draw) -> Estimate:
        """C[f] from one draw of events; f (species, nodes)."""
        control, scalars = self.fresh_control(2.0**-MOST_BITS)
        control[k.STEP] = draw.step
        scalars[self.row(k.USED)] = np.append(draw.mass_squared, draw.screening2)
        self.control.copy_to_device(control)
        self.scalars.copy_to_device(scalars)
        self.prepare(self.to(np.append(f.ravel(), f.max(axis=1)), np.float64))
        self.draw_all(True)
        self._fault(draw, lambda: f)
        flows, null = self._look()
        scale = finest_scale(flows)
        scalars[k.SCALE] = scale
        self.scalars.copy_to_device(scalars)
        gain, loss = (self.new(self.cells, np.int64) for _ in range(2))

        def gross(first: int, count: int) -> None:
            kernels.gross[(count, 1), k.THREADS, self.stream](
                *self._events(), gain, loss, first, self.roots, self.conserving
            )

        self.with_events(gross)
        self.apply(k.FIRST_STAGE)
        net_there = self.change.copy_to_host()[:SETS].sum(axis=0)
        parts = [net_there, gain.copy_to_host(), loss.copy_to_host()]
        net, into, out = (part / scale for part in parts)
        return Estimate(net, into, out, flows, null)

    def _fault(self, draw: Draw, f: Callable[[], NDArray[np.float64]]) -> None:
        """Raise if a matrix element was negative or not a number; the CPU finds out where."""
        sums = self.sums.copy_to_host()[: self.blocks]
        bad = self.faulty(sums)
        if bad:
            self.report_fault(bad[0], draw, f())

    @staticmethod
    def faulty(sums: NDArray[np.float64]) -> list[int]:
        """Rows of sums whose matrix elements are illegal."""
        suspects = np.flatnonzero(sums[:, k.NEGATIVE] != 0.0)
        return [int(i) for i in suspects if illegal(sums[i, k.NEGATIVE], sums[i, k.POSITIVE])]

    def report_fault(self, block: int, draw: Draw, f: NDArray[np.float64]) -> None:
        """The error for an illegal matrix element: the CPU draws the same events and names it."""
        CpuBackend(self.grid, self.model, self.sampling).draw(draw, f.ravel())
        channel = self.channels[int(np.searchsorted(self.first_blocks, block, side="right")) - 1]
        raise InputError(
            f"process {self.model.processes[channel.process].name}: the matrix element is negative "
            "or not a number; |M|^2 must be a number >= 0 everywhere it is reached"
        )
