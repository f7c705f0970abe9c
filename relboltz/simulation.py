"""solve(): from a model, a grid and a start to a Dataset."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import tomli_w
import xarray as xr

from .backends import resolve
from .checks import box, matter
from .config import Config, Settings, no_marginals
from .errors import InputError
from .grid import PhaseSpace
from .initial import start as initial
from .initial.start import NodeValues, Shape, Start, evaluate, starting_states
from .model import Model
from .progress import Report, bar
from .records import output
from .run import Run


def solve(
    model: Model,
    grid: PhaseSpace | int | Sequence[int],
    initial: Start,
    *,
    end: float,
    file: str | Path | None = None,
    progress: bool | Report = True,
    **options: Any,
) -> xr.Dataset:
    """Solve the Boltzmann equation from t = 0 to ``end`` [fm].

    Parameters
    ----------
    model : such as ``qcd(alpha_s=0.3)``, ``gluons(0.3)``, ``quarks(0.3)`` or your own Model
    grid : a PhaseSpace; or numbers of cells, for a box that is chosen automatically
    initial : f by species or group: shapes of ``relboltz.initial``, tables as in a configuration,
        functions of (px, py, pz) in GeV, or of (x, y, z, px, py, pz) with the place in fm, or node
        values (px, py, pz), in space (x, y, z, px, py, pz); or one such array, species first
    end : last time [fm]
    file : NetCDF file to keep up to date while running
    progress : a bar where somebody watches (True), none (False), or a function that is called
        with a ``relboltz.progress.Moment`` after every step
    **options : keys of [collisions], [time], [run] and [output]: samples, seed, projection,
        sampling, symmetrical, pairs, step, tolerance, backend, precision, threads, every,
        snapshots, marginals

    Returns
    -------
    xarray.Dataset with numbers, energies, masses, spectra, snapshots of f, the predicted
    equilibrium, ... all with units

    Raises
    ------
    InputError : before any long work starts
    RunError, Interrupted : what was computed is in their ``dataset``, and in ``file`` if given
    """
    if isinstance(grid, PhaseSpace) and grid.sites > 1:
        options.setdefault("snapshots", [])  # full snapshots on request only
    settings = Settings.from_options(end=end, **options)
    problems = [] if isinstance(grid, PhaseSpace) and grid.sites > 1 else no_marginals(settings)
    if problems:
        raise InputError("\n".join(problems))
    resolve(settings.run.backend, settings.run.precision)
    if file is not None:
        output.check_writable(Path(file))
    states = starting_states(initial, model)
    if grid is None:
        raise InputError(
            "grid = None: give a PhaseSpace, or a number of cells for an automatic box"
        )
    if not isinstance(grid, PhaseSpace):
        if any(isinstance(state, NodeValues) for state in states.values()):
            raise InputError("grid: an initial state given as an array needs a PhaseSpace")
        grid = box.automatic_grid(grid, model, states)
    matter.check_host_memory(grid, model)
    f = evaluate(states, grid, model)
    path = Path(file) if file is not None else None
    run = Run(model, grid, f, settings, path, "", _description(model, grid, states, settings, path))
    if not isinstance(progress, bool):
        return run.go(progress)
    with bar() if progress else nullcontext() as report:
        return run.go(report)


def _description(
    model: Model,
    grid: PhaseSpace,
    states: Mapping[str, Shape],
    settings: Settings,
    file: Path | None,
) -> str:
    """What was given to solve(), as TOML."""
    data = settings.settings_dict()
    data["run"] |= run_dict(settings)
    data["output"]["file"] = "" if file is None else str(file)
    return tomli_w.dumps(
        {
            "model": model.describe(),
            "grid": grid_dict(grid),
            "initial": {name: repr(state) for name, state in states.items()},
            **data,
        }
    )


def grid_dict(grid: PhaseSpace) -> dict[str, Any]:
    """A grid as the keys of [grid]."""
    momentum = {
        "momentum_cells": list(grid.momentum_cells),
        "momentum_max": list(grid.momentum_max),
    }
    if grid.sites == 1:
        return momentum
    return momentum | {
        "momentum_boundary": grid.momentum_boundary,
        "space_cells": list(grid.space_cells),
        "space_max": list(grid.space_max),
        "boundary": list(grid.boundary),
    }


def run_dict(settings: Settings) -> dict[str, str]:
    """Backend and precision as keys of [run]: what "auto" came to on this machine."""
    backend, precision = resolve(settings.run.backend, settings.run.precision)
    return {"backend": backend, "precision": precision}


def run_config(
    config: Config,
    file: Path | None = None,
    progress: Report | None = None,
    announce: Callable[[Run], None] | None = None,
) -> xr.Dataset:
    """Run a configuration and write its output file; ``announce`` sees the run before it starts."""
    path = file if file is not None else Path(config.output.file)
    resolve(config.run.backend, config.run.precision)
    output.check_writable(path)
    model, shapes = config.build_model(), config.build_initial()
    files = {n: Path(s.path) for n, s in shapes.items() if isinstance(s, initial.FromFile)}
    for name, source in files.items():
        if source.resolve() == path.resolve():
            raise InputError(
                f"output.file = {str(path)!r} is what initial.{name} starts from; choose another"
            )
    chosen = "momentum_cells" in config.grid.model_fields_set
    cells: Any = config.grid.momentum_cells if chosen else None
    if cells is None and config.grid.momentum_max != "auto":
        sources = [initial.file_grid(source).momentum_cells for source in files.values()]
        cells = sources[0] if sources else box.default_cells(model)
    if config.grid.momentum_max == "auto":
        widths = box.automatic_grid(cells, model, shapes, config.grid.phase_space(1, 1.0))
        grid = config.grid.phase_space(widths.momentum_cells, widths.momentum_max)
    else:
        grid = config.grid.phase_space(cells, config.grid.momentum_max)
    matter.check_host_memory(grid, model)
    f = initial.evaluate(shapes, grid, model)
    data = config.to_dict()
    data["grid"] |= grid_dict(grid)  # what "auto" and defaults came to
    data["run"] |= run_dict(config)
    data["output"]["file"] = str(path)
    run = Run(model, grid, f, config, path, config.title, tomli_w.dumps(data))
    if announce is not None:
        announce(run)
    return run.go(progress)
