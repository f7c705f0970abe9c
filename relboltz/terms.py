"""collision_term(): C[f] of any state, with its statistical error."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from .backends import choose
from .checks import poles
from .config import Settings, short_axes
from .equilibrium import states as equilibrium
from .errors import InputError
from .events.collisions import Draw, Sampling
from .grid import PhaseSpace
from .initial import start as initial
from .model import Model
from .records import output
from .records.observables import QUANTITIES, collision_rates

BATCHES = 8
"""Independent estimates from which the error is taken."""


def collision_term(
    model: Model,
    grid: PhaseSpace,
    f: initial.Start,
    *,
    batches: int = BATCHES,
    mass_squared: NDArray[np.float64] | None = None,
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
    problems = short_axes(grid.momentum_cells, settings.collisions.projection)
    if problems:
        raise InputError("\n".join(problems))
    values = initial.evaluate(initial.starting_states(f, model), grid, model)
    m2 = equilibrium.masses(grid, model, values) if mass_squared is None else mass_squared
    m2 = np.asarray(m2, dtype=float)
    screening2 = model.screening_squared(equilibrium.coupling_integrals(grid, model, values, m2))
    backend = choose(grid, model, Sampling(**settings.collisions.model_dump()), settings.run)
    negative = poles.check_model(backend.elements, grid, m2, screening2)
    poles.weigh_negative(grid, model, negative, values, (m2, screening2), [])
    found = [backend.estimate(values, Draw(batch, m2, screening2)) for batch in range(batches)]
    per_state = np.repeat(1.0 / model.degeneracy, grid.size)
    nets, gains, losses = (
        [getattr(estimate, name) * per_state for estimate in found]
        for name in ("net", "gain", "loss")
    )
    rates = [collision_rates(grid, model, e.flows) for e in found]
    null = float(np.mean([e.null_weight for e in found]))
    ds = _dataset(model, grid, (nets, gains, losses), rates, null)
    below = np.mean([e.flows.negative_weight for e in found], axis=0)
    dims, units, words = QUANTITIES["negative_weight"]
    ds["negative_weight"] = (dims, below, {"units": units, "long_name": words})
    return ds


def _dataset(
    model: Model,
    grid: PhaseSpace,
    parts: tuple[list, list, list],
    rates: list[tuple[NDArray, NDArray]],
    null: float,
) -> xr.Dataset:
    nets, gains, losses = (np.stack(part) for part in parts)
    n = len(nets)
    dims = ("species", "px", "py", "pz")
    shape = (len(model.species), *grid.momentum_cells)
    ds = xr.Dataset(attrs={**output.versions(), "batches": n})
    ds["species"] = ("species", list(model.names))
    ds["process"] = ("process", [q.name for q in model.processes])
    for i, name in enumerate(("px", "py", "pz")):
        ds[name] = (name, grid.axis(i), {"units": "GeV", "long_name": f"momentum along {name[1]}"})
    for name, values, words in (
        ("collision_term", nets.mean(axis=0), "df/dt by collisions"),
        ("gain", gains.mean(axis=0), "gain of f"),
        ("loss", losses.mean(axis=0), "loss of f"),
        ("error", nets.std(axis=0, ddof=1) / math.sqrt(n), "standard error of collision_term"),
    ):
        ds[name] = (dims, values.reshape(shape), {"units": "fm^-1", "long_name": words})
    ahead, back = (np.stack(part) for part in zip(*rates, strict=True))
    for name, values, words in (
        ("rate", ahead.mean(axis=0), "collisions per volume and time, as written"),
        ("rate_reverse", back.mean(axis=0), "collisions per volume and time, reversed"),
        ("rate_error", ahead.std(axis=0, ddof=1) / math.sqrt(n), "standard error of rate"),
    ):
        ds[name] = ("process", values, {"units": "fm^-4", "long_name": words})
    words = QUANTITIES["null_weight"][2]
    ds["null_weight"] = ((), null, {"units": "1", "long_name": words})
    return ds
