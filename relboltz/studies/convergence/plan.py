"""Runs that measure the convergence of a set-up: settings varied one at a time, and their costs."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from ...config.settings import LEAST_TOLERANCE
from ...grid.phase_space import PhaseSpace
from ...initial import FromFile, NodeValues
from ...initial.shapes import Gradient, Random
from ...run.setup import Case, derived_seed

WIDER = 1.25
"""Factor of a larger box, in momentum space and in space, at the same spacing."""
COARSER = 1.5
"""Factor of the coarser spacing, used for the third of three values."""
SHORTER = 2
"""Factor by which steps are shortened; the tolerance scales with its square."""
APART = 1000
"""Offset of the seed numbers of varied runs, to keep them distinct from the seeds of the set-up."""
FEWEST = 5
"""Smallest number of nodes along an axis of a coarser grid."""


@dataclass(frozen=True)
class PlannedRun:
    """One run: its name, its cost and its variance relative to a run of the set-up."""

    name: str
    case: Case
    cost: float = 1.0
    variance: float = 1.0


@dataclass(frozen=True)
class VariedSetting:
    """A numerical setting that a convergence study varies, and the runs that vary it.

    law : "power", "box" or "samples"
    ratios : lengths of the fine and the coarse run relative to the set-up; for samples, the
        inverse of the factor by which their number is multiplied
    """

    name: str
    description: str
    law: str
    fine: PlannedRun
    coarse: PlannedRun | None = None
    ratios: tuple[float, float] = (0.0, 0.0)

    @property
    def jobs(self) -> list[PlannedRun]:
        """Runs of this setting, the cheaper run first."""
        return [job for job in (self.coarse, self.fine) if job is not None]


@dataclass(frozen=True)
class ConvergenceEffort:
    """Effort: number of seeds, refinement factor of the spacings, and factor of the samples."""

    seeds: int = 8
    finer: float = 2.0
    more: int = 4

    def less(self) -> "ConvergenceEffort | None":
        """Return the next smaller effort, or None if error bars would be meaningless below it."""
        if self.seeds > 4:
            return replace(self, seeds=max(4, self.seeds - 2))
        if self.finer > COARSER:
            return replace(self, finer=COARSER, more=2)
        return replace(self, seeds=3) if self.seeds > 3 else None


@dataclass(frozen=True)
class ConvergencePlan:
    """All runs, and the settings that are not varied with the reason."""

    seeds: tuple[PlannedRun, ...]
    knobs: tuple[VariedSetting, ...]
    left_out: dict[str, str]

    @property
    def jobs(self) -> list[PlannedRun]:
        """All runs, those of the set-up itself first."""
        return [*self.seeds, *(job for knob in self.knobs for job in knob.jobs)]


def plan_of(case: Case, effort: ConvergenceEffort) -> ConvergencePlan:
    """Plan the runs for a case; snapshots and marginals of f are not compared and not stored."""
    case = case.with_keys("output", snapshots=(), marginals=())
    seeds = tuple(PlannedRun(f"seed-{k + 1}", _seeded(case, k)) for k in range(effort.seeds))
    left_out: dict[str, str] = {}
    knobs = []
    makers: list[tuple[str, Callable[[Case, ConvergenceEffort], VariedSetting | str | None]]] = [
        ("spacing", _spacing), ("box", _box), ("step", _step), ("samples", _samples),
        ("cells", _cells), ("walls", _walls),
    ]  # fmt: skip
    for place, (name, make) in enumerate(makers):
        made = make(case, effort)
        if isinstance(made, str):
            left_out[name] = made
        elif made is not None:
            knobs.append(_with_seeds(made, APART + 10 * place))
    return ConvergencePlan(seeds, tuple(knobs), left_out)


def _seeded(case: Case, number: int) -> Case:
    return case.with_keys("collisions", seed=derived_seed(case.seed, number))


def _with_seeds(knob: VariedSetting, number: int) -> VariedSetting:
    """Give both runs independent random numbers, so that the noise of a difference is known."""
    fine = replace(knob.fine, case=_seeded(knob.fine.case, number))
    coarse = knob.coarse
    if coarse is not None:
        coarse = replace(coarse, case=_seeded(coarse.case, number + 1))
    return replace(knob, fine=fine, coarse=coarse)


# --- grids --------------------------------------------------------------------------------------


def scaled(n: int, factor: float) -> int:
    """Return at most about ``factor`` times n, with the parity of n."""
    if factor >= 1:
        return n + 2 * int((factor - 1) * n / 2)
    return n - 2 * round((1 - factor) * n / 2)


def _resized(grid: PhaseSpace, **keys: object) -> PhaseSpace:
    names = ("momentum_cells", "momentum_max", "space_cells", "space_max", "boundary")
    given = {name: getattr(grid, name) for name in (*names, "momentum_boundary", "expansion")}
    return PhaseSpace(**given | keys)


def _nodes(before: Sequence[int], after: Sequence[int]) -> float:
    """Return the ratio of the total numbers of cells."""
    ratio = 1.0
    for one, other in zip(before, after, strict=True):
        ratio *= other / one
    return ratio


def _length(before: Sequence[int], after: Sequence[int]) -> float:
    """Return h after over h before, averaged over the axes that changed."""
    ratios = [a / b for a, b in zip(before, after, strict=True) if a != b]
    return sum(ratios) / len(ratios) if ratios else 1.0


def _bound(case: Case, kinds: tuple[type, ...]) -> str | None:
    """Return why another grid would change the initial conditions, or None if it would not."""
    for name, state in case.states.items():
        if isinstance(state, kinds):
            description = {
                FromFile: "comes from a file and lives on its nodes",
                NodeValues: "is given on the nodes",
                Random: "is random at every node",
                Gradient: "is made for its box",
            }
            text = next(w for kind, w in description.items() if isinstance(state, kind))
            return f"initial.{name} {text}: another grid would be another start"
    return None


def _spacing(case: Case, effort: ConvergenceEffort) -> VariedSetting | str | None:
    if reason := _bound(case, (FromFile, NodeValues, Random)):
        return reason
    grid = case.grid
    cells = grid.momentum_cells
    fine = tuple(max(scaled(n, effort.finer), n + 2) for n in cells)
    coarse = tuple(scaled(n, 1 / COARSER) for n in cells)
    usable = all(FEWEST <= few < n for few, n in zip(coarse, cells, strict=True))
    jobs = [
        PlannedRun(f"spacing-{word}", case.on(_resized(grid, momentum_cells=other)), many, 1 / many)
        for word, other in (("finer", fine), ("coarser", coarse))
        for many in [_nodes(cells, other)]
    ]
    h = _numbers(grid.spacing), _numbers(jobs[0].case.grid.spacing)
    description = f"spacing {h[0]} -> {h[1]} GeV ({_counts(fine)} nodes)"
    ratios = _length(cells, fine), _length(cells, coarse)
    return VariedSetting(
        "spacing", description, "power", jobs[0], jobs[1] if usable else None, ratios
    )


def _box(case: Case, effort: ConvergenceEffort) -> VariedSetting | str | None:
    if reason := _bound(case, (FromFile, NodeValues, Random, Gradient)):
        return reason
    grid = case.grid
    cells = tuple(n + 2 * max(1, round((WIDER - 1) * n / 2)) for n in grid.momentum_cells)
    widths = tuple(0.5 * h * n for h, n in zip(grid.spacing, cells, strict=True))
    wider = _resized(grid, momentum_cells=cells, momentum_max=widths)
    description = (
        f"box {_numbers(grid.momentum_max)} -> {_numbers(widths)} GeV ({_counts(cells)} nodes)"
    )
    # Events are drawn where particles are, so empty cells do not reduce the noise.
    return VariedSetting(
        "box",
        description,
        "box",
        PlannedRun("box-larger", case.on(wider), _nodes(grid.momentum_cells, cells)),
    )


def _cells(case: Case, effort: ConvergenceEffort) -> VariedSetting | str | None:
    grid = case.grid
    if not grid.moving_axes:
        return None
    if reason := _bound(case, (FromFile, NodeValues, Random)):
        return reason
    cells = grid.space_cells
    fine = tuple(round(effort.finer * n) if n > 1 else 1 for n in cells)
    coarse = tuple(round(n / COARSER) if n > 1 else 1 for n in cells)
    usable = all(n == 1 or 3 <= few < n for few, n in zip(coarse, cells, strict=True))
    jobs = [
        PlannedRun(
            f"cells-{word}", case.on(_resized(grid, space_cells=other)), many * steps, 1 / many
        )
        for word, other, steps in (("finer", fine, effort.finer), ("coarser", coarse, 1 / COARSER))
        for many in [_nodes(cells, other)]
    ]
    description = f"space cells {_counts(cells)} -> {_counts(fine)}"
    ratios = _length(cells, fine), _length(cells, coarse)
    return VariedSetting(
        "cells", description, "power", jobs[0], jobs[1] if usable else None, ratios
    )


def _walls(case: Case, effort: ConvergenceEffort) -> VariedSetting | str | None:
    grid = case.grid
    axes = [i for i in grid.moving_axes if grid.boundary[i] == "open"]
    if not axes:
        return None
    if reason := _bound(case, (FromFile, NodeValues, Random, Gradient)):
        return reason
    if not any(state.is_local(grid) for state in case.states.values()):
        return "the start fills the box: in a larger one it would be another"
    cells, widths = list(grid.space_cells), list(grid.space_max)
    for i in axes:
        cells[i] += 2 * max(1, round((WIDER - 1) * cells[i] / 2))
        widths[i] = 0.5 * grid.space_spacing[i] * cells[i]
    wider = case.on(_resized(grid, space_cells=cells, space_max=widths))
    description = f"walls at {_numbers(grid.space_max)} -> {_numbers(widths)} fm"
    return VariedSetting(
        "walls",
        description,
        "box",
        PlannedRun("walls-further", wider, _nodes(grid.space_cells, cells)),
    )


# --- steps and samples --------------------------------------------------------------------------


def _step(case: Case, effort: ConvergenceEffort) -> VariedSetting | str | None:
    time, square = case.settings.time, float(SHORTER**2)
    if time.step == "auto":
        fine, coarse = time.tolerance / square, time.tolerance * square
        if fine < LEAST_TOLERANCE:
            return f"time.tolerance = {time.tolerance:g} is the smallest already"
        turned, description = (
            {"finer": fine, "coarser": coarse},
            f"tolerance {time.tolerance:g} -> {fine:g}",
        )
        key, usable = "tolerance", coarse < 1
    else:
        turned = {"finer": time.step / SHORTER, "coarser": time.step * SHORTER}
        description = f"step {time.step:g} -> {time.step / SHORTER:g} fm"
        key, usable = "step", turned["coarser"] <= time.end
    costs = {"finer": float(SHORTER), "coarser": 1 / SHORTER}
    # Rates are sampled within one step, so shorter steps do not reduce their noise.
    jobs = [
        PlannedRun(
            f"step-{word}",
            case.with_keys("time", **{key: value}),
            costs[word],
            max(1, 1 / costs[word]),
        )
        for word, value in turned.items()
    ]
    ratios = 1 / SHORTER, float(SHORTER)
    return VariedSetting("step", description, "power", jobs[0], jobs[1] if usable else None, ratios)


def _samples(case: Case, effort: ConvergenceEffort) -> VariedSetting | str | None:
    few = case.settings.collisions.samples
    more = few * effort.more
    if more >= 2**32:
        return f"collisions.samples = {few} is the largest already"
    job = PlannedRun(
        "samples-more", case.with_keys("collisions", samples=more), effort.more, 1 / effort.more
    )
    return VariedSetting(
        "samples", f"samples {few} -> {more}", "samples", job, None, (1 / effort.more, 0.0)
    )


# --- words --------------------------------------------------------------------------------------


def _numbers(values: Sequence[float]) -> str:
    """Format the values; return one number if all are equal."""
    return ", ".join(f"{v:.4g}" for v in dict.fromkeys(values))


def _counts(cells: Sequence[int]) -> str:
    return " x ".join(str(n) for n in cells)


def efforts(first: ConvergenceEffort) -> Iterator[ConvergenceEffort]:
    """Yield successively smaller efforts."""
    effort: ConvergenceEffort | None = first
    while effort is not None:
        yield effort
        effort = effort.less()
