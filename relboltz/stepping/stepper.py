"""Time steps: crossed sets of events, limits that keep f legal, step size.

The events of a step are split into two sets A and B, each an unbiased estimate of C, and each is
evaluated again on what the other one predicts:

    n = n0 + dt/4 [A(n0) + B(n0) + A(n0 + dt B(n0)) + B(n0 + dt A(n0))]

An event that moves the very cells it is evaluated on next would saturate itself, and relaxation
would be too slow by O(dt/samples), however well everything is conserved.

The state is particle number N_a f per cell in 64-bit fixed point. Every deposit is a whole
number of quanta, so number and momentum are conserved to the last bit, in any order of events.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..backends.cpu.collider import CpuBackend, Tables
from ..errors import InputError, RunError
from ..events.collisions import AHEAD, SETS, Draw, Flows
from ..grid import PhaseSpace
from ..masses import coupling_integrals, masses
from ..model import Model
from .control import FIRST_STEP, adapted, largest_change, mean_ahead, step_length

MOST_BITS = 44
"""Quantum of N_a f is 2^-44 unless a large total asks for a coarser one."""
FEWEST_BITS = 50
"""Binary digits that the total may have before the point."""
TOTAL_BITS = 61
"""All particles of the box fit into one cell without overflow."""
SUM_BITS = 59
"""Sums over all events stay below this many binary digits."""


@dataclass(frozen=True)
class State:
    """A moment of a run.

    number : N_a f of all cells (species by node) in units of 2^-bits; empty on the host while
        the state lives on a GPU
    mass_squared, screening2 : of this very state [GeV^2], all species and all of
        ``Model.screenings``; in space, like number, with the sites as their first axis
    past : of the last two steps, newest first: mass_squared, screening2 before it, its length [fm]
    """

    number: NDArray[np.int64]
    bits: int
    time: float
    step: int
    mass_squared: NDArray[np.float64]
    screening2: Any
    past: tuple[tuple[NDArray[np.float64], Any, float], ...] = ()

    @property
    def unit(self) -> float:
        """One quantum of N_a f."""
        return 2.0**-self.bits

    def occupation(self, model: Model) -> NDArray[np.float64]:
        """f of every species at every node, shape (species, nodes)."""
        number = self.number.reshape(len(model.species), -1)
        return number * (self.unit / model.degeneracy[:, None])


@dataclass(frozen=True)
class StepReport:
    """What a step did and how well."""

    length: float
    difference: int
    """L1 difference of Heun and Euler; in quanta, like the next two."""
    moved: int
    """Half of what the Euler step moved."""
    total: int
    flows: Flows
    drawn: tuple[float, float]
    """Weight of physical collisions, and the part that was lost."""
    limited_weight: float
    noise: tuple[float, float]
    """Sum over the cells of the squared standard error of C, and of C^2."""

    @property
    def error(self) -> float:
        """L1 difference of Heun and Euler, relative to the number of particles."""
        return float(self.difference) / max(float(self.total), 1.0)

    @property
    def change_ratio(self) -> float:
        """Change of C within the step, relative to C."""
        return float(self.difference) / float(self.moved) if self.moved > 0 else 0.0

    @property
    def noise_ratio(self) -> float:
        """Squared standard error of C over C^2, both summed over the cells."""
        error, size = self.noise
        return error / size if size > 0 else 0.0

    @property
    def null_weight(self) -> float:
        """Part of the collisions that was lost."""
        total, lost = self.drawn
        return lost / total if total > 0 else 0.0


def noise_sums(first: NDArray[np.int64]) -> tuple[float, float]:
    """Sums over the cells of the squared standard error of C, and of C^2.

    first : what each of the two sets contributes to C. They are independent, so with
        C = (A + B)/2 the standard error is |A - B|/2.
    """
    a, b = first.astype(np.float64)
    return float(np.square(a - b).sum()), float(np.square(a + b).sum())


def exact_sum(values: NDArray[np.int64]) -> int:
    """Sum of 64-bit integers without overflow."""
    high = int((values >> 32).sum(dtype=np.int64))
    low = int((values & 0xFFFFFFFF).sum(dtype=np.int64))
    return (high << 32) + low


def fraction_bits(occupation: NDArray[np.float64], model: Model) -> int:
    """How many binary digits N_a f gets behind the point: 44, fewer if the total is huge.

    occupation : (species, nodes), or (sites, species, nodes): then the fullest site counts
    """
    total = float(np.max((occupation.sum(axis=-1) * model.degeneracy).sum(axis=-1)))
    if not total < 2.0**FEWEST_BITS:
        raise InputError(
            f"initial: N f summed over all nodes is {total:.3g}, too much for 64-bit numbers; "
            "lower the initial state"
        )
    return min(MOST_BITS, TOTAL_BITS - max(0, math.ceil(math.log2(max(total, 1e-300)))))


def capacities(model: Model, bits: int) -> NDArray[np.int64]:
    """Quanta that a cell of each species can hold: N for fermions, what 64 bits hold for others."""
    full = np.rint(model.degeneracy * 2.0**bits)
    return np.where(model.statistics < 0, full, 2.0**62).astype(np.int64)


def initial_state(grid: PhaseSpace, model: Model, occupation: NDArray[np.float64]) -> State:
    """The state at t = 0 from f (species, nodes); masses solved self-consistently.

    In space, f (sites, species, nodes), masses are left to ``space.take_over``.
    """
    bits = fraction_bits(occupation, model)
    scale = model.degeneracy[:, None] * 2.0**bits
    if occupation.ndim == 3:  # site by site: a state in space may be large
        number = np.empty(occupation.shape, np.int64)
        for site, f in enumerate(occupation):
            number[site] = np.rint(f * scale)
    else:
        number = np.rint(occupation * scale).astype(np.int64)
    if not number.any():
        raise InputError(
            f"the system is empty: f is below the resolution of {2.0**-bits:.1e} at every node; "
            "raise the initial state"
        )
    if occupation.ndim == 3:  # the engine that takes it over solves the masses
        m2 = np.tile(model.constant_mass_squared, (len(number), 1))
        return State(number, bits, 0.0, 0, m2, np.zeros((len(number), len(model.screenings))))
    state = State(number.ravel(), bits, 0.0, 0, np.zeros(len(model.species)), np.zeros(0))
    return with_masses(grid, model, state)


def with_masses(grid: PhaseSpace, model: Model, state: State) -> State:
    """The state with its own masses and screening masses."""
    f = state.occupation(model)
    start = state.mass_squared if state.step else None
    mass_squared = masses(grid, model, f, start)
    y = coupling_integrals(grid, model, f, mass_squared)
    screening2 = model.screening_squared(y)
    if not (np.isfinite(mass_squared).all() and np.isfinite(screening2).all()):
        raise RunError(
            f"the masses are not finite at t = {state.time:.6g} fm: "
            + ", ".join(f"{n}: {m:.4g}" for n, m in zip(model.names, mass_squared, strict=True))
        )
    return replace(state, mass_squared=mass_squared, screening2=screening2)


def masses_ahead(state: State, length: float) -> NDArray[np.float64]:
    """Squared masses and, last, screening masses that a step of this length should take.

    Their means over the step, extrapolated from the last two steps.
    """
    now = np.append(state.mass_squared, state.screening2)
    m2, screening2, last = state.past[0]
    before = np.append(m2, screening2)
    first, earlier = before, 0.0
    if len(state.past) > 1:
        m2, screening2, earlier = state.past[1]
        first = np.append(m2, screening2)
    rows = zip(now, before, first, strict=True)
    return np.array([mean_ahead(n, b, last, f, earlier, length) for n, b, f in rows])


def mass_rate(state: State, ago: int = 0) -> NDArray[np.float64]:
    """Rate of change of the squared masses [GeV^2 fm^-1], at the state or some steps ago.

    Of the parabola through the masses of the state and those before the last two steps, which is
    of second order; after the very first step of the straight line.
    """
    if not state.past:
        return np.full_like(state.mass_squared, np.nan)
    before, _, last = state.past[0]
    rate = (state.mass_squared - before) / last
    if len(state.past) < 2:
        return rate
    first, _, earlier = state.past[1]
    bend = 2.0 * (rate - (before - first) / earlier) / (last + earlier)
    return rate + bend * (0.5 * last - sum((last, earlier)[:ago]))


class Stepper:
    """Advances states through collisions."""

    def __init__(self, backend: CpuBackend, bits: int):
        self.backend, self.model, self.grid = backend, backend.model, backend.grid
        species = np.repeat(np.arange(len(self.model.species)), self.grid.size)
        self._fermion = self.model.statistics[species] < 0
        self._capacity = capacities(self.model, bits)[species]
        self._all = backend.sampling.symmetrical

    def evaluate(self, state: State) -> tuple[Flows, float]:
        """Flows of all processes in a state, and the part of collisions that is lost."""
        draw = Draw(state.step, state.mass_squared, state.screening2)
        flows, (total, lost) = self.look(state.number, state.unit, draw)
        return flows, lost / total if total > 0 else 0.0

    def look(
        self, number: NDArray[np.int64], unit: float, draw: Draw
    ) -> tuple[Flows, tuple[float, float]]:
        """Flows of all processes, weight of collisions and what is lost of it; nothing moves."""
        table, occupancy = self.backend.tables(number, unit)
        drawn = self.backend.draw(draw, occupancy)
        return self.backend.net((table,) * SETS, 0.0)[1], drawn

    def step(self, state: State, length: float) -> tuple[State, StepReport]:
        """One step of this length [fm], with the masses that conserve the total energy.

        E_total is extremal in the masses, so a step with frozen masses conserves it if they are
        the mean of those before and after. These are extrapolated from the last two steps; the
        very first step is done twice instead.
        """
        now = np.append(state.mass_squared, state.screening2)
        if self.model.thermal and not state.past:
            trial, _ = self._attempt(state, length, now)
            now = 0.5 * (now + np.append(trial.mass_squared, trial.screening2))
        elif self.model.thermal:
            now = masses_ahead(state, length)
        return self._attempt(state, length, now)

    def _attempt(
        self, state: State, length: float, squares: NDArray[np.float64]
    ) -> tuple[State, StepReport]:
        """A step with given squared masses of all species and, last, of the screening."""
        draw = Draw.of(state.step, squares, len(self.model.species))
        number, report = self.collide(state.number, state.unit, draw, length)
        new = replace(
            state,
            number=number,
            time=state.time + length,
            step=state.step + 1,
            past=((state.mass_squared, state.screening2, length), *state.past[:1]),
        )
        return with_masses(self.grid, self.model, new), report

    def collide(
        self, n0: NDArray[np.int64], unit: float, draw: Draw, length: float
    ) -> tuple[NDArray[np.int64], StepReport]:
        """Numbers of quanta after a step of collisions with these events."""
        table, occupancy = self.backend.tables(n0, unit)
        drawn = self.backend.draw(draw, occupancy)
        half = 0.5 * length / unit
        stages = self._stages(n0, unit, table, half) or self._limited(n0, unit, table, half)
        first, last, flows, limited = stages
        d1, d2 = first.sum(axis=0), last.sum(axis=0)
        number = n0 + d1 + d2
        if not self._all:
            number = np.clip(number, 0, self._capacity)
        report = StepReport(
            length=length,
            difference=exact_sum(np.abs(d2 - d1)),
            moved=exact_sum(np.abs(d1)),
            total=exact_sum(n0),
            flows=flows,
            drawn=drawn,
            limited_weight=limited,
            noise=noise_sums(first),
        )
        return number, report

    def _stages(
        self, n0: NDArray[np.int64], unit: float, table: NDArray[np.float64], half: float
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], Flows, float] | None:
        """First and last stage of a step without limits; None if a cell would become illegal."""
        first, flows = self.backend.net((table,) * SETS, half)
        last, again = self.backend.net(self._predicted(n0, unit, first), half)
        wanted = half * (flows.wanted + again.wanted)
        fits = not wanted >= 2.0**SUM_BITS  # NaN is for the caller to report
        if not self._all and not fits:
            raise RunError("the step is far too long: what it moves does not fit 64-bit numbers")
        if fits and (not self._all or self._legal(n0 + first.sum(axis=0) + last.sum(axis=0))):
            return first, last, flows, 0.0
        return None

    def _limited(
        self, n0: NDArray[np.int64], unit: float, table: NDArray[np.float64], half: float
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], Flows, float]:
        """Both stages, each limited where a cell asks for it, and the part that was refused.

        The first one may use up half of what a cell holds, the last one what that leaves.
        """
        first, flows, limited = self._stage((table,) * SETS, half, n0, 2)
        tables = self._predicted(n0, unit, first)
        last, _, more = self._stage(tables, half, n0 + first.sum(axis=0), 1)
        return first, last, flows, max(limited, more)

    def _predicted(self, n0: NDArray[np.int64], unit: float, first: NDArray[np.int64]) -> Tables:
        """For each set the table of what the other one predicts: no event sees itself.

        first : half a step by both sets together
        """
        guesses = (np.clip(n0 + AHEAD * part, 0, self._capacity) for part in reversed(first))
        return [self.backend.tables(guess, unit)[0] for guess in guesses]

    def _stage(
        self, tables: Tables, half: float, base: NDArray[np.int64], times: int
    ) -> tuple[NDArray[np.int64], Flows, float]:
        """Half the change of an Euler step by each set, limited only if a cell asks for it.

        base + times * change must be legal. If it is not, every event is scaled as a whole by
        the tightest limit of its cells, so that conservation stays exact.
        """
        change, flows = self.backend.net(tables, half)
        wanted = half * flows.wanted  # no cell can change by more than twice that
        fits = not wanted >= 2.0**SUM_BITS
        if fits and self._legal(base + times * change.sum(axis=0)):
            return change, flows, 0.0
        coarser = 1.0 if fits else 2.0 ** (math.ceil(math.log2(wanted)) - SUM_BITS)
        loss, gain = self.backend.demands(tables, half / coarser)
        allowance = 0.5
        for _ in range(20):
            limits = self._limits(base, loss, gain, allowance / coarser)
            change, limited = self.backend.net(tables, half, limits)
            if self._legal(base + times * change.sum(axis=0)):
                refused = limited.refused / limited.wanted if limited.wanted > 0 else 0.0
                return change, flows, refused
            allowance *= 0.25
        raise RunError("the limiter found no legal step; shorten time.step")

    def _legal(self, number: NDArray[np.int64]) -> bool:
        return bool((number >= 0).all() and (number <= self._capacity).all())

    def _limits(
        self,
        number: NDArray[np.int64],
        loss: NDArray[np.int64],
        gain: NDArray[np.int64],
        allowance: float,
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """s = min(1, f / 2D) for losses and, for fermions, min(1, (1 - f) / 2G) for gains."""
        with np.errstate(divide="ignore", invalid="ignore"):
            low = np.where(loss > 0, np.minimum(1.0, allowance * number / (2.0 * loss)), 1.0)
            room = self._capacity - number
            high = np.where(
                self._fermion & (gain > 0), np.minimum(1.0, allowance * room / (2.0 * gain)), 1.0
            )
        return np.maximum(low, 0.0), np.maximum(high, 0.0)


class StepControl:
    """Chooses the length of steps [fm] from the error of those before."""

    def __init__(self, step: float | str, tolerance: float):
        self.automatic = isinstance(step, str)
        self.tolerance = tolerance
        self.wanted = FIRST_STEP if isinstance(step, str) else step

    def length(self, room: float, longest: float = math.inf) -> float:
        """The next length, such that a stop at distance ``room`` is met without a tiny step."""
        return step_length(min(self.wanted, longest), room, self.automatic)

    def learn(self, report: StepReport) -> bool:
        """Whether the step may stand; adapts the next length."""
        if not self.automatic:
            return True
        stands, self.wanted = adapted(
            report.length, report.error, report.change_ratio,
            largest_change(self.tolerance, report.noise_ratio),
            self.wanted, self.tolerance,
        )  # fmt: skip
        return stands
