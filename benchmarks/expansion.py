"""Expanding matter against values that this code did not produce, and what it takes.

    python benchmarks/expansion.py PART [--backend cpu|cuda] [--cells 40]

gas        massless gas, Kn = 1/(n sigma tau) constant, against particles that collide in pairs
hubble     the exact solution in Hubble flow, n_0 sigma/H = 40: deviation left at tau = 8 over exact
late       (P_T - P_L) tau/(2 eta) of gluons and of the mixture with thermal masses, and a picture
symmetry   a round plane has no v_4, an almond turned by 45 degrees has the v_2 of the straight one
opacity    v_2 of an almond against sigma
plane      gluons, 32 x 32 x 1 x 24 x 24 x 48 (cuda) or 16 x 16 x 1 x 12 x 12 x 24 (cpu): time
"""

import argparse
import time
import warnings

import numpy as np

import relboltz as rb
from relboltz.records.result import box
from relboltz.validation import particles
from relboltz.validation.relaxing import ISOTROPIC

TIMES = (1.5, 2.0, 3.0, 5.0, 10.0)


def energy(ds):
    """Largest change of what is conserved of it."""
    total = box(ds, left=True).energy_total.values
    return float(np.abs(total / total[0] - 1).max())


def solved(given, model, grid, initial, **options):
    began = time.perf_counter()
    ds = rb.solve(model, grid, initial, backend=given.backend, progress=False, **options)
    return ds, time.perf_counter() - began


def gas(given) -> None:
    for knudsen in (0.1, 0.5):
        exact = particles.bjorken(0.0, knudsen, TIMES, 10**6, seed=1)
        found = []
        for n in (given.cells * 2 // 3, given.cells):
            grid = rb.PhaseSpace([n, n, 2 * n], [12.0, 12.0, 24.0], expansion="bjorken")
            f = np.exp(-np.sqrt(grid.momentum_squared))
            sigma = 1 / (knudsen * f.sum() * grid.measure)
            model = rb.Model([rb.Species("a", 1, 0)], [rb.Process("a a -> a a", sigma=sigma)])
            ds, s = solved(given, model, grid, f[None], start=1.0, end=10.0, every=0.5, samples=4)
            at = ds.sel(time=list(TIMES))
            ratio = at.pressure_ratio.values
            e = (at.energy_total / at.number.sum("species")).values
            found.append((n, ratio, e))
            print(f"Kn = {knudsen}, {n} x {n} x {2 * n}: {s:.1f} s, energy {energy(ds):.1e}, "
                  f"P_L/P_T off by {100 * (ratio / exact.ratio - 1).round(4)} %, "
                  f"e by {100 * (e / exact.energy - 1).round(4)} %", flush=True)  # fmt: skip
        (a, low, _), (b, high, _) = found
        limit = high + (high - low) / ((b / a) ** 2 - 1)
        print(f"  extrapolated in h^2: {100 * (limit / exact.ratio - 1).round(4)} %, particles "
              f"+-{100 * (exact.ratio_error / exact.ratio).round(4)} %", flush=True)  # fmt: skip


def hubble(given) -> None:
    t, rate = 0.3, 0.025
    for n in (given.cells, given.cells * 3 // 2):
        grid = rb.PhaseSpace(n, 14 * t, expansion="hubble", hubble_rate=rate)
        f = ISOTROPIC.f(np.sqrt(grid.momentum_squared), 0.0)
        model = ISOTROPIC.model(float(f.sum()) * grid.measure)  # n sigma = 1/fm at the start
        end = -np.log(1 - 3 * rate * 8.0) / (3 * rate)  # Int n sigma dt = 8
        ds, s = solved(given, model, grid, f[None], start=0.0, end=end, every=end, samples=8)
        k2, last = grid.momentum_squared, ds.f.values[-1].ravel()
        still = rb.equilibrium.local(grid, ISOTROPIC.model(1.0), f[None], np.zeros(1)).f[0]
        deviation = [1 - (v @ k2) / (still @ k2) for v in (f, last)]
        left = deviation[1] / deviation[0] * np.exp(8 / 3)
        print(f"{n}^3 nodes: {left:.4f} at tau = 8, {s:.1f} s, energy {energy(ds):.1e}", flush=True)


def late(given) -> None:
    for name, model in (("gluons", rb.gluons(0.3)), ("mixture", rb.qcd(0.3, alike=True))):
        grid = rb.PhaseSpace([20, 20, 49], [3.0, 3.0, 4.0], expansion="bjorken")
        start = {g: rb.initial.romatschke_strickland(0.5) for g in model.names}
        ds, s = solved(given, model, grid, start, start=1.0, end=30.0, every=1.0, samples=16)
        found = ds.rb.first_order(model)
        for tau in (5.0, 10.0, 20.0, 30.0):
            now = found.sel(time=tau)
            print(f"{name}, tau = {tau:g} fm: scaled time {float(now.scaled_time):.2f}, "
                  f"(P_T - P_L) tau/(2 eta) = {float(now.driven):.3f}", flush=True)  # fmt: skip
        print(f"  {s:.1f} s, energy {energy(ds):.1e}, doublings {ds.doublings.values[-1]}")
        ds.rb.plot_attractor(model).savefig(f"late_{name}.png")


def almond(given, sigma, angle=0.0, eccentricity=0.4, samples=8):
    """A massless classical gas in the plane."""
    grid = rb.PhaseSpace([9, 9, 17], [2.5, 2.5, 3.0], [14, 14, 1], [7.0, 7.0, 1.0],
                         boundary="open", expansion="bjorken")  # fmt: skip
    model = rb.Model([rb.Species("a", 16, 0)], [rb.Process("a a -> a a", sigma=sigma)])
    profile = rb.initial.gaussian_profile(radius=1.5, eccentricity=eccentricity, angle=angle)
    start = {"a": rb.initial.romatschke_strickland(0.4, profile=profile)}
    return solved(given, model, grid, start, start=0.4, end=3.0, every=0.65, samples=samples)


def symmetry(given) -> None:
    for label, angle, eccentricity in (
        ("round", 0.0, 0.0), ("straight", 0.0, 0.4), ("turned", np.pi / 4, 0.4)
    ):  # fmt: skip
        ds, s = almond(given, 0.3, angle, eccentricity)
        p2, p4 = (ds.rb.flow(n).v_integrated.values[-1, 0] for n in (2, 4))
        size = float(ds.rb.momentum_anisotropy()["size"][-1])
        print(f"{label}: v_2 {p2:.5f}, v_4 {p4:.5f}, energy flow {size:.5f}, {s:.0f} s, "
              f"energy {energy(ds):.1e}", flush=True)  # fmt: skip


def opacity(given) -> None:
    for sigma in (0.0125, 0.025, 0.05, 0.1, 0.2, 0.4, 0.8):
        ds, s = almond(given, sigma)
        v2 = float(ds.rb.flow(2).v_integrated[-1, 0])
        flow = float(ds.rb.momentum_anisotropy().epsilon_p[-1])
        print(f"sigma = {sigma} fm^2: v_2 {v2:.5f}, v_2/sigma {v2 / sigma:.4f}, energy flow "
              f"{flow:.5f}, {s:.0f} s", flush=True)  # fmt: skip


def plane(given) -> None:
    large = given.backend == "cuda"
    space, momenta, end = (32, [24, 24, 48], 10.0) if large else (16, [12, 12, 24], 3.0)
    grid = rb.PhaseSpace(momenta, [4.0, 4.0, 5.0], [space, space, 1], [10.0, 10.0, 1.0],
                         boundary="open", expansion="bjorken")  # fmt: skip
    profile = rb.initial.gaussian_profile(radius=2.0, eccentricity=0.3)
    start = {"g": rb.initial.romatschke_strickland(0.6, xi=1.0, profile=profile)}
    ds, s = solved(given, rb.gluons(0.3), grid, start, start=0.2, end=end, every=0.7, samples=16)
    gone = float(ds.left_number[-1].sum() * ds.scale[-1].prod() / ds.total_number[0].sum())
    v2, quanta = float(ds.rb.flow(2).v_integrated[-1, 0]), int(abs(ds.charge_drift).max())
    took = f"{s:.0f} s (loop {ds.attrs['wall_seconds']:.0f} s), {ds.attrs['steps']} steps"
    print(f"{took}, number {quanta} quanta, energy {energy(ds):.1e}, {100 * gone:.1f} % left, "
          f"v_2 {v2:.4f}")  # fmt: skip


PARTS = {f.__name__: f for f in (gas, hubble, late, symmetry, opacity, plane)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="+", choices=PARTS)
    parser.add_argument("--backend", default="cpu")
    parser.add_argument("--cells", type=int, default=36)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    for part in given.parts:
        print(f"-- {part}, {given.backend}", flush=True)
        PARTS[part](given)


if __name__ == "__main__":
    main()
