"""Errors against the exact solution, varying nodes, box, steps and samples one at a time."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...util.arrays import Array
from .exact_relaxation import ISOTROPIC, RelaxationGrid, compared, left, relaxed
from .rows import ValidationEffort

TAU = 4.0
"""tau at which errors are evaluated."""


@dataclass(frozen=True)
class Study:
    """A setting that is varied, and the value plotted on the horizontal axis."""

    name: str
    description: str
    unit: str
    setups: tuple[RelaxationGrid, ...]
    value: Callable[[RelaxationGrid], float]
    against_finest: bool = False
    """Whether errors are differences from the last set-up instead of from the exact solution."""
    seeds: int = 1


def studies(effort: ValidationEffort) -> tuple[Study, ...]:
    """Return the studies; a GPU allows finer nodes."""
    gpu = effort.backend == "cuda" and not effort.quick
    cells = (28, 40, 56, 80, 112, 160) if gpu else (28, 40, 56)
    base = RelaxationGrid(28, 14.0, 16, 1e-3)
    boxes = (8.0, 10.0, 12.0, 14.0, 18.0) if gpu else (8.0, 10.0, 12.0, 16.0)
    rough = RelaxationGrid(24, 12.0, 512 if gpu else 96, 1e-3)
    steps = (1.0, 0.5, 0.25, 0.125, 0.0625) if gpu else (1.0, 0.5, 0.125)
    many = (1, 4, 16, 64, 256) if gpu else (1, 4, 16)

    def spacing(setup: RelaxationGrid) -> float:
        return 2 * setup.box / setup.cells

    return (
        Study("spacing", "spacing of the nodes, L = 14 T", "h/T", tuple(
            replace(base, cells=n, samples=64 if gpu else max(4, round(16 * (28 / n) ** 2)),
                    tolerance=1e-4 if gpu else 1e-3) for n in cells), spacing),
        Study("box", "box, h = 0.7 T; change to the widest", "L/T", tuple(
            replace(base, cells=2 * round(box / 0.7), box=box) for box in boxes),
            lambda setup: setup.box, against_finest=True),
        Study("step", "length of the step; change to the shortest", "n σ dt", tuple(
            replace(rough, step=dt) for dt in steps),
            lambda setup: float(setup.step), against_finest=True),
        Study("samples", "samples; scatter between seeds", "samples", tuple(
            replace(base, cells=24, box=12.0, samples=n) for n in many),
            lambda setup: float(setup.samples), seeds=4),
    )  # fmt: skip


def studied(effort: ValidationEffort) -> Iterator[dict[str, Any]]:
    """Yield each study with the errors of its set-ups."""
    for study in studies(effort):
        found = [_errors(setup, study.seeds, effort) for setup in study.setups]
        rows = [(study.value(setup), each) for setup, each in zip(study.setups, found, strict=True)]
        if study.against_finest:
            last = rows[-1][1]
            shared = min(each.shape[1] for each in found)
            rows = [(x, each[:, :shared] - last[:, :shared]) for x, each in rows[:-1]]
        if study.seeds > 1:
            rows = [(x, each.std(axis=0, ddof=1)[None]) for x, each in rows]
        yield {
            "name": study.name, "words": study.description, "unit": study.unit,
            "setups": [str(setup) for setup in study.setups],
            "x": [x for x, _ in rows],
            "moments": [float(np.abs(each[:, :4]).max()) for _, each in rows],
            "left": [float(np.abs(each[:, 4]).max()) for _, each in rows],
            "shells": [float(np.sqrt((each[:, 5:] ** 2).mean())) for _, each in rows],
        }  # fmt: skip


def _errors(setup: RelaxationGrid, seeds: int, effort: ValidationEffort) -> Array:
    """Return errors of <k^2> ... <k^5>, of the remaining deviation and of f in shells, by seed."""
    rows = []
    for seed in range(seeds):
        options = effort.solving | {"seed": effort.seed + seed}
        f = relaxed(ISOTROPIC, setup, (TAU,), **options)
        moments, of_shells = compared(ISOTROPIC, setup, f[0], TAU)
        rest = float(left(ISOTROPIC, setup, f, (TAU,))[0]) - 1
        rows.append([*moments.values(), rest, *of_shells])
    return np.array(rows)
