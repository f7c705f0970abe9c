"""Particles that collide in pairs, one pair at a time: a gas in Bjorken flow, or at rest.

A comoving cell holds N classical particles of equal mass. Between collisions p_z tau is constant,
and nothing else changes. Candidate pairs are drawn one after the other, each at its own time. A
candidate is accepted with the probability v/2, where

    v = sqrt((p1.p2)^2 - m^4)/(E1 E2) <= 2

and scatters isotropically in its rest frame. Candidates come N n sigma times per unit of time,
so that the rate of a pair is sigma v/V. In this flow n tau is constant: a constant cross section
gives a constant Knudsen number Kn = 1/(n sigma tau). There is no time step and no grid, and the
method shares nothing with the solver.

Momenta, masses and energies are in units of the initial temperature T_0.
"""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from math import cos, pi, sin, sqrt
from typing import Any

import numba
import numpy as np

from ...util.arrays import Array
from .rows import Comparison, relative

BATCHES = 16
"""Number of independent cells, whose scatter gives the statistical error."""
POINTS, HIGHEST = 20001, 40.0
"""Number of points and largest |p| [T_0] of the table of the initial |p|."""


def _scattered(k: Array, mass: float, scale: float, growth: float, count: int, rng: Any) -> int:
    """Let ``count`` pairs of particles k (N, 3) meet; return the number of collisions.

    k_z is comoving: p_z = k_z/scale. The scale grows by a factor ``growth`` from one pair to the
    next.
    """
    hits, m2 = 0, mass * mass
    scale *= sqrt(growth)
    for _ in range(count):
        i, j = int(rng.random() * len(k)), int(rng.random() * (len(k) - 1))
        j += j >= i
        ax, ay, az = k[i, 0], k[i, 1], k[i, 2] / scale
        bx, by, bz = k[j, 0], k[j, 1], k[j, 2] / scale
        ea, eb = sqrt(ax * ax + ay * ay + az * az + m2), sqrt(bx * bx + by * by + bz * bz + m2)
        product = ea * eb - ax * bx - ay * by - az * bz
        if 2 * ea * eb * rng.random() < sqrt(max(product * product - m2 * m2, 0.0)):
            x, y, z, e, s = ax + bx, ay + by, az + bz, ea + eb, 2 * (product + m2)
            half, root = sqrt(0.25 * s - m2), sqrt(s)
            c, phi = 2 * rng.random() - 1, 2 * pi * rng.random()
            sine = half * sqrt(1 - c * c)
            nx, ny, nz = sine * cos(phi), sine * sin(phi), half * c
            boost = (nx * x + ny * y + nz * z) / (root * (e + root)) + 0.5
            ax, ay, az = nx + boost * x, ny + boost * y, nz + boost * z
            k[i, 0], k[i, 1], k[i, 2] = ax, ay, az * scale
            k[j, 0], k[j, 1], k[j, 2] = x - ax, y - ay, (z - az) * scale
            hits += 1
        scale *= growth
    return hits


scattered = numba.jit(nogil=True)(_scattered)  # not cached on disk: it compiles in a second


@dataclass(frozen=True)
class ParticleMoments:
    """Means over the particles at several times, and their standard errors.

    ratio : P_L/P_T
    energy : e/(n T_0)
    collisions : mean number of collisions of a particle up to each time
    """

    times: Array
    ratio: Array
    ratio_error: Array
    energy: Array
    energy_error: Array
    collisions: Array


def thermal(count: int, mass: float, xi: float, rng: np.random.Generator) -> Array:
    """Return momenta (count, 3) of exp(-sqrt(p_T^2 + (1 + xi) p_z^2 + m^2)/T_0).

    |p| and the polar angle are stratified, which removes most of the noise of the initial moments.
    """
    p = np.linspace(0, HIGHEST + mass, POINTS)
    density = p**2 * np.exp(mass - np.sqrt(p**2 + mass**2))
    table = np.concatenate([[0.0], np.cumsum(density[1:] + density[:-1])])
    even = [(rng.permutation(count) + rng.random(count)) / count for _ in range(2)]
    size, c = np.interp(even[0] * table[-1], table, p), 2 * even[1] - 1
    phi, sine = 2 * pi * rng.random(count), np.sqrt(1 - c**2)
    turned = size * np.stack([sine * np.cos(phi), sine * np.sin(phi), c / np.sqrt(1 + xi)])
    return np.ascontiguousarray(turned.T)


def _measured(k: Array, mass: float, scale: float) -> tuple[float, float, float]:
    """Return the means of p_z^2/E, of p_T^2/2E and of E."""
    x2, y2, z2 = k[:, 0] ** 2, k[:, 1] ** 2, (k[:, 2] / scale) ** 2
    energy = np.sqrt(x2 + y2 + z2 + mass**2)
    return float((z2 / energy).mean()), float((0.5 * (x2 + y2) / energy).mean()), energy.mean()


def _cell(
    k: Array, mass: float, rate: float, times: Sequence[float], expanding: bool,
    rng: np.random.Generator,
) -> list[tuple[float, float, float, float]]:  # fmt: skip
    """Return P_L, P_T, e and collisions per particle of one cell at every time."""
    now, hits, found = (1.0 if expanding else 0.0), 0, []
    for time in times:
        passed = np.log(time / now) if expanding else time - now
        count = int(len(k) * rate * passed + rng.random())
        growth = (time / now) ** (1 / max(count, 1)) if expanding else 1.0
        hits += scattered(k, mass, now if expanding else 1.0, growth, count, rng)
        now = time
        found.append((*_measured(k, mass, time if expanding else 1.0), 2 * hits / len(k)))
    return found


def _followed(
    starts: Sequence[Array], mass: float, rate: float, times: Sequence[float], expanding: bool,
    generators: Sequence[np.random.Generator],
) -> ParticleMoments:  # fmt: skip
    """Return means over independent cells."""
    wanted = [float(t) for t in times]
    if wanted != sorted(wanted) or wanted[0] < (1.0 if expanding else 0.0):
        raise ValueError(f"times = {wanted}: they rise, from the start on")

    def one(number: int) -> list[tuple[float, float, float, float]]:
        return _cell(starts[number], mass, rate, wanted, expanding, generators[number])

    with ThreadPoolExecutor() as pool:  # the result does not depend on the number of threads
        cells = np.array(list(pool.map(one, range(len(starts)))))
    longitudinal, transverse, energy, hits = np.moveaxis(cells, -1, 0)
    ratio = longitudinal.mean(axis=0) / transverse.mean(axis=0)
    residual = (longitudinal - ratio * transverse) / transverse.mean(axis=0)
    return ParticleMoments(
        np.array(wanted), ratio, _error(residual), energy.mean(axis=0), _error(energy),
        hits.mean(axis=0),
    )  # fmt: skip


def _error(values: Array) -> Array:
    """Return the standard error of the mean over cells."""
    return np.asarray(values.std(axis=0, ddof=1) / np.sqrt(len(values)))


def bjorken(
    mass: float, knudsen: float, times: Sequence[float], particles: int = 10**6, seed: int = 1,
    xi: float = 0.0,
) -> ParticleMoments:  # fmt: skip
    """Evolve a gas in Bjorken flow from thermal initial conditions.

    Parameters
    ----------
    mass : m/T_0
    knudsen : Kn = 1/(n sigma tau), constant because sigma is constant; inf for free particles
    times : tau/tau_0, rising from 1
    particles : number of particles in all cells together
    xi : anisotropy of the initial exp(-sqrt(p_T^2 + (1 + xi) p_z^2 + m^2)/T_0)
    """
    generators = [np.random.default_rng(s) for s in np.random.SeedSequence(seed).spawn(BATCHES)]
    starts = [thermal(particles // BATCHES, mass, xi, rng) for rng in generators]
    return _followed(starts, mass, 1 / knudsen, times, True, generators)


def at_rest(
    starts: Sequence[Array], mass: float, times: Sequence[float], seed: int = 1
) -> ParticleMoments:
    """Evolve cells of given momenta (N, 3) in place, without expansion; times in 1/(n sigma)."""
    seeds = np.random.SeedSequence(seed).spawn(len(starts))
    generators = [np.random.default_rng(s) for s in seeds]
    return _followed(starts, mass, 1.0, times, False, generators)


def compared(
    description: str,
    found: ParticleMoments,
    ratio: Array,
    energy: Array,
    tolerance: float,
    reason: str,
) -> Iterator[Comparison]:
    """Compare P_L/P_T and e/(n T_0) of a solution with those of particles at the same times.

    The tolerance is relative; a third of it applies to energies, which change little. Three
    standard errors of the particles are added.
    """
    for i, time in enumerate(found.times):
        for name, mine, theirs, error, share in (
            ("P_L/P_T", ratio[i], found.ratio[i], found.ratio_error[i], 1.0),
            ("e/(n T_0)", energy[i], found.energy[i], found.energy_error[i], 1 / 3),
        ):
            allowed = share * tolerance + 3 * error / theirs
            yield relative(
                f"{description}: {name} at tau/tau_0 = {time:g}", mine, theirs, allowed, reason
            )
