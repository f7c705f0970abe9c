"""Sound, shear and heat waves in a massless gas with a constant cross section.

One run contains all three: sound as cos kx, heat as sin kx, and shear in p_y; small waves of
different parity do not mix. The effect of the nodes is known: matter streams with
v = [E(p + h/2) - E(p - h/2)]/h, so a wave psi of conserved quantities has the speed given by this
v, and the part of v psi orthogonal to the conserved quantities drives its decay. The squared norm
of this part, relative to its value without a grid (2/15, 1/5 and 1/3 for sound, shear and heat),
multiplies the decay rate.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...grid.phase_space import PhaseSpace
from ...initial import from_function
from ...run.solve import solve
from ...util.arrays import Array
from .exact_relaxation import ISOTROPIC, T
from .rows import Comparison, ValidationEffort, relative
from .streaming import grid_velocity

EXACT = {
    0.1: {"speed": 0.57896, "sound": 0.0020952, "shear": 0.003169, "heat": 0.006379},
    0.2: {"speed": 0.58354, "sound": 0.0081865, "shear": 0.012678, "heat": 0.025788},
}
"""By k/(n sigma): speed of sound, and decay rates in units of n sigma, from exact linear theory."""
AMPLITUDE = 0.02


@dataclass(frozen=True)
class WaveSetup:
    """Wave number k/(n sigma), momentum nodes, space cells and samples."""

    k: float
    cells: int
    box: float
    space: int
    samples: int
    tolerance: float = 1e-3

    @property
    def grid(self) -> PhaseSpace:
        """One wavelength along x; the mean free path is 1 fm."""
        length = [np.pi / self.k, 1.0, 1.0]
        return PhaseSpace(self.cells, self.box * T, [self.space, 1, 1], length)


def of_the_nodes(grid: PhaseSpace) -> dict[str, float]:
    """Return speed and decay factors on these nodes over their values without a grid."""
    px, py, _ = grid.momenta
    e = np.sqrt(grid.momentum_squared)
    u, f = grid_velocity(grid.without_space, 0, 0.0), np.exp(-e / T)

    def rest(wave: Array, basis: Array) -> float:
        norms = (basis * f) @ basis.T
        left = u * wave - np.linalg.solve(norms, (basis * f) @ (u * wave)) @ basis
        return float((f * left**2).sum() / (f * wave**2).sum())

    basis = np.stack([np.ones_like(e), px, e])
    norms = (basis * f) @ basis.T
    speeds, vectors = np.linalg.eig(np.linalg.solve(norms, (basis * f * u) @ basis.T))
    fast, slow = speeds.real.argmax(), np.abs(speeds).argmin()
    return {
        "speed": float(speeds[fast].real * np.sqrt(3)),
        "sound": rest(vectors[:, fast].real @ basis, basis) * 15 / 2,
        "shear": rest(py, py[None]) * 5,
        "heat": rest(vectors[:, slow].real @ basis, basis) * 3,
    }


def damped_wave(t: Array, a: Array, guess: tuple[float, float]) -> tuple[float, float]:
    """Return w and G of a(t) = e^-Gt (b cos wt + c sin wt), by Gauss-Newton in w and G."""
    w, g = guess

    def shapes(w: float, g: float) -> Array:
        return np.exp(-g * t)[:, None] * np.stack([np.cos(w * t), np.sin(w * t)], axis=1)

    for _ in range(20):
        wave = shapes(w, g)
        b, c = np.linalg.lstsq(wave, a, rcond=None)[0]
        by_w = t * (wave @ [c, -b])
        by_g = -t * (wave @ [b, c])
        change = np.linalg.lstsq(np.column_stack([wave, by_w, by_g]), a, rcond=None)[0]
        w, g = w + change[2], g + change[3]
    return float(w), float(g)


def decay(t: Array, a: Array) -> float:
    """Return G of a(t) = b e^-Gt."""
    return float(-np.polyfit(t, np.log(np.abs(a)), 1)[0])


def measured(setup: WaveSetup, **options: Any) -> dict[str, float]:
    """Return the speed of sound and the three decay rates, in units of n sigma."""
    grid, k = setup.grid, setup.k
    exact = EXACT[k]
    momenta = np.sqrt(grid.momentum_squared)
    density = float(np.exp(-momenta / T).sum()) * grid.measure

    def start(x: Array, y: Array, z: Array, px: Array, py: Array, pz: Array) -> Array:
        warm, light = AMPLITUDE * np.cos(k * x), AMPLITUDE * np.sin(k * x)
        e = np.sqrt(px**2 + py**2 + pz**2)
        local = T * (1 + warm + light)
        flow = AMPLITUDE * np.cos(k * x) * py / T
        # The part sin kx has the pressure of its surroundings: n T is 1 + 4 warm.
        return np.exp(-e / local) * (1 + light) ** -4 * (1 + flow)

    period = 2 * np.pi / (exact["speed"] * k)
    ds = solve(
        ISOTROPIC.model(density), grid, {"a": from_function(start, sampling="node")},
        end=1.25 * period, every=period / 40, samples=setup.samples, tolerance=setup.tolerance,
        **options,
    )  # fmt: skip
    x, t = grid.space_axis(0), ds.time.values
    energy, number = (ds[n].values.reshape(len(t), -1) for n in ("energy_total", "number"))
    flow = ds.momentum.sel(axis="y").values.reshape(len(t), -1)
    late = t > 10.0  # mean free paths: by then only the three modes are left
    sound = (energy @ np.cos(k * x)) / energy.mean()
    w, g = damped_wave(t[late], sound[late], (exact["speed"] * k, exact["sound"]))
    heat, shear = (number @ np.sin(k * x))[late], (flow @ np.cos(k * x))[late]
    return {
        "speed": w / k, "sound": g, "shear": decay(t[late], shear), "heat": decay(t[late], heat),
    }  # fmt: skip


QUICK = (WaveSetup(0.2, 14, 9.0, 12, 2),)
FULL = (WaveSetup(0.2, 20, 10.0, 16, 4),)
FULL_GPU = (WaveSetup(0.2, 32, 12.0, 24, 8, 3e-4), WaveSetup(0.1, 24, 12.0, 24, 8, 3e-4))


def waves_in_space(effort: ValidationEffort) -> Iterator[Comparison]:
    """Compare with exact linear theory, corrected for the effect of the nodes on streaming."""
    full = FULL_GPU if effort.backend == "cuda" else FULL
    for setup in QUICK if effort.quick else full:
        nodes = of_the_nodes(setup.grid)
        found = measured(setup, **effort.solving)
        spacing = 2 * setup.box / setup.cells
        for name, exact in EXACT[setup.k].items():
            description = "speed of sound" if name == "speed" else f"decay of {name} [n sigma]"
            if name == "speed":
                tolerance, reason = 0.005, "splitting of the step and the fit"
            else:
                tolerance = 0.02 * spacing**2 + 0.5 * abs(1 - nodes[name]) + 0.01
                reason = "2 % (h/T)^2 of landing, half of what the nodes change, 1 % of noise"
            yield relative(
                f"{description}, k = {setup.k:g} n sigma",
                found[name],
                exact * nodes[name],
                tolerance,
                reason,
            )
