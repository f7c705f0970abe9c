"""Compare relaxation rates with exact and converged values, through the public interface.

    python benchmarks/relaxation.py PART [PART ...] [--backend cpu|cuda] [--samples 4 16 64]
        [--seeds N] [--cells 64 96] [--tolerance X] [--step X] [--threads N] [--json F]

gluons     late decay rate of the distance from equilibrium
exact      remaining deviation in a massless gas with a constant cross section
quadrupole remaining deviation of the slowest mode of that gas with l = 2
mixture    numbers of quarks and gluons, and the late rate, from few and from many samples
sound      speed and damping of sound in the massless gas, for several spacings
variance   seconds times variance between seeds
tolerance  effect of a smaller tolerance, for three set-ups

Without options every part uses its own defaults; errors are those of the mean over seeds.
"""

import argparse
import json
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np

import relboltz as rb
from relboltz.grid.units import HBARC
from relboltz.studies.validation.waves import EXACT, damped_wave, of_the_nodes

T = 0.3
"""Temperature of the massless gas [GeV]; sets the scale only."""
ROWS: list[dict] = []


def tell(what: str, asked: str, measured: float, error: float = np.nan, **more: object) -> None:
    """Print a row of the table and keep it."""
    if not ROWS:
        print(f"{'what':72s} {'measured':>10s} {'error':>8s}  asked", flush=True)
    known = float(error) if np.isfinite(error) else None
    ROWS.append(dict(what=what, asked=asked, measured=float(measured), error=known, **more))
    shown = 8 * " " if known is None else f"{known:8.1g}"
    print(f"{what:72s} {measured:10.5g} {shown}  {asked}", flush=True)


def mean(values: object) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean over seeds, the first axis, and its error."""
    values = np.asarray(values, float)
    n = len(values)
    error = values.std(axis=0, ddof=1) / np.sqrt(n) if n > 1 else np.full(values.shape[1:], np.nan)
    return values.mean(axis=0), error


def by_spacing(label: str, spacings: dict, asked: dict, seeds: int, run: Callable) -> None:
    """Report ``run(cells, seed)`` for each number of cells, and extrapolated in h^2 to h = 0.

    spacings : h by number of cells; asked : requirement on each quantity of a run
    """
    means, errors = [], []
    for cells in spacings:
        value, error = mean([run(cells, seed) for seed in range(seeds)])
        means.append(value)
        errors.append(error)
        for name, *row in zip(asked, value, error, strict=True):
            tell(f"{label}, {cells}^3: {name}", "", *row)
    if len(spacings) < 2:
        return
    h2 = np.array([*spacings.values()]) ** 2
    weight = np.linalg.pinv(np.stack([np.ones(len(h2)), h2], axis=1))[0]  # straight-line fit
    value, error = weight @ means, np.sqrt(weight**2 @ np.square(errors))
    for (name, bar), *row in zip(asked.items(), value, error, strict=True):
        tell(f"{label}, h -> 0: {name}", bar, *row)


def step_start() -> dict:
    """Return the paper's initial conditions: gluons below 1.5 GeV, evaluated at the nodes."""
    return {"g": rb.initial.step(0.5, 1.5, sampling="node")}


# --- gluons -------------------------------------------------------------------------------------

CONVERGED = 1.1534
"""Late rate of the gluons [1/fm]: 256 samples, steps of 0.005 fm."""


def gluons(given: argparse.Namespace, options: dict) -> None:
    """Measure the decay rate of equilibrium_distance from 5 to 8 fm: 20^3 nodes, box 2.5 GeV."""
    grid = rb.PhaseSpace((given.cells or [20])[0], 2.5)
    for samples in given.samples or (4, 16, 64):
        rates, steps = [], []
        for seed in range(given.seeds or 4):
            ds = rb.solve(
                rb.gluons(0.3), grid, {"g": rb.initial.step(0.5, 1.5)}, end=8.0, every=1.0,
                snapshots=[], samples=samples, seed=seed, **options,
            )  # fmt: skip
            far = ds.equilibrium_distance.values
            rates.append(np.log(far[5] / far[8]) / 3)
            steps.append(int(ds.attrs["steps"]))
        asked = f"{CONVERGED} within {2 if samples < 16 else 1} %"
        tell(f"gluons, {samples} samples: late rate [1/fm]", asked, *mean(rates), steps=steps)


# --- the exactly soluble gas --------------------------------------------------------------------


def isotropic(s, strength):
    """Return |M|^2 of a constant cross section: 32 pi sigma s, degeneracy 1."""
    return strength * s


def hard_spheres(density: float) -> rb.Model:
    """Return a massless classical gas with 1/(n sigma) = 1 fm at this density [fm^-3]."""
    strength = 32 * np.pi / (density * HBARC**2)
    process = rb.Process("a a -> a a", isotropic, strength=strength)
    return rb.Model([rb.Species("a", 1, 0)], [process])


def too_soft(grid: rb.PhaseSpace) -> tuple[np.ndarray, Callable]:
    """Return an initial f with 15/16 of the equilibrium <k^2>, and its deviation of <k^2>.

    f = (k/T) exp(-k/(K T)) (1 - K)/K^5 with K = 3/4 is the exact solution at tau = 0. Its moments
    over their equilibrium values are M_n = n K^(n-1) - (n-1) K^n with K = 1 - exp(-tau/6)/4. So
    1 - M_2 = (1 - K)^2 = exp(-tau/3)/16: the deviation of <k^2> decays with n sigma/3, exactly.
    """
    k = np.sqrt(grid.momentum_squared)
    start = k / T * np.exp(-k / (0.75 * T)) * 0.25 / 0.75**5
    still = rb.equilibrium.local(grid, hard_spheres(1.0), start[None], np.zeros(1))
    return start, lambda f: 1 - np.sum(k**2 * f) / np.sum(k**2 * still.f[0])


def slowest_quadrupole(grid: rb.PhaseSpace) -> tuple[np.ndarray, Callable]:
    """Return a small deformation of equilibrium that decays at the rate n sigma/2, and its moment.

    Isotropic scattering of massless p and q with P = p + q gives, summed over both,
    k^i k^j -> (2/3) P^i P^j and k^i k^j k -> (1/2) P^i P^j P^0, up to traces. Averaged over an
    equilibrium of q with the rate n sigma (1 - cos), and with L the linear collision operator,

        L k^2 Y_2 = n sigma (-k^2/3 - 4 T k/3) Y_2
        L k^3 Y_2 = n sigma (-k^3/2 + T k^2/2 - 4 T^2 k) Y_2

    so that L (k^3 - 3 T k^2) Y_2 = -(n sigma/2) (k^3 - 3 T k^2) Y_2.
    """
    k = np.sqrt(grid.momentum_squared) / T
    shape = (k - 3) * (3 * (grid.momenta[2] / T) ** 2 - k**2) / 2
    return np.exp(-k) * (1 + 1e-4 * shape), lambda f: np.sum(shape * f)


def left_over(
    case: Callable, decay: float, bars: dict, given: argparse.Namespace, options: dict
) -> None:
    """Report the remaining deviation that a case measures, over its exact decay.

    bars : required accuracy [%] by tau = n sigma t
    """
    box = given.box or 18.0
    cells = given.cells or ([64, 96] if options["backend"] == "cuda" else [24, 32, 48])
    asked = {f"left at tau = {tau}, over exact": f"1 within {e} %" for tau, e in bars.items()}
    times = np.array([0.0, *bars])
    for samples in given.samples or (16,):

        def run(n, seed, samples=samples):
            start, measured = case(grid := rb.PhaseSpace(n, box * T))
            ds = rb.solve(
                hard_spheres(start.sum() * grid.measure), grid, start[None], end=times[-1],
                every=times[-1], snapshots=list(times), samples=samples, seed=seed, **options,
            )  # fmt: skip
            deviation = [measured(f.ravel()) for f in ds.f.values]
            return (deviation / deviation[0] * np.exp(decay * times))[1:]

        label = f"{case.__name__.replace('_', ' ')}, {samples} samples"
        by_spacing(label, {n: 2 * box / n for n in cells}, asked, given.seeds or 4, run)


def exact(given: argparse.Namespace, options: dict) -> None:
    """Massless gas, constant cross section, L = 18 T: the exact solution, with decay rate 1/3."""
    left_over(too_soft, 1 / 3, {4: 1, 8: 2, 16: 4}, given, options)


def quadrupole(given: argparse.Namespace, options: dict) -> None:
    """Massless gas, constant cross section: the slowest mode with l = 2, with decay rate 1/2."""
    left_over(slowest_quadrupole, 1 / 2, {4: 1, 8: 2}, given, options)


# --- the mixture --------------------------------------------------------------------------------

LATE = 20, 30
"""Interval in which the late rate of the quark number is measured [fm]."""


def mixture(given: argparse.Namespace, options: dict) -> None:
    """Measure numbers at 1, 5 and 20 fm and the late quark rate: 34 processes, 20^3 nodes."""
    grid = rb.PhaseSpace((given.cells or [20])[0], 2.0)
    several = given.samples or (4, 16, 64)
    numbers, rates = [], []
    for samples in several:
        runs = [
            rb.solve(
                rb.qcd(0.3), grid, step_start(), end=LATE[1], every=1.0, snapshots=[],
                samples=samples, seed=seed, **options,
            )
            for seed in range(given.seeds or 2)
        ]  # fmt: skip
        gluon = np.array([ds.number.sel(species="g").values for ds in runs])
        quark = np.array([ds.number.sum("species").values for ds in runs]) - gluon
        end = float(runs[0].equilibrium_number.sum() - runs[0].equilibrium_number[0])
        first, last = (end - quark[:, t] for t in LATE)
        rates.append(np.log(first / last) / (LATE[1] - LATE[0]))
        numbers.append(np.stack([gluon[:, [1, 5, 20]], quark[:, [1, 5, 20]]], axis=1))
        for k, name in enumerate(("gluons", "quarks")):
            for t, value, error in zip((1, 5, 20), *(m[k] for m in mean(numbers[-1])), strict=True):
                tell(f"mixture, {samples} samples: {name} at {t} fm [fm^-3]", "", value, error)
        tell(f"mixture, {samples} samples: late rate of quarks [1/fm]", "", *mean(rates[-1]),
             steps=[int(ds.attrs["steps"]) for ds in runs])  # fmt: skip
    for what, values, bar in (("number", numbers, 0.3), ("late rate", rates, 1.0)):
        means, errors = (np.array(column) for column in zip(*map(mean, values), strict=True))
        centre = means.mean(axis=0)
        apart = float((np.ptp(means, axis=0) / centre).max())
        error = float((np.sqrt((errors**2).sum(axis=0)) / centre).max())
        names = ", ".join(map(str, several))
        tell(f"mixture, {names} samples: largest disagreement, {what} [%]", f"within {bar}",
             100 * apart, 100 * error)  # fmt: skip


# --- sound --------------------------------------------------------------------------------------


def standing_wave(k: float, grid: rb.PhaseSpace, amplitude: float, options: dict) -> np.ndarray:
    """Return speed and damping of a standing wave over their exact values, from 1.25 periods."""
    speed, damping = EXACT[k]["speed"], EXACT[k]["sound"]
    density = np.exp(-np.sqrt(grid.momentum_squared) / T).sum() * grid.measure

    def warm(x, y, z, px, py, pz):
        local = T * (1 + amplitude * np.cos(k * x))
        return np.exp(-np.sqrt(px**2 + py**2 + pz**2) / local)

    period = 2 * np.pi / (speed * k)
    ds = rb.solve(
        hard_spheres(density), grid, {"a": rb.initial.from_function(warm, sampling="node")},
        end=1.25 * period, every=period / 40, **options,
    )  # fmt: skip
    energy = ds.energy_total.values[:, :, 0, 0]
    wave = (energy * np.cos(k * grid.space_axis(0))).mean(axis=1) / energy.mean()
    late = ds.time.values > 10.0  # [mean free paths]; by then only sound is left
    found = damped_wave(ds.time.values[late], wave[late], (speed * k, damping))
    return np.array(found) / (speed * k, damping)


def sound(given: argparse.Namespace, options: dict) -> None:
    """Measure massless hard spheres along x: k/(n sigma) = 0.1 and 0.2, several spacings."""
    box = given.box or 12.0
    cells = given.cells or ([24, 32, 48] if options["backend"] == "cuda" else [16, 20])
    asked = {"speed": "", "damping": "", "speed over that of the nodes": "1 within 0.5 %",
             "damping over that of the nodes": "1 within 3 %"}  # fmt: skip
    for k in given.waves:
        for samples in given.samples or (4, 16):

            def run(n, seed, k=k, samples=samples):
                grid = rb.PhaseSpace(n, box * T, [given.space, 1, 1], [np.pi / k, 1.0, 1.0])
                how = dict(options, samples=samples, seed=seed)
                found = standing_wave(k, grid, given.amplitude, how)
                nodes = of_the_nodes(grid)
                return np.array([*found, *found / (nodes["speed"], nodes["sound"])])

            label = f"sound, k = {k}, {samples} samples"
            by_spacing(label, {n: 2 * box / n for n in cells}, asked, given.seeds or 2, run)


# --- variance -----------------------------------------------------------------------------------


def quark_number(ds) -> float:
    """Return the final density of all quarks and antiquarks [fm^-3]."""
    return float((ds.number.sum("species") - ds.number.sel(species="g"))[-1])


def fourth_moment(ds) -> float:
    """Return the final mean p^4 of the gluons [GeV^4]."""
    f = ds.f.values[-1, 0]
    p2 = sum(np.meshgrid(*(ds[name].values ** 2 for name in ("px", "py", "pz")), indexing="ij"))
    return float((f * p2**2).sum() / f.sum())


def variance(given: argparse.Namespace, options: dict) -> None:
    """Measure seconds of solve() times variance between seeds.

    30^3 nodes, 1 fm, default settings.
    """
    grid = rb.PhaseSpace((given.cells or [30])[0], 2.0)
    cases = (
        ("gluons, mean p^4", rb.gluons(0.3), fourth_moment),
        ("mixture, quark number", rb.qcd(0.3), quark_number),
    )
    for name, model, quantity in cases:
        for samples in given.samples or (16,):
            setup = dict(end=1.0, every=1.0, snapshots=[1.0], samples=samples, **options)
            short = dict(setup, end=0.01, snapshots=[0.01])
            rb.solve(model, grid, step_start(), **short)  # compiles
            values, seconds, steps = [], [], []
            for seed in range(given.seeds or 16):
                began = time.perf_counter()
                ds = rb.solve(model, grid, step_start(), seed=seed, **setup)
                seconds.append(time.perf_counter() - began)
                values.append(quantity(ds))
                steps.append(int(ds.attrs["steps"]))
            relative = np.var(values, ddof=1) / np.mean(values) ** 2
            unsure = np.sqrt(2 / (len(values) - 1))  # relative error of a variance
            typical = float(np.median(seconds))
            label = f"{name}, {samples} samples"
            tell(f"{label}: value", "", *mean(values), steps=steps)
            tell(f"{label}: seconds of solve()", "", typical, seconds=seconds)
            tell(f"{label}: relative variance", "", relative, relative * unsure)
            tell(f"{label}: seconds times relative variance", "no larger than before",
                 typical * relative, typical * relative * unsure)  # fmt: skip


# --- tolerance ----------------------------------------------------------------------------------


def gluons_at(seed: int, options: dict) -> tuple[int, list[float]]:
    """Return steps, mean p^4 of gluons on 20^3 nodes at 1 fm, and their late rate [1/fm]."""
    grid = rb.PhaseSpace(20, 2.5)
    ds = rb.solve(
        rb.gluons(0.3), grid, {"g": rb.initial.step(0.5, 1.5)}, end=8.0, every=1.0,
        snapshots=[1.0], seed=seed, **options,
    )  # fmt: skip
    far = ds.equilibrium_distance.values
    return ds.attrs["steps"], [fourth_moment(ds), float(np.log(far[5] / far[8]) / 3)]


def mixture_at(seed: int, options: dict) -> tuple[int, list[float]]:
    """Return steps, quark number of the mixture on 20^3 nodes at 1 fm, and its late rate [1/fm]."""
    ds = rb.solve(
        rb.qcd(0.3), rb.PhaseSpace(20, 2.0), step_start(), end=LATE[1], every=1.0, snapshots=[],
        seed=seed, **options,
    )  # fmt: skip
    quark = (ds.number.sum("species") - ds.number.sel(species="g")).values
    left = float(ds.equilibrium_number.sum() - ds.equilibrium_number[0]) - quark
    rate = np.log(left[LATE[0]] / left[LATE[1]]) / (LATE[1] - LATE[0])
    return ds.attrs["steps"], [float(quark[1]), float(rate)]


def gas_at(seed: int, options: dict) -> tuple[int, list[float]]:
    """Return steps and the remaining deviation of the soluble gas at tau = 2 and 16; 28^3 nodes."""
    start, deviation = too_soft(grid := rb.PhaseSpace(28, 14 * T))
    ds = rb.solve(
        hard_spheres(start.sum() * grid.measure), grid, start[None], end=16.0, every=2.0,
        snapshots=[2.0, 16.0], seed=seed, **options,
    )  # fmt: skip
    return ds.attrs["steps"], [deviation(f.ravel()) for f in ds.f.values]


def tolerance(given: argparse.Namespace, options: dict) -> None:
    """Compare three set-ups with tolerances from 1e-2 to 1e-4 with 1e-5, using many samples."""
    many = dict(options, samples=(given.samples or [64])[0])
    cases = {
        "gluons": (gluons_at, "mean p^4 at 1 fm", "late rate"),
        "mixture": (mixture_at, "quarks at 1 fm", "late rate"),
        "soluble gas": (gas_at, "deviation at tau = 2", "at tau = 16"),
    }
    for case, (run, *names) in cases.items():
        known: tuple[np.ndarray, np.ndarray] | None = None
        for value in (1e-5, 1e-4, 1e-3, 1e-2):
            began = time.perf_counter()
            found = [run(seed, dict(many, tolerance=value)) for seed in range(given.seeds or 4)]
            seconds = (time.perf_counter() - began) / len(found)
            now, error = mean([values for _, values in found])
            known = known or (now, error)
            for name, one, e, end, f in zip(names, now, error, *known, strict=True):
                tell(f"{case}, tolerance {value:g}: {name}, off by [%]", "", 100 * (one / end - 1),
                     100 * np.hypot(e, f) / end, value=one)  # fmt: skip
            steps = np.mean([steps for steps, _ in found])
            tell(f"{case}, tolerance {value:g}: steps", "", float(steps), seconds=seconds)


PARTS = {
    part.__name__: part for part in (gluons, exact, quadrupole, mixture, sound, variance, tolerance)
}


def main() -> None:
    """Run the named parts."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("parts", nargs="+", choices=PARTS, metavar="PART")
    parser.add_argument("--backend", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--samples", type=int, nargs="+")
    parser.add_argument("--seeds", type=int)
    parser.add_argument("--cells", type=int, nargs="+", help="momentum cells per axis")
    parser.add_argument("--space", type=int, default=24, help="space cells of a wave length")
    parser.add_argument("--box", type=float, help="half width in T of the massless gas")
    parser.add_argument("--amplitude", type=float, default=0.01, help="of a wave of temperature")
    parser.add_argument("--waves", type=float, nargs="+", choices=EXACT, default=EXACT)
    parser.add_argument("--tolerance", type=float)
    parser.add_argument("--step", type=float, help="fixed step [fm]")
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    warnings.simplefilter("ignore", rb.AccuracyWarning)
    options = dict(backend=given.backend, threads=given.threads, progress=False)
    options |= {key: getattr(given, key) for key in ("tolerance", "step") if getattr(given, key)}
    for part in given.parts:
        began = time.perf_counter()
        PARTS[part](given, options)
        print(f"-- {part}: {time.perf_counter() - began:.0f} s", flush=True)
    if given.json:
        given.json.write_text(json.dumps(ROWS, indent=1, default=str) + "\n")


if __name__ == "__main__":
    main()
