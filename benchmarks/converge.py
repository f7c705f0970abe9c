"""Does the error bar of ``relboltz converge`` hold what a much finer run gives?

The reference has twice the nodes along each axis, a box 1.25 times as wide, 16 times the samples
and another seed. Every quantity at every record is compared; the exit code is 1 if one is missed.

    python benchmarks/converge.py [FILE.toml] [--set key=value] [--backend cuda] [--out FOLDER]
"""

import argparse
import sys
import warnings
from pathlib import Path

import numpy as np

import relboltz as rb
from relboltz import config
from relboltz.cases import Case
from relboltz.progress import bar
from relboltz.records.comparable import comparable
from relboltz.variations import Effort, plan_of

HERE = Path(__file__).parent


def reference_of(case: Case, seed: int) -> Case:
    """The same, much finer."""
    grid = case.grid
    finer = rb.PhaseSpace(
        [2 * n for n in grid.momentum_cells], [1.25 * w for w in grid.momentum_max],
        grid.space_cells, grid.space_max, grid.boundary, grid.momentum_boundary,
    )  # fmt: skip
    samples = 16 * case.settings.collisions.samples
    return case.on(finer).with_keys("collisions", samples=samples, seed=seed)


def compared(found, reference, first) -> dict[str, tuple[float, float, float]]:
    """By quantity |reference - value| / error: the largest of all records, the last, its time."""
    values, result = comparable(reference, first), {}
    times = int(np.searchsorted(found.time.values, reference.time.values[-1])) + 1
    for name, other in values.items():
        if name not in found:
            continue
        grows = found[name].dims[:1] == ("time",)
        mine, error = found[name].values, found[f"{name}_error"].values
        if grows:
            times = min(times, len(other))
            mine, error, other = mine[:times], error[:times], other[:times]
        with np.errstate(invalid="ignore", divide="ignore"):
            ratio = np.where(other == mine, 0.0, np.abs(other - mine) / error)
        if not np.isfinite(ratio).any():
            continue
        by_time = (
            np.nanmax(ratio.reshape(len(ratio), -1), axis=1)
            if grows
            else np.array([np.nanmax(ratio)])
        )
        worst = int(np.nanargmax(by_time))
        when = float(found.time[worst]) if grows else np.nan
        result[name] = float(by_time[worst]), float(by_time[-1]), when
    return result


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "file", nargs="?", default=HERE.parent / "examples" / "gluons.toml", type=Path
    )
    parser.add_argument("--set", action="append", default=[], help="key=value of the configuration")
    parser.add_argument("--backend", default="auto")
    parser.add_argument("--out", type=Path, default=None, help="folder of all runs")
    parser.add_argument("--seed", type=int, default=4711, help="of the reference")
    parser.add_argument("--reference", type=Path, help="a result to compare with instead")
    given = parser.parse_args()
    settings = config.load(given.file, [*given.set, f"run.backend={given.backend!r}"])
    folder = given.out or Path(f"{given.file.stem}.converge")
    warnings.simplefilter("ignore")
    found = rb.converge(settings, folder=folder, tell=lambda text: print(text, flush=True))
    case = plan_of(Case.of_config(settings), Effort()).seeds[0].case
    first = case.done(folder / f"seed-1-{case.digest()}.nc")
    if given.reference is not None:
        reference = rb.load(given.reference)
    else:
        fine = reference_of(case, given.seed)
        print(f"reference: {fine.grid.momentum_cells} nodes to {fine.grid.momentum_max} GeV, "
              f"{fine.settings.collisions.samples} samples", flush=True)  # fmt: skip
        with bar() as report:
            reference = fine.done(folder / f"reference-{fine.digest()}.nc", report)
    print(f"|reference - value| / error up to t = {reference.time.values[-1]:g} fm")
    print(f"{'quantity':36} {'largest':>8} {'at [fm]':>8} {'last':>8}")
    ratios = compared(found, reference, first)
    for name, (worst, last, time) in sorted(ratios.items(), key=lambda item: -item[1][0]):
        print(f"{name:36} {worst:8.3f} {time:8.2f} {last:8.3f}{'' if worst <= 1 else '   MISSED'}")
    missed = [name for name, (worst, *_) in ratios.items() if worst > 1]
    print(f"{len(ratios) - len(missed)} of {len(ratios)} quantities are held at every record")
    return bool(missed)


if __name__ == "__main__":
    sys.exit(main())
