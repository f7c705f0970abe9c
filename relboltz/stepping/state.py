"""The state of a run: everything that a step changes, in one object.

The particle numbers themselves are stored in a backend, on the CPU or on a GPU; ``packed`` returns
the rest for a file. Sites are the first axis of all arrays: homogeneous matter has one site.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from ..transport.ledger import LostQuanta
from ..util.arrays import Array
from .accuracy_watch import AccuracyWatch

History = list[tuple[Array, float]]
"""Rates of change in the last two steps, newest first, and the lengths of these steps [fm]."""


PLAIN = (
    "bits", "species", "wanted", "time", "step", "recorded", "kept", "doublings", "waits", "stuck",
    "work", "strain",
)  # fmt: skip


FOLLOWED = (
    "bits", "squares", "wanted", "ledger", "time", "step", "past", "by_part", "doublings",
    "waits", "stuck", "work", "strain",
)  # fmt: skip
"""Attributes that steps change."""


@dataclass
class State:
    """The run at one time, with the history that the next steps need.

    squares : squared masses of all species and of all of ``Model.screenings``, by site [GeV^2]
    past : rates of change of ``squares`` in the last two steps [GeV^2 fm^-1]
    by_part : those rates in each substep of these steps, see ``parts``
    wanted : length that step control wants next [fm]
    fit : last result of the thermal fits, the initial guess for the next
    origin : initial conserved charges and momentum in quanta, the reference for drifts
    first, last : the first record, the reference for relative drifts, and the last complete one
    recorded, kept : times of the last record and of the last stored f [fm]
    pending : records still waiting for data from the next steps
    said : warnings issued so far
    doublings : number of spacing doublings in an expansion, by axis; waits : factor by which grid
        momenta must shrink before the next; stuck : why no further doubling is possible
    work : work done by the pressure since the start, per initial volume [GeV fm^-3]
    strain : ln a_i and V (P_i + B) before and after the last step, see ``expanding``
    """

    bits: int
    squares: Array
    species: int
    wanted: float
    ledger: LostQuanta
    time: float = 0.0
    step: int = 0
    past: History = field(default_factory=list)
    by_part: list[History] = field(default_factory=list)
    watch: AccuracyWatch = field(default_factory=AccuracyWatch)
    fit: Array | None = None
    origin: tuple[list[int], list[int]] | None = None
    first: dict[str, Any] = field(default_factory=dict)
    last: dict[str, Any] = field(default_factory=dict)
    recorded: float = -1.0
    kept: float = -1.0
    pending: list[dict[str, Any]] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    doublings: list[int] = field(default_factory=lambda: [0, 0, 0])
    waits: list[float] = field(default_factory=lambda: [1.0, 1.0, 1.0])
    stuck: list[str] = field(default_factory=lambda: ["", "", ""])
    work: float = 0.0
    strain: list[list[float]] = field(default_factory=list)

    @property
    def unit(self) -> float:
        """One quantum of N_a f."""
        return 2.0**-self.bits

    @property
    def mass_squared(self) -> Array:
        """Squared masses of all species [GeV^2]: (sites, species)."""
        return self.squares[:, : self.species]

    @property
    def screening2(self) -> Array:
        """Squared screening masses [GeV^2]: (sites, screenings)."""
        return self.squares[:, self.species :]

    def mass_rate(self, ago: int = 0) -> Array:
        """Return the rate of change of the squared masses [GeV^2 fm^-1], now or ``ago`` steps ago.

        The rate is the slope of the parabola through the present masses and the masses before
        each of the last two steps, which is second order; after the very first step, of the
        straight line.
        """
        if not self.past:
            return np.full_like(self.mass_squared, np.nan)
        rate, last = self.past[0][0][:, : self.species], self.past[0][1]
        if len(self.past) < 2:
            return rate
        before, earlier = self.past[1][0][:, : self.species], self.past[1][1]
        bend = 2.0 * (rate - before) / (last + earlier)
        return rate + bend * (0.5 * last - sum((last, earlier)[:ago]))

    def step_taken(self, squares: Array, rates: list[Array], length: float, time: float) -> None:
        """Accept a step of ``length`` [fm] that ends at ``time``.

        rates : rates of change of ``squares`` in each substep
        """
        self.past = [((squares - self.squares) / length, length), *self.past[:1]]
        earlier = self.by_part or [[] for _ in rates]
        self.by_part = [
            [(rate, length), *before[:1]] for rate, before in zip(rates, earlier, strict=True)
        ]
        self.squares, self.time, self.step = squares, time, self.step + 1

    # -- steps taken by workers ------------------------------------------------------------------

    def without_records(self) -> State:
        """Return a copy with only the data that steps need or change."""
        return replace(self, fit=None, first={}, last={}, pending=[], said=[])

    def follow(self, other: State) -> None:
        """Copy everything that steps changed from ``other``; keep the record data of this state."""
        if other.origin is not None:  # in the present quanta
            self.origin = other.origin
        for name in FOLLOWED:
            setattr(self, name, getattr(other, name))
        seen = self.watch
        self.watch = replace(other.watch, fastest=seen.fastest, negative=seen.negative)

    # -- serialization ---------------------------------------------------------------------------

    @property
    def _records(self) -> list[dict[str, Any]]:
        return [self.first, self.last, *self.pending]

    def packed(self) -> dict[str, Array]:
        """Return everything as arrays; the caller adds the particle numbers of the backend."""
        plain = {name: getattr(self, name) for name in PLAIN}
        plain |= {
            "watch": asdict(self.watch), "origin": self.origin, "said": self.said,
            "past": [[length for _, length in h] for h in (self.past, *self.by_part)],
            "records": [sorted(record) for record in self._records],
        }  # fmt: skip
        arrays = {"squares": self.squares, **self.ledger.packed()}
        for k, history in enumerate((self.past, *self.by_part)):
            arrays |= {f"rate {k} {i}": rate for i, (rate, _) in enumerate(history)}
        if self.fit is not None:
            arrays["fit"] = self.fit
        for k, record in enumerate(self._records):
            arrays |= {f"record {k} {name}": np.asarray(v) for name, v in record.items()}
        text = json.dumps(plain, default=float)
        return arrays | {"plain": np.frombuffer(text.encode(), np.uint8)}

    @classmethod
    def unpacked(cls, arrays: dict[str, Array], ledger: LostQuanta) -> State:
        """Rebuild a state from packed arrays; ledger: an empty one for the same grid."""
        plain = json.loads(bytes(np.asarray(arrays["plain"], np.uint8)))
        ledger.unpack(arrays)
        histories = [
            [(arrays[f"rate {k} {i}"], length) for i, length in enumerate(lengths)]
            for k, lengths in enumerate(plain["past"])
        ]
        first, last, *pending = [
            {name: arrays[f"record {k} {name}"] for name in names}
            for k, names in enumerate(plain["records"])
        ]
        return cls(
            squares=arrays["squares"], ledger=ledger, past=histories[0], by_part=histories[1:],
            watch=AccuracyWatch(**plain["watch"]), fit=arrays.get("fit"), said=plain["said"],
            origin=plain["origin"] and tuple(plain["origin"]), first=first, last=last,
            pending=pending, **{name: plain[name] for name in PLAIN if name in plain},
        )  # fmt: skip
