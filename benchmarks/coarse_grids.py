"""Relaxation rates of smooth initial states on coarse grids over the exact rates.

    python benchmarks/coarse_grids.py [--backend B] [--events N] [--sampling node|cell]

The rates of change of <p^2>, <p^4> and of the shear stress at t = 0 from
``rb.collision_term`` on nodes h apart are divided by a Monte Carlo integral in continuous momenta
that shares nothing with the solver. T is the initial <p^2/E>/3, all particles have degeneracy 1,
and |M|^2 is constant or s^2/(mu^2 - t)^2. The table shows the errors in %, and the error that a run
would report.
"""

from __future__ import annotations

import argparse
import itertools
import math
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import relboltz as rb
from relboltz.checks.spacing import momentum_scale, relaxation_error

SPACINGS = (0.5, 0.6, 0.7, 0.85, 0.95)
"""Spacings h/T."""
ORDERS = 2, 4
CHUNK = 1_000_000


def broad(px, py, pz):
    """Return a squeezed Gaussian [GeV]."""
    return 0.5 * np.exp(-(px**2 + py**2) / (2 * 0.8**2) - pz**2 / (2 * 0.56**2))


def flat(px, py, pz):
    """Return a Gaussian squeezed to 0.3 GeV along z."""
    return 0.5 * np.exp(-(px**2 + py**2) / (2 * 0.8**2) - pz**2 / (2 * 0.3**2))


def ring(px, py, pz):
    """Return a shell of momenta about 1.2 GeV, fuller along z than across it."""
    p = np.sqrt(px**2 + py**2 + pz**2)
    cosine2 = pz**2 / np.maximum(p, 1e-12) ** 2
    return 0.5 * np.exp(-((p - 1.2) ** 2) / (2 * 0.3**2)) * (0.5 + cosine2)


@dataclass(frozen=True)
class Gas:
    """One species: statistics, mass [GeV], and |M|^2.

    mu : mu of a peaked |M|^2 [GeV]; 0: |M|^2 is constant, or proportional to s for a constant cross
    section
    """

    statistics: int
    mass: float
    mu: float = 0.0
    cross_section: bool = False

    @property
    def name(self) -> str:
        """Description in words."""
        kind = {1: "Bose", 0: "classical", -1: "Fermi"}[self.statistics]
        peak = f"peaked, mu = {self.mu:g} GeV" if self.mu else "constant"
        peak = "~ s" if self.cross_section else peak
        return f"{kind}, m = {self.mass:g} GeV, {peak}"

    def element(self, s, t):
        """Return |M|^2."""
        if self.mu:
            return s * s / (self.mu**2 - t) ** 2
        return 100.0 * s if self.cross_section else np.full(np.shape(s), 100.0)

    def model(self) -> rb.Model:
        """Return the model for relboltz."""
        species, mu2 = rb.Species("a", 1, self.statistics), self.mu**2
        if self.mu:  # identical particles: both exchanges, half of each
            process = rb.Process("a a -> a a", peaked, peak="t", mu2=mu2)
        else:
            process = rb.Process("a a -> a a", rising if self.cross_section else constant)
        screening = {"screening": self.mu} if self.mu else {}
        return rb.Model([species], [process], masses={"a": self.mass}, **screening)


def constant(s):
    """Return a constant |M|^2."""
    return 100.0 + 0.0 * s


def rising(s):
    """Return |M|^2 of a constant cross section of massless particles."""
    return 100.0 * s


def peaked(s, t, u, mu2):
    """Return |M|^2 with a peak forward and, for identical particles, backward."""
    return 0.5 * s * s * (1 / (mu2 - t) ** 2 + 1 / (mu2 - u) ** 2)


def moments(p, m2):
    """Return p^2, p^4 and (p_z^2 - p^2/3)/E of momenta (3, ...)."""
    p2 = (p**2).sum(axis=0)
    e = np.sqrt(p2 + m2)
    return np.stack([p2, p2**2, (p[2] ** 2 - p2 / 3) / np.maximum(e, 1e-12)])


def exact(gas: Gas, f, width: float, events: int, seed: int = 1):
    """Return rates of change of the moments per volume, and standard errors."""
    rng, m2 = np.random.default_rng(seed), gas.mass**2
    sums = np.zeros((2, 3))
    for _ in range(-(-events // CHUNK)):
        p, k = (drawn(rng, width) for _ in range(2))
        size2 = (p**2).sum(axis=0), (k**2).sum(axis=0)
        ep, ek = (np.sqrt(q2 + m2) for q2 in size2)
        chance = np.exp(-(size2[0] + size2[1]) / (2 * width**2)) / (4 * np.pi * width**2) ** 2
        chance /= np.sqrt(size2[0] * size2[1])
        total, e = p + k, ep + ek
        s = np.maximum(e**2 - (total**2).sum(axis=0), 4 * m2 + 1e-12)
        root = np.sqrt(s)
        k_out = np.sqrt(np.maximum(s / 4 - m2, 0))
        boosted = k + total * ((total * k).sum(axis=0) / (root * (e + root)) - ek / root)
        axis = boosted / np.maximum(np.sqrt((boosted**2).sum(axis=0)), 1e-12)
        n, weight = directions(rng, gas, axis, k_out)
        q = k_out * n
        out = q + total * ((total * q).sum(axis=0) / (root * (e + root)) + 0.5)
        other = total - out
        t = -2 * k_out**2 * (1 - (n * axis).sum(axis=0))
        fp, fk, f1, f2 = (f(*x) for x in (p, k, out, other))
        full = [1 + gas.statistics * x for x in (fp, fk, f1, f2)]
        flow = f1 * f2 * full[0] * full[1] - fp * fk * full[2] * full[3]
        phase = k_out / (4 * np.pi * root) / (4 * ep * ek * (2 * np.pi) ** 6)
        rate = 0.25 * weight * gas.element(s, t) * phase * flow / chance  # w = 1/8, two pairs
        change = sum(moments(x, m2) for x in (p, k)) - sum(moments(x, m2) for x in (out, other))
        terms = 0.5 * rate * change
        sums += terms.sum(axis=1), (terms**2).sum(axis=1)
    done = -(-events // CHUNK) * CHUNK
    mean = sums[0] / done
    return mean, np.sqrt((sums[1] / done - mean**2) / done)


def drawn(rng, width: float):
    """Sample momenta (3, CHUNK) with the density exp(-p^2/2 width^2)/p: soft ones count as 1/E."""
    axes = rng.normal(size=(3, CHUNK))
    return axes * (rng.rayleigh(width, CHUNK) / np.sqrt((axes**2).sum(axis=0)))


def directions(rng, gas: Gas, axis, k_out):
    """Sample unit vectors in the centre-of-mass frame, mostly forward if |M|^2 has a peak."""
    u, phi = rng.random(axis.shape[1]), 2 * np.pi * rng.random(axis.shape[1])
    low, high = gas.mu**2, gas.mu**2 + 4 * k_out**2
    if gas.mu:
        tau = 1 / (1 / low + u * (1 / high - 1 / low))
        away = (tau - low) / np.maximum(2 * k_out**2, 1e-30)
        weight = tau**2 * (high - low) / (low * high) / np.maximum(4 * k_out**2, 1e-30)
    else:
        away, weight = 2 * u, np.ones_like(u)
    away = np.clip(away, 0, 2)
    helper = np.where(np.abs(axis[2]) < 0.9, 1.0, 0.0) * np.array([[0.0], [0.0], [1.0]])
    helper = helper + np.where(np.abs(axis[2]) < 0.9, 0.0, 1.0) * np.array([[1.0], [0.0], [0.0]])
    x = np.cross(axis, helper, axis=0)
    x /= np.sqrt((x**2).sum(axis=0))
    y = np.cross(axis, x, axis=0)
    sine = np.sqrt(away * (2 - away))
    return (1 - away) * axis + sine * (np.cos(phi) * x + np.sin(phi) * y), weight


def mean_temperature(gas: Gas, f) -> float:
    """Return the initial <p^2/E>/3 [GeV]."""
    fine = rb.PhaseSpace(80, 4.0)
    values, p2 = f(*fine.momenta), fine.momentum_squared
    return float((values * p2 / np.sqrt(p2 + gas.mass**2)).sum() / values.sum() / 3)


def on_nodes(gas: Gas, f, cells: int, box: float, given) -> np.ndarray:
    """Return rates of change of the moments on nodes, per volume."""
    grid = rb.PhaseSpace(cells, box)
    start = {"a": rb.initial.from_function(f, sampling=given.sampling)}
    samples = max(16, int(given.events / 4 / cells**3))
    term = rb.collision_term(
        gas.model(), grid, start, samples=samples, batches=4, backend=given.backend
    )
    change = term.collision_term.values.reshape(-1) * 0.1973269804  # per fm
    p = grid.momenta
    return (moments(p, gas.mass**2) * change).sum(axis=1) * grid.cell_volume / (2 * np.pi) ** 3


GASES = [
    Gas(1, 0.0), Gas(0, 0.0), Gas(-1, 0.0), Gas(1, 0.4), Gas(0, 0.4), Gas(1, 0.7), Gas(1, 0.0, 0.4),
    Gas(1, 0.0, 0.15), Gas(1, 0.4, 0.4), Gas(1, 0.7, 0.7), Gas(-1, 0.4, 0.15),
    Gas(1, 0.0, cross_section=True), Gas(0, 0.0, cross_section=True),
    Gas(0, 0.4, cross_section=True),
]  # fmt: skip


STARTS = {"broad": (broad, 0.8), "flat": (flat, 0.8), "ring": (ring, 0.9)}
"""Initial distributions and the widths for sampling their momenta [GeV]."""


def main() -> None:
    """Compute and print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--backend", default="auto")
    parser.add_argument("--events", type=float, default=8e6)
    parser.add_argument("--sampling", default="node", choices=("node", "cell"))
    parser.add_argument("--gases", type=int, nargs="*", help="some of them, by number")
    parser.add_argument("--starts", nargs="*", choices=list(STARTS), default=list(STARTS))
    parser.add_argument("--spacings", type=float, nargs="*", default=SPACINGS, help="h/T")
    parser.add_argument("--markdown", type=Path)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    lines = [
        "| gas | start | h/T | d<p^2>/dt | d<p^4>/dt | shear | (+-) | a run says |",
        "|---|---|---|---|---|---|---|---|",
    ]
    print("\n".join(lines))
    gases = GASES if given.gases is None else [GASES[i] for i in given.gases]
    for gas, (f, width) in itertools.product(gases, [STARTS[name] for name in given.starts]):
        wanted, error = exact(gas, f, width, int(given.events))
        warm = mean_temperature(gas, f)
        for part in given.spacings:
            cells = 2 * round(4.2 / (part * warm))
            found = on_nodes(gas, f, cells, 0.5 * cells * part * warm, given)
            off = [f"{100 * (a / b - 1):+.1f}" for a, b in zip(found, wanted, strict=True)]
            grid = rb.PhaseSpace(cells, 0.5 * cells * part * warm)
            start = f(*grid.momenta)
            length = momentum_scale(grid, start, gas.statistics, gas.mass**2)
            says = relaxation_error(part * warm, length, gas.mu or math.inf)
            row = f"| {gas.name} | {f.__name__} | {part:g} | {' | '.join(off)} "
            row += f"| {100 * max(abs(error / wanted)):.1f} | {100 * says:.1f} |"
            print(row, flush=True)
            lines.append(row)
    if given.markdown:
        given.markdown.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
