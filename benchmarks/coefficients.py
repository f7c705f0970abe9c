"""Compare transport coefficients with independent values, through the public interface.

    python benchmarks/coefficients.py [PART ...] [--events N] [--backend cpu|cuda] [--threads N]
        [--seed N] [--json F]

table      classical gas with a constant cross section, m/T = 0, 1, 3: eta, zeta, kappa, D
phi4       |M|^2 = lambda^2, classical and Bose
conformal  purely thermal masses: the bulk viscosity is 0
coupling   effective kinetic theory with 0, 1, 3 flavours: slope of T^3/(g^4 eta) against ln(1/g),
           and of 1/(g^4 T D) with 3
pulls      (value - converged value)/error over 160 seeds: standard deviation and mean
mixture    eta/s of the full mixture with alpha_s = 0.3: time to 1 %
nodes      error of a spacing: coefficient on nodes over unlimited momenta, minus 1
relaxing   eta of a relaxing run on nodes over that of brackets on the same nodes, minus 1

Without PART, all parts except ``relaxing`` and ``pulls`` are measured, which takes minutes.
"""

import argparse
import json
import time
import warnings
from pathlib import Path

import numpy as np

import relboltz as rb
from relboltz.grid.units import HBARC
from relboltz.studies.validation.weak_coupling import DIFFUSION, VISCOSITY, flavor_diffusion, weak
from relboltz.studies.viscosity_from_decay import relaxing_viscosity

ROWS: list[dict] = []
SIGMA = HBARC**2
"""1 GeV^-2 in fm^2: with T = 1 GeV all entries of the table are pure numbers."""
TABLE = {
    0.0: (1.26757, 0.0, 0.15892, 0.46562),
    1.0: (1.30641, 0.002463, 0.10810, 0.41785),
    3.0: (1.47601, 0.009398, 0.03843, 0.32354),
}
"""m/T: eta sigma/T, zeta sigma/T, kappa sigma, D n sigma, by quadrature."""
SEEDS = 160
"""Number of seeds for pulls."""


def tell(what: str, value: float, error: float, asked: float, seconds: float) -> None:
    """Print a row and keep it: value, error and distance relative to the expected value."""
    if not ROWS:
        print(f"{'what':46s} {'value':>12s} {'error %':>8s} {'off %':>8s} {'s':>6s}  asked")
    unit = abs(asked) if asked else 1.0
    off = (value - asked) / unit
    ROWS.append(dict(what=what, value=value, error=error, asked=asked, off=off, seconds=seconds))
    print(
        f"{what:46s} {value:12.6g} {100 * error / unit:8.3f} {100 * off:+8.3f} {seconds:6.1f}  "
        f"{asked:.6g}", flush=True,
    )  # fmt: skip


def gas(mass: float, statistics: int = 0) -> rb.Model:
    """Return a model of one species with a constant cross section of 1 GeV^-2."""
    process = rb.Process("x x -> x x", sigma=SIGMA)
    return rb.Model([rb.Species("x", 1, statistics)], [process], masses={"x": mass})


def number(ds, name: str) -> tuple[float, float]:
    """Return a value and its error."""
    return float(ds[name]), float(ds[f"{name}_error"])


def timed(*given, **options):
    """Return coefficients and the seconds that they took after compilation."""
    rb.transport_coefficients(*given, **options | {"events": 2e4})
    begin = time.perf_counter()
    ds = rb.transport_coefficients(*given, **options)
    return ds, time.perf_counter() - begin


def table(options: dict) -> None:
    for mass, (eta, zeta, kappa, d) in TABLE.items():
        ds, s = timed(gas(mass), 1.0, tagged="x", **options)
        n = float(ds.number.sum()) * HBARC**3
        for what, name, unit, asked in (
            ("eta sigma/T", "shear_viscosity", HBARC**2, eta),
            ("zeta sigma/T", "bulk_viscosity", HBARC**2, zeta),
            ("D n sigma", "tagged_diffusion", n / HBARC, d),
        ):
            value, error = number(ds, name)
            tell(f"m/T = {mass:g}: {what}", value * unit, error * unit, asked, s)
        value, error = float(ds.diffusion[0, 0]), float(ds.diffusion_error[0, 0])
        tell(f"m/T = {mass:g}: kappa sigma", value * HBARC**2, error * HBARC**2, kappa, s)


def quartic(s, coupling):
    """Return |M|^2 of phi^4."""
    return coupling * coupling


def phi4(options: dict) -> None:
    for statistics, asked in ((0, 1536 * np.pi), (1, 3033.5)):
        process = rb.Process("x x -> x x", quartic, coupling=1.0)
        ds, s = timed(rb.Model([rb.Species("x", 1, statistics)], [process]), 1.0, **options)
        value, error = number(ds, "shear_viscosity")
        name = "Bose" if statistics else "classical"
        tell(f"phi^4 {name}: eta lambda^2/T^3", value * HBARC**2, error * HBARC**2, asked, s)


def conformal(options: dict) -> None:
    for mu in (0.0, 0.3):
        ds, s = timed(rb.qcd(0.3), 0.4, {"net u": mu}, **options)
        tell(f"qcd, mu_u = {mu:g} GeV: zeta/s", *number(ds, "bulk_viscosity_over_entropy"), 0.0, s)


def coupling(options: dict) -> None:
    couplings = (0.1, 0.03, 0.01, 0.004)
    for flavors, eta_1 in VISCOSITY.items():
        found = [timed(weak(g, flavors), 1.0, **options) for g in couplings]
        s = sum(seconds for _, seconds in found)
        eta = [[v * HBARC**2 for v in number(ds, "shear_viscosity")] for ds, _ in found]
        slopes(f"N_f = {flavors}: T^3/(g^4 eta)", couplings, eta, 1 / eta_1, s)
        if flavors in DIFFUSION:
            d = [flavor_diffusion(ds) for ds, _ in found]
            slopes(f"N_f = {flavors}: 1/(g^4 T D)", couplings, d, 1 / DIFFUSION[flavors], s)


def slopes(what: str, couplings: tuple, values: list, asked: float, s: float) -> None:
    """Report slopes of 1/(g^4 value) against ln(1/g) between neighbouring couplings."""
    inverse = [1 / (v * g**4) for (v, _), g in zip(values, couplings, strict=True)]
    errors = [i * error / v for i, (v, error) in zip(inverse, values, strict=True)]
    for i in range(len(couplings) - 1):
        width = np.log(couplings[i] / couplings[i + 1])
        slope = (inverse[i + 1] - inverse[i]) / width
        error = np.hypot(errors[i + 1], errors[i]) / width
        tell(f"{what}, g = {couplings[i]:g} to {couplings[i + 1]:g}", slope, error, asked, s)


def pulls(options: dict) -> None:
    cases = {
        f"N_f = {n}, g = {g:g}": (weak(g, n), 1.0) for n in (0, 1, 3) for g in (0.01, 0.1, 0.5)
    }
    cases["alpha_s = 0.3"] = (rb.qcd(0.3), 0.4)
    cases["alpha_s = 0.3, ekt"] = (rb.qcd(0.3, screening="ekt"), 0.4)
    for name, (model, t) in cases.items():
        best, s = timed(model, t, **options)
        rows = [
            rb.transport_coefficients(
                model, t, **options | {"events": options["events"] / 100, "seed": 1000 + i}
            )
            for i in range(SEEDS)
        ]
        for what in ("shear_viscosity", "conductivity"):
            if np.isnan(best[what]):
                continue
            values, errors = np.array([number(ds, what) for ds in rows]).T
            each = (values - float(best[what])) / errors
            part = float(np.mean(errors / values))
            words = f"{name}: pulls of {what} ({100 * part:.2g} %)"
            tell(words, each.std(ddof=1), 1 / np.sqrt(2 * SEEDS), 1.0, s)
            off = np.hypot(1 / np.sqrt(SEEDS), float(best[f"{what}_error"] / best[what]) / part)
            tell(f"{name}: mean", each.mean(), off, 0.0, s)


def mixture(options: dict) -> None:
    ds, s = timed(rb.qcd(0.3), 0.4, **options)
    value, error = number(ds, "shear_viscosity_over_entropy")
    tell("qcd, alpha_s = 0.3, T = 0.4 GeV: eta/s", value, error, value, s)
    value, error = number(ds, "conductivity_over_temperature")
    tell("qcd, alpha_s = 0.3, T = 0.4 GeV: sigma_el/T", value, error, value, s)


def nodes(options: dict) -> None:
    exact = TABLE[1.0][0]
    for cells, width in ((24, 12.0), (32, 12.0), (48, 12.0)):
        ds, s = timed(gas(1.0), 1.0, grid=rb.PhaseSpace(cells, width), **options)
        for part in ("", "_axes", "_planes"):
            value, error = number(ds, f"shear_viscosity{part}")
            spacing = f"h/T = {2 * width / cells:.2f}"
            unit = HBARC**2
            tell(f"m/T = 1, {spacing}: eta{part} sigma/T", value * unit, error * unit, exact, s)


def relaxing(options: dict) -> None:
    grid = rb.PhaseSpace(16, 8.0)
    ds, _ = timed(gas(1.0), 1.0, grid=grid, **options)
    begin = time.perf_counter()
    some = {k: v for k, v in options.items() if k in ("backend", "threads")}
    runs = [
        relaxing_viscosity(
            gas(1.0), 1.0, grid=grid, relaxation_time=float(ds.shear_relaxation_time), seed=seed,
            tolerance=1e-4, samples=16, **some,
        )
        for seed in range(1, 5)
    ]  # fmt: skip
    s = time.perf_counter() - begin
    for part in ("axes", "planes"):
        asked, error = number(ds, f"shear_viscosity_{part}")
        values = np.array([float(run[f"shear_viscosity_{part}"]) for run in runs])
        error = np.hypot(error, values.std(ddof=1) / 2)
        tell(f"relaxing run, {part}: eta [GeV fm^-2]", values.mean(), error, asked, s)


LONG = (pulls, relaxing)
PARTS = {f.__name__: f for f in (table, phi4, conformal, coupling, mixture, nodes, *LONG)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], default=[])
    parser.add_argument("--events", type=float, default=4e6)
    parser.add_argument("--backend", default="cpu")
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    options = dict(
        events=given.events, backend=given.backend, threads=given.threads, seed=given.seed
    )
    warnings.simplefilter("ignore")
    for name in given.parts or [name for name, part in PARTS.items() if part not in LONG]:
        PARTS[name](options)
    if given.json is not None:
        given.json.write_text(json.dumps(ROWS, indent=2) + "\n")


if __name__ == "__main__":
    main()
