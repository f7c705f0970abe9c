"""The command line: relboltz run, resume, new, plot, bench; other commands are in ``cli/``."""

import json
import os
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated, Any

import typer

from .. import __version__
from ..util.console_streams import steady
from ..util.errors import InputError, Interrupted, RelboltzError
from ..util.launcher import started
from ..util.text import unmarked
from .check import check
from .coefficients import coefficients
from .console import announced, console, delivered, errors, plain_warnings, tell, told, waiting
from .converge import converge
from .export import export
from .info import info
from .listing import known
from .options import (
    Backend,
    Configuration,
    Force,
    Json,
    Quiet,
    Result,
    Results,
    Set,
    Threads,
    Workers,
    check_place,
    overridden,
)
from .report import report
from .reproduce import reproduce
from .scan import scan
from .validate import validate
from .watch import watch

app = typer.Typer(
    help="The relativistic Boltzmann equation of quark-gluon matter.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # square brackets stand for tables of a configuration
)


def main() -> None:
    """Run the command line; errors become messages and exit codes, never tracebacks."""
    with steady():
        if not started():
            sys.exit(_command())
        from ..parallel.mpi import command
        from ..run.resume import made_again

        try:
            sys.exit(command(_command, made_again))
        except InputError as error:  # for example, mpi4py is missing
            sys.exit(_failed(error))


def _command() -> int:
    """Run the requested command and return its exit code."""
    try:
        app()
    except RelboltzError as error:
        return _failed(error)
    except Interrupted as stop:  # from a command without its own message
        errors.print(f"[yellow]{unmarked(stop)}[/]", soft_wrap=True)
        return 128 + stop.signal
    except KeyboardInterrupt:
        return 130
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    return 0


def _failed(error: RelboltzError) -> int:
    word, code = ("error", 2) if isinstance(error, InputError) else ("stopped", 1)
    errors.print(f"[bold red]{word}:[/] {unmarked(error)}", soft_wrap=True)
    return code


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Show the version.")] = False,
) -> None:
    if version:
        console.print(__version__)
        raise typer.Exit


def run(
    file: Configuration,
    out: Annotated[
        Path | None, typer.Option(metavar="F.nc", help="Output file; overrides output.file.")
    ] = None,
    set_: Set = None,
    threads: Threads = None,
    backend: Backend = None,
    workers: Workers = None,
    replicas: Annotated[
        int | None,
        typer.Option(metavar="N", help="Number of seeds; mean and standard error."),
    ] = None,
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Run a configuration and write its result as NetCDF."""
    with waiting(f"reading {file}", quiet):
        from ..io import output
        from ..run import input_file as config
        from ..run import progress
        from ..run import solve as simulation

        settings = config.load(file, overridden(set_, threads, backend, workers))
    path = out if out is not None else Path(settings.output.file)
    if output.same_file(path, file):
        raise InputError(f"output.file = {str(path)!r} is the configuration itself; choose another")
    if replicas is not None:
        from .replicas import run_replicas

        _summary(run_replicas(settings, path, replicas, force, quiet), path, quiet)
        return
    with told(path, quiet), nullcontext() if quiet else progress.bar(console) as report:
        announce = None if quiet else announced
        ds = simulation.run_config(settings, path, report, announce, force)
    _summary(ds, path, quiet)


def resume(
    file: Result,
    until: Annotated[float | None, typer.Option(metavar="T", help="New end time, fm.")] = None,
    snapshot: Annotated[
        list[float] | None,
        typer.Option(metavar="T", help="Also keep f at this time, fm; repeatable."),
    ] = None,
    threads: Threads = None,
    workers: Workers = None,
    trust: Annotated[
        bool, typer.Option("--trust", help="Run Python code stored in the checkpoint.")
    ] = False,
    quiet: Quiet = False,
) -> None:
    """Resume a run that was interrupted or killed, or continue it beyond its end."""
    with waiting(f"reading {file}", quiet):
        from ..run import progress
        from ..run import resume as resuming
        from .replicas import resume_replicas

    others = {"threads": threads, "workers": workers}
    ds = resume_replicas(file, until, others, quiet, trust)
    if ds is not None:
        _summary(ds, file, quiet)
        return
    with told(file, quiet), nullcontext() if quiet else progress.bar(console) as report:
        run = resuming.taken_up(file, until, None, others, snapshot or (), trust=trust)
        if not quiet:
            tell(f"going on from t = {run.state.time:g} fm to {run.stops.end:g} fm")
            tell(f"backend: {run.backend.description}")
        ds = run.go(report)
    _summary(ds, file, quiet)


def new(
    file: Annotated[Path, typer.Argument(metavar="FILE.toml", help="File to create.")],
) -> None:
    """Write a commented example configuration."""
    from ..run.input_file import TEMPLATE

    if os.path.exists(file):
        raise InputError(f"{file} exists already; choose another name")
    try:
        file.write_text(TEMPLATE)
    except OSError as error:
        raise InputError(
            f"{file} cannot be written: {error.strerror}; choose a folder that is there"
        ) from None
    tell(f"written: {file}   (start it: relboltz run {file})")


def plot(
    files: Results,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="F beside F.nc; for several: comparison."),
    ] = None,
    animate: Annotated[
        Path | None,
        typer.Option(metavar="F.gif", help="Instead animate a result in space, as .gif or .mp4."),
    ] = None,
    quantity: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="To animate: number, temperature, 'shear_stress xy'..."),
    ] = None,
    species: Annotated[
        str | None, typer.Option(metavar="NAMES", help="Species to animate, such as u,ubar.")
    ] = None,
    fps: Annotated[float, typer.Option(metavar="N", help="Records per second of animation.")] = 8.0,
) -> None:
    """Plot a result: spectra, numbers, energies, masses, temperature; profiles and maps.

    Several results are plotted in the same axes, with a table of their differences.
    """
    from . import drawing

    for key, value in (("--quantity", quantity), ("--species", species)):
        if value is not None and animate is None:
            raise InputError(f"{key} {value}: is for films; add --animate FILE.gif")
    if animate is not None:
        if len(files) > 1:
            raise InputError(f"--animate {animate}: a film is of one result, not of {len(files)}")
        if not 0.1 <= fps <= 100:
            raise InputError(f"--fps {fps:g}: use a number from 0.1 to 100")
        drawing.film(files[0], animate, quantity or "number", species, fps)
    elif len(files) > 1:
        drawing.compared(files, out)
    else:
        drawing.drawn(files[0], out)


def bench(
    backend: Backend = "auto",
    json_: Json = None,
    threads: Threads = 0,
) -> None:
    """Measure events per second; an event is one sample, counted once per stage of a step."""
    from ..analysis import tables
    from ..io import output
    from ..studies import benchmark

    if json_ is not None:
        output.check_writable(json_, "--json")
    where, many = check_place(backend, threads)
    with plain_warnings():
        found = benchmark.measure(where, many, lambda text: errors.print(unmarked(text)))
    for table in tables.benchmark(found):
        console.print(table)
    console.print(f"importance pairs: {found['importance_gain']:.1f} times less variance x time")
    if json_ is not None:
        json_.write_text(json.dumps(found, indent=2) + "\n")
        tell(f"written: {json_}")
    else:
        delivered()


def _summary(ds: Any, path: Path, quiet: bool) -> None:
    """Print the summary table of a run."""
    from ..analysis import tables

    if not quiet:
        console.print(tables.summary(ds))
        tell(f"written: {path}   (plots: relboltz plot {path})")


for _name, _command_, _words in (
    ("new", new, "Write a commented example configuration."),
    ("check", check, "Validate a file, and estimate time, memory and disk."),
    ("run", run, "Run a configuration and write a NetCDF file."),
    ("watch", watch, "Follow a run from another terminal."),
    ("resume", resume, "Resume a stopped run, or continue it beyond its end."),
    ("info", info, "Describe a result, or this installation."),
    ("plot", plot, "Plot results: spectra, histories, maps, animations."),
    ("report", report, "Write an HTML report on one or more results."),
    ("export", export, "Export a result to other programs: VTK, CSV, MUSIC."),
    ("scan", scan, "Run every combination of values of some keys."),
    ("converge", converge, "Rerun at finer resolution: values with error bars."),
    ("coefficients", coefficients, "Compute viscosities, diffusion and conductivity."),
    ("list", known, "List models, initial conditions and sampling methods."),
    ("validate", validate, "Solve problems with known answers."),
    ("reproduce", reproduce, "Reproduce the paper's figures and compare its numbers."),
    ("bench", bench, "Measure events per second on this machine."),
):
    app.command(_name, short_help=_words)(_command_)
