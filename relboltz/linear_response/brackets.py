"""(phi, C psi) of trial functions around a state, from events of all processes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..backends.bracket_requests import BracketRequest, ChannelEvents, Table, TrialFunctions
from ..backends.elements import Elements
from ..config.settings import Sampling
from ..events.collisions import Channel, channels
from ..model.model import Model
from ..thermodynamics.gas import occupation
from ..util.arrays import Array
from .reference_state import ReferenceState

BINS = 1024
"""Number of bins in |p| of the sampling tables."""
TAIL = 0.5
"""Momenta are sampled with the density f^TAIL, because hard momenta dominate brackets of high
powers. Fermions are sampled with (f F)^TAIL: deep below a Fermi surface they are Pauli-blocked.
"""
SOFT = 1.5
"""In unlimited momentum space the density is multiplied by F^SOFT of the bosons of the process.
Soft massless bosons contribute p^2 f F dp ~ dp to a bracket, and this factor samples them
accordingly. Sampled with f^TAIL alone they have weights ~ p^(-3/2), whose variance diverges as
screening vanishes. Fermions that turn into bosons need the factor as well.
"""
DOUBLE_POLE = 0.75
"""Fraction of the events for a double pole in t if u has a single pole: with 1/2, errors of the
shear viscosity are a quarter larger, and those of the diffusion are unchanged.
"""
RARE = 1e-9
"""Fraction of the largest f that is added to f when nodes are sampled."""
DEPTH = 60.0
"""Largest energy above m, or above mu, in units of T."""
SIGNS = (1.0, 1.0, -1.0, -1.0)
"""Signs of the legs k1, k2, k3, p in Delta phi."""
ALL_SHARES = np.outer(SIGNS, SIGNS)
"""Signs of pairs of legs in Delta phi Delta psi."""
Tables = dict[tuple[int, tuple[int, ...]], Table]
"""Edges and cumulative densities by the sampled species and the bosons of its process."""
Measure = Callable[[Elements, BracketRequest], Array]


@dataclass(frozen=True)
class EquivalentChannel:
    """One of several channels with the same integrand, for which events are sampled only once.

    legs : species of k1, k2, k3 and p; factor : multiplicity of the channel
    """

    legs: tuple[int, int, int, int]
    factor: float
    process: int


@dataclass(frozen=True)
class EventSums:
    """Sums over events around a state.

    sums (task, batch, rank, pair of legs, function, function), see ``BracketRequest``
    """

    model: Model
    trial: TrialFunctions
    members: tuple[tuple[EquivalentChannel, ...], ...]
    """Channels of every task."""
    sums: Array

    @cached_property
    def _legs(self) -> Array:
        """Sums for all pairs of the four legs (task, batch, rank, leg, leg, f, f).

        On nodes the first two legs are means of a low and of a high node.
        """
        pairs = self.sums.shape[3]
        cells = 4 if pairs == 10 else 6
        owner = (0, 1, 2, 3) if cells == 4 else (0, 1, 0, 1, 2, 3)
        full = np.zeros((*self.sums.shape[:3], 4, 4, *self.sums.shape[4:]))
        pair = 0
        for a in range(cells):
            for b in range(a, cells):
                part = self.sums[:, :, :, pair]
                full[:, :, :, owner[a], owner[b]] += part
                if a != b:
                    full[:, :, :, owner[b], owner[a]] += part.swapaxes(-1, -2)
                pair += 1
        return full

    def matrices(self, rank: str) -> Array:
        """Return (phi_i, C phi_j) of every batch (batch, i, j), functions ordered by species."""
        return self._assembled(rank, None, range(len(self.members)))

    def tagged(self, rank: str, species: int) -> Array:
        """Return the matrices for a few tagged particles, restricted to their species.

        A tag passes to the outgoing particle of that species, and is lost if there is none. Of two
        identical outgoing particles, k3 inherits the tag of k1: either of them if all angles are
        sampled, and the less deflected one if |M|^2 is peaked and only the forward half is sampled
        (``ChannelEvents.span``).
        """
        return self._assembled(rank, species, range(len(self.members)))

    def by_task(self, rank: str, y: Array, tag: int | None = None) -> Array:
        """Return (phi, C phi) of one function by task and batch; tag : a tagged species."""
        each = [self._assembled(rank, tag, (k,)) for k in range(len(self.members))]
        return np.array([np.einsum("i,bij,j->b", y, matrices, y) for matrices in each])

    def _assembled(self, rank: str, tag: int | None, tasks: Iterable[int]) -> Array:
        """Return the sums of some tasks."""
        r = self.trial.ranks.index(rank)
        many = int(self.trial.counts[r])
        legs = self._legs[:, :, r, :, :, :many, :many]
        kinds = len(self.model.species) if tag is None else 1
        result = np.zeros((legs.shape[1], kinds, many, kinds, many))
        for k in tasks:
            for member in self.members[k]:
                place = member.legs if tag is None else (0, 0, 0, 0)
                share = ALL_SHARES if tag is None else tag_shares(member.legs, tag)
                for a, b in zip(*np.nonzero(share), strict=True):
                    weight = member.factor * share[a, b]
                    result[:, place[a], :, place[b]] += weight * legs[k][:, a, b]
        return result.reshape(len(result), kinds * many, kinds * many)


def tag_shares(legs: tuple[int, ...], species: int) -> Array:
    """Return the factors of phi_i psi_j in the brackets of a tagged particle."""
    share = np.zeros((4, 4))
    into = [i for i in (0, 1) if legs[i] == species]
    out = [i for i in (2, 3) if legs[i] == species]
    for i in (*into, *out):
        share[i, i] = 1.0  # loss at the initial momentum
    straight = len(into) == len(out) == 2
    for i in into:
        for j in out:  # gain at the final momentum
            if not straight:
                share[i, j] = share[j, i] = -1.0 / max(len(into), len(out))
            elif j == i + 2:  # k1 and k3, k2 and p: the sampled angle is between these
                share[i, j] = share[j, i] = -1.0
    return share


def plan(
    elements: Elements, state: ReferenceState
) -> tuple[list[ChannelEvents], list[tuple[EquivalentChannel, ...]]]:
    """Plan the events for a state; channels that differ only in names are sampled once."""
    model = elements.model
    found: dict[object, tuple[ChannelEvents, list[EquivalentChannel]]] = {}
    tables: Tables = {}
    for channel in channels(model):
        task = _task(elements, state, channel, tables)
        process = model.processes[channel.process]
        key = (
            process.matrix_element, tuple(process.parameters.items()), task.m2, task.named,
            task.screening, task.alpha, task.eta, task.poles, task.span, task.coarse,
        )  # fmt: skip
        legs = (*channel.pair, *channel.nodes)
        found.setdefault(key, (task, []))[1].append(
            EquivalentChannel(legs, channel.factor, channel.process)
        )
    tasks, members = zip(*found.values(), strict=True) if found else ((), ())
    return list(tasks), [tuple(row) for row in members]


def _task(
    elements: Elements, state: ReferenceState, channel: Channel, tables: Tables
) -> ChannelEvents:
    model, process = elements.model, elements.model.processes[channel.process]
    legs = (*channel.pair, *channel.nodes)

    def four(values: Array, some: tuple[int, ...]) -> tuple[float, float, float, float]:
        a, b, c, d = (float(f"{values[i]:.14e}") for i in some)
        return a, b, c, d

    def table(a: int) -> Table:
        bosons = tuple(sorted({b for b in legs if model.statistics[b] == 1}))
        key = a, bosons if state.points.grid is None else ()
        if key not in tables:
            tables[key] = _table(state, *key)
        return tables[key]

    named = tuple(model.index(leg) for leg in process.legs)
    grid = state.points.grid
    measure, fields, coarse = 1.0, np.zeros((4, 0)), ChannelEvents.coarse
    if grid is not None:
        measure, eta = grid.cell_volume**2, model.statistics[:, None]
        with np.errstate(divide="ignore"):
            full = np.log1p(eta * state.f)
        fields = np.concatenate([full[list(channel.pair)], state.f[list(channel.nodes)]])
        spacing2 = Sampling().compensated_spacing2(grid, process)
        coarse = (*elements.inner_weights(grid, [channel])[0], spacing2)
    return ChannelEvents(
        channel.process, four(state.mass_squared, legs), four(state.mass_squared, named),
        elements.screening(channel.process, state.screening2),
        four(state.chemical_potential / state.temperature, legs),
        four(model.statistics.astype(float), legs),
        _poles(elements, channel.process, state.screening2),
        1.0 if elements.folds[channel.process] else 2.0,
        1.0 if process.elastic or not process.constant else 0.0,  # as in ``channels``
        1.0 if process.built_in else 0.0, measure / (4 * (2 * np.pi) ** 6),
        (table(legs[3]), table(legs[2]), table(legs[1]), table(legs[0])), state.temperature,
        fields, coarse,
    )  # fmt: skip


def _poles(elements: Elements, index: int, screening2: Array) -> tuple[float, float, float]:
    """Return squared masses [GeV^2] of a process' poles in t and u, as used by its matrix element.

    0 if there is no pole, or if sampling one half of the angles excludes it. The third value is the
    fraction of the events for t: a double pole, peak = "t", counts more than a single pole.
    """
    process = elements.model.processes[index]
    gluon, quark, _ = elements.screening(index, screening2)
    found = {"t": gluon if process.peak == "t" else 0.0, "u": 0.0}
    for letter in found:
        for kind, mass2 in (("regulated", gluon), ("screened", gluon), ("exchanged", quark)):
            if f"{letter}_{kind}" in process.arguments:
                found[letter] = mass2
    share = DOUBLE_POLE if process.peak == "t" else 0.5
    return found["t"], 0.0 if elements.folds[index] else found["u"], share


def _table(state: ReferenceState, a: int, bosons: tuple[int, ...]) -> Table:
    """Return edges of |p| and the cumulative density for sampling a species; or of nodes.

    bosons : bosonic species of the process; ignored on nodes
    """
    if state.points.grid is not None:
        f = _moving(state.f[a], int(state.model.statistics[a]))
        chance = np.cumsum((f / f.max() + RARE) ** TAIL)
        return np.zeros(0), np.concatenate([[0.0], chance / chance[-1]])
    t, m = state.temperature, float(np.sqrt(state.mass_squared[a]))
    mu, eta = float(state.chemical_potential[a]), int(state.model.statistics[a])
    kinetic = DEPTH * t + max(mu - m, 0.0)
    edges = np.sqrt(kinetic * (kinetic + 2 * m)) * np.linspace(0, 1, BINS + 1) ** 2
    p = 0.5 * (edges[1:] + edges[:-1])
    f = occupation((np.hypot(p, m) - mu) / t, eta)
    density = p * p * _moving(f, eta) ** TAIL
    for b in bosons:
        energy = np.sqrt(p * p + state.mass_squared[b])
        full = 1 + occupation((energy - state.chemical_potential[b]) / t, 1)
        density = density * full**SOFT
    cumulative = np.concatenate([[0.0], np.cumsum(density * np.diff(edges))])
    return edges, cumulative / cumulative[-1]


def _moving(f: Array, eta: int) -> Array:
    """Return f, or f F for fermions."""
    return f * (1 - f) if eta < 0 else f
