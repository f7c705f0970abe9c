"""collision_term(): C[f] of any state, with its statistical error."""

import math
from typing import Any

import numpy as np
import xarray as xr

from . import initial
from .arrays import Array
from .backends import choose
from .backends.cpu.masses import coupling_integrals, masses
from .checks import poles
from .errors import InputError
from .events.collisions import Draw, Estimate
from .grid import PhaseSpace
from .model import Model
from .records import output
from .records.observables import collision_rates
from .records.quantities import QUANTITIES
from .settings import Settings, refuse, short_axes

BATCHES = 8
"""Independent estimates from which the error is taken."""
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
    """C[f] of every species at every node: df/dt by collisions [fm^-1].

    Parameters
    ----------
    model, grid : what scatters, and where
    f : as in ``solve``: node values (species, nx, ny, nz), or arrays, shapes, functions by species
    batches : independent estimates, each with ``samples`` events per node and process
    mass_squared : masses to use [GeV^2]; solved self-consistently by default
    **options : samples, seed, pairs, projection, sampling, symmetrical, threads, backend,
        precision

    Returns
    -------
    xarray.Dataset with ``collision_term``, ``gain``, ``loss`` and the standard ``error`` of
    collision_term (species, px, py, pz) [fm^-1]; ``rate``, ``rate_reverse`` and ``rate_error``
    (process) [fm^-4]; ``null_weight``, ``negative_weight`` (process)
    """
    if batches < 2:
        raise InputError(f"batches = {batches}: at least 2 are needed for an error")
    if not isinstance(grid, PhaseSpace):
        raise InputError(f"grid = {grid!r}: collision_term needs a PhaseSpace(cells, momentum_max)")
    settings = Settings.from_options(end=1.0, **options)
    refuse(short_axes(grid.momentum_cells, settings.collisions.projection))
    values = initial.evaluate(initial.starting_states(f, model), grid, model)
    m2 = masses(grid, model, values) if mass_squared is None else mass_squared
    m2 = np.asarray(m2, dtype=float)
    screening2 = model.screening_squared(coupling_integrals(grid, model, values, m2))
    backend = choose(grid, model, settings.collisions, settings.run)
    poles.check_state(backend.elements, grid, values, (m2, screening2), [])
    found = [backend.estimate(values, Draw(batch, m2, screening2)) for batch in range(batches)]
    return _dataset(model, grid, found)


def _dataset(model: Model, grid: PhaseSpace, found: list[Estimate]) -> xr.Dataset:
    """Means of the estimates and their standard errors."""
    per_state = np.repeat(1.0 / model.degeneracy, grid.size)
    net, gain, loss = (
        np.stack([getattr(estimate, name) * per_state for estimate in found])
        for name in ("net", "gain", "loss")
    )
    rates = zip(*(collision_rates(grid, model, e.flows) for e in found), strict=True)
    ahead, back = (np.stack(rate) for rate in rates)
    nodes = ("species", "px", "py", "pz")
    rows: dict[str, Any] = {
        "collision_term": (nodes, net.mean(axis=0), "fm^-1", "df/dt by collisions"),
        "gain": (nodes, gain.mean(axis=0), "fm^-1", "gain of f"),
        "loss": (nodes, loss.mean(axis=0), "fm^-1", "loss of f"),
        "error": (nodes, _error(net), "fm^-1", "standard error of collision_term"),
        "rate": ("process", ahead.mean(axis=0), "fm^-4", f"{COLLISIONS}, as written"),
        "rate_reverse": ("process", back.mean(axis=0), "fm^-4", f"{COLLISIONS}, reversed"),
        "rate_error": ("process", _error(ahead), "fm^-4", "standard error of rate"),
    }
    null, negative = zip(*((e.null_weight, e.flows.negative_weight) for e in found), strict=True)
    for name, parts in ("null_weight", null), ("negative_weight", negative):
        dims, unit, words = QUANTITIES[name]
        rows[name] = (dims, np.mean(parts, axis=0), unit, words)
    ds = xr.Dataset(attrs={**output.versions(), "batches": len(found)})
    ds["species"] = ("species", list(model.names))
    ds["process"] = ("process", [q.name for q in model.processes])
    for i, name in enumerate(("px", "py", "pz")):
        ds[name] = output.variable(name, grid.axis(i), "GeV", f"momentum along {name[1]}")
    shape = (len(model.species), *grid.momentum_cells)
    for name, (dims, values, *words) in rows.items():
        ds[name] = output.variable(dims, values.reshape(shape) if dims is nodes else values, *words)
    return ds


def _error(values: Array) -> Array:
    """The standard error of the mean of independent estimates."""
    return values.std(axis=0, ddof=1) / math.sqrt(len(values))
