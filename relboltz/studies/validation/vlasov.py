"""A large wave in matter without collisions whose particles make their own masses, by markers.

Particles move along x with H = sqrt(p^2 + m^2(x, t)), and m^2 = m_0^2 + K g Int d^3p/(2 pi)^3 f/E
is of their own making. Markers carry f along: each has a weight that never changes, and

    dx/dt = p_x/E,        dp_x/dt = -(d m^2/dx)/(2 E).

m^2(x) of the markers is a Fourier series of a few modes, K times the sums over them of
weight/E cos(n k x) and sin(n k x): there are no cells in space. E depends on m^2, which is found by
iteration.
They start from Gauss rules in momentum, evenly spread in space, so that no noise enters, and move
by RK4 steps.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import cos, pi, sin, sqrt
from typing import Any

import numba
import numpy as np
from numpy.polynomial.hermite_e import hermegauss
from numpy.polynomial.laguerre import laggauss

from ...grid.phase_space import PhaseSpace
from ...initial import from_function
from ...model.model import Model, Species
from ...run.solve import solve
from ...util.arrays import Array
from .rows import Comparison, ValidationEffort, absolute

HALF, WIDTH, HEIGHT, SWING = 3.0, 0.4, 0.5, 0.8
"""Half a wave length [fm]; f = HEIGHT (1 + SWING cos kx) exp(-p^2/(2 WIDTH^2)), WIDTH in GeV."""
STATES, COUPLING, BARE2 = 16, 10.0, 0.04
"""g, K and m_0^2 [GeV^2]: m^2 is about 0.4 GeV^2, most of it of the particles."""
K = pi / HALF
TIMES = (1.0, 2.0, 3.0)


def start(x: Array, px: Array, py: Array, pz: Array) -> Array:
    """f at the beginning."""
    p2 = px**2 + py**2 + pz**2
    return np.asarray(HEIGHT * (1 + SWING * np.cos(K * x)) * np.exp(-p2 / (2 * WIDTH**2)))


# --- markers --------------------------------------------------------------------------------------


def _masses(state: Array, across2: Array, weight: Array, modes: Array) -> None:
    """Solve m^2(x) of markers (x, p_x) for its modes, in place: mean, then cos and sin of n k x."""
    count = len(modes) // 2
    sums = np.empty_like(modes)
    for _ in range(4):  # each leaves 0.3 of the error, all four 1 % of what a step changes
        sums[:] = 0.0
        for i in range(len(weight)):
            c, s = cos(K * state[0, i]), sin(K * state[0, i])
            m2, cn, sn = modes[0], 1.0, 0.0
            for n in range(count):
                cn, sn = cn * c - sn * s, sn * c + cn * s
                m2 += modes[1 + 2 * n] * cn + modes[2 + 2 * n] * sn
            over = weight[i] / sqrt(state[1, i] ** 2 + across2[i] + m2)
            sums[0] += over
            cn, sn = 1.0, 0.0
            for n in range(count):
                cn, sn = cn * c - sn * s, sn * c + cn * s
                sums[1 + 2 * n] += 2 * over * cn
                sums[2 + 2 * n] += 2 * over * sn
        modes[:] = COUPLING * sums
        modes[0] += BARE2


def _moved(state: Array, across2: Array, modes: Array, rate: Array) -> None:
    """Fill rate with dx/dt and dp_x/dt of every marker."""
    count = len(modes) // 2
    for i in range(state.shape[1]):
        c, s = cos(K * state[0, i]), sin(K * state[0, i])
        m2, slope, cn, sn = modes[0], 0.0, 1.0, 0.0
        for n in range(count):
            cn, sn = cn * c - sn * s, sn * c + cn * s
            m2 += modes[1 + 2 * n] * cn + modes[2 + 2 * n] * sn
            slope += (n + 1) * K * (modes[2 + 2 * n] * cn - modes[1 + 2 * n] * sn)
        energy = sqrt(state[1, i] ** 2 + across2[i] + m2)
        rate[0, i] = state[1, i] / energy
        rate[1, i] = -0.5 * slope / energy


masses, moved = (numba.jit(nogil=True)(f) for f in (_masses, _moved))  # not kept on disk


@dataclass(frozen=True)
class MarkerCounts:
    """How many places, values of p_x and of p_y^2 + p_z^2, Fourier modes, and the step [fm]."""

    places: int = 96
    along: int = 48
    across: int = 10
    modes: int = 5
    step: float = 0.1


def followed(markers: MarkerCounts, times: Sequence[float] = TIMES) -> Array:
    """Modes at the times: cos kx and cos 2kx of m^2, sin kx of the momentum density (times, 3).

    In GeV^2, and in GeV per particle of the mean density.
    """
    x = (np.arange(markers.places) + 0.5) * 2 * HALF / markers.places - HALF
    p, of_p = hermegauss(markers.along)
    q, of_q = laggauss(markers.across)  # p_T^2/(2 WIDTH^2) is distributed as exp(-q)
    x, p, q = (a.ravel() for a in np.meshgrid(x, WIDTH * p, 2 * WIDTH**2 * q, indexing="ij"))
    of_x = np.full(markers.places, 1 / markers.places)
    weight = np.einsum("i,j,k->ijk", of_x, of_p / np.sqrt(2 * pi), of_q).ravel()
    density = STATES * HEIGHT * (WIDTH / np.sqrt(2 * pi)) ** 3
    weight = density * weight * (1 + SWING * np.cos(K * x))
    state, rate = np.stack([x, p]), np.empty((2, len(x)))
    modes = np.zeros(1 + 2 * markers.modes)
    modes[0] = 0.3
    for _ in range(10):
        masses(state, q, weight, modes)

    def change(now: Array) -> Array:
        masses(now, q, weight, modes)
        moved(now, q, modes, rate)
        return rate.copy()

    time, found = 0.0, []
    for stop in times:
        count = int(np.ceil((stop - time) / markers.step - 1e-9))
        dt = (stop - time) / count
        for _ in range(count):
            k1 = change(state)
            k2 = change(state + 0.5 * dt * k1)
            k3 = change(state + 0.5 * dt * k2)
            k4 = change(state + dt * k3)
            state = state + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        time = stop
        masses(state, q, weight, modes)
        flux = 2 * (weight * state[1]) @ np.sin(K * state[0]) / weight.sum()
        found.append([modes[1], modes[3], flux])
    return np.array(found)


# --- on nodes -------------------------------------------------------------------------------------


def model() -> Model:
    """Particles that never collide and make their own masses."""
    coupling = np.array([[COUPLING]])
    return Model([Species("a", STATES, 1)], [], masses={"a": BARE2**0.5}, mass_coupling=coupling)


MODES = ("m^2, cos kx [GeV^2]", "m^2, cos 2kx [GeV^2]", "p_x per particle, sin kx [GeV]")


def streamed(space: int, **options: Any) -> Array:
    """Three modes (times, 3) of a run with so many space cells, and 13/8 times as many p_x."""
    cells = 13 * space // 8
    grid = PhaseSpace([cells, 11, 11], [2.6, 2.2, 2.2], [space, 1, 1], HALF)

    def f(x: Array, y: Array, z: Array, px: Array, py: Array, pz: Array) -> Array:
        return start(x, px, py, pz)

    begin = {"a": from_function(f, sampling="node")}
    ds = solve(model(), grid, begin, end=TIMES[-1], every=1.0, **options)
    then = [int(abs(ds.time.values - time).argmin()) for time in TIMES]
    x = grid.space_axis(0)
    m2 = ds.mass_squared.values[then].reshape(len(then), -1)
    flow = ds.momentum.sel(axis="x").values[then].reshape(len(then), -1)
    number = ds.number.values[then].reshape(len(then), -1).mean()
    modes = [2 * (m2 @ np.cos(n * K * x)) / space for n in (1, 2)]
    return np.stack([*modes, 2 * (flow @ np.sin(K * x)) / space / number], axis=1)


def self_consistent_wave(effort: ValidationEffort) -> Iterator[Comparison]:
    """Modes of m^2 and of the momentum density, at one spacing and extrapolated to none.

    Across the wave 11 x 11 nodes, 0.4 GeV apart, are nearly exact for a Gaussian of that width:
    nodes 0.37 GeV apart change a mode by 4e-5.
    """
    exact = followed(MarkerCounts())
    cells = (24, 32) if effort.quick else (32, 48)
    far, near = (streamed(n, **effort.solving) for n in cells)
    limit = near + (near - far) / ((cells[1] / cells[0]) ** 2 - 1)
    dx = 2 * HALF / cells[1]
    for i, time in enumerate(TIMES):
        for j, name in enumerate(MODES):
            yield absolute(
                f"{name} at {time:g} fm, {cells[0]} and {cells[1]} cells, h -> 0", limit[i, j],
                exact[i, j], 2.5e-4, "1e-4 of (h, dx)^4, 1e-4 of nodes across, 2e-5 of markers",
            )  # fmt: skip
            yield absolute(
                f"{name} at {time:g} fm, {cells[1]} cells", near[i, j], exact[i, j],
                0.03 * dx**2 + 1e-4, "second order: 0.02 (dx/fm)^2 measured; 1e-4 of nodes across",
            )  # fmt: skip
