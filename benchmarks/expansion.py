"""Compare expanding matter with independent values, and measure the cost.

    python benchmarks/expansion.py PART ... [--backend cpu|cuda], other options by part

gas             massless gas, Kn = 1/(n sigma tau) constant, against particles that collide in
                pairs, on --cells and on two thirds of them, and extrapolated to spacing 0
hubble          exact solution in Hubble flow, n_0 sigma/H = 40: remaining deviation at tau = 8
late            (P_T - P_L) tau/(2 eta) of gluons and mixture with thermal masses, and a figure
round_plane     v_4 of a round plane, with --seeds seeds
turned_almond   v_2 of an almond along the axes and turned by 45 degrees
opacity         v_2 of an almond against sigma
plane           gluons, 32 x 32 x 1 x 24 x 24 x 48 (cuda) or 16 x 16 x 1 x 12 x 12 x 24 (cpu): time
"""

import argparse
import time
import warnings

import matplotlib.pyplot as plt
import numpy as np

import relboltz as rb
from relboltz.io.result import box
from relboltz.studies.validation import particles
from relboltz.studies.validation.exact_relaxation import ISOTROPIC

TIMES = (1.5, 2.0, 3.0, 5.0, 10.0)


def energy(ds):
    """Return the largest relative change of the total energy, including what left the box."""
    total = box(ds, left=True).energy_total.values
    return float(np.abs(total / total[0] - 1).max())


def solved(given, model, grid, initial, **options):
    began = time.perf_counter()
    ds = rb.solve(model, grid, initial, backend=given.backend, progress=False, **options)
    return ds, time.perf_counter() - began


def gas(given) -> None:
    for knudsen in (0.1, 0.5):
        exact = particles.bjorken(0.0, knudsen, TIMES, int(given.particles), seed=1)
        found = []
        for n in (given.cells * 2 // 3, given.cells):
            grid = rb.PhaseSpace([n, n, 2 * n], [12.0, 12.0, 24.0], expansion="bjorken")
            f = np.exp(-np.sqrt(grid.momentum_squared))
            sigma = 1 / (knudsen * f.sum() * grid.measure)
            model = rb.Model([rb.Species("a", 1, 0)], [rb.Process("a a -> a a", sigma=sigma)])
            ds, s = solved(given, model, grid, f[None], start=1.0, end=10.0, every=0.5, samples=4,
                           tolerance=given.tolerance)  # fmt: skip
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
        model = ISOTROPIC.model(float(f.sum()) * grid.measure)  # initially n sigma = 1/fm
        end = -np.log(1 - 3 * rate * 8.0) / (3 * rate)  # Int n sigma dt = 8
        ds, s = solved(given, model, grid, f[None], start=0.0, end=end, every=end, samples=8)
        k2, last = grid.momentum_squared, ds.f.values[-1].ravel()
        still = rb.equilibrium.local(grid, ISOTROPIC.model(1.0), f[None], np.zeros(1)).f[0]
        deviation = [1 - (v @ k2) / (still @ k2) for v in (f, last)]
        left = deviation[1] / deviation[0] * np.exp(8 / 3)
        print(f"{n}^3 nodes: {left:.4f} at tau = 8, {s:.1f} s, energy {energy(ds):.1e}", flush=True)


def late(given) -> None:
    for name, model in (
        ("gluons", rb.gluons(0.3)),
        ("mixture", rb.qcd(0.3, flavor_symmetric=True)),
    ):
        fig, axes = plt.subplots(figsize=(5, 4), layout="constrained")
        for first in (1.0, 5.0, 25.0):
            grid = rb.PhaseSpace([48, 48, 97], [6.5, 6.5, 8.0], expansion="bjorken")
            start = {g: rb.initial.romatschke_strickland(0.5) for g in model.names}
            ds, s = solved(given, model, grid, start, start=first, end=5 * first,
                           every=first / 4, samples=16)  # fmt: skip
            found = ds.rb.first_order(model)
            for now in (2, 3, 4, 5):
                at = found.sel(time=now * first)
                print(f"{name}, tau = {now * first:g} fm, T = "
                      f"{float(ds.landau_temperature.sel(time=now * first)):.3f} GeV: scaled time "
                      f"{float(at.scaled_time):.2f}, (P_T - P_L) tau/(2 eta) = "
                      f"{float(at.driven):.3f}", flush=True)  # fmt: skip
            print(f"  {s:.1f} s, energy {energy(ds):.1e}, doublings {ds.doublings.values[-1]}")
            axes.plot(found.scaled_time, found.driven, label=f"from {first:g} fm on")
        axes.axhline(1, color="0.6", lw=0.8, zorder=0)
        axes.set(xscale="log", xlabel=r"scaled time $\tau (e + P)/(4\pi\eta)$", ylim=(0, 1.3),
                 ylabel=r"$(P_T - P_L)\,\tau/(2\eta)$", title=name)  # fmt: skip
        axes.legend(frameon=False)
        fig.savefig(f"late_{name}.png", dpi=120)


def almond(given, sigma, angle=0.0, eccentricity=0.4, nodes=9, cells=14, most=3.0, **options):
    """Solve a massless classical gas in the plane, initially thermal."""
    grid = rb.PhaseSpace([nodes, nodes, 2 * nodes - 1], [most, most, 3.0], [cells, cells, 1],
                         [7.0, 7.0, 1.0], boundary="open", expansion="bjorken")  # fmt: skip
    model = rb.Model([rb.Species("a", 16, 0)], [rb.Process("a a -> a a", sigma=sigma)])
    profile = rb.initial.gaussian_profile(radius=1.5, eccentricity=eccentricity, angle=angle)
    start = {"a": rb.initial.romatschke_strickland(0.4, profile=profile, sampling="node")}
    return solved(given, model, grid, start, start=0.4, end=3.0, every=0.65, samples=8,
                  snapshots=[], **options)  # fmt: skip


def flowing(ds, n, angle=0.0):
    """Return the final v_n exp(i n (Psi_n - angle))."""
    both = (ds.rb.flow(n, angle=angle + turn).v_integrated[-1, 0] for turn in (0, 0.5 * np.pi / n))
    return complex(*map(float, both))


def told(values):
    """Format the mean over seeds and its error."""
    mean = np.mean(values)
    if len(values) < 2:
        return f"{mean:.6f}"
    return f"{mean:.6f} +- {np.std(values, ddof=1) / np.sqrt(len(values)):.6f}"


def sizes(given, usual, small):
    """Return nodes, space cells and box [GeV] of planes.

    As given, or the defaults on a GPU or a CPU.
    """
    if given.nodes:
        return [(n, given.space, given.most) for n in given.nodes]
    return usual if given.backend == "cuda" else small


def round_plane(given) -> None:
    """Measure v_4 along the axes, due to the lattice; its other component and v_2 are noise."""
    usual = [(n, 20, 4.5) for n in (28, 42, 60)]
    for nodes, cells, most in sizes(given, usual, [(14, 14, 3.0)]):
        found = []
        for seed in range(1, given.seeds + 1):
            ds, s = almond(given, 0.3, eccentricity=0.0, seed=seed, nodes=nodes, cells=cells,
                           most=most)  # fmt: skip
            found.append((flowing(ds, 4), flowing(ds, 2)))
        four, two = np.array(found).T
        noise = np.sqrt(np.mean(np.concatenate([four.imag, two.real, two.imag]) ** 2))
        print(f"{nodes} nodes to {most} GeV, {cells} cells, {s:.0f} s each, energy "
              f"{energy(ds):.1e}: v_4 {told(four.real)} ({four.real.round(6)}), noise of one run "
              f"{noise:.1e}", flush=True)  # fmt: skip


def turned_almond(given) -> None:
    """Measure v_2 of an almond along the axes and turned by 45 degrees.

    Also for p_T above 0.5 GeV.
    """
    usual = [(n, 40, 3.0) for n in (28, 40, 56)]
    for nodes, cells, most in sizes(given, usual, [(9, 14, 3.0), (14, 14, 3.0)]):
        for label, angle in (("straight", 0.0), ("turned", np.pi / 4)):
            found = []
            for seed in range(1, given.seeds + 1):
                ds, s = almond(given, 0.3, angle, nodes=nodes, cells=cells, most=most, seed=seed)
                found.append(flowing(ds, 2, angle).real)
            size = float(ds.rb.momentum_anisotropy()["size"][-1])
            print(f"{nodes} nodes, {cells} cells, {label}: v_2 {told(found)}, above 0.5 GeV "
                  f"{hard(ds, angle):.5f}, energy flow {size:.5f}, {s:.0f} s each",
                  flush=True)  # fmt: skip


def hard(ds, angle):
    """Return the final v_2 of particles with p_T from 0.5 to 3 GeV; cut rings count in part."""
    v, number = ds.rb.flow(2, angle=angle).v[-1, 0], ds.rb.dN_dpT()[-1, 0]
    edges = np.arange(number.size + 1) * float(number.width[0])
    share = np.clip(
        (np.minimum(edges[1:], 3.0) - np.maximum(edges[:-1], 0.5)) / np.diff(edges), 0, 1
    )
    weight = share * number.values
    return float(np.nansum(weight * v.values) / weight[np.isfinite(v.values)].sum())


def opacity(given) -> None:
    nodes, cells = (14, 20) if given.backend == "cuda" else (9, 14)
    for sigma in (0.0125, 0.025, 0.05, 0.1, 0.2, 0.4, 0.8):
        ds, s = almond(given, sigma, nodes=nodes, cells=cells)
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
    ds, s = solved(given, rb.gluons(0.3), grid, start, start=0.2, end=end, every=0.7,
                   samples=given.samples)  # fmt: skip
    gone = float(ds.left_number[-1].sum() * ds.scale[-1].prod() / ds.total_number[0].sum())
    v2, quanta = float(ds.rb.flow(2).v_integrated[-1, 0]), int(abs(ds.charge_drift).max())
    took = f"{s:.0f} s (loop {ds.attrs['wall_seconds']:.0f} s), {ds.attrs['steps']} steps"
    print(f"{took}, number {quanta} quanta, energy {energy(ds):.1e}, {100 * gone:.1f} % left, "
          f"v_2 {v2:.4f}")  # fmt: skip


PARTS = {f.__name__: f for f in (gas, hubble, late, round_plane, turned_almond, opacity, plane)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="+", choices=PARTS)
    parser.add_argument("--backend", default="cpu")
    parser.add_argument("--cells", type=int, default=36)
    parser.add_argument("--tolerance", type=float, default=1e-3)
    parser.add_argument("--particles", type=float, default=1e6)
    parser.add_argument("--seeds", type=int, default=2, help="of round_plane and turned_almond")
    parser.add_argument("--nodes", type=int, nargs="*", help="of these two, in place of the usual")
    parser.add_argument("--space", type=int, default=20, help="space cells with --nodes")
    parser.add_argument("--most", type=float, default=3.0, help="box with --nodes [GeV]")
    parser.add_argument("--samples", type=int, default=8, help="of plane")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    for part in given.parts:
        print(f"-- {part}, {given.backend}", flush=True)
        PARTS[part](given)


if __name__ == "__main__":
    main()
