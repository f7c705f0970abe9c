"""GPU tables of a model on a grid needed to draw events: channels, blocks and constants."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import Any

import numpy as np

from ...config.settings import Sampling
from ...events.collisions import SETS, channels
from ...events.projection import heavy
from ...grid.phase_space import PhaseSpace
from ...model.model import Model
from ...util.arrays import Array, Integers
from ...util.errors import InputError
from ..elements import Elements
from . import driver as engine
from . import layout as k
from .draw import draw_kernel, kinds_of

cuda = engine.toolkit()


class DeviceProblem:
    """A model on a momentum grid, with its tables on the GPU."""

    def __init__(
        self,
        grid: PhaseSpace,
        model: Model,
        sampling: Sampling,
        precision: str,
        elements: Elements,
    ):
        self.allocated = 0
        self.grid, self.model, self.sampling = grid.without_space, model, sampling
        self.precision, self.elements = precision, elements
        self.channels = channels(model, sampling.symmetrical)
        self.species, self.nodes = len(model.species), grid.size
        self.width = self.species + len(model.screenings)
        self.cells = self.species * self.nodes
        self.tiles = -(-self.nodes // k.TILE)
        _, kinds, parameters = kinds_of(model.processes)
        integers, floats, self.block_rows = self._channel_tables(kinds, parameters)
        self.blocks, self.first_blocks = len(self.block_rows), integers[:, k.FIRST_BLOCK]
        self.p2 = self.to(self.grid.momentum_squared, np.float64)
        self.geometry = self.to([*grid.momentum_cells, *grid.spacing], np.float64)
        rows = np.stack([model.degeneracy, model.statistics.astype(float)], axis=1)
        self.species_numbers = self.to(rows, np.float64)
        self.channel_integers = self.to(integers, np.int64)
        self._floats = floats
        self.channel_floats = self.to(floats, np.float64)
        self.block_table = self.to(self.block_rows, np.int64)
        bits = max(0, (self.nodes - 1).bit_length())
        self.shift, self.buckets = 32 - bits, 1 << bits

    def set_momentum_grid(self, grid: PhaseSpace) -> None:
        """Switch to the momentum nodes of another grid."""
        self.grid = grid
        for c, channel in enumerate(self.channels):
            samples = self.sampling.samples_of(channel, grid.size)
            self._floats[c, k.FACTOR] = channel.weight(grid.cell_volume, SETS * samples)
        self._floats[:, k.MORE_3 : k.OWN] = self._coarse()
        self.p2.copy_to_device(grid.momentum_squared)
        self.geometry.copy_to_device(np.array([*grid.momentum_cells, *grid.spacing], float))
        self.channel_floats.copy_to_device(self._floats)
        self.__dict__.pop("plain_floats", None)

    @cached_property
    def plain_floats(self) -> Any:
        """``channel_floats`` without compensation: events have the weights of collisions."""
        floats = self._floats.copy()
        floats[:, k.SPACING] = 0.0
        return self.to(floats, np.float64)

    def compensates(self, mass_squared: Array) -> bool:
        """Return whether ``projection.compensation`` may increase the weight of any event."""
        return not all(
            heavy(  # type: ignore[no-untyped-call]
                mass_squared[[*channel.pair, *channel.nodes]].tolist(), spacing2
            )
            for channel, spacing2 in zip(self.channels, self._floats[:, k.SPACING], strict=True)
        )

    def of_nodes(self, scalars: Array) -> None:
        """Fill the scalars that describe the nodes."""
        grid = self.grid
        scalars[k.P2_MIN] = grid.momentum_squared.min()
        moving = grid.momentum_squared[grid.momentum_squared > 0]
        scalars[k.P2_NEXT] = moving.min() if len(moving) else 1.0
        scalars[k.AT_REST] = grid.rest_inverse_energy
        scalars[k.CELL] = grid.cell_volume / (2 * np.pi) ** 3

    @cached_property
    def shares(self) -> tuple[Array, Array, Array]:
        """Map of channels to processes, and their shares of its forward and reverse rates."""
        channels, processes = self.channels, len(self.model.processes)
        belongs = np.zeros((len(channels), processes))
        belongs[np.arange(len(channels)), [channel.process for channel in channels]] = 1.0
        share = belongs * np.array([[0.25 if c.only_p else 1.0] for c in channels]).reshape(-1, 1)
        ways = np.array([[float(c.forward)] for c in channels]).reshape(-1, 1)
        return belongs, share * ways, share * (1.0 - ways)

    # -- memory ----------------------------------------------------------------------------------

    def to(self, values: Any, kind: Any) -> Any:
        """Return a copy on the GPU, counted in ``allocated``."""
        array = self.upload(values, kind)
        self.allocated += int(array.nbytes)
        return array

    @staticmethod
    def upload(values: Any, kind: Any) -> Any:
        """Return a temporary copy on the GPU, not counted in ``allocated``."""
        return cuda.to_device(np.ascontiguousarray(values, dtype=kind))

    def new(self, shape: Any, kind: Any) -> Any:
        """Return zeros on the GPU."""
        return self.to(np.zeros(shape), kind)

    def room(self, shape: Any, kind: Any) -> Any:
        """Return uninitialized memory on the GPU."""
        array = cuda.device_array(shape, kind)
        self.allocated += int(array.nbytes)
        return array

    # -- settings --------------------------------------------------------------------------------

    def _channel_tables(
        self, kinds: list[int], parameters: list[list[float]]
    ) -> tuple[Integers, Array, Integers]:
        """Return integers and floats of every channel, and the samples of each thread block."""
        model, grid = self.model, self.grid
        most = max((len(own) for own in parameters), default=0)
        integers = np.zeros((len(self.channels), k.LAST_BLOCK + 1), np.int64)
        floats = np.zeros((len(self.channels), k.OWN + most))
        blocks, first_block = [np.empty((0, 4), np.int64)], 0
        for c, channel in enumerate(self.channels):
            process = model.processes[channel.process]
            samples = self.sampling.samples_of(channel, grid.size)
            first = np.arange(0, samples, k.SPAN)
            for which in range(SETS):
                rows = np.empty((len(first), 4), np.int64)
                rows[:, k.CHANNEL], rows[:, k.SET] = c, which
                rows[:, k.SAMPLE], rows[:, k.COUNT] = first, np.minimum(k.SPAN, samples - first)
                blocks.append(rows)
            legs = [model.index(leg) for leg in process.legs]
            last_block = first_block + SETS * len(first)
            integers[c] = (
                *channel.pair, *channel.nodes, channel.only_p, kinds[channel.process],
                process.built_in, model.exchange_row(process.legs[0]), samples, *legs,
                first_block, last_block,
            )  # fmt: skip
            first_block = last_block
            own = parameters[channel.process]
            floats[c, : k.OWN + len(own)] = (
                float(process.peak == "t"), 1.0 if self.elements.folds[channel.process] else 2.0,
                channel.weight(grid.cell_volume, SETS * samples), 0.0, 0.0, 0.0, 0.0, *own,
            )  # fmt: skip
        floats[:, k.MORE_3 : k.OWN] = self._coarse()
        return integers, floats, np.concatenate(blocks)

    def _coarse(self) -> Array:
        """Return the channel numbers that depend on the grid spacing: see ``layout.MORE_3``."""
        rows = []
        inner = self.elements.inner_weights(self.grid, self.channels)
        for channel, row in zip(self.channels, inner, strict=True):
            process = self.model.processes[channel.process]
            rows.append((*row, self.sampling.compensated_spacing2(self.grid, process)))
        return np.array(rows).reshape(-1, 4)

    def fresh_control(self, unit: float) -> tuple[Integers, Array]:
        """Return control and scalars of an initial state."""
        control = np.zeros(k.CONTROLS, np.int64)
        scalars = np.zeros(k.SCALARS)
        sampling, model, grid = self.sampling, self.model, self.grid
        control[k.FAULT] = k.NO_FAULT
        control[k.SYMMETRICAL] = sampling.symmetrical
        control[k.THERMAL] = model.thermal
        control[k.SINGLE] = self.precision == "float32"
        control[k.SEED] = sampling.seed
        control[k.IMPORTANCE] = sampling.pair_sampling == "importance"
        control[k.NODES] = grid.size
        control[k.SPECIES] = self.species
        scalars[k.UNIT] = unit
        scalars[k.NOISE] = np.nan
        self.of_nodes(scalars)
        scalars[k.EKT] = self.elements.ekt
        return control, scalars

    def drawing(self, apart: bool) -> Any:
        """Return the kernel that draws events, for steps or (apart) for C[f]."""
        how = self.sampling.projection, self.sampling.kinematics
        return draw_kernel(self.model, *how, apart)

    @contextmanager
    def compiling(self) -> Iterator[None]:
        """Turn errors from compiling matrix elements in the body into readable InputErrors."""
        names = {getattr(p.matrix_element, "__name__", "?") for p in self.model.processes}
        try:
            yield
        except InputError:
            raise
        except Exception as error:  # compilers raise many kinds of errors
            lines = [line.strip() for line in str(error).splitlines() if line.strip()]
            raise InputError(
                f"the matrix elements ({', '.join(sorted(names))}) do not compile for the GPU: "
                f"{lines[0] if lines else type(error).__name__}. Use plain arithmetic and "
                "functions of the math module, or run.backend = 'cpu'"
            ) from error
