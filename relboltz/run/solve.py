"""solve(): from model, grid and initial state, or from a configuration, to a Dataset."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import tomli_w
import xarray as xr

from ..backends.cpu.threads import available_cores
from ..checks import accuracy, box, matter
from ..checks.edges import of_node_values
from ..checks.start import of_start
from ..config.settings import GridSettings, Settings, no_marginals, refuse
from ..grid.phase_space import PhaseSpace
from ..initial import FromFile, NodeValues, Shape, Start, evaluate, file_grid, starting_states
from ..initial.occupation import named
from ..io import output
from ..model.model import Model, check_model
from ..parallel.mpi import together
from ..parallel.ray import resolve
from ..util.errors import InputError
from ..util.gc_pause import resting
from ..util.launcher import started
from ..util.text import shown
from .input_file import Config
from .progress import Report, bar, stage
from .resume import recipe_of_config, recipe_of_model
from .runner import Run, RunInfo


@together(lambda model, *_, **__: lambda recipe: model)
def solve(
    model: Model,
    grid: PhaseSpace | int | Sequence[int],
    initial: Start,
    *,
    end: float,
    file: str | Path | None = None,
    force: bool = False,
    progress: bool | Report = True,
    replicas: int | None = None,
    **options: Any,
) -> xr.Dataset:
    """Solve the Boltzmann equation from ``start`` (0 by default) to ``end`` [fm].

    Parameters
    ----------
    model : such as ``qcd(alpha_s=0.3)``, ``gluons(0.3)``, ``quarks(0.3)`` or your own Model
    grid : a PhaseSpace, or numbers of cells; the box is then chosen automatically
    initial : f by species or group: shapes of ``relboltz.initial``, tables as in a configuration,
        functions of (px, py, pz) in GeV, or of (x, y, z, px, py, pz) with positions in fm, or node
        values (px, py, pz), in space (x, y, z, px, py, pz); or one such array, species first
    end : end time [fm]
    file : NetCDF file that is updated during the run; ``resume`` continues from it
    force : replace an existing result in the file
    progress : a bar on a terminal or in a notebook and occasional lines in a log (True), nothing
        (False), or a function that is called with a ``relboltz.run.progress.RunProgress`` after
        every step
    replicas : number of independent runs with different seeds, which are averaged; every
        ``*_error`` is the standard error of the mean. The runs are kept in F.replicas beside
        ``file``
    **options : keys of [collisions], [time], [run] and [output]: samples, seed, projection,
        kinematics, symmetrical, pair_sampling, start, step, tolerance, regrid_times, backend,
        precision, threads, workers, address, gpus_per_worker, every, snapshots, marginals,
        checkpoint_every

    Returns
    -------
    xarray.Dataset with numbers, energies, masses, spectra, snapshots of f, the predicted
    equilibrium, ..., all with units

    Raises
    ------
    InputError : before any long computation starts
    RunError, Interrupted : the computed part is in their ``dataset``, and in ``file`` if given
    AccuracyWarning : if a filter turns warnings into errors, the first one, after everything is
        computed and written; the result is in its ``dataset``
    """
    check_model(model)
    path = None if file is None else named_file(file)
    remedy = "choose another name, use force=True to replace it, or"
    claim = partial(output.check_free, path, force, remedy)
    if not isinstance(progress, bool):
        if not callable(progress):
            raise InputError(f"progress = {shown(progress)}: use True, False or a function")
        report: Any = nullcontext(progress)
    else:
        report = bar() if progress else nullcontext()
    if replicas is not None:
        from ..studies.replicas import check_count, replicated
        from .setup import Case

        check_count(replicas)
        claim()
        case = Case.of_options(model, grid, initial, {"end": end, **options})
        with report as told:
            return replicated(case, replicas, path, told)
    settings = settings_of(grid, {"end": end, **options})
    states = starting_states(initial, model)
    with report as told:
        with resting():
            claim()
            run = prepare(
                model, states, grid, settings, path, RunInfo("", "", recipe_of_model(model), claim)
            )
        return run.go(told)


def named_file(file: Any) -> Path:
    """Return the path of a file given by the user."""
    if not isinstance(file, str | Path):
        raise InputError(f"file = {shown(file)}: use the name of a file")
    return Path(file)


def settings_of(grid: Any, options: Mapping[str, Any]) -> Settings:
    """Return the settings for the options of ``solve``; in space, snapshots are optional."""
    in_space = isinstance(grid, PhaseSpace) and grid.sites > 1
    settings = Settings.from_options(**({"snapshots": []} if in_space else {}) | dict(options))
    refuse(() if in_space else no_marginals(settings.output.marginals))
    return settings


def run_config(
    config: Config,
    file: Path | None = None,
    progress: Report | None = None,
    announce: Callable[[Run], None] | None = None,
    force: bool = False,
) -> xr.Dataset:
    """Run a configuration and write its output file; ``announce`` gets the run before it starts.

    force : replace an existing result in the file
    """
    path = file if file is not None else Path(config.output.file)
    remedy = "choose another name (--out), replace it (--force), or"
    claim = partial(output.check_free, path, force, remedy)
    claim()
    states = config.build_initial()
    for name, state in states.items():
        if isinstance(state, FromFile) and output.same_file(state.path, path):
            raise InputError(
                f"output.file = {str(path)!r} is what initial.{name} starts from; choose another"
            )
    with resting():
        model = config.build_model()
        about = RunInfo(config.title, "", recipe_of_config(config), claim)
        run = prepare(model, states, config.grid, config, path, about)
    if announce is not None:
        announce(run)
    return run.go(progress)


Request = PhaseSpace | GridSettings | int | Sequence[int]
"""A grid, grid settings, or numbers of cells."""


def prepare(
    model: Model,
    states: Mapping[str, Shape],
    request: Request,
    settings: Settings,
    file: Path | None,
    about: RunInfo | None = None,
) -> Run:
    """Prepare a run: backend, output file, grid and initial f."""
    grid, backend, precision = planned(model, states, request, settings, file)
    nodes = f"{len(model.species)} species at {grid.size} nodes"
    stage(f"initial state: {nodes}" + (f" of {grid.sites} space cells" if grid.sites > 1 else ""))
    f = evaluate(states, grid, model)
    shapes = {name: repr(state) for name, state in states.items()}
    described: dict[str, Any] = {"model": model.describe(), "grid": {}, "initial": shapes}
    described |= settings.to_dict()  # a configuration has its own text
    described["grid"] |= GridSettings.describe(grid)  # values of "auto" and defaults
    described["run"] |= {"backend": backend, "precision": precision}
    described["output"]["file"] = "" if file is None else str(file)
    about = replace(about or RunInfo(), configuration=_written(described))
    run = Run(model, grid, f, settings, file, about)
    accuracy.warn(of_start(grid, model, states, f), run.state.said)
    sites = f.reshape(-1, len(model.species), grid.size)
    accuracy.warn(of_node_values(grid, model, states, sites), run.state.said)
    return run


def _written(described: Mapping[str, Any]) -> str:
    """Return a configuration as TOML."""
    try:
        return tomli_w.dumps(described)
    except (TypeError, ValueError, RecursionError) as error:  # arguments of user models
        raise InputError(f"[model] or [initial] cannot be written as TOML: {error}") from error


def planned(
    model: Model,
    states: Mapping[str, Shape],
    request: Request,
    settings: Settings,
    file: Path | None,
) -> tuple[PhaseSpace, str, str]:
    """Return grid, backend and precision, after checks of the output file and memory."""
    backend, precision = resolve(settings.run)
    if file is not None:
        output.check_writable(file)
    alone = not settings.run.workers and not started()  # workers check their own hosts
    threads, there = settings.run.threads or available_cores(), backend == "cpu" and alone
    room = (settings.collisions.samples if there else 0, threads if there else 1)
    matter.check_host_memory(_outline(request), model, *room)  # before the box is chosen
    grid = grid_of(request, model, states)
    matter.check_host_memory(grid, model, *room)
    return grid, backend, precision


def _outline(request: Request) -> PhaseSpace:
    """Return the requested grid with a box of arbitrary width."""
    if isinstance(request, PhaseSpace):
        return request
    if request is None:
        raise InputError(
            "grid = None: give a PhaseSpace, or a number of cells for an automatic box"
        )
    if isinstance(request, GridSettings):
        return request.phase_space(momentum_max=1.0)
    return PhaseSpace(request, 1.0)


def grid_of(request: Request, model: Model, states: Mapping[str, Shape]) -> PhaseSpace:
    """Return the requested grid; an "auto" box is chosen for the model and its initial state."""
    if isinstance(request, PhaseSpace):
        return request
    if not isinstance(request, GridSettings):
        if any(isinstance(state, NodeValues) for state in states.values()):
            raise InputError("grid: an initial state given as an array needs a PhaseSpace")
        stage("automatic box for initial state and equilibrium")
        return box.automatic_grid(request, model, states)
    cells: Any = request.momentum_cells if "momentum_cells" in request.model_fields_set else None
    if request.momentum_max == "auto":
        stage("automatic box for initial state and equilibrium")
        space = request.phase_space(momentum_max=1.0)
        found = box.automatic_grid(cells, model, states, space)
        from_file = any(isinstance(state, FromFile) for state in states.values())
        if request.expansion == "bjorken" and not from_file:
            found = box.with_room(found, model, cells is not None)
        return request.phase_space(
            momentum_cells=found.momentum_cells, momentum_max=found.momentum_max
        )
    if cells is None:
        cells = box.default_cells(model)
        sources = [(name, s.path) for name, s in states.items() if isinstance(s, FromFile)]
        for name, path in sources[:1]:
            with named(name):
                cells = file_grid(path).momentum_cells
    return request.phase_space(momentum_cells=cells)
