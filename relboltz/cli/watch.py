"""relboltz watch RUN.nc: follow a run from another terminal."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..util.errors import InputError
from .console import console, delivered, tell
from .options import Result

if TYPE_CHECKING:
    import xarray as xr
    from rich.table import Table

LEAST = 0.1
"""Shortest interval between two updates [s]."""


def watch(
    file: Result,
    every: Annotated[float, typer.Option(metavar="S", help="Seconds between updates.")] = 2.0,
    once: Annotated[bool, typer.Option("--once", help="Print the state once and exit.")] = False,
) -> None:
    """Follow the progress, drifts and state of a run; exit when the run ends."""
    from rich.live import Live

    if not every >= LEAST:
        raise InputError(f"--every {every:g}: use at least {LEAST:g} seconds")
    if not once and starting(file):
        tell(f"{file}: its run is starting; waiting for its first record")
        while starting(file):
            time.sleep(every)
    ds, going = looked(file)
    if once or not going or not console.is_terminal:
        _in_lines(file, every, ds, going and not once)
        return
    try:
        with Live(shown(file, ds), console=console, auto_refresh=False) as live:
            while going:
                time.sleep(every)
                ds, going = looked(file)
                live.update(shown(file, ds), refresh=True)
    except KeyboardInterrupt:
        raise typer.Exit(130) from None
    tell(description(file, ds, going))


def _in_lines(file: Path, every: float, ds: xr.Dataset, going: bool) -> None:
    """Print a line for every new record."""
    tell(description(file, ds, going))
    seen = ds.time.size
    while going:
        time.sleep(every)
        ds, going = looked(file)
        if ds.time.size > seen or not going:
            tell(description(file, ds, going))
            seen = ds.time.size
    delivered()


def starting(file: Path) -> bool:
    """Whether a process works on a result file that does not exist yet."""
    from ..io.reservation import is_taken

    return not file.exists() and is_taken(file)


def looked(file: Path) -> tuple[xr.Dataset, bool]:
    """Return the result on disk now, and whether a process is working on it."""
    from ..io import output
    from ..io.reservation import is_taken

    taken = is_taken(file)  # checked first: if the run ends meanwhile, it is read once more
    if not file.exists() and taken:
        raise InputError(f"{file}: its run is starting and has written nothing yet; try again")
    return output.load_run(file), taken


def shown(file: Path, ds: xr.Dataset) -> Table:
    """Return the summary table of a run in its present state."""
    from ..analysis import tables
    from ..io.result import undamaged

    with undamaged(file):
        return tables.summary(ds)


def description(file: Path, ds: xr.Dataset, going: bool) -> str:
    """Return one line on the progress of a run."""
    from ..io.result import box, undamaged

    with undamaged(file):
        mean = box(ds, left=True)
        now, status = mean.isel(time=-1), str(ds.attrs["status"])
        if status == "running" and not going:
            status = f"stopped; go on with it: relboltz resume {file}"
        drift = int(abs(now.charge_drift).max())
        energy = float(now.energy_total / mean.energy_total[0]) - 1
        far = float(now.equilibrium_distance)
        left = f", {100 * far:.2g} % not yet in equilibrium" if far == far else ""
        return (
            f"t = {float(now.time):.4g} fm, step {float(now.step):.2g} fm, dN = {drift}, "
            f"dE/E = {energy:.0e}{left}   ({status})"
        )
