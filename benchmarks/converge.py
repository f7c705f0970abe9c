"""Does the error bar of ``relboltz converge`` hold what a much finer run gives?

The reference has twice the nodes along each axis, a box 1.25 times as wide, 16 times the samples
and another seed. Every quantity at every record is compared; the exit code is 1 if one is missed.
The reference is most of the work, so that the two halves may be done apart, on machines of their
own; without a part both are done here:

    python benchmarks/converge.py reference --backend cuda --out reference.nc
    python benchmarks/converge.py compare --reference reference.nc
    python benchmarks/converge.py --cells 9 --samples 1        # both, small
"""

import argparse
import sys
import tomllib
import warnings
from pathlib import Path

import numpy as np
import xarray as xr

import relboltz as rb
from relboltz import config
from relboltz.cases import Case, is_finished
from relboltz.progress import bar
from relboltz.records.comparable import comparable
from relboltz.variations import Effort, plan_of

DEMO = Path(__file__).parents[1] / "examples" / "gluons.toml"


def reference_of(case: Case, seed: int) -> Case:
    """The same, much finer."""
    grid = case.grid
    finer = rb.PhaseSpace(
        [2 * n for n in grid.momentum_cells], [1.25 * w for w in grid.momentum_max],
        grid.space_cells, grid.space_max, grid.boundary, grid.momentum_boundary, grid.expansion,
    )  # fmt: skip
    samples = 16 * case.settings.collisions.samples
    return case.on(finer).with_keys("collisions", samples=samples, seed=seed)


def reference_run(fine: Case, path: Path) -> xr.Dataset:
    """The reference, from its file if it was done before."""
    cells, widths = fine.grid.momentum_cells, fine.grid.momentum_max
    print(f"reference: {cells} nodes to {widths} GeV, "
          f"{fine.settings.collisions.samples} samples", flush=True)  # fmt: skip
    with bar() as report:
        found = fine.done(path, report)
    print(f"{path}: {found.attrs['wall_seconds']:.1f} s, {found.attrs['device']}", flush=True)
    return found


def not_of(reference: xr.Dataset, fine: Case) -> list[str]:
    """How a result differs from the reference of a case: another set-up proves nothing."""
    told = tomllib.loads(reference.attrs["configuration"])
    grid, settings = fine.grid, fine.settings
    asked = {
        ("grid", "momentum_cells"): list(grid.momentum_cells),
        ("grid", "momentum_max"): list(grid.momentum_max),
        ("collisions", "samples"): settings.collisions.samples,
        ("time", "end"): settings.time.end,
        ("time", "tolerance"): settings.time.tolerance,
        ("output", "every"): settings.output.every,
    }
    found = {(table, key): told[table][key] for table, key in asked}
    return [
        f"{table}.{key} = {found[table, key]}, not {value}"
        for (table, key), value in asked.items()
        if not np.allclose(found[table, key], value, rtol=1e-9)
    ]


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


def judged(found: xr.Dataset, reference: xr.Dataset, first: xr.Dataset) -> int:
    """A line for every quantity; 1 if one is missed."""
    print(f"|reference - value| / error up to t = {reference.time.values[-1]:g} fm")
    print(f"{'quantity':36} {'largest':>8} {'at [fm]':>8} {'last':>8}")
    ratios = compared(found, reference, first)
    for name, (worst, last, time) in sorted(ratios.items(), key=lambda item: -item[1][0]):
        print(f"{name:36} {worst:8.3f} {time:8.2f} {last:8.3f}{'' if worst <= 1 else '   MISSED'}")
    missed = [name for name, (worst, *_) in ratios.items() if not worst <= 1]
    print(f"{len(ratios) - len(missed)} of {len(ratios)} quantities are held at every record")
    return int(bool(missed) or not ratios)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parts = ("both", "reference", "compare")
    parser.add_argument("part", nargs="?", default="both", choices=parts)
    parser.add_argument("--file", default=DEMO, type=Path, help="configuration")
    parser.add_argument("--set", action="append", default=[], help="key=value of the configuration")
    parser.add_argument("--cells", type=int, help="nodes along each axis of the set-up")
    parser.add_argument("--samples", type=int, help="samples of the set-up")
    parser.add_argument("--backend", default="auto")
    parser.add_argument("--out", type=Path, help="reference: its file; else the folder of all runs")
    parser.add_argument("--seed", type=int, default=4711, help="of the reference")
    parser.add_argument("--reference", type=Path, help="compare: the file of the reference")
    given = parser.parse_args()
    if (given.part == "compare") != (given.reference is not None):
        parser.error("--reference F.nc goes with compare, and compare needs it")
    return given


def main() -> int:
    given = arguments()
    keys = ["output.snapshots=[]", *given.set, f"run.backend={given.backend!r}"]
    keys += [f"grid.momentum_cells={[given.cells] * 3}"] if given.cells else []
    keys += [f"collisions.samples={given.samples}"] if given.samples else []
    settings = config.load(given.file, keys)
    warnings.simplefilter("ignore")
    case = plan_of(Case.of_config(settings), Effort()).seeds[0].case
    fine = reference_of(case, given.seed)
    if given.part == "reference":
        path = given.out or Path(f"{given.file.stem}.reference.nc")
        if is_finished(path):
            print(f"{path} is finished: remove it, or give another --out")
            return 2
        reference_run(fine, path)
        return 0
    if given.reference is not None:
        reference = rb.load(given.reference)
        if differences := not_of(reference, fine):
            print(f"{given.reference} is of another set-up: {'; '.join(differences)}")
            return 2
    folder = given.out or Path(f"{given.file.stem}.converge")
    found = rb.converge(settings, folder=folder, tell=lambda text: print(text, flush=True))
    print(f"converge: {found.attrs['wall_seconds']:.1f} s, {found.attrs['device']}")
    first = case.done(folder / f"seed-1-{case.digest()}.nc")
    if given.reference is None:
        reference = reference_run(fine, folder / f"reference-{fine.digest()}.nc")
    return judged(found, reference, first)


if __name__ == "__main__":
    sys.exit(main())
