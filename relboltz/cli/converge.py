"""relboltz converge FILE.toml: convergence study as a table, a plot and JSON."""

import json
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated

import typer

from ..util.errors import InputError, Interrupted
from ..util.text import unmarked
from .console import console, errors, plain_warnings, tell
from .options import Backend, Configuration, Json, Quiet, Set, Threads, overridden


def converge(
    file: Configuration,
    json_: Json = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER", help="For all runs; default: F.converge beside output.file."
        ),
    ] = None,
    set_: Set = None,
    budget: Annotated[
        float | None, typer.Option(metavar="MIN", help="Time limit in minutes.")
    ] = None,
    seeds: Annotated[
        int, typer.Option(metavar="N", help="Seeds of the unrefined run, to measure noise.")
    ] = 8,
    at: Annotated[
        list[float] | None, typer.Option(metavar="T", help="Also show this time, fm; repeatable.")
    ] = None,
    threads: Threads = None,
    backend: Backend = None,
    quiet: Quiet = False,
) -> None:
    """Rerun with each numerical parameter refined in turn: values with error bars.

    Takes about 25 times the work of the run; repeating the command computes only missing runs.
    """
    from ..io import output
    from ..io.reservation import base
    from ..run import input_file as config
    from ..run import progress
    from ..studies.convergence import driver as converging
    from ..visualization import plots
    from .convergence_table import as_json, remarks, tables

    settings = config.load(file, overridden(set_, threads, backend))
    for time in at or ():
        first, last = settings.time.start, settings.time.end
        if not first <= time <= last:
            raise InputError(f"--at {time:g}: the run goes from {first:g} to {last:g} fm")
    if json_ is not None:
        output.check_writable(json_, "--json")
    own = Path(settings.output.file)
    folder = out if out is not None else own.with_name(f"{base(own)}.converge")
    try:
        with (
            plain_warnings(quiet),
            nullcontext() if quiet else progress.bar(console) as report,
        ):
            ds = converging.converge(
                settings, folder=folder, seeds=seeds, budget=budget,
                progress=report or False, tell=None if quiet else tell,
            )  # fmt: skip
    except Interrupted as error:
        description = f"[yellow]{unmarked(error)}[/], and kept in {unmarked(folder)}"
        errors.print(f"{description}; the same command does what is left", soft_wrap=True)
        raise typer.Exit(128 + error.signal) from None
    picture = folder / "converge.png"
    plots.changes(ds).savefig(picture, dpi=150)
    if json_ is not None:
        json_.write_text(json.dumps(as_json(ds), indent=1, allow_nan=False) + "\n")
    for table in tables(ds, at or (), console.width):
        console.print(table)
    for line in remarks(ds):
        tell(line)
    tell(f"written: {folder / converging.RESULT}, {picture}")
    if json_ is not None:
        tell(f"written: {json_}")
