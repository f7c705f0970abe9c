"""v_2 of an almond from particles that collide in pairs, without nodes and without the solver.

    python benchmarks/particles.py [--particles 2e6] [--runs 20] [--cell 0.2] [--step 0.06]

The matter is that of ``expansion.py turned_almond``: massless, classical, sigma = 0.3 fm^2,
f = exp(-p/T) times an almond at 0.4 fm. Particles stream exactly in Bjorken flow at eta = 0, where
x changes by p_x (t2^2 - t1^2)/(E1 t1 + E2 t2); in between, pairs in a cell of the plane collide at
the rate sigma v/V (``validation.particles``). Cells are shifted at random in every step. Particles
are initialised in groups of four, rotated by 90 degrees in momentum, at mirrored positions, so that
initially v_2 = 0 exactly.
"""

import argparse
import time
from itertools import pairwise
from math import log, pi, sqrt

import numba
import numpy as np

import relboltz as rb
from relboltz.grid.units import HBARC
from relboltz.studies.validation.particles import scattered

T, STATES, SIGMA, START, END, WIDE = 0.4, 16, 0.3, 0.4, 3.0, 8.0
ALMOND = rb.initial.gaussian_profile(radius=1.5, eccentricity=0.4)
BINS = np.array([0, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 2.0, 3.0])


@numba.njit
def stream(place, k, first, last):
    """Move free particles from one proper time to another; k_z = p_z tau/START is constant."""
    for i in range(len(k)):
        pt2, kz = k[i, 0] ** 2 + k[i, 1] ** 2, k[i, 2] * START
        e = sqrt(pt2 * last**2 + kz**2) + sqrt(pt2 * first**2 + kz**2)
        for axis in range(2):
            place[i, axis] += k[i, axis] * (last**2 - first**2) / e


@numba.njit
def collide(k, begins, rate, first, last, rng):
    """Collide pairs of every cell; rate : sigma over the cell area, times the particle weight."""
    hits = 0
    for q in range(len(begins) - 1):
        own = k[begins[q] : begins[q + 1]]
        n = len(own)
        count = rng.poisson(n * (n - 1) * rate * log(last / first)) if n > 1 else 0
        if count:
            growth = (last / first) ** (1 / count)
            hits += scattered(own, 0.0, first / START, growth, count, rng)
    return hits


def started(count, rng):
    """Return positions [fm], momenta [GeV] and the number of real particles per particle."""
    p = rng.gamma(3.0, T, count // 4)
    c, phi = rng.uniform(-1, 1, len(p)), rng.uniform(0, 2 * pi, len(p))
    s = p * np.sqrt(1 - c**2)
    x, y, z = s * np.cos(phi), s * np.sin(phi), p * c
    width = [float(np.sqrt(_second_moment(axis))) for axis in (0, 1)]
    at = rng.standard_normal((len(p), 2)) * width
    k = [np.stack(v, axis=1) for v in ((x, y, z), (-y, x, z), (-x, -y, -z), (y, -x, -z))]
    signs = [(1, 1), (-1, 1), (1, -1), (-1, -1)]
    density = STATES * T**3 / (pi**2 * HBARC**3)
    number = density * START * 2 * pi * width[0] * width[1]
    return np.concatenate([at * s for s in signs]), np.concatenate(k), number / (4 * len(p))


def _second_moment(axis):
    """Return <x^2> or <y^2> of the almond, which is a Gaussian along either axis [fm^2]."""
    x = np.linspace(-15, 15, 3001)
    w = ALMOND.at(x, 0 * x) if axis == 0 else ALMOND.at(0 * x, x)
    return (w * x**2).sum() / w.sum()


def run(given, seed):
    """Return v_2 below 3 GeV and in bins of p_T, and collisions per particle, of one run."""
    rng = np.random.default_rng(seed)
    place, k, weight = started(int(given.particles), rng)
    steps = [START]
    while steps[-1] < END:
        steps.append(min(steps[-1] + min(given.step, 0.08 * steps[-1]), END))
    cells, hits = int(2 * WIDE / given.cell) + 1, 0
    for first, last in pairwise(steps):
        middle = 0.5 * (first + last)
        stream(place, k, first, middle)
        index = np.floor((place + WIDE) / given.cell + rng.uniform(0, 1, 2)).astype(int)
        inside = ((index >= 0) & (index < cells)).all(axis=1)
        cell = np.where(inside, index[:, 0] * cells + index[:, 1], cells**2)
        order = np.argsort(cell, kind="stable")
        place, k = place[order], k[order]
        begins = np.searchsorted(cell[order], np.arange(cells**2 + 1))
        hits += collide(k, begins, SIGMA * weight / given.cell**2, first, last, rng)
        stream(place, k, middle, last)
    pt, cosine = np.hypot(k[:, 0], k[:, 1]), k[:, 0] ** 2 - k[:, 1] ** 2
    number, turned = (np.histogram(pt, BINS, weights=w)[0] for w in (None, cosine / pt**2))
    return np.array([turned.sum() / number.sum(), *turned / number, 2 * hits / len(k)])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--particles", type=float, default=2e6)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--cell", type=float, default=0.2, help="width of a space cell [fm]")
    parser.add_argument("--step", type=float, default=0.06, help="longest [fm]")
    given, began = parser.parse_args(), time.perf_counter()
    found = np.array([run(given, seed) for seed in range(1, given.runs + 1)])
    mean, error = found.mean(axis=0), found.std(axis=0, ddof=1) / sqrt(given.runs)
    print(f"{given.runs} runs, {time.perf_counter() - began:.0f} s, {mean[-1]:.3f} collisions each")
    print(f"v_2, p_T < 3 GeV: {mean[0]:.5f} +- {error[0]:.5f}")
    for i in range(len(BINS) - 1):
        print(f"  {BINS[i]} to {BINS[i + 1]} GeV: {mean[1 + i]:.4f} +- {error[1 + i]:.4f}")


if __name__ == "__main__":
    main()
