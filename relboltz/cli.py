"""The command line: relboltz run, resume, new, plot, info, bench; others are in ``commands/``."""

import json
import os
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated, Any

import typer

from . import __version__
from .commands.check import check
from .commands.coefficients import coefficients
from .commands.converge import converge
from .commands.export import export
from .commands.known import known
from .commands.report import report
from .commands.reproduce import reproduce
from .commands.scan import scan
from .commands.validate import validate
from .commands.watch import watch
from .errors import InputError, Interrupted, RelboltzError
from .launched import started
from .streams import steady
from .terminal import announced, console, delivered, errors, plain_warnings, tell, told
from .words import unmarked

app = typer.Typer(
    help="The relativistic Boltzmann equation of quark-gluon matter.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # square brackets are tables of a configuration
)


def main() -> None:
    """Entry point: turns errors into messages and exit codes, never into tracebacks."""
    with steady():
        if not started():
            sys.exit(_command())
        from .processes import command
        from .resuming import made_again

        try:
            sys.exit(command(_command, made_again))
        except InputError as error:  # such as no mpi4py
            sys.exit(_failed(error))


def _command() -> int:
    """What was asked for on the command line; the exit code."""
    try:
        app()
    except RelboltzError as error:
        return _failed(error)
    except Interrupted as stop:  # of a command that says nothing of its own
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


@app.command()
def run(
    file: Annotated[Path, typer.Argument(help="Configuration, TOML.")],
    out: Annotated[Path | None, typer.Option(help="Output file; overrides output.file.")] = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="key=value, e.g. time.end=2.0; repeatable.")
    ] = None,
    threads: Annotated[int | None, typer.Option(help="Threads; 0 = all cores.")] = None,
    backend: Annotated[str | None, typer.Option(help="auto, cpu or cuda.")] = None,
    workers: Annotated[int | None, typer.Option(help="Workers of Ray; 0 = this process.")] = None,
    replicas: Annotated[
        int | None, typer.Option(help="Independent seeds; mean and standard error of all.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a result.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress, no table.")] = False,
) -> None:
    """Run a configuration and write its result as NetCDF."""
    from . import config, progress, simulation
    from .records import output

    overrides = list(set_ or [])
    overrides += [f"run.threads={threads}"] if threads is not None else []
    overrides += [f"run.backend={backend!r}"] if backend is not None else []
    overrides += [f"run.workers={workers}"] if workers is not None else []
    settings = config.load(file, overrides)
    path = out if out is not None else Path(settings.output.file)
    if output.same_file(path, file):
        raise InputError(f"output.file = {str(path)!r} is the configuration itself; choose another")
    if replicas is not None:
        from .commands.replicas import run_replicas

        _summary(run_replicas(settings, path, replicas, force, quiet), path, quiet)
        return
    with told(path, quiet), nullcontext() if quiet else progress.bar(console) as report:
        announce = None if quiet else announced
        ds = simulation.run_config(settings, path, report, announce, force)
    _summary(ds, path, quiet)


@app.command()
def resume(
    file: Annotated[Path, typer.Argument(help="Result of a run, NetCDF.")],
    until: Annotated[float | None, typer.Option(help="A later end, fm.")] = None,
    snapshot: Annotated[
        list[float] | None, typer.Option(help="Keep f at this time, too, fm; repeatable.")
    ] = None,
    threads: Annotated[int | None, typer.Option(help="Threads; 0 = all cores.")] = None,
    workers: Annotated[int | None, typer.Option(help="Workers of Ray; 0 = this process.")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress, no table.")] = False,
) -> None:
    """Go on with a run that was interrupted or killed, or beyond its end."""
    from . import progress, resuming
    from .commands.replicas import resume_replicas

    ds = resume_replicas(file, until, {"threads": threads, "workers": workers}, quiet)
    if ds is not None:
        _summary(ds, file, quiet)
        return
    with told(file, quiet), nullcontext() if quiet else progress.bar(console) as report:
        run = resuming.taken_up(
            file, until, threads=threads, workers=workers, snapshots=snapshot or ()
        )
        if not quiet:
            tell(f"going on from t = {run.state.time:g} fm to {run.stops.end:g} fm")
            tell(f"backend: {run.backend.words}")
        ds = run.go(report)
    _summary(ds, file, quiet)


@app.command()
def new(file: Annotated[Path, typer.Argument(help="File to create.")]) -> None:
    """Write a commented configuration to start from."""
    from .config import TEMPLATE

    if os.path.exists(file):
        raise InputError(f"{file} exists already; choose another name")
    try:
        file.write_text(TEMPLATE)
    except OSError as error:
        raise InputError(f"{file} cannot be written: {error.strerror}") from None
    tell(f"written: {file}   (start it: relboltz run {file})")


@app.command()
def plot(
    files: Annotated[list[Path], typer.Argument(help="Result, NetCDF; several are compared.")],
    out: Annotated[Path | None, typer.Option(help="Folder; F beside F.nc, or comparison.")] = None,
    animate: Annotated[
        Path | None, typer.Option(help="Write a film of a result in space instead: .gif or .mp4.")
    ] = None,
    quantity: Annotated[
        str | None, typer.Option(help="What the film shows; number. 'shear_stress xy': components.")
    ] = None,
    species: Annotated[str | None, typer.Option(help="Of which species, e.g. u,ubar.")] = None,
    fps: Annotated[float, typer.Option(help="Records a second, of a film.")] = 8.0,
) -> None:
    """Draw a result: spectra, numbers, energies, masses, temperature; profiles and maps.

    Several results are drawn into the same axes, with a table of their differences.
    """
    from .commands import drawing

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


@app.command()
def info(file: Annotated[Path | None, typer.Argument(help="Result, NetCDF.")] = None) -> None:
    """Tell about this installation, or about a result."""
    from . import tables
    from .records import checkpoint, output
    from .records.reserved import is_taken
    from .records.result import undamaged

    if file is None:
        with plain_warnings():
            console.print(tables.installation())
        delivered()
        return
    last = checkpoint.of_run(file)[-1:]
    if last and not file.exists():
        words = checkpoint.in_words(last[0])
        raise InputError(f"{file} is not there yet; {words} (relboltz resume {file})")
    ds = output.load(file)
    with undamaged(file):
        status = ds.attrs["status"]
        if status == "running" and not is_taken(file):
            status = f"stopped; go on with it: relboltz resume {file}"
        tell(f"{ds.attrs['title']}   ({status})")
        tell(f"backend: {ds.attrs.get('device', ds.attrs['backend'])}")
        for line in tables.load(ds.attrs):
            tell(line)
        console.print(tables.summary(ds))
        sizes = ", ".join(f"{name} {n}" for name, n in ds.sizes.items())
        tell(f"dimensions: {sizes}")
        for path in last:
            tell(f"last checkpoint: {checkpoint.in_words(path)}")
        for name in ("warnings", "configuration"):
            if ds.attrs[name]:
                tell(f"{name}:\n{ds.attrs[name]}")
    delivered()


@app.command()
def bench(
    backend: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    json_: Annotated[Path | None, typer.Option("--json", help="Write the figures here.")] = None,
    threads: Annotated[int, typer.Option(help="Threads; 0 = all cores.")] = 0,
) -> None:
    """Measure events per second; an event is one drawn sample, counted once per stage."""
    from . import benchmark, tables
    from .records import output

    if json_ is not None:
        output.check_writable(json_, "--json")
    if backend not in ("auto", "cpu", "cuda"):
        raise InputError(f"--backend {backend}: use auto, cpu or cuda")
    with plain_warnings():
        found = benchmark.measure(backend, threads, lambda text: errors.print(unmarked(text)))
    for table in tables.benchmark(found):
        console.print(table)
    console.print(f"importance pairs: {found['importance_gain']:.1f} times less variance x time")
    if json_ is not None:
        json_.write_text(json.dumps(found, indent=2) + "\n")
        tell(f"written: {json_}")
    else:
        delivered()


def _summary(ds: Any, path: Path, quiet: bool) -> None:
    """What a run came to."""
    from . import tables

    if not quiet:
        console.print(tables.summary(ds))
        tell(f"written: {path}   (plots: relboltz plot {path})")


app.command()(coefficients)
app.command()(validate)
app.command()(reproduce)
app.command()(converge)
app.command()(export)
app.command()(check)
app.command()(scan)
app.command()(watch)
app.command("list")(known)
app.command()(report)
