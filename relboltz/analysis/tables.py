"""Tables of the command line: announcement, estimate, summary, benchmark, installation."""

import contextlib
import importlib.metadata
import platform
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr
from rich.markup import escape
from rich.table import Table

from .. import __version__
from ..grid.phase_space import PhaseSpace
from ..util.text import unmarked, with_error
from . import verdict


def announcement(run: Any) -> Iterator[str]:
    """Yield lines on the model, the grid, the backend and the predicted final state."""
    model, grid, predicted = run.model, run.grid, run.known.predicted
    yield (
        f"{model.name}: {len(model.species)} species, "
        f"{verdict.count(len(model.processes), 'process')}, {nodes(grid)}"
    )
    if grid.sites > 1:
        yield f"space: {space(grid)}"
    yield f"backend: {run.backend.description}"
    if predicted.found:
        potentials = zip(model.names, predicted.chemical_potential, strict=True)
        mu = ", ".join(f"{value:.4f} ({name})" for name, value in potentials)
        yield f"predicted final state: T = {predicted.temperature:.4f} GeV, mu = {mu} GeV"


def nodes(grid: PhaseSpace) -> str:
    """Return the number of nodes along each axis and the half widths of the momentum grid."""
    cells = " x ".join(str(n) for n in grid.momentum_cells)
    widths = ", ".join(f"{w:g}" for w in grid.momentum_max)
    return f"{cells} nodes to ({widths}) GeV"


def space(grid: PhaseSpace) -> str:
    """Return space cells, their widths and boundaries by axis."""
    axes = zip("xyz", grid.space_cells, grid.space_spacing, grid.boundary, strict=True)
    return "; ".join(
        f"{axis}: {n} cells of {width:g} fm, {boundary}" if n > 1 else f"{axis}: homogeneous"
        for axis, n, width, boundary in axes
    )


def estimate(case: Any, found: Any) -> Table:
    """Return a table of the estimated cost of a run."""
    from ..run.progress import duration

    grid, known = case.grid, found.known
    nodes = " x ".join(str(n) for n in grid.momentum_cells)
    widths = ", ".join(f"{w:.3g}" for w in grid.momentum_max)
    steps = f"{found.steps:.0f}" + ("" if found.finished else ", if they stay as long as at first")
    rows = [
        ("grid", f"{nodes} nodes to ({widths}) GeV"),
        ("space", space(grid) if grid.sites > 1 else "homogeneous"),
        *([("expansion", str(grid.expansion))] if grid.expansion else []),
        ("steps, about", steps),
        ("time of a step", _seconds(found.seconds_per_step)),
        ("time of the run, about", duration(found.seconds)),
        ("memory", _size(found.memory)),
        *([("memory of the GPU", _size(found.device_memory))] if found.device_memory else []),
        ("output", f"{_size(found.file_size)} ({found.records} records, "
                   f"{verdict.count(found.snapshots, 'snapshot')} of f)"),
        ("checkpoints beside it", _size(found.checkpoint_size)),
    ]  # fmt: skip
    if known.predicted.found:
        rows.append(("predicted final temperature", f"{known.predicted.temperature:.4f} GeV"))
    table = Table("", "", title=unmarked(f"{case.model.name}, to {case.settings.time.end:g} fm"),
                  show_header=False)  # fmt: skip
    for row in rows:
        table.add_row(*map(unmarked, row))
    return table


def _seconds(value: float) -> str:
    return f"{1e3 * value:.3g} ms" if value < 1 else f"{value:.3g} s"


def _size(value: float) -> str:
    """Return a number of bytes in kB, MB, GB or TB."""
    for unit, size in (("kB", 1e3), ("MB", 1e6), ("GB", 1e9)):
        if value < 1000 * size:
            return f"{value / size:.3g} {unit}"
    return f"{value / 1e12:.3g} TB"


# --- transport coefficients ---------------------------------------------------------------------

COEFFICIENTS = {
    "shear_viscosity": "η", "shear_viscosity_axes": "η along axes (E_g)",
    "shear_viscosity_planes": "η between axes (T_2g)", "shear_viscosity_over_entropy": "η/s",
    "shear_relaxation_time": "τ of shear", "bulk_viscosity": "ζ",
    "bulk_viscosity_over_entropy": "ζ/s", "conductivity": "σ_el",
    "conductivity_over_temperature": "σ_el/T", "tagged_diffusion": "D, tagged",
    "tagged_velocity_relaxation_time": "τ of v, tagged",
    "tagged_momentum_relaxation_time": "τ of p, tagged", "tagged_drag": "drag, tagged",
}  # fmt: skip
"""Transport coefficients in the table, and their labels."""
COLUMNS = 3
"""Largest number of temperatures in one table."""
SAMPLED = "± is the standard error of the events drawn; trial functions and QCD itself have others"


def coefficients(ds: xr.Dataset) -> Iterator[Table]:
    """Yield tables of transport coefficients with errors, one column per temperature."""
    if "temperature" not in ds.dims:
        ds = ds.set_coords("temperature").expand_dims("temperature")
    for first in range(0, ds.sizes["temperature"], COLUMNS):
        some = ds.isel(temperature=slice(first, first + COLUMNS))
        table = Table("", title=unmarked(ds.attrs["title"]), caption=SAMPLED)
        for t in np.asarray(some.temperature).ravel():
            table.add_column(f"T = {t:.5g} GeV", justify="right")
        for row in _coefficient_rows(some):
            table.add_row(*row)
        yield table


def _coefficient_rows(ds: xr.Dataset) -> Iterator[list[str]]:
    for name, word in COEFFICIENTS.items():
        if name in ds and np.isfinite(ds[name]).any():  # no electric charge, no conductivity
            yield [_with_unit(word, ds[name]), *_with_errors(ds[name], ds[f"{name}_error"])]
    for charge in ds.charge.values.tolist():
        place = {"charge": charge, "charge2": charge}
        kappa, error = ds.diffusion.sel(place), ds.diffusion_error.sel(place)
        yield [_with_unit(f"κ of {charge}", ds.diffusion), *_with_errors(kappa, error)]
    for name in ("entropy", "pressure"):
        yield [_with_unit(name, ds[name]), *(f"{v:.5g}" for v in ds[name].values)]
    masses: dict[tuple[str, ...], list[str]] = {}
    for species in ds.species.values.tolist():
        values = tuple(f"{v:.4g}" for v in ds.mass.sel(species=species).values)
        masses.setdefault(values, []).append(species)
    for row, names in masses.items():
        description = names if len(names) < 4 else [*names[:2], "…", names[-1]]
        yield [_with_unit(f"mass of {', '.join(description)}", ds.mass), *row]


def _with_unit(description: str, values: xr.DataArray) -> str:
    unit = values.attrs["units"]
    return escape(description if unit == "1" else f"{description} [{unit}]")


def _with_errors(values: xr.DataArray, errors: xr.DataArray) -> list[str]:
    """Return values with one standard error each, in significant digits."""
    pairs = zip(values.values, errors.values, strict=True)
    return [with_error(float(value), float(error)) for value, error in pairs]


# --- a result -----------------------------------------------------------------------------------


def summary(ds: xr.Dataset) -> Table:
    """Return the table at the end of a run: drifts, and the final and the predicted state."""
    caption = verdict.SEEDS if "replicas" in ds.attrs else None
    table = Table("", title=unmarked(verdict.ending(ds)), caption=caption)
    lines = (tuple(map(unmarked, (r.description, r.value, r.predicted))) for r in verdict.rows(ds))
    return _filled(table, ("value", "predicted"), lines)


# --- a machine ----------------------------------------------------------------------------------


def benchmark(found: dict[str, Any]) -> Iterator[Table]:
    """Yield tables of events per second, milliseconds per step, and variance times time."""
    runs, case = found["runs"], ("model", "nodes", "pairs")
    cases = [(row["model"], f"{row['cells']}^3", row["pairs"]) for row in runs]
    columns = {"samples": ("samples", 1, ".0f"), "M events/s": ("events_per_second", 1e6, ".1f")}
    if found["backend"] == "cuda":
        columns["10^9 additions/s"] = ("additions_per_second", 1e9, ".0f")
        columns["part of bound"] = ("part_of_bound", 1, ".2f")
        columns["GiB"] = ("memory_gib", 1, ".2f")
    where = found.get("gpu", found["processor"])
    yield _right(
        f"events per second, {found['backend']} ({where}), {found['precision']}",
        (*case, *columns),
        (
            (*description, *(f"{row[key] / unit:{form}}" for key, unit, form in columns.values()))
            for description, row in zip(cases, runs, strict=True)
        ),
        "an event is one drawn sample, counted once for each of the two stages of a step",
    )
    times = [(row["ms_per_step"], *row["ms"].values()) for row in runs]
    yield _right(
        "milliseconds per step, and its parts",
        (*case, "step", "draw", "land", "deposit", "update"),
        ((*row, *(f"{v:.3f}" for v in ms)) for row, ms in zip(cases, times, strict=True)),
    )
    yield _right(
        escape("C[f] of the mixture: Sum Var(C) / Sum f^2 x seconds"),
        ("pairs", escape("variance [fm^-2]"), "seconds", "variance x time"),
        (
            (pairs, f"{row['variance']:.4g}", f"{row['seconds']:.4f}", f"{row['cost']:.4g}")
            for pairs, row in found["variance"].items()
        ),
    )


def _right(
    title: str, columns: Sequence[str], rows: Iterable[Sequence[str]], caption: str | None = None
) -> Table:
    """Return a right-aligned table with a title."""
    return _filled(Table(title=title, caption=caption), columns, rows)


def _filled(table: Table, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> Table:
    """Add right-aligned columns and rows to a table."""
    for name in columns:
        table.add_column(name, justify="right")
    for row in rows:
        table.add_row(*row)
    return table


def installation() -> Table:
    """Return a table of versions, cores, caches and missing parts."""
    from ..backends.cpu.threads import available_cores
    from ..backends.cuda import driver as cuda
    from ..util import cache
    from ..util.jit import cache_folder

    known = ("numpy", "numba", "xarray", "h5netcdf", "pydantic", "matplotlib")
    rows = {"Python": platform.python_version()}
    rows |= {name: importlib.metadata.version(name) for name in known}
    for name in ("ray", "mpi4py"):
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            rows[name] = importlib.metadata.version(name)
    rows |= {"cores": str(available_cores()), **cuda.parts()}
    if rows["numba-cuda"] == "missing":
        rows["for a GPU"] = escape(f"pip install 'relboltz[{cuda.extra()}]'")
    problem = cuda.trouble()
    if problem is None:
        unit, driver = cuda.device(), cuda.driver()
        capability = ".".join(str(n) for n in unit["capability"])
        memory = f"{unit['memory'] / 2**30:.0f} GiB"
        rows["GPU"] = f"{unit['name']}, {memory}, compute capability {capability}"
        if isinstance(driver, tuple):
            rows["driver"] = f"CUDA {driver[0]}.{driver[1]}"
    else:
        rows["GPU"] = f"none in use: {escape(problem)}"
    rows |= {
        "backend": "cpu" if problem else "cuda",
        "compiled code": escape(cache.state(cache_folder())),
    }
    return _filled(Table(title=f"relboltz {__version__}", show_header=False), (), rows.items())


def load(attributes: Mapping[str, Any]) -> list[str]:
    """Return lines on the busy and waiting time of workers, from attributes of a result."""
    if "worker_seconds" not in attributes:
        return []
    places = np.atleast_1d(attributes["worker_places"]).tolist()
    rows = zip(
        places, np.atleast_1d(attributes["worker_seconds"]),
        np.atleast_1d(attributes["worker_waiting"]), strict=True,
    )  # fmt: skip
    return [
        f"worker {k} ({place}): busy {seconds - waited:.1f} s, waiting for others {waited:.1f} s "
        f"({100 * waited / seconds if seconds else 0:.0f} %)"
        for k, (place, seconds, waited) in enumerate(rows)
    ]
