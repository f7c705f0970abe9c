"""Arrays of the CUDA backend and the order in which its kernels are launched."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...arrays import Array, Integers
from ...errors import InputError
from ...events.collisions import SETS, channels
from ...masses import MassModel
from ..elements import Elements
from . import driver as engine
from . import kernels
from . import layout as k
from .builders import build_ahead
from .draw import draw_kernel
from .memory import ESTIMATE_BYTES, Plan, event_bytes

cuda = engine.toolkit()


@dataclass
class Desk:
    """What a sequence of launches works from: every sequence may have its own."""

    control: Any
    scalars: Any
    squares: Any
    illegal: Any
    counts: Any


class Machine:
    """Arrays and kernels of one model on one grid."""

    def __init__(
        self, plan: Plan, elements: Elements, numbers: Integers, batch: int, most_events: float
    ):
        """numbers : of the sites of the state; batch : of them that collide at once;
        most_events : bytes to keep of these"""
        self.allocated = 0
        self.sites, self.batch, self._most_events = len(numbers), batch, most_events
        self.first_site, self.count, self.elements = 0, batch, elements
        grid, model, sampling, self.precision = plan.given
        self.grid, self.model, self.sampling = grid.at_a_site, model, sampling
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
        self.numbers = self.to(numbers, np.int64)
        self._upload_constants(kinds, parameters)
        self._allocate_cells()
        self._allocate_events()
        self._graph: Callable[[], None] | None = None
        self._compiled = False
        self.desk = self.new_desk()
        if not engine.SIMULATED:
            build_ahead(self.step if self.sites == 1 else self.stages, engine.device)
        if not all(process.built_in for process in model.processes):
            self._compile_draw()

    def new_desk(self) -> Desk:
        """A desk for one site, squared masses among its scalars."""
        control = self.new(k.CONTROLS, np.int64)
        scalars = self.new(k.ROWS + k.MASS_ROWS * self.width, np.float64)
        return Desk(
            control, scalars, scalars[self.row(k.USED)].reshape(1, self.width),
            control[k.ILLEGAL : k.ILLEGAL + 1], control[k.MOVED : k.MOVED + k.COUNTS],
        )  # fmt: skip

    def launch(self, kernel: Any, blocks: int | tuple[int, int], *arguments: Any) -> None:
        """Launch a kernel with so many blocks of threads."""
        kernel[blocks, k.THREADS, self.stream](*arguments)

    def over_cells(self, kernel: Any, *arguments: Any) -> None:
        """Launch a kernel over all cells of the sites at work."""
        blocks = (self.tiles, self.species * self.count)
        self.launch(kernel, blocks, self.desk.control, self.first_site, *arguments)

    # -- memory ----------------------------------------------------------------------------------

    def to(self, values: Any, kind: Any) -> Any:
        """A copy on the GPU, for as long as this machine."""
        array = self.upload(values, kind)
        self.allocated += int(array.nbytes)
        return array

    @staticmethod
    def upload(values: Any, kind: Any) -> Any:
        """A copy on the GPU, for a while."""
        return cuda.to_device(np.ascontiguousarray(values, dtype=kind))

    def new(self, shape: Any, kind: Any) -> Any:
        """Zeros on the GPU."""
        return self.to(np.zeros(shape), kind)

    def room(self, shape: Any, kind: Any) -> Any:
        """Memory on the GPU, whatever is in it."""
        array = cuda.device_array(shape, kind)
        self.allocated += int(array.nbytes)
        return array

    def _upload_constants(self, kinds: list[int], parameters: list[list[float]]) -> None:
        grid, model = self.grid, self.model
        self.p2 = self.to(grid.momentum_squared, np.float64)
        self.packed = self.to(grid.packed, np.int32)
        self.momentum = self.to(np.concatenate([grid.axis(i) for i in range(3)]), np.float64)
        self.geometry = self.to([*grid.momentum_cells, *grid.spacing], np.float64)
        rows = np.stack([model.degeneracy, model.statistics.astype(float)], axis=1)
        self.species_numbers = self.to(rows, np.float64)
        integers, floats, blocks = self._channel_tables(kinds, parameters)
        self.channel_integers = self.to(integers, np.int64)
        self.channel_floats = self.to(floats, np.float64)
        self.block_table = self.to(blocks, np.int64)
        self.blocks = len(blocks)
        self.first_blocks = integers[:, k.FIRST_BLOCK]
        masses = MassModel.of(grid, model)
        self.mass_model = self.to(masses.flat, np.float64)
        self.groups = self.to(masses.group, np.int64)

    def _channel_tables(
        self, kinds: list[int], parameters: list[list[float]]
    ) -> tuple[Integers, Array, Integers]:
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
            own = parameters[channel.process]
            floats[c, : k.OWN + len(own)] = (
                float(process.peak == "t"), 1.0 if self.elements.folds[channel.process] else 2.0,
                channel.weight(grid.cell_volume, SETS * samples), *own,
            )  # fmt: skip
        return integers, floats, np.array(blocks, np.int64).reshape(-1, 4)

    def _allocate_cells(self) -> None:
        s, n = self.species, self.nodes
        rows, cells = s * self.batch, self.cells * self.batch
        blocks = max(1, self.blocks * self.batch)
        bits = max(0, (n - 1).bit_length())
        self.shift = 32 - bits
        self.number = self.room((2, self.sites * self.cells), np.int64)
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
        self.capacity = self.new(s, np.int64)
        self.nothing = self.to(np.empty(0), np.float64)
        kinds = (np.int64, np.int64, np.float64, np.float64)
        self.limits = tuple(self.new(cells, kind) for kind in kinds)

    def _allocate_events(self) -> None:
        """Room for as many blocks of events as are needed, or as fit: then they are redrawn."""
        per_block = event_bytes(self.precision) * k.SPAN * self.roots
        room = 0.9 * engine.free_memory() - ESTIMATE_BYTES * self.cells
        room = min(room, self._most_events) / self.batch
        countable = (2**32 - 1) // (k.SPAN * self.roots)  # slots are counted in 32 bits
        self.slab = max(1, min(self.blocks, int(room / per_block), countable // self.batch))
        events = self.slab * self.batch * k.SPAN * self.roots
        weight = np.float32 if self.precision == "float32" else np.float64
        self.event_nodes = self.room((4, events), np.int32)
        self.event_weights = self.room(events, weight)
        self.event_ratios = self.room(events, np.float64)

    @property
    def samples_drawn(self) -> int:
        """Samples of a step, all channels together."""
        return SETS * sum(self.sampling.samples_of(c, self.nodes) for c in self.channels)

    def _compile_draw(self) -> None:
        """Compile the model's matrix elements now: what is wrong with them is said before a run."""
        control = np.zeros(k.CONTROLS, np.int64)
        control[k.STATUS] = k.ARRIVED  # nothing is done
        self.desk.control.copy_to_device(control)
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

    def fresh_control(self, unit: float) -> tuple[Integers, Array]:
        """Control and scalars of a state that has not moved yet."""
        control = np.zeros(k.CONTROLS, np.int64)
        scalars = np.zeros(k.ROWS + k.MASS_ROWS * self.width)
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
        self.over_cells(
            kernels.prepare, self.desk.scalars, self.desk.squares,
            self.nothing if given is None else given, self.number, self.species_numbers,
            self.highest, self.p2, self.tables, self.change, self.prefix, self.tile_sums,
        )  # fmt: skip
        self.over_cells(
            kernels.cumulate, self.prefix, self.tile_sums, self.shift, self.cumulative, self.guide
        )

    def slabs(self) -> Iterator[tuple[int, int]]:
        """First block and number of blocks whose events fit into memory together."""
        for first in range(0, self.blocks, self.slab):
            yield first, min(self.slab, self.blocks - first)

    def draw(self, first: int, count: int, sums: Any, use: bool, land: bool = True) -> None:
        """Draw and keep the events of some blocks; use: apply them as well."""
        desk = self.desk
        self.launch(
            self.draw_kernel, (count, self.count), desk.control, desk.scalars, desk.squares,
            self.geometry, self.channel_integers, self.channel_floats, self.block_table,
            self.cumulative, self.guide, self.table, self.event_nodes, self.event_weights,
            self.event_ratios, self.change, sums, self.numbers, first, self.first_site, self.shift,
            int(land), int(use),
        )  # fmt: skip

    def draw_all(self, use: bool) -> None:
        """All events of a step; what does not fit into memory is drawn again when needed."""
        for first, count in self.slabs():
            self.draw(first, count, self.sums, use)

    def over_events(self, kernel: Any, *arguments: Any) -> None:
        """Launch a kernel over the events of all blocks, drawn again if they were not kept."""
        desk = self.desk
        for first, count in self.slabs():
            if self.slab < self.blocks:
                self.draw(first, count, self.sums_2, False)
            self.launch(
                kernel, (count, self.count), desk.control, desk.scalars, self.channel_integers,
                self.block_table, self.event_nodes, self.event_weights, self.event_ratios,
                self.tables, first, self.roots, self.conserving, *arguments,
            )  # fmt: skip

    def apply(self, stage: int, limits: tuple[Any, Any] | None = None) -> None:
        """The kept events as a stage of a step."""
        low, high = limits or (self.nothing, self.nothing)
        self.over_events(kernels.apply, self.change, low, high, self.sums_2, stage)

    def predict(self) -> None:
        """Logarithms of what the two sets of events predict."""
        self.over_cells(
            kernels.predict, self.desk.scalars, self.number, self.species_numbers, self.capacity,
            self.tables, self.change,
        )  # fmt: skip

    def update(self) -> None:
        """The new state."""
        desk = self.desk
        self.over_cells(
            kernels.update, desk.scalars, self.number, self.species_numbers, self.p2, self.capacity,
            self.change, self.highest, self.spread, desk.illegal, desk.counts,
        )  # fmt: skip

    def conclude(self) -> None:
        """The new state, its masses, and the verdict on the step."""
        desk = self.desk
        self.update()
        kernels.conclude[1, k.WIDE, self.stream](
            desk.control, desk.scalars, self.sums, self.sums_2, self.spread,
            self.channel_integers, self.number, self.groups, self.species_numbers, self.p2,
            self.mass_model, self.work, self.highest, self.flows, self.totals,
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
        self.stages()
        self.conclude()

    def stages(self) -> None:
        """Both stages of a step without limits."""
        self.prepare()
        self.draw_all(True)
        self.predict()
        self.apply(k.LAST_STAGE)

    def clear_illegal(self) -> None:
        """No site is known to have left its bounds."""
        self.desk.illegal.copy_to_device(np.zeros(self.desk.illegal.shape, np.int64))

    def wait(self) -> None:
        """Until everything launched is done."""
        if self.stream:
            self.stream.synchronize()

    def fetch(self, array: Any) -> NDArray[Any]:
        """A copy on the host, once everything launched is done."""
        self.wait()
        copy: NDArray[Any] = array.copy_to_host()
        return copy
