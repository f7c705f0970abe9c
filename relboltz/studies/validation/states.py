"""Equilibrium: stationary thermal states, final states of runs, and the onset of condensation."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ... import initial
from ...grid.phase_space import PhaseSpace
from ...grid.units import HBARC
from ...model.model import Model, Process
from ...model.qcd import gluons, qcd, quarks
from ...run.collision_term import collision_term
from ...run.solve import solve
from ...thermodynamics import masses, predict, thermal, total_energy, unlimited
from ...util.arrays import Array
from .rows import Comparison, ValidationEffort, absolute, at_least, nothing, relative

# --- stationarity ---------------------------------------------------------------------------------


def stationarity(effort: ValidationEffort) -> Iterator[Comparison]:
    """Check Bose and Fermi states with flow and balanced potentials, row by row of the table.

    Every single event vanishes in equilibrium: only rounding of logarithms is left, 1e-16 times
    their size, relative to gain and loss.
    """
    full = qcd(0.3)
    grid = PhaseSpace([8, 9, 7], [2.0, 2.2, 1.9])
    m2 = np.array([0.45] + [0.2] * 6)
    heavy = dict(zip(full.names, np.sqrt(m2).tolist(), strict=True))
    mu = 0.05 + np.array([0.0, 0.12, -0.07, 0.03, -0.12, 0.07, -0.03])
    options = effort.options | {"precision": "float64"}
    by_row: dict[str, list[Process]] = {}
    for process in full.processes:
        by_row.setdefault(process.row, []).append(process)
    for row, processes in by_row.items():
        model = Model(full.species, processes, masses=heavy, screening=0.6)
        f = thermal(grid, model, 0.35, mu, np.array([0.3, -0.2, 0.4]), m2)
        term = collision_term(model, grid, f, samples=4, batches=2, **options)
        gross = max(term.gain.values.max(), term.loss.values.max())
        still = float(np.abs(term.collision_term.values).max() / gross) if gross > 0 else np.nan
        description = (
            f"{row} ({len(processes)} processes): largest |C| over the largest gain or loss"
        )
        yield nothing(description, still, 1e-12, "rounding of logarithms")
        least = float(term.rate.min())
        yield at_least(f"{row}: least rate of a process [fm^-4]", least, 1e-6, "all of them run")
    model = qcd(0.3, masses={"g": m2[0] ** 0.5, "quarks": m2[1] ** 0.5})
    uneven = mu + np.array([0.1, 0, 0, 0, 0, 0, 0])
    f = thermal(grid, model, 0.35, uneven, np.zeros(3), m2)
    term = collision_term(model, grid, f, samples=4, batches=2, **options)
    moved = float(abs(term.collision_term).max() / term.gain.max())
    yield nothing(
        "gluons with another mu react: 1e-3 over largest |C|/gain", 1e-3 / moved, 1.0,
        "so that standing still means something",
    )  # fmt: skip


# --- final states ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class MixtureSums:
    """Sums over nodes for a mixture with thermal masses, independent of the solver.

    Y_a = N_a Sum f_a/E_a d^3p/(2 pi)^3;  m_g^2 = g^2 (3/8 Y_g + 1/6 Sum_q Y_q);
    m_q^2 = g^2 (1/6 Y_g + 2/9 (Y_q + Y_qbar));  e = Sum N E f - 1/4 Sum m^2 Y.
    """

    grid: PhaseSpace
    names: Sequence[str]
    g2: float

    def occupations(self, temperature: float, mu: float, m2: Array) -> tuple[Array, Array]:
        """Return f and E by species."""
        e = np.sqrt((self.grid.momenta**2).sum(axis=0) + m2[:, None])
        eta = np.array([1.0 if name == "g" else -1.0 for name in self.names])[:, None]
        return 1 / (np.exp((e - mu) / temperature) - eta), e

    def masses(self, y: Array) -> Array:
        """Return m^2 for given Y."""
        names, g2 = self.names, self.g2
        of_quarks = sum(v for name, v in zip(names, y, strict=True) if name != "g")
        of_gluons = sum(v for name, v in zip(names, y, strict=True) if name == "g")
        flavour = {q: 0.0 for q in "uds"}
        for name, v in zip(names, y, strict=True):
            if name != "g":
                flavour[name[0]] += v
        return np.array([
            g2 * (3 / 8 * of_gluons + of_quarks / 6) if name == "g"
            else g2 * (of_gluons / 6 + 2 / 9 * flavour[name[0]])
            for name in names
        ])  # fmt: skip

    def moments(self, f: Array, m2: Array) -> tuple[Array, Array]:
        """Return numbers [fm^-3] and Y [GeV^2] by species."""
        e = np.sqrt((self.grid.momenta**2).sum(axis=0) + m2[:, None])
        states = np.array([16.0 if name == "g" else 6.0 for name in self.names])
        cell = np.prod(self.grid.spacing) / (2 * np.pi) ** 3
        return states * f.sum(axis=1) * cell / HBARC**3, states * (f / e).sum(axis=1) * cell

    def solved_masses(self, f: Array) -> Array:
        """Return the self-consistent m^2 for given f, by fixed-point iteration."""
        m2 = np.full(len(self.names), 0.3)
        for _ in range(400):
            m2 = 0.5 * (m2 + self.masses(self.moments(f, m2)[1]))
        return m2

    def conserved(self, f: Array, m2: Array) -> Array:
        """Return number [fm^-3] and total energy [GeV fm^-3]."""
        e = np.sqrt((self.grid.momenta**2).sum(axis=0) + m2[:, None])
        numbers, y = self.moments(f, m2)
        kinetic = float((numbers * (f * e).sum(axis=1) / np.maximum(f.sum(axis=1), 1e-300)).sum())
        return np.array([numbers.sum(), kinetic - 0.25 * float(m2 @ y) / HBARC**3])

    def final(self, target: Array, guess: Sequence[float]) -> tuple[Array, Array]:
        """Find (T, mu) and m^2 of the equilibrium with this number and energy by Newton's
        method.
        """
        known = np.array(guess)
        m2 = np.full(len(self.names), 0.3)

        def miss(point: Array) -> tuple[Array, Array]:
            squares = m2
            for _ in range(60):
                f, _ = self.occupations(point[0], point[1], squares)
                squares = 0.5 * (squares + self.masses(self.moments(f, squares)[1]))
            f, _ = self.occupations(point[0], point[1], squares)
            return self.conserved(f, squares) / target - 1, squares

        for _ in range(30):
            here, m2 = miss(known)
            slope = np.stack([(miss(known + d)[0] - here) / 1e-6 for d in 1e-6 * np.eye(2)], axis=1)
            step = np.linalg.solve(slope, here)
            known = known - np.clip(step, -0.05, 0.05)
            if np.abs(step).max() < 1e-11:
                break
        return known, miss(known)[1]


def thermal_masses(effort: ValidationEffort) -> Iterator[Comparison]:
    """Compare masses and total energy far from equilibrium with ``MixtureSums``."""
    grid = PhaseSpace([9, 8, 10], [2.0, 1.8, 2.2])
    rng = np.random.default_rng(11)
    for model in (gluons(0.3), quarks(0.3, 2, antiquarks=True), qcd(0.3)):
        f = rng.random((len(model.names), 1)) * np.exp(-grid.momentum_squared / 1.5)
        sums = MixtureSums(grid, model.names, 4 * np.pi * 0.3)
        exact = sums.solved_masses(f)
        m2 = masses(grid, model, f)
        number, energy = sums.conserved(f, exact)
        for name, measured, expected in zip(model.names, m2, exact, strict=True):
            yield relative(f"{model.name}: m^2 of {name} [GeV^2]", measured, expected, 1e-9,
                           "both iterations end at 1e-9")  # fmt: skip
        found = float(total_energy(grid, model, f, m2))
        yield relative(f"{model.name}: total energy [GeV fm^-3]", found, energy, 1e-9,
                       "extremal in the masses")  # fmt: skip
        density = float(model.degeneracy @ f.sum(axis=1)) * grid.measure
        yield relative(f"{model.name}: number [fm^-3]", density, number, 1e-12, "the same sums")


CASES: dict[str, tuple[Callable[..., Model], int, Any, tuple[float, float], float]] = {
    "gluons": (gluons, 12, {"g": initial.step(0.5, 1.5, sampling="node")}, (0.44, 0.6), 30.0),
    "u quarks": (quarks, 12, {"u": initial.step(0.8, 1.2, sampling="node")}, (0.3, 0.6), 80.0),
    "mixture": (qcd, 8, {"g": initial.step(0.5, 1.5, sampling="node")}, (0.4, 0.25), 80.0),
}
"""Model, cells, initial conditions, first guess of T and mu [GeV], end time [fm]."""


def final_states(effort: ValidationEffort) -> Iterator[Comparison]:
    """Check that runs end in the thermal state given by number and total energy on their nodes."""
    for name, (build, cells, start, guess, end) in CASES.items():
        model = build(0.3)
        grid = PhaseSpace(cells, 2.0)
        ds = solve(
            model, grid, start, end=end, every=end / 4, snapshots=[0.0, end],
            samples=8 if effort.quick else 32, **effort.solving,
        )  # fmt: skip
        sums = MixtureSums(grid, model.names, 4 * np.pi * 0.3)
        first = ds.f.values[0].reshape(len(model.names), -1)
        target = sums.conserved(first, sums.solved_masses(first))
        (temperature, mu), m2 = sums.final(target, guess)
        bose, _ = sums.occupations(temperature, mu, m2)
        last = ds.f.values[-1].reshape(bose.shape)
        description = (
            "total energy drifts by up to 2e-6 in the run, and 1e-4 of the deviation is left"
        )
        energy = ds.energy_total.values
        yield relative(f"{name}: energy at the start [GeV fm^-3]", energy[0], target[1], 1e-10,
                       "the same sums")  # fmt: skip
        yield nothing(f"{name}: drift of total energy", np.abs(energy / energy[0] - 1).max(), 1e-5,
                      "masses change by 10 % in some 100 steps of second order")  # fmt: skip
        for quantity, measured, exact in (
            ("T [GeV]", ds.temperature.values[-1], temperature),
            ("mu [GeV]", ds.chemical_potential.values[-1].mean(), mu),
            ("m^2 of the first species [GeV^2]", ds.mass_squared.values[-1, 0], m2[0]),
            ("predicted T [GeV]", ds.equilibrium_temperature.values, temperature),
            ("predicted mu [GeV]", ds.equilibrium_chemical_potential.values.mean(), mu),
        ):
            yield relative(f"{name}: {quantity}", measured, exact, 5e-4, description)
        yield nothing(f"{name}: f of every node against Bose or Fermi, worst",
                      np.abs(last / bose - 1).max(), 5e-3, description)  # fmt: skip
    yield from _moving(effort)
    yield from _published()


def _moving(effort: ValidationEffort) -> Iterator[Comparison]:
    """Check that quarks with net momentum end as a moving fluid; masses are constant."""
    model = quarks(0.3, masses={"u": 0.4})
    grid = PhaseSpace(12, 2.0)
    shift = np.array([0.3, -0.2, 0.1])[:, None]
    start = 0.7 * np.exp(-((grid.momenta - shift) ** 2).sum(axis=0) / 0.8)[None]
    ds = solve(
        model, grid, start, end=100.0, every=50.0, snapshots=[100.0],
        samples=8 if effort.quick else 32, **effort.solving,
    )  # fmt: skip
    last = ds.f.values[-1].ravel()
    x = np.log(1 / last - 1)  # (u.p - mu)/T: linear in E and p
    e = np.sqrt(grid.momentum_squared + 0.16)
    columns = np.column_stack([e, *grid.momenta, np.ones(grid.size)])
    line = np.linalg.lstsq(columns, x, rcond=None)[0]
    yield nothing(
        "moving u quarks: ln(1/f - 1) against a linear function of E and p, worst",
        np.abs(columns @ line - x).max(), 5e-3, "1e-3 of the deviation is left",
    )  # fmt: skip
    flow = (grid.momenta * start[0]).sum(axis=1)
    after = (grid.momenta * last).sum(axis=1)
    yield nothing("moving u quarks: change of momentum, relative", np.abs(after / flow - 1).max(),
                  1e-12, "exact but for the rounding of these sums")  # fmt: skip
    yield relative("moving u quarks: v along x", ds.velocity.values[-1][0],
                   -line[1] / line[0], 1e-3, "1e-3 of the deviation is left")  # fmt: skip


PUBLISHED = {"T": (0.43514, 1e-5), "mu": (0.64688, 1e-5), "m2": (0.5279, 1e-4)}
"""Values for gluons on 30^3 nodes, box of 2 GeV, step of 0.5 below 1.5 GeV at the nodes, each with
its last digit.
"""


def _published() -> Iterator[Comparison]:
    """Compare the predicted state of the paper's gluons with an independent program."""
    grid, model = PhaseSpace(30, 2.0), gluons(0.3)
    f = np.where(grid.momentum_squared < 1.5**2, 0.5, 0.0)[None]
    sums = MixtureSums(grid, model.names, 4 * np.pi * 0.3)
    numbers, energy = sums.conserved(f, sums.solved_masses(f))
    state = predict(grid, model, np.array([numbers]), np.zeros(3), float(energy))
    for description, measured, (expected, digit) in (
        ("T [GeV]", state.temperature, PUBLISHED["T"]),
        ("mu [GeV]", state.chemical_potential[0], PUBLISHED["mu"]),
        ("m^2 [GeV^2]", state.mass_squared[0], PUBLISHED["m2"]),
    ):
        yield absolute(
            f"gluons on 30^3 nodes: predicted {description}",
            measured,
            expected,
            0.6 * digit,
            "0.6 of the last digit of the reference",
        )


# --- condensation ---------------------------------------------------------------------------------


def critical_height(gluon_states: float, quark_states: float) -> float:
    """Return the highest step of massless gluons that is compatible with mu = 0.

    The step has f0 Q^3/(6 pi^2) and f0 Q^4/(8 pi^2) per gluon state; a Bose gas has zeta(3)
    T^3/pi^2 and pi^2 T^4/30, a Fermi gas 3/4 and 7/8 of these.
    """
    zeta3 = 1.2020569031595942
    numbers = 1 + 0.75 * quark_states / gluon_states
    energies = 1 + 0.875 * quark_states / gluon_states
    return float((6 * zeta3 * numbers) ** 4 * (30 / (8 * np.pi**4) / energies) ** 3)


def condensation(effort: ValidationEffort) -> Iterator[Comparison]:
    """Find the height of a step at which mu of the predicted final state reaches 0.

    Heights with mu = -0.001 T and -0.002 T are found and extrapolated: closer to 0, the mode that
    represents the condensate would contribute.
    """
    for description, model, states in (
        ("gluons", gluons(0.3, masses="massless", screening=0.5), (16, 0)),
        ("three flavours", qcd(0.3, masses="massless", screening=0.5), (16, 36)),
    ):
        exact = critical_height(*states)
        near, far = (_height_with(model, x, exact) for x in (-0.001, -0.002))
        yield relative(
            f"{description}: critical height of a step", 2 * near - far, exact, 2e-4,
            "x^2 ln x of Li_3 at x = 0.002, and 1e-5 of the particles in that mode, times 4",
        )  # fmt: skip


def _height_with(model: Model, mu: float, about: float) -> float:
    """Return the height of a step up to 1 GeV whose final state has this mu/T."""
    low, high = 0.8 * about, 1.2 * about
    for _ in range(30):
        middle = 0.5 * (low + high)
        numbers = np.zeros(len(model.species))
        numbers[0] = 16 * middle / (6 * np.pi**2) / HBARC**3
        energy = 16 * middle / (8 * np.pi**2) / HBARC**3
        state = unlimited.predict(model, numbers, np.zeros(3), energy)
        above = state is None or state.chemical_potential[0] > mu * state.temperature
        low, high = (low, middle) if above else (middle, high)
    return 0.5 * (low + high)
