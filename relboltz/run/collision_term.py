"""collision_term(): C[f] of any state, with its statistical error."""

from typing import Any

import numpy as np
import xarray as xr

from .. import initial
from ..backends import estimator
from ..backends.cpu.masses import coupling_integrals
from ..checks import poles
from ..config.settings import Settings, refuse, short_axes
from ..events.estimates import Estimates, standard_error
from ..grid.phase_space import PhaseSpace
from ..io import output
from ..io.observables import collision_rates
from ..io.quantities import QUANTITIES
from ..model.model import Model
from ..thermodynamics.conserved import running
from ..util.arrays import Array
from ..util.errors import InputError

BATCHES = 8
"""Default number of independent estimates, from which the error follows."""
COLLISIONS = "collisions per volume and time"


def collision_term(
    model: Model,
    grid: PhaseSpace,
    f: initial.Start,
    *,
    batches: int = BATCHES,
    mass_squared: Array | None = None,
    **options: Any,
) -> xr.Dataset:
    """Compute C[f] of every species at every node: df/dt by collisions [fm^-1].

    Parameters
    ----------
    model, grid : species and processes, and the phase-space grid
    f : as in ``solve``: node values (species, nx, ny, nz), or arrays, shapes, functions by species
    batches : independent estimates, each with ``samples`` events per node and process
    mass_squared : masses to use [GeV^2]; solved self-consistently by default
    **options : samples, seed, pair_sampling, projection, kinematics, symmetrical, threads, backend,
        precision

    Returns
    -------
    xarray.Dataset with ``collision_term``, ``gain``, ``loss`` and the standard ``error`` of
    collision_term (species, px, py, pz) [fm^-1]; ``rate``, ``rate_reverse`` and their standard
    errors ``rate_error``, ``rate_reverse_error`` (process) [fm^-4]; ``negative_weight`` (process)
    and ``null_weight``. Rates, gain and loss count every collision once; where a coarse grid
    increases the weight of events of light particles, the additional change is included in gain or
    loss; it vanishes in equilibrium. Errors are the scatter of ``batches`` estimates; at a node
    reached by few events the error is itself uncertain, which more batches or samples improve
    """
    if not isinstance(batches, int) or batches < 2:
        raise InputError(f"batches = {batches!r}: use a whole number, at least 2 for an error")
    if not isinstance(grid, PhaseSpace):
        raise InputError(f"grid = {grid!r}: collision_term needs a PhaseSpace(cells, momentum_max)")
    if grid.sites > 1:
        raise InputError(
            f"space_cells = {list(grid.space_cells)}: collision_term is of one place; use a "
            "PhaseSpace without space_cells and f of that place"
        )
    if mass_squared is not None and np.shape(mass_squared) != (len(model.species),):
        raise InputError(
            f"mass_squared = {mass_squared!r}: give one number [GeV^2] for each of "
            f"{', '.join(model.names)}"
        )
    settings = Settings.from_options(end=1.0, **options)
    refuse(short_axes(grid.momentum_cells, settings.collisions.projection))
    values = initial.evaluate(initial.starting_states(f, model), grid, model)
    worker = estimator(grid, model, settings.collisions, settings.run)
    if mass_squared is None:
        squares = worker.squares(values)
    else:
        y = coupling_integrals(grid, model, values, np.asarray(mass_squared, dtype=float))
        squares = np.append(mass_squared, model.screening_squared(y))
    found = worker.estimates(values, squares, range(batches))
    m2, screening2 = np.split(squares, [len(model.species)])
    happens = running(model, values.sum(axis=1))
    poles.check_state(  # while a GPU draws
        worker.elements, grid, values, (m2, screening2), [], happens=happens
    )
    return _dataset(model, grid, found())


def _with_rest(change: Array, gain: Array, loss: Array) -> tuple[Array, Array]:
    """Return gain and loss, including the part of the change of f beyond their difference.

    This part comes from ``projection.compensation`` and vanishes in equilibrium.
    """
    rest = change - (gain - loss)
    return gain + np.maximum(rest, 0), loss + np.maximum(-rest, 0)


def _dataset(model: Model, grid: PhaseSpace, found: Estimates) -> xr.Dataset:
    """Build the Dataset of the means of the estimates and their standard errors."""
    ahead, back = collision_rates(grid, model, found.flows)
    gain, loss = _with_rest(found.net, found.gain, found.loss)
    nodes = ("species", "px", "py", "pz")
    rows: dict[str, Any] = {
        "collision_term": (nodes, found.net, "fm^-1", "df/dt by collisions"),
        "gain": (nodes, gain, "fm^-1", "gain of f"),
        "loss": (nodes, loss, "fm^-1", "loss of f"),
        "error": (nodes, found.error, "fm^-1", "standard error of collision_term"),
        "rate": ("process", ahead.mean(axis=0), "fm^-4", f"{COLLISIONS}, as written"),
        "rate_reverse": ("process", back.mean(axis=0), "fm^-4", f"{COLLISIONS}, reversed"),
        "rate_error": ("process", standard_error(ahead), "fm^-4", "standard error of rate"),
        "rate_reverse_error": (
            "process",
            standard_error(back),
            "fm^-4",
            "standard error of rate_reverse",
        ),
    }
    for name, parts in (
        ("null_weight", found.null_weight), ("negative_weight", found.flows.negative_weight),
    ):  # fmt: skip
        dims, unit, description = QUANTITIES[name]
        rows[name] = (dims, parts.mean(axis=0), unit, description)
    ds: dict[str, Any] = {
        "species": ("species", list(model.names)),
        "process": ("process", [q.name for q in model.processes]),
    }
    for i, name in enumerate(("px", "py", "pz")):
        ds[name] = output.variable(name, grid.axis(i), "GeV", f"momentum along {name[1]}")
    shape = (len(model.species), *grid.momentum_cells)
    for name, (dims, values, *description) in rows.items():
        ds[name] = output.variable(
            dims, values.reshape(shape) if dims is nodes else values, *description
        )
    return xr.Dataset(ds, attrs={**output.versions(), "batches": len(found.null_weight)})
