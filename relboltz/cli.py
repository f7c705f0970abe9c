"""The command line: relboltz run, new, plot, info, bench."""

from __future__ import annotations

import json
import math
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
import xarray as xr
from rich.console import Console
from rich.table import Table

from . import __version__
from .errors import AccuracyWarning, BackendNotice, InputError, Interrupted, RelboltzError
from .grid import PhaseSpace

app = typer.Typer(
    help="The relativistic Boltzmann equation of quark-gluon matter.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
console = Console(highlight=False)
errors = Console(stderr=True, highlight=False)


def main() -> None:
    """Entry point: turns errors into messages and exit codes, never into tracebacks."""
    try:
        app()
    except InputError as error:
        errors.print(f"[bold red]error:[/] {_escape(str(error))}", soft_wrap=True)
        sys.exit(2)
    except RelboltzError as error:
        errors.print(f"[bold red]stopped:[/] {_escape(str(error))}", soft_wrap=True)
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:
        sys.exit(1)


def _escape(text: str) -> str:
    return text.replace("[", r"\[")


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
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress, no table.")] = False,
) -> None:
    """Run a configuration and write its result as NetCDF."""
    from . import config, progress, simulation

    overrides = list(set_ or [])
    overrides += [f"run.threads={threads}"] if threads is not None else []
    overrides += [f"run.backend={backend!r}"] if backend is not None else []
    settings = config.load(file, overrides)
    path = out if out is not None else Path(settings.output.file)
    if path.resolve() == file.resolve():
        raise InputError(f"output.file = {str(path)!r} is the configuration itself; choose another")
    with _plain_warnings(quiet), nullcontext() if quiet else progress.bar(console) as report:
        try:
            ds = simulation.run_config(settings, path, report, None if quiet else _announce)
        except Interrupted as error:
            errors.print(f"[yellow]{_escape(str(error))}[/]; everything so far is in {path}")
            raise typer.Exit(128 + error.signal) from None
    if not quiet:
        console.print(summary(ds))
        console.print(f"written: {path}   (plots: relboltz plot {path})", soft_wrap=True)


@app.command()
def new(file: Annotated[Path, typer.Argument(help="File to create.")]) -> None:
    """Write a commented configuration to start from."""
    from .config import TEMPLATE

    if file.exists():
        raise InputError(f"{file} exists already; choose another name")
    try:
        file.write_text(TEMPLATE)
    except OSError as error:
        raise InputError(f"{file} cannot be written: {error.strerror}") from None
    console.print(f"written: {file}   (start it: relboltz run {file})", soft_wrap=True)


@app.command()
def plot(
    file: Annotated[Path, typer.Argument(help="Result, NetCDF.")],
    out: Annotated[Path | None, typer.Option(help="Folder for the pictures.")] = None,
    animate: Annotated[
        Path | None, typer.Option(help="Write a film of a result in space instead: .gif or .mp4.")
    ] = None,
    quantity: Annotated[str | None, typer.Option(help="What the film shows; number.")] = None,
    species: Annotated[str | None, typer.Option(help="Of which species, e.g. u,ubar.")] = None,
) -> None:
    """Draw a result: spectra, numbers, energies, masses, temperature; profiles and maps."""
    from . import plots
    from .records import output

    ds = output.load(file)
    if animate is not None:
        output.check_writable(animate, "--animate")
        names = species.split(",") if species else None
        plots.animation(ds, animate, quantity or "number", names)
        console.print(f"written: {animate}", soft_wrap=True)
        return
    for key, value in (("--quantity", quantity), ("--species", species)):
        if value is not None:
            raise InputError(f"{key} {value}: is for films; add --animate FILE.gif")
    folder = out if out is not None else file.with_suffix("")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"--out {folder}: cannot be created: {error.strerror}") from None
    for path in plots.save_all(ds, folder):
        console.print(f"written: {path}", soft_wrap=True)


@app.command()
def info(
    file: Annotated[Path | None, typer.Argument(help="Result, NetCDF.")] = None,
) -> None:
    """Tell about this installation, or about a result."""
    from .records import output

    if file is None:
        console.print(_installation())
        return
    ds = output.load(file)
    console.print(_escape(f"{ds.attrs['title']}   ({ds.attrs['status']})"), soft_wrap=True)
    console.print(f"backend: {ds.attrs.get('device', ds.attrs['backend'])}", soft_wrap=True)
    console.print(summary(ds))
    sizes = ", ".join(f"{name} {n}" for name, n in ds.sizes.items())
    console.print(f"dimensions: {sizes}", soft_wrap=True)
    if ds.attrs["warnings"]:
        console.print(f"warnings:\n{_escape(ds.attrs['warnings'])}", soft_wrap=True)
    if ds.attrs["configuration"]:
        console.print(f"configuration:\n{_escape(ds.attrs['configuration'])}", soft_wrap=True)


@app.command()
def bench(
    backend: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    json_: Annotated[Path | None, typer.Option("--json", help="Write the figures here.")] = None,
    threads: Annotated[int, typer.Option(help="Threads; 0 = all cores.")] = 0,
) -> None:
    """Measure events per second; an event is one drawn sample, counted once per stage."""
    from . import benchmark
    from .records import output

    if json_ is not None:
        output.check_writable(json_, "--json")
    if backend not in ("auto", "cpu", "cuda"):
        raise InputError(f"--backend {backend}: use auto, cpu or cuda")
    with _plain_warnings():
        rows = benchmark.measure(backend, threads, lambda text: errors.print(_escape(text)))
    _print_benchmark(rows)
    if json_ is not None:
        json_.write_text(json.dumps(rows, indent=2) + "\n")
        console.print(f"written: {json_}", soft_wrap=True)


def _print_benchmark(rows: dict) -> None:
    """Tables of what was measured."""
    where = rows.get("gpu", rows["processor"])
    gpu = rows["backend"] == "cuda"
    table = Table(
        title=f"events per second, {rows['backend']} ({where}), {rows['precision']}",
        caption="an event is one drawn sample, counted once for each of the two stages of a step",
    )
    columns = ["model", "nodes", "pairs", "samples", "M events/s"]
    columns += ["10^9 additions/s", "part of bound", "GiB"] if gpu else []
    for name in columns:
        table.add_column(name, justify="right")
    for row in rows["runs"]:
        cells = [
            row["model"], f"{row['cells']}^3", row["pairs"], str(row["samples"]),
            f"{row['events_per_second'] / 1e6:.1f}",
        ]  # fmt: skip
        if gpu:
            cells += [
                f"{row['additions_per_second'] / 1e9:.0f}", f"{row['part_of_bound']:.2f}",
                f"{row['memory_gib']:.2f}",
            ]  # fmt: skip
        table.add_row(*cells)
    console.print(table)
    table = Table(title="milliseconds per step, and its parts")
    for name in ("model", "nodes", "pairs", "step", "draw", "land", "deposit", "update"):
        table.add_column(name, justify="right")
    for row in rows["runs"]:
        times = (row["ms_per_step"], *row["ms"].values())
        numbers = (f"{value:.3f}" for value in times)
        table.add_row(row["model"], f"{row['cells']}^3", row["pairs"], *numbers)
    console.print(table)
    table = Table(title=_escape("C[f] of the mixture: Sum Var(C) / Sum f^2 x seconds"))
    for name in ("pairs", _escape("variance [fm^-2]"), "seconds", "variance x time"):
        table.add_column(name, justify="right")
    for pairs, row in rows["variance"].items():
        table.add_row(
            pairs, f"{row['variance']:.4g}", f"{row['seconds']:.4f}", f"{row['cost']:.4g}"
        )
    console.print(table)
    console.print(f"importance pairs: {rows['importance_gain']:.1f} times less variance x time")


# --- what is shown ------------------------------------------------------------------------------


def _announce(run: object) -> None:
    """What is about to be solved, and where it should end."""
    model, grid, predicted = run.model, run.grid, run.predicted  # type: ignore[attr-defined]
    cells = " x ".join(str(n) for n in grid.momentum_cells)
    widths = ", ".join(f"{w:g}" for w in grid.momentum_max)
    console.print(
        f"{model.name}: {len(model.species)} species, {_count(len(model.processes), 'process')}, "
        f"{cells} nodes to ({widths}) GeV"
    )
    if grid.sites > 1:
        console.print(f"space: {_space(grid)}", soft_wrap=True)
    console.print(f"backend: {run.backend.words}")  # type: ignore[attr-defined]
    if predicted.found:
        mu = ", ".join(
            f"{value:.4f} ({name})"
            for name, value in zip(model.names, predicted.chemical_potential, strict=True)
        )
        console.print(
            f"predicted final state: T = {predicted.temperature:.4f} GeV, mu = {mu} GeV",
            soft_wrap=True,
        )


def _space(grid: PhaseSpace) -> str:
    """Cells, their widths and boundaries by axis."""
    return "; ".join(
        f"{axis}: {n} cells of {width:g} fm, {boundary}" if n > 1 else f"{axis}: homogeneous"
        for axis, n, width, boundary in zip(
            "xyz", grid.space_cells, grid.space_spacing, grid.boundary, strict=True
        )
    )


def _count(number: int, word: str) -> str:
    """1 process, 34 processes, 2 threads."""
    plural = word + ("es" if word.endswith("s") else "s")
    return f"{number} {word if number == 1 else plural}"


def summary(ds: xr.Dataset) -> Table:
    """The short table at the end of a run: drifts, and the final state against the predicted."""
    words = f"t = {float(ds.time[-1]):g} fm"
    if "steps" in ds.attrs:  # not while it runs
        words += f", {_count(ds.attrs['steps'], 'step')}, {ds.attrs['wall_seconds']:.1f} s"
    table = Table(title=words, show_header=True)
    for name, side in (("", "left"), ("value", "right"), ("predicted", "right")):
        table.add_column(name, justify=side)  # type: ignore[arg-type]
    (_space_rows if "x" in ds.number.dims else _rows)(table, ds)
    rows = {"collisions without a place in the box": ds.null_weight[-1]}
    if "box_loss" in ds:  # not in older files
        rows["equilibrium collisions beyond the box"] = ds.box_loss
        rows["relaxation beyond the box"] = ds.box_loss_relaxation
    for words, part in rows.items():
        lost = 100 * float(part)
        table.add_row(words, "unknown" if math.isnan(lost) else f"{lost:.1f} %", "")
    return table


def _rows(table: Table, ds: xr.Dataset) -> None:
    """A homogeneous result."""
    _conserved(table, ds, with_momentum=True)
    _distance(table, ds)
    table.add_row(r"entropy \[fm^-3]", _number(ds.entropy[-1]), _number(ds.equilibrium_entropy))
    table.add_row("temperature [GeV]", _number(ds.temperature[-1]),
                  _number(ds.equilibrium_temperature))  # fmt: skip
    for rows in _sharing_rows(ds):
        name = " ".join(str(n) for n in ds.species.values[rows])
        first = rows[0]
        table.add_row(f"mu of {name} [GeV]", _number(ds.chemical_potential[-1, first]),
                      _number(ds.equilibrium_chemical_potential[first]))  # fmt: skip
        table.add_row(f"m^2 of {name} [GeV^2]", _number(ds.mass_squared[-1, first]),
                      _number(ds.equilibrium_mass_squared[first]))  # fmt: skip
    if np.abs(ds.momentum_drift[0]).max() or float(np.abs(ds.velocity[0]).max()) > 1e-9:
        for i, axis in enumerate(ds.axis.values):
            table.add_row(f"velocity {axis}", _number(ds.velocity[-1, i]),
                          _number(ds.equilibrium_velocity[i]))  # fmt: skip
    condensate = float(ds.condensate_fraction)
    if condensate > 0:
        table.add_row("condensate, part of all particles", "", f"{condensate:.3f}")
    table.add_row("T of the same energy at mu = 0 [GeV]", "",
                  _number(ds.attrs["temperature_at_zero_chemical_potential"]))  # fmt: skip


def _conserved(table: Table, ds: xr.Dataset, with_momentum: bool) -> None:
    """Changes of charges, momentum and total energy."""
    total = float(ds.number[0].sum())
    for i, name in enumerate(ds.charge.values):
        change = float(ds.charge_density[-1, i] - ds.charge_density[0, i]) / total
        table.add_row(f"change of {name}", _exact(ds.charge_drift[-1, i], change), "0")
    if with_momentum:
        change = float(np.abs(ds.momentum[-1] - ds.momentum[0]).max() / ds.energy_kinetic[0])
        worst = np.abs(ds.momentum_drift[-1]).max()
        table.add_row("change of momentum", _exact(worst, change), "0")
    energy = ds.energy_total.values
    table.add_row("change of total energy, relative", f"{energy[-1] / energy[0] - 1:.1e}", "0")


def _distance(table: Table, ds: xr.Dataset) -> None:
    """How far equilibrium is."""
    distance = 100 * float(ds.equilibrium_distance[-1])
    text = "unknown" if math.isnan(distance) else f"{distance:.2g} %"
    table.add_row("particles not yet in equilibrium", text, "0")


def _space_rows(table: Table, ds: xr.Dataset) -> None:
    """A result in space: averages over the box, what left, and how even the density is."""
    from .records.result import box

    walls, mean = _walls(ds), box(ds, left=True)
    steady = np.ptp(ds.mass_squared.values, axis=(0, 2, 3, 4)).max() == 0
    _conserved(table, mean, with_momentum=walls <= {"periodic"} and bool(steady))
    density, closed = ds.number.sum("species"), "open" not in walls
    for i, when in (0, "start"), (-1, "end"):
        spread = float(density[i].std() / density[i].mean())
        name = f"spread of the density over the box, relative, {when}"
        table.add_row(name, f"{spread:.2g}", "0" if i and closed else "")
    total = float(mean.number[0].sum())
    left, refused = (float(ds[name][-1].sum()) for name in ("left_number", "refused_number"))
    if not closed:
        table.add_row("particles that left the box", f"{100 * left / total:.2g} %", "")
    if refused > 0:
        table.add_row("particles refused at the edge of p", f"{100 * refused / total:.2g} %", "")
    if closed:
        _distance(table, ds)
    table.add_row(r"mean entropy \[fm^-3]", _number(mean.entropy[-1]),
                  _number(ds.equilibrium_entropy))  # fmt: skip
    table.add_row("mean temperature [GeV]", _number(mean.temperature[-1]),
                  _number(ds.equilibrium_temperature))  # fmt: skip


def _walls(ds: xr.Dataset) -> set[str]:
    """Boundaries of the directions with more than one cell."""
    kinds = zip(ds.attrs["boundary"], "xyz", strict=True)
    return {str(kind) for kind, axis in kinds if ds.sizes[axis] > 1}


def _exact(quanta: object, change: float) -> str:
    """Exactly 0 in integers, or the relative change."""
    return "0 (exact)" if float(quanta) == 0 else f"{change:.1e}"  # type: ignore[arg-type]


def _number(value: object) -> str:
    number = float(value)  # type: ignore[arg-type]
    return "none" if math.isnan(number) else f"{round(number, 4) + 0.0:.4f}"


def _sharing_rows(ds: xr.Dataset) -> list[list[int]]:
    """Species that end with the same mu and mass, to three digits, share a row."""
    groups: dict[tuple, list[int]] = {}
    for i in range(ds.sizes["species"]):
        values = (
            ds.chemical_potential[-1, i], ds.mass_squared[-1, i],
            ds.equilibrium_chemical_potential[i], ds.statistics[i],
        )  # fmt: skip
        groups.setdefault(tuple(f"{float(v):.3f}" for v in values), []).append(i)
    return list(groups.values())


def _installation() -> Table:
    """Versions, cores, caches, and what is missing."""
    import importlib.metadata
    import platform

    from .backends.cpu.threads import available_cores
    from .backends.cuda import driver as cuda_engine
    from .compiling import cache_folder

    table = Table(title=f"relboltz {__version__}", show_header=False)
    table.add_row("Python", platform.python_version())
    for name in ("numpy", "numba", "xarray", "h5netcdf", "pydantic", "matplotlib"):
        table.add_row(name, importlib.metadata.version(name))
    table.add_row("cores", str(available_cores()))
    for name, version in cuda_engine.parts().items():
        table.add_row(name, version)
    if cuda_engine.parts()["numba-cuda"] == "missing":
        table.add_row("for a GPU", _escape(f"pip install 'relboltz[{cuda_engine.extra()}]'"))
    problem = cuda_engine.trouble()
    if problem is None:
        unit = cuda_engine.device()
        capability = ".".join(str(n) for n in unit["capability"])
        memory = f"{unit['memory'] / 2**30:.0f} GiB"
        table.add_row("GPU", f"{unit['name']}, {memory}, compute capability {capability}")
        driver = cuda_engine.driver()
        if isinstance(driver, tuple):
            table.add_row("driver", f"CUDA {driver[0]}.{driver[1]}")
    else:
        table.add_row("GPU", f"none in use: {_escape(problem)}")
    table.add_row("backend", "cpu" if problem else "cuda")
    table.add_row("compiled code", str(cache_folder()))
    return table


@contextmanager
def _plain_warnings(quiet: bool = False) -> Iterator[None]:
    """Accuracy warnings and notes as one line each, on standard error; quiet: no notes."""
    with warnings.catch_warnings():
        warnings.simplefilter("always", AccuracyWarning)
        warnings.simplefilter("ignore" if quiet else "always", BackendNotice)

        def show(message, category, filename, lineno, file=None, line=None) -> None:
            label = "note" if issubclass(category, BackendNotice) else "warning"
            print(f"{label}: {message}", file=sys.stderr)  # a running bar makes room for it

        warnings.showwarning = show
        yield
