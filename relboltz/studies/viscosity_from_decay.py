"""Shear viscosity from the relaxation of a sheared state in a run.

The initial f0 + eps f0 F0 s/T with s = p_x p_y/E has the stress T^xy = eps (s, s)/T, and collisions
reduce it to eps (s, e^(-C t) s)/T; so its time integral is eps times the viscosity of a run on
these nodes, obtained from the events, steps and records of ``solve`` instead of brackets.
"""

from typing import Any

import numpy as np
import xarray as xr

from ..grid.phase_space import PhaseSpace
from ..grid.units import HBARC
from ..linear_response import given
from ..linear_response.reference_state import COMPONENTS, MomentumPoints, ReferenceState
from ..model.model import Model, Screening
from ..run.solve import solve
from ..util.arrays import Array
from ..util.errors import InputError
from ..util.text import shown

TIMES = 8.0
"""Length of a run in relaxation times; the remaining decay is extrapolated."""
RECORDS = 20
"""Records per relaxation time."""


def frozen(state: ReferenceState) -> Model:
    """Return the model with the masses and screening of a state, independent of f."""
    model = state.model
    rows = {
        name: Screening(float(state.screening2[model.exchange_row(name)]))
        for name in model.screening.exchange
    }
    screening = Screening(float(state.screening2[0]), ekt=model.screening.ekt, exchange=rows)
    masses = dict(zip(model.names, map(float, np.sqrt(state.mass_squared)), strict=True))
    return Model(
        model.species, model.processes, masses=masses, screening=screening, groups=model.groups,
        name=model.name,
    )  # fmt: skip


def relaxing_viscosity(
    model: Model,
    temperature: float,
    chemical_potential: given.Potentials = 0.0,
    *,
    grid: PhaseSpace,
    relaxation_time: float,
    strength: float = 0.3,
    **options: Any,
) -> xr.Dataset:
    """Return the shear viscosity from a relaxing run on a grid, a check of transport_coefficients.

    Parameters
    ----------
    model, temperature, chemical_potential, grid : as in ``transport_coefficients``; masses stay
        at their equilibrium values
    relaxation_time : approximate lifetime of the stress [fm], such as ``shear_relaxation_time``
    strength : largest initial |f - f0|/f0; nonlinear effects are of second order in it
    **options : options of ``solve``: samples, tolerance, step, seed, threads, backend, ...

    Returns
    -------
    xarray.Dataset with ``shear_viscosity_axes`` and ``shear_viscosity_planes`` [GeV fm^-2] (flow
    along x and y, and between them), and the stresses relative to their initial values (time)
    """
    if not 0 < strength < 1:
        raise InputError(f"strength = {shown(strength)}: use a number between 0 and 1")
    t = float(given.temperatures(temperature)[0])
    state = ReferenceState.of(
        model, MomentumPoints.nodes(grid), t, given.potentials(model, chemical_potential)
    )
    px, py, _ = grid.momenta
    shapes = {"axes": 0.5 * (px**2 - py**2), "planes": px * py}
    found: dict[str, Any] = {}
    for name, shape in shapes.items():
        stress, time = _stresses(state, grid, shape, strength, relaxation_time, name, options)
        eta = _area(time, stress) * _norm(state, name) * HBARC**-3 / t
        description = {
            "units": "GeV fm^-2",
            "long_name": f"shear viscosity of a relaxing run ({name})",
        }
        found[f"shear_viscosity_{name}"] = ((), eta, description)
        description = {"units": "1", "long_name": f"stress over its first value ({name})"}
        found[f"stress_{name}"] = (("time",), stress, description)
    return xr.Dataset(found, {"time": ("time", time, {"units": "fm"})})


def _norm(state: ReferenceState, rank: str) -> float:
    """Return (s, s) of one component [GeV^5]."""
    return float(state.moment(rank, -2.0).sum()) * state.temperature**2 / COMPONENTS[rank]


def _stresses(
    state: ReferenceState, grid: PhaseSpace, shape: Array, strength: float, tau: float, name: str,
    options: dict[str, Any],
) -> tuple[Array, Array]:  # fmt: skip
    """Return the stress of a run relative to its initial value, and the times [fm]."""
    full = 1 + state.model.statistics[:, None] * state.f
    relative = full * shape / state.energy
    weighty = state.f > 1e-12 * state.f.max()
    start = state.f * (1 + strength * relative / abs(relative[weighty]).max())
    start = np.maximum(start, 0.0)
    values = start.reshape(len(start), *grid.momentum_cells)
    usual: dict[str, Any] = {
        "end": TIMES * tau, "every": tau / RECORDS, "snapshots": [], "progress": False,
    }  # fmt: skip
    result = solve(frozen(state), grid, values, **(usual | options))
    tensor = result.energy_momentum.values
    stress = tensor[:, 1, 2] if name == "planes" else 0.5 * (tensor[:, 1, 1] - tensor[:, 2, 2])
    return stress / stress[0], result.time.values


def _area(time: Array, stress: Array) -> float:
    """Return the time integral [fm] of a decay from 1: Simpson's rule and an exponential tail."""
    last = len(time) - 1 - (len(time) - 1) % 2
    h = time[1] - time[0]
    y = stress[: last + 1]
    area = h / 3 * (y[0] + y[-1] + 4 * y[1:-1:2].sum() + 2 * y[2:-2:2].sum())
    half = last // 2
    rate = np.log(abs(stress[half] / stress[last])) / (time[last] - time[half])
    return float(area + stress[last] / rate)
