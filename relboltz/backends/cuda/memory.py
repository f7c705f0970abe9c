"""GPU memory that a state needs, and the number of sites that collide at once."""

from ...config.settings import Sampling
from ...events.collisions import SETS, channels
from ...grid.phase_space import PhaseSpace
from ...model.model import Model
from ...util.errors import InputError
from . import layout as k

BATCH_BYTES = 3 * 8 + 6 * 8 + 2 + 4 + 8 + 2 * 4 + 4 * 8 + 1
"""Bytes per cell of a colliding site: changes, logarithms, sampling tables, limits."""
NODE_BYTES = 8 + 4 + 4
LEAST_EVENTS = 2**26
"""Least bytes for events; a run with less does not start."""
USED_PART = 0.9
"""Fraction of the free memory that is used; the rest is left to other programs."""
FULL_BLOCKS = 2**16
"""Blocks of threads that keep any GPU busy: hundreds per multiprocessor. Colliding more sites at
once gains nothing."""
SCRATCH_SHARE = 0.2
"""Scratch memory for streaming, as a fraction of one copy of the state."""
LEAST_SCRATCH = 2**26


def event_bytes(precision: str) -> int:
    """Return the bytes of one kept event: four cells, weight, split."""
    return 4 * 4 + (4 if precision == "float32" else 8) + 8


class MemoryPlan:
    """Memory that a state needs, and the number of sites that collide at once.

    workers : number of workers that share the events of a site; beside : bytes for other purposes
    """

    def __init__(
        self,
        grid: PhaseSpace,
        model: Model,
        sampling: Sampling,
        precision: str,
        workers: int = 1,
        beside: float = 0.0,
    ):
        self.beside = beside
        self.given = (grid, model, sampling, precision)
        species, self.sites = len(model.species), grid.sites
        cells = species * grid.size
        self.state = 8 * cells * grid.sites
        self.blocks = SETS * sum(
            -(-sampling.samples_of(channel, grid.size) // k.SPAN)
            for channel in channels(model, sampling.symmetrical)
        )
        own = -(-self.blocks // workers)
        slots = max(1, own * k.SPAN * (1 if sampling.kinematics == "cm" else 2))
        self.events = slots * event_bytes(precision)
        buckets = 1 << max(0, (grid.size - 1).bit_length())
        self.site = cells * BATCH_BYTES + 4 * species * buckets + 3 * 8 * k.SUMS * self.blocks
        streams = bool(grid.moving_axes or beside)
        self.scratch = max(LEAST_SCRATCH, SCRATCH_SHARE * self.state) if streams else 0.0
        self.most = min(65535 // species, (2**32 - 1) // slots, (2**31 - 1) // cells)
        self.fixed = cells * 8 + grid.size * NODE_BYTES + 2 * self.state + self.scratch + beside
        self.least = self.fixed + self.site + min(self.events, LEAST_EVENTS)

    def batch(self, free: float) -> tuple[int, float]:
        """Return the number of sites that collide at once, and bytes for their events."""
        room = USED_PART * free - self.fixed
        full = -(-FULL_BLOCKS // max(1, self.blocks))
        many = int(room / (self.site + self.events))
        batch = max(1, min(many, self.sites, self.most, full))
        rounds = -(-self.sites // batch)
        batch = -(-self.sites // rounds)  # equal rounds
        return batch, max(min(room - batch * self.site, batch * self.events), LEAST_EVENTS)


def check_memory(plan: MemoryPlan, free: float) -> None:
    """Raise InputError if the state does not fit on the GPU, and suggest one that does."""
    if plan.least <= USED_PART * free:
        return
    grid, model, *_ = plan.given
    cells = f"momentum_cells = {list(grid.momentum_cells)}"
    if plan.beside:
        asked = f"grid: {grid.sites} space cells of one worker with {cells} need"
        remedy = "use more GPUs (run.workers)"
    elif grid.moving_axes:
        asked = f"grid.space_cells = {list(grid.space_cells)} with {cells} need"
        remedy = _fitting_space(plan, free)
    else:
        asked = f"grid.{cells}: {len(model.species)} species need"
        remedy = _fitting_momenta(plan, free)
    raise InputError(
        f"{asked} {plan.least / 2**30:.1f} GiB, and the GPU has {free / 2**30:.1f} GiB free; "
        f"{remedy}, or use run.backend = 'cpu'"
    )


def _fitting_space(plan: MemoryPlan, free: float) -> str:
    """Return advice on the number of space cells that would fit."""
    grid = plan.given[0]
    fixed = plan.least - (2 + SCRATCH_SHARE) * plan.state
    room = max(USED_PART * free - max(fixed, 0) - LEAST_SCRATCH, 0)
    shrink = (room / ((2 + SCRATCH_SHARE) * plan.state)) ** (1 / len(grid.moving_axes))
    cells = [int(n * shrink) if n > 1 else 1 for n in grid.space_cells]
    return f"space_cells = {cells} would fit" if min(cells) > 0 else "use fewer momentum_cells"


def _fitting_momenta(plan: MemoryPlan, free: float) -> str:
    """Return advice on the number of momentum cells that would fit."""
    _, model, sampling, precision = plan.given
    fits = 1
    while (
        MemoryPlan(PhaseSpace(fits + 1, 1.0), model, sampling, precision).least <= USED_PART * free
    ):
        fits += 1
    return f"[{fits}, {fits}, {fits}] would fit" if fits > 2 else "free some of it"
