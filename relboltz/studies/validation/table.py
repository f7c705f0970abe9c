"""The table of matrix elements: crossing, soft exchange, cross sections, detailed balance.

All checks use the compiled rows, as events do. The closed forms are integrals over
y = -t/s of the table with massless legs and a fixed regulator m^2: with x = m^2/s, a = 1 + x and
L = ln(a/x),

    J1 = Int (s^2 + u^2)/(t - m^2)^2 = (1 + a^2)/(a x) + 1 - 2 a L
    J2 = Int s^2/((t - m^2)(u - m^2)) = 2 L/(1 + 2 x)
    J3 = -Int u^2/((t - m^2) s) = a^2 L - 3/2 - x
    J4 = Int (u/(t - m^2) + t/(u - m^2)) = 2 (a L - 1)
    J5 = Int (-s u/(t - m^2)^2) = 1/x - L

and sigma = S g^4/(16 pi s N_a N_b) times the combination of these in each row, S = 1/2 for two
identical products.
"""

from collections.abc import Callable, Iterator
from itertools import permutations
from typing import Any

import numpy as np

from ...backends import estimator
from ...backends.elements import Elements
from ...config.settings import Settings
from ...grid.phase_space import PhaseSpace
from ...grid.units import HBARC
from ...model.model import Model, Process, Species
from ...model.qcd import qcd
from ...run.collision_term import collision_term
from ...util.arrays import Array
from .quadrature import clustered_rule
from .rows import Comparison, ValidationEffort, nothing, relative

ALPHA = 0.3
G4 = (4 * np.pi * ALPHA) ** 2
ROWS = {
    "q1 q2 -> q1 q2": "u d -> u d",
    "q1 q1 -> q1 q1": "u u -> u u",
    "q1 q1bar -> q1 q1bar": "u ubar -> u ubar",
    "q1 q1bar -> q2 q2bar": "u ubar -> d dbar",
    "q1 q1bar -> g g": "u ubar -> g g",
    "q1 g -> q1 g": "u g -> u g",
    "g g -> g g": "g g -> g g",
}
"""One process for every row of the table."""
STATES = {"g": 16, "u": 6, "d": 6, "ubar": 6, "dbar": 6}
"""Number of spin and colour states."""
ROUNDING = "rounding of a dozen operations that cancel by 1e3 at most"


class CompiledRows:
    """The compiled rows with massless legs."""

    def __init__(self) -> None:
        self.model = qcd(ALPHA, masses="massless", screening=1.0)
        self.elements = Elements(self.model)
        self.index = {p.name: i for i, p in enumerate(self.model.processes)}

    def __call__(self, row: str, s: Any, t: Any, regulator2: float = 0.0) -> Array:
        """Return |M|^2 over g^4 of a row."""
        s, t = (np.asarray(v, float).ravel() for v in np.broadcast_arrays(s, t))
        squares = np.full(len(self.model.screenings), regulator2)
        index = self.index[ROWS[row]]
        return self.elements.evaluate(index, s, t, (0.0,) * 4, squares, -t, s + t) / G4


# --- crossing -------------------------------------------------------------------------------------


def crossing(effort: ValidationEffort) -> Iterator[Comparison]:
    """Check that rows without a regulator obey crossing and have the soft limit of one gluon."""
    table = CompiledRows()
    s = np.array([3.0, 2.0, 7.0, 5.0])
    t = np.array([-1.25, -1.8, -0.5, -2.5])
    u = -s - t

    def apart(
        row: str, other: str, order: Callable[..., tuple[Array, Array]], sign: int
    ) -> Comparison:
        here, there = table(row, s, t), sign * table(other, *order(s, t, u))
        worst = float(np.abs(here / there - 1).max())
        return nothing(f"{row} from {other}", worst, 1e-12, ROUNDING)

    yield apart("q1 q2 -> q1 q2", "q1 q1bar -> q2 q2bar", lambda s, t, u: (t, s), 1)
    yield apart("q1 q1 -> q1 q1", "q1 q1bar -> q1 q1bar", lambda s, t, u: (u, t), 1)
    yield apart("q1 q1 -> q1 q1", "q1 q1 -> q1 q1", lambda s, t, u: (s, u), 1)
    yield apart("q1 g -> q1 g", "q1 q1bar -> g g", lambda s, t, u: (t, s), -1)
    yield apart("q1 q1bar -> g g", "q1 q1bar -> g g", lambda s, t, u: (s, u), 1)
    gluons = table("g g -> g g", s, t)
    others = [table("g g -> g g", *pair) for pair in permutations((s, t, u), 2)]
    worst = max(float(np.abs(other / gluons - 1).max()) for other in others)
    yield nothing("g g -> g g in all six orders of s, t, u", worst, 1e-12, ROUNDING)
    yield from _soft(table)


def _soft(table: CompiledRows) -> Iterator[Comparison]:
    """Check one-gluon exchange for t -> 0: |M|^2 -> 16 g^4 (s/t)^2 C_a C_b d_a d_b / d_A."""
    charge = {"g": 3.0 * 8, "q": 4 / 3 * 3}  # Casimir times dimension of SU(3)
    t = -1e-4
    for row in ("q1 q2 -> q1 q2", "q1 q1 -> q1 q1", "q1 q1bar -> q1 q1bar", "q1 g -> q1 g",
                "g g -> g g"):  # fmt: skip
        a, b = (charge[leg[0]] for leg in row.split(" -> ")[0].split())
        measured = float(table(row, 1.0, t)[0])
        yield relative(
            f"{row}, |M|^2/g^4 at t = -1e-4 s", measured, 16 * a * b / 8 / t**2, 3e-4,
            "the next order of t/s has coefficients up to 3",
        )  # fmt: skip


# --- cross sections -------------------------------------------------------------------------------


def closed_forms(x: float) -> dict[str, float]:
    """Return the mean of |M|^2/g^4 over y = -t/s, by row, for a regulator m^2 = x s."""
    a, log = 1 + x, np.log((1 + x) / x)
    j1 = (1 + a * a) / (a * x) + 1 - 2 * a * log
    j2 = 2 * log / (1 + 2 * x)
    j3 = a * a * log - 1.5 - x
    j4 = 2 * (a * log - 1)
    j5 = 1 / x - log
    return {
        "q1 q2 -> q1 q2": 16 * j1,
        "q1 q1 -> q1 q1": 32 * j1 - 32 / 3 * j2,
        "q1 q1bar -> q1 q1bar": 16 * (j1 + 2 / 3) + 32 / 3 * j3,
        "q1 q1bar -> q2 q2bar": 16 * 2 / 3,
        "q1 q1bar -> g g": 128 / 3 * j4 - 96 * 2 / 3,
        "q1 g -> q1 g": 128 / 3 * (0.5 + log) + 96 * j1,
        "g g -> g g": 1152 * (3 - 1 / 6 + 2 * j5),
    }


def cross_section(row: str, s: float, regulator2: float) -> float:
    """Return sigma(s) [GeV^-2] of a process of this row, from the closed form."""
    a, b, c, d = ROWS[row].replace("->", "").split()
    equal = 0.5 if c == d else 1.0
    mean = closed_forms(regulator2 / s)[row]
    return equal * G4 * mean / (16 * np.pi * s * STATES[a] * STATES[b])


def cross_sections(effort: ValidationEffort) -> Iterator[Comparison]:
    """Compare the compiled rows with closed forms for massless kinematics and a fixed regulator."""
    table = CompiledRows()
    cosine, weight = clustered_rule(400)
    y = 0.5 * (1 - cosine)
    for x in (0.01, 0.3):
        for row, expected in closed_forms(x).items():
            mean = float(0.5 * weight @ table(row, np.ones(y.size), -y, x))
            yield relative(
                f"{row}, mean |M|^2/g^4 at m^2 = {x:g} s", mean, expected, 1e-9,
                "Gauss quadrature with 400 points of poles at distance x",
            )  # fmt: skip


def bessel_k1(x: Array) -> Array:
    """Return K_1(x) = Int_0^inf exp(-x cosh v) cosh v dv.

    The trapezoidal rule is exact to rounding.
    """
    v = np.linspace(0, 12, 2401)
    weight = np.full(v.size, v[1])
    weight[0] *= 0.5
    return np.asarray(np.exp(-np.multiply.outer(x, np.cosh(v))) @ (weight * np.cosh(v)))


def classical_rate(row: str, temperature: float, regulator2: float) -> float:
    """Return collisions per volume and time [fm^-4] in a massless classical gas with mu = 0.

    Two massless Boltzmann gases: N_a N_b T/(32 pi^4) Int ds s^(3/2) sigma(s) K_1(sqrt(s)/T), and
    half of this if a = b.
    """
    node, weight = np.polynomial.legendre.leggauss(200)
    root_s = 20 * temperature * (node + 1) + 1e-12
    sigma = np.array([max(cross_section(row, w * w, regulator2), 0.0) for w in root_s])
    ds = 2 * root_s * 20 * temperature * weight
    integral = ds @ (root_s**3 * sigma * bessel_k1(root_s / temperature))
    a, b = ROWS[row].split()[:2]
    pairs = STATES[a] * STATES[b] * (0.5 if a == b else 1.0)
    return float(pairs * temperature / (32 * np.pi**4) * integral / HBARC**4)


def classical(regulator: float) -> Model:
    """Return a model with one process of every row between massless classical particles."""
    full = qcd(ALPHA, masses="massless", screening=regulator)
    chosen = [p for p in full.processes if p.name in ROWS.values()]
    species = [Species(name, states, 0) for name, states in STATES.items()]
    return Model(species, chosen, screening=regulator)


def classical_rates(effort: ValidationEffort) -> Iterator[Comparison]:
    """Compare rates of the solver in a massless classical gas with the closed cross sections.

    There are few soft nodes, and they are weighted with 1/E: for constant |M|^2 this costs 14 % at
    h = T, a known correction; for cross sections that grow with s or are clamped at 0 it costs a
    tenth of that.
    """
    temperature, regulator = 0.3, 0.15
    grid = PhaseSpace(24 if effort.quick else 48, 12 * temperature)
    k = np.sqrt(grid.momentum_squared)
    spacing = (grid.spacing[0] / temperature) ** 2
    f = np.tile(np.exp(-k / temperature), (len(STATES), 1))
    samples = 8 if effort.quick else 32
    ds = collision_term(
        classical(regulator), grid, f, samples=samples, batches=16, **effort.options
    )
    for row, name in ROWS.items():
        rate, error = (float(ds[key].sel(process=name)) for key in ("rate", "rate_error"))
        expected = classical_rate(row, temperature, regulator**2)
        if row == "q1 q1bar -> q2 q2bar":  # |M|^2 is independent of s: the rate factorises
            flux = float((f[0] / k).sum()) * grid.cell_volume
            expected *= (flux / (4 * np.pi * temperature**2)) ** 2
        yield relative(
            f"{name}, rate in a massless classical gas [fm^-4]", rate, expected,
            0.02 * spacing + 3 * error / expected, "2 % (h/T)^2 of soft pairs, 3 standard errors",
        )  # fmt: skip


# --- detailed balance -----------------------------------------------------------------------------


def detailed_balance(effort: ValidationEffort) -> Iterator[Comparison]:
    """Compare forward and backward flows far from equilibrium.

    Events are sampled from one side, with (k3, p) on nodes. In an elastic process both sides
    describe the same collisions, so the two flows must agree; an inelastic process is written in
    both directions.
    """
    grid = PhaseSpace(14 if effort.quick else 24, 2.4)
    rng = np.random.default_rng(5)
    f = np.stack([_moving(grid, rng.uniform(-0.3, 0.3, 3)) for _ in STATES])
    full = qcd(ALPHA, masses={"g": 0.6, "quarks": 0.4})
    chosen = {p.name: p for p in full.processes if p.name in ROWS.values()}
    there, back = _flows(full, list(chosen.values()), grid, f, effort)
    inelastic = [p for p in chosen.values() if not p.elastic]
    _, reverse = _flows(full, [_turned(p) for p in inelastic], grid, f, effort)
    for row, name in ROWS.items():
        one, other = there[:, list(chosen).index(name)], back[:, list(chosen).index(name)]
        if chosen[name] in inelastic:
            other = reverse[:, inelastic.index(chosen[name])]
        error = float(np.std(one - other, ddof=1) / np.sqrt(one.size) / one.mean())
        yield relative(
            f"{row}, flow there over back", one.mean() / other.mean(), 1.0,
            3 * error + 0.02 * (grid.spacing[0] / 0.5) ** 2,
            "3 standard errors, and O(h^2) of the interpolation between nodes",
        )  # fmt: skip


def _turned(process: Process) -> Process:
    """Return the reverse reaction."""
    reverse = " -> ".join(" ".join(side) for side in reversed(process.sides))
    return Process(reverse, process.matrix_element, peak=process.peak, **process.parameters)


def _moving(grid: PhaseSpace, shift: Array) -> Array:
    """Return a smooth state, different for each species and far from thermal."""
    away = ((grid.momenta - shift[:, None]) ** 2).sum(axis=0)
    return np.asarray(0.4 * np.exp(-away / 0.5) + 0.1 * np.exp(-grid.momentum_squared / 1.2))


def _flows(
    full: Model, processes: list[Process], grid: PhaseSpace, f: Array, effort: ValidationEffort
) -> tuple[Array, Array]:
    """Return forward and backward flows of every process (draws, processes)."""
    species = [full.species[full.index(name)] for name in STATES]
    masses = {name: 0.6 if name == "g" else 0.4 for name in STATES}
    model = Model(species, processes, masses=masses, screening=0.6)
    options = dict(samples=16 if effort.quick else 64, **effort.options)
    settings = Settings.from_options(end=1.0, **options)
    worker = estimator(grid, model, settings.collisions, settings.run)
    found = worker.estimates(f, worker.squares(f), range(16))().flows
    return found.forward, found.backward
