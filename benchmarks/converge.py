"""Do the error bars of ``relboltz converge`` hold numbers that do not come from this package?

Two parts, both of them unless one is named; the exit code is 1 if a number is missed, or if a bar
is wider than --widest:

demo    ``relboltz converge`` on examples/gluons.toml. Known without a grid are its initial state
        (radial integrals), the collision rate at t = 0 (``studies.validation.step_start``) and the
        final state, which the conserved number and energy decide
rates   collision terms of the same start on the grids that ``converge`` uses, with many samples, by
        the same laws: rates and moments against relboltz/studies/validation/step_start.py

    python benchmarks/converge.py                       # both
    python benchmarks/converge.py rates --cells 40      # of another set-up
"""

import argparse
import sys
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.integrate import quad
from scipy.optimize import brentq, fsolve

import relboltz as rb
from relboltz.cli.convergence_table import order_text
from relboltz.grid.units import HBARC
from relboltz.run import input_file as config
from relboltz.run.setup import Case
from relboltz.studies.convergence.extrapolation import (
    NoisyValue,
    exponential,
    limit,
    power_law,
    students_t,
)
from relboltz.studies.convergence.plan import ConvergenceEffort, PlannedRun, plan_of
from relboltz.studies.validation.step_start import REFERENCES

DEMO = Path(__file__).parents[1] / "examples" / "gluons.toml"
ALPHA, HEIGHT, EDGE, GLUONS = 0.3, 0.5, 1.5, 16


class Held(NamedTuple):
    """A limit with its bar beside the number from outside; order as it is printed."""

    name: str
    known: float
    run: float
    limit: float
    error: float
    order: str

    @property
    def distance(self) -> float:
        """Distance in error bars."""
        return abs(self.limit - self.known) / self.error


# --- numbers without a grid -----------------------------------------------------------------------


def integral(f: Callable[[float], float], top: float) -> float:
    """16 Int d^3p/(2 pi)^3 f of an isotropic f, in GeV^3 times the unit of f."""
    points = [x for x in (0.3, 0.6, 1.0, EDGE) if x < top]
    value = quad(lambda p: p * p * f(p), 0, top, points=points, limit=400, epsabs=1e-12)[0]
    return GLUONS / (2 * np.pi**2) * value


def bose(temperature: float, mu: float, m2: float, p: float) -> float:
    """Bose-Einstein distribution."""
    return 1 / np.expm1((np.sqrt(p * p + m2) - mu) / temperature)


def entropy(f: float) -> float:
    """Entropy of a Bose gas per state."""
    return (1 + f) * np.log1p(f) - (f * np.log(f) if f > 0 else 0.0)


def moments(f: Callable[[float], float], m2: float, top: float) -> tuple[float, float, float]:
    """Number [fm^-3], total energy density [GeV fm^-3] and m_g^2 that f makes [GeV^2]."""
    y = integral(lambda p: f(p) / np.sqrt(p * p + m2), top)
    energy = integral(lambda p: f(p) * np.sqrt(p * p + m2), top) - 0.25 * m2 * y
    return integral(f, top) / HBARC**3, energy / HBARC**3, 1.5 * np.pi * ALPHA * y


def continuum() -> dict[str, float]:
    """Step start and its final state by quadrature: names as in a result."""

    def step(p: float) -> float:
        return HEIGHT

    m2 = brentq(lambda x: moments(step, x, EDGE)[2] - x, 1e-3, 5.0)
    number, energy, _ = moments(step, m2, EDGE)
    top = 12.0

    def missing(state: np.ndarray) -> np.ndarray:
        made = moments(partial(bose, *state), state[2], top)
        return np.array(made) - (number, energy, state[2])

    final, _, solved, message = fsolve(missing, [0.38, 0.69, 0.54], xtol=1e-12, full_output=True)
    if solved != 1:
        raise RuntimeError(f"the final state is not found: {message}")
    last = partial(bose, *final)
    moved = integral(lambda p: abs((HEIGHT if p < EDGE else 0.0) - last(p)), top)
    return {
        "energy_total": energy,
        "mass_squared": m2,
        "entropy": integral(lambda p: entropy(HEIGHT), EDGE) / HBARC**3,
        "equilibrium_distance": 0.5 * moved / HBARC**3 / number,
        "rate": REFERENCES["rate g g -> g g"][0],
        **dict(zip(
            ("equilibrium_temperature", "equilibrium_chemical_potential",
             "equilibrium_mass_squared"), map(float, final), strict=True,
        )),
        "equilibrium_entropy": integral(lambda p: entropy(last(p)), top) / HBARC**3,
    }  # fmt: skip


# --- the two parts --------------------------------------------------------------------------------


def demo(settings: config.Config, folder: Path) -> Iterator[Held]:
    """What ``converge`` says of t = 0 and of the final state."""
    found = rb.converge(settings, folder=folder, tell=lambda text: print(text, flush=True))
    print(f"converge: {found.attrs['wall_seconds']:.0f} s, {found.attrs['device']}")
    for name, known in continuum().items():
        part = found[[f"{name}{kind}" for kind in ("", "_run", "_error", "_order", "_shown")]]
        part = part.isel({dim: 0 for dim in part.dims if dim != "knob"})
        value, run, error = (float(part[f"{name}{kind}"]) for kind in ("", "_run", "_error"))
        order, shown = (float(part[f"{name}{k}"].sel(knob="spacing")) for k in ("_order", "_shown"))
        yield Held(name, known, run, value, error, order_text(order, bool(shown)))


def terms_of(job: PlannedRun, batches: int, threads: int) -> dict[str, float]:
    """Rates and moments of C[f] on the grid of a job; names as in REFERENCES."""
    case = job.case
    collisions = case.settings.collisions
    ds = rb.collision_term(
        case.model, case.grid, case.states, samples=collisions.samples, seed=collisions.seed,
        batches=batches, backend="cpu", threads=threads,
    )  # fmt: skip
    cell = (case.grid.spacing[0] / (2 * np.pi * HBARC)) ** 3
    if len(case.model.species) > 1:
        states = ds.species.copy(data=[s.degeneracy for s in case.model.species])
        change = (ds.collision_term * states).sum(("px", "py", "pz")) * cell
        return {
            "rate g g -> u ubar": float(ds.rate_reverse.sel(process="u ubar -> g g")),
            "dN_quarks/dt": float(change.sum() - change.sel(species="g")),
        }
    p2 = ds.px**2 + ds.py**2 + ds.pz**2
    number = HEIGHT * 4 / 3 * np.pi * EDGE**3 / case.grid.spacing[0] ** 3
    term = ds.collision_term.sel(species="g")
    return {
        "rate g g -> g g": float(ds.rate[0]),
        "d<p^2>/dt": float((p2 * term).sum()) / number,
        "d<p^4>/dt": float((p2**2 * term).sum()) / number,
    }


def rates(model: rb.Model, cells: int, samples: int, seed: int, threads: int) -> Iterator[Held]:
    """Limits of collision terms from the grids of a plan."""
    options = {"end": 1.0, "samples": samples, "seed": seed, "backend": "cpu"}
    grid, start = rb.PhaseSpace(cells, 4.85), {"g": rb.initial.step(HEIGHT, EDGE)}
    plan = plan_of(Case.of_options(model, grid, start, options), ConvergenceEffort())
    spacing, box = (next(k for k in plan.knobs if k.name == name) for name in ("spacing", "box"))
    batches = 8
    seeds = [terms_of(job, batches, threads) for job in plan.seeds]
    jobs = {job.name: job for knob in (spacing, box) for job in knob.jobs}
    others = {name: terms_of(job, batches, threads) for name, job in jobs.items()}
    t = students_t(len(seeds) - 1)
    for name in seeds[0]:
        values = np.array([[one[name]] for one in seeds])
        single = values.var(axis=0, ddof=1)
        base = NoisyValue(values.mean(axis=0), single / len(values))
        fine, coarse, wide = (
            NoisyValue(np.array([others[job][name]]), single * jobs[job].variance)
            for job in ("spacing-finer", "spacing-coarser", "box-larger")
        )
        law = power_law(base, fine, coarse, spacing.ratios, t)
        found = limit(base, [law, exponential(base, wide, 0.5)], t)
        order = order_text(float(np.ravel(law.order)[0]), bool(law.shown[0]))
        known = REFERENCES[name][0]
        yield Held(name, known, base.value[0], found.value[0], found.error[0], order)


def judged(title: str, rows: Iterator[Held], widest: float) -> int:
    """Print a line for every number; return how many are missed or too uncertain."""
    lines = [
        f"\n{title}",
        f"{'':32} {'outside':>9} {'run':>8} {'limit':>8} {'bar':>7} {'off/bar':>8}  order",
    ]
    bad = 0
    for row in rows:
        off, far, width = (
            100 * x / row.known for x in (row.run - row.known, row.limit - row.known, row.error)
        )
        wrong = "MISSED" if row.distance > 1 else "WIDE" if width > widest else ""
        bad += bool(wrong)
        lines.append(
            f"{row.name:32} {row.known:9.5g} {off:+7.2f}% {far:+7.2f}% {width:6.2f}% "
            f"{row.distance:8.2f}  {row.order:>5}  {wrong}".rstrip()
        )
    print("\n".join(lines), flush=True)
    return bad


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("part", nargs="?", default="both", choices=("both", "demo", "rates"))
    parser.add_argument("--cells", type=int, default=31, help="nodes along each axis, for rates")
    parser.add_argument("--samples", type=int, default=64, help="of a batch of 8, for rates")
    parser.add_argument("--seed", type=int, default=1, help="first seed, for rates")
    parser.add_argument("--threads", type=int, default=0, help="0: all cores")
    parser.add_argument("--widest", type=float, default=10.0, help="bar allowed [%%]")
    parser.add_argument("--out", type=Path, help="folder of the demo's runs")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    bad = 0
    if given.part != "rates":
        threads = [] if given.threads == 0 else [f"run.threads={given.threads}"]
        settings = config.load(DEMO, ["output.snapshots=[]", 'run.backend="cpu"', *threads])
        rows = demo(settings, given.out or Path("gluons.converge"))
        bad += judged("converge on the demo", rows, given.widest)
    if given.part != "demo":
        for title, model, fewer in (
            ("gluons", rb.gluons(ALPHA), 1), ("gluons, quarks empty", rb.qcd(ALPHA), 8),
        ):  # fmt: skip
            samples = max(1, given.samples // fewer)
            rows = rates(model, given.cells, samples, given.seed, given.threads)
            bad += judged(f"collision terms at t = 0: {title}", rows, given.widest)
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
