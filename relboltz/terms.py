"""collision_term(): C[f] of any state, with its statistical error."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from . import checks, equilibrium, initial, output
from .backends.cpu import CpuBackend
from .collisions import Draw, Sampling
from .config import Settings, short_axes
from .errors import InputError
from .grid import PhaseSpace
from .model import Model
from .observables import collision_rates

BATCHES = 8
"""Independent estimates from which the error is taken."""
SUM_BITS = 60


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
    **options : samples, seed, pairs, projection, sampling, symmetrical, threads

    Returns
    -------
    xarray.Dataset with ``collision_term``, ``gain``, ``loss`` and the standard ``error`` of
    collision_term (species, px, py, pz) [fm^-1]; ``rate``, ``rate_reverse`` and ``rate_error``
    (process) [fm^-4]; ``null_weight``
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
    screening2 = model.screening.squared(equilibrium.coupling_integrals(grid, model, values, m2))
    backend = CpuBackend(
        grid, model, Sampling(**settings.collisions.model_dump()), settings.run.threads
    )
    checks.check_model(backend, m2, screening2)
    number = (values * model.degeneracy[:, None]).ravel()
    table, occupancy = backend.tables(number, 1.0)
    gains: list[NDArray] = []
    losses: list[NDArray] = []
    nets: list[NDArray] = []
    rates: list[tuple[NDArray, NDArray]] = []
    null: list[float] = []
    for batch in range(batches):
        total, lost = backend.draw(Draw(batch, m2, screening2), occupancy)
        scale = _scale(backend, table)
        gain, loss = backend.gross(table, scale)
        net, flows = backend.net(table, scale)
        per_state = 1.0 / (scale * np.repeat(model.degeneracy, grid.size))
        for store, change in ((gains, gain), (losses, loss), (nets, net)):
            store.append(change * per_state)
        rates.append(collision_rates(grid, model, flows))
        null.append(lost / total if total > 0 else 0.0)
    return _dataset(model, grid, (nets, gains, losses), rates, float(np.mean(null)))


def _scale(backend: CpuBackend, table: NDArray[np.float64]) -> float:
    """Quanta per unit of N f: as fine as 64-bit sums of this batch's gross rates allow."""
    _, flows = backend.net(table, 0.0)
    legs = 4.0 * float(flows.forward.sum() + flows.backward.sum())
    return 2.0 ** (SUM_BITS - math.ceil(math.log2(legs))) if legs > 0 else 1.0


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
    ds["null_weight"] = ((), null, {"units": "1", "long_name": "part of the collisions lost"})
    return ds
