"""Species, Process and Model: the particles of a model and their scattering processes.

A model is a list of species and a list of reactions, each with a matrix element. Multiplicities,
conserved charges and the legs of every process are derived.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from ..grid.units import LARGEST
from ..util import html
from ..util.arrays import Array, Integers
from ..util.errors import AccuracyWarning, InputError, say
from ..util.text import is_number, shown, suggest
from .charges import charge_name, null_space
from .process import Process, listed

__all__ = ["Model", "Process", "Screening", "Species"]


@dataclass(frozen=True)
class Species:
    """One kind of particle.

    Parameters
    ----------
    name : unique within a model, one word: "g", "pi+", "c"; "cbar" is drawn as c with a bar
    degeneracy : N_a, the number of spin, colour, ... states that share one f: 16 for gluons, 6 for
        a quark, 3 for pions if pi+, pi0, pi- are one species. Densities are N_a times the sum of f
    statistics : eta = +1 Bose, -1 Fermi, 0 classical; F = 1 + eta f
    charges : named additive charges, e.g. {"electric": 2/3, "baryon": 1/3}. Charges conserved by
        all processes are monitored; "electric" gives the conductivity, and a chemical potential
        may be given by the name of a charge
    """

    name: str
    degeneracy: float = 1
    statistics: int = 0
    charges: Mapping[str, float] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not is_number(self.degeneracy):
            raise InputError(
                f"species {shown(self.name)}, degeneracy = {shown(self.degeneracy)}: use a string "
                "as name and a number as degeneracy"
            )
        if not self.name or any(c.isspace() for c in self.name) or "->" in self.name:
            raise InputError(f"species name {self.name!r}: use one word without '->'")
        for key, value in self.charges.items():
            if not is_number(value):
                raise InputError(
                    f"species {self.name}: charges: {key} = {shown(value)}: a charge is a number"
                )
        if self.statistics not in (1, -1, 0):
            raise InputError(
                f"species {self.name}: statistics = {shown(self.statistics)}: "
                "use +1 (Bose), -1 (Fermi) or 0 (classical)"
            )
        if not 0 < self.degeneracy < np.inf:
            raise InputError(
                f"species {self.name}: degeneracy = {shown(self.degeneracy)} must be > 0"
            )


@dataclass(frozen=True)
class Screening:
    """Squared screening mass: a constant plus a linear function of Y_b = N_b Int f_b / E.

    ``Model(..., screening=0.5)``, a mass in GeV, is equivalent to ``Screening(0.25)``; this class
    is for masses that depend on the state, and for more than one screening mass.

    Parameters
    ----------
    constant : constant part of screening2 [GeV^2], a squared mass
    coupling : one number for each species, in their order: screening2 = constant + Sum_b
        coupling_b Y_b with Y_b = N_b Int d^3p/(2 pi)^3 f_b/E_b [GeV^2]
    ekt : t_screened is t (q^2 + screening2)/q^2, as in effective kinetic theory, in place of
        t - screening2; q is the momentum transfer in the frame of the grid
    exchange : Screening by species name, for matrix elements with an argument ``exchange2``,
        ``t_exchanged`` or ``u_exchanged``: the exchange of the species of their first leg
    """

    constant: float = 0.0
    coupling: tuple[float, ...] | None = None
    ekt: bool = False
    exchange: Mapping[str, "Screening"] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        if not 0 <= self.constant < np.inf:
            raise InputError(f"screening: {self.constant!r} GeV^2 must be 0 or positive")
        if self.coupling is not None:
            object.__setattr__(self, "coupling", tuple(float(v) for v in self.coupling))
        for name, row in self.exchange.items():
            if row.ekt or row.exchange:
                raise InputError(
                    f"screening.exchange.{name}: only constant and coupling are allowed; ekt and "
                    "exchange belong to the enclosing Screening"
                )

    def padded(self, more: int) -> "Screening":
        """Return the screening for a model with additional species that do not contribute."""
        coupling = None if self.coupling is None else (*self.coupling, *(0.0,) * more)
        exchange = {name: row.padded(more) for name, row in self.exchange.items()}
        return Screening(self.constant, coupling, self.ekt, exchange)

    def describe(self) -> dict[str, Any]:
        """Return the screening as TOML values."""
        described: dict[str, Any] = {"constant": self.constant, "ekt": self.ekt}
        if self.coupling is not None:
            described["coupling"] = list(self.coupling)
        if self.exchange:
            rows = self.exchange.items()
            described["exchange"] = {name: row.describe() for name, row in rows}
        return described

    def squared(self, y: Array) -> float:
        """Return screening2 [GeV^2] of a state with Y_b = y [GeV^2]."""
        if self.coupling is None:
            return self.constant
        return self.constant + sum(k * float(v) for k, v in zip(self.coupling, y, strict=True))


class Model:
    """Model of matter: species, scattering processes, masses and screening.

    >>> gas = rb.Model([rb.Species("a")], [rb.Process("a a -> a a", sigma=1.0)], masses={"a": 0.3})

    Parameters
    ----------
    species : list of Species
    processes : list of Process, each physical process once: its reverse is included
    masses : constant masses [GeV] by species name; absent species are massless
    mass_coupling : symmetric matrix K of m_a^2 = m_a,0^2 + Sum_b K_ab Y_b with
        Y_b = N_b Int d^3p/(2 pi)^3 f_b / E_b; makes the masses thermal and self-consistent
    screening : a mass [GeV] or a Screening, passed to matrix elements as ``screening2``
    groups : names for several species at once, e.g. {"quarks": ("u", "d", "s")}
    name : shown in output

    Derived attributes: ``names``, ``degeneracy``, ``statistics``, ``conserved``.
    """

    recipe: dict[str, Any] | None = None
    """Function of ``qcd`` that made the model, and its arguments."""

    def __init__(
        self,
        species: Sequence[Species],
        processes: Sequence[Process],
        *,
        masses: Mapping[str, float] | str | None = None,
        mass_coupling: Array | None = None,
        screening: float | Screening = 0.0,
        groups: Mapping[str, Sequence[str]] | None = None,
        name: str = "user model",
    ):
        self.species = listed(species, Species, 'Species("a", degeneracy=6, statistics=-1)')
        processes = listed(processes, Process, 'Process("a a -> a a", sigma=1.0)')
        states = {s.name: s.degeneracy for s in self.species}
        known = [set(p.legs) <= states.keys() for p in processes]  # others are refused below
        self.processes = tuple(
            p.among(states) if there else p for p, there in zip(processes, known, strict=True)
        )
        self.name = name
        self.groups = {key: tuple(value) for key, value in (groups or {}).items()}
        masses = {} if masses in (None, "massless") else masses
        if not isinstance(masses, Mapping):
            raise InputError(
                f"masses = {shown(masses)}: use a dictionary of masses in GeV by species, or leave "
                "it out for massless species"
            )
        self.names = tuple(s.name for s in self.species)
        self.degeneracy = np.array([s.degeneracy for s in self.species], dtype=float)
        self.statistics = np.array([s.statistics for s in self.species], dtype=np.int64)
        if not isinstance(screening, Screening):
            if not is_number(screening) or not 0 <= screening <= LARGEST:
                raise InputError(
                    f"screening = {shown(screening)}: a mass in GeV is 0 or positive, at most "
                    f"{LARGEST:g}"
                )
            screening = Screening(float(screening) ** 2)
        self.screening = screening
        self.screenings = (screening, *dict.fromkeys(screening.exchange.values()))
        self._check_lists()
        self.constant_mass_squared = np.zeros(len(self.species))
        for key, mass in sorted(masses.items(), key=lambda item: item[0] in self.names):
            for index in self.indices(key, "masses"):
                if not is_number(mass) or not 0 <= mass <= LARGEST:
                    raise InputError(
                        f"masses: {key} = {shown(mass)}: a mass in GeV is 0 or positive, at most "
                        f"{LARGEST:g}"
                    )
                self.constant_mass_squared[index] = float(mass) ** 2
        n = len(self.species)
        coupling = np.zeros((n, n)) if mass_coupling is None else np.asarray(mass_coupling, float)
        if coupling.shape != (n, n) or not np.allclose(coupling, coupling.T, rtol=1e-14, atol=0):
            raise InputError(
                f"mass_coupling must be a symmetric {n} x {n} matrix: only then is there a "
                "conserved total energy"
            )
        self.mass_coupling = coupling
        self._tell_broken_charges()

    def _tell_broken_charges(self) -> None:
        """Warn about named charges that a process does not conserve, most likely an input error."""
        for key in dict.fromkeys(k for s in self.species for k in s.charges):
            of = {s.name: s.charges.get(key, 0.0) for s in self.species}
            for process in self.processes:
                before, after = (sum(of[leg] for leg in side) for side in process.sides)
                if abs(before - after) > 1e-9 * max(map(abs, of.values())):
                    say(
                        f"process {process.name} changes the charge {key!r}, from {before:g} to "
                        f"{after:g}: it is not conserved, and not monitored. Check the reaction "
                        "and the charges of the species", AccuracyWarning,
                    )  # fmt: skip

    def extend(
        self,
        species: Sequence[Species] = (),
        processes: Sequence[Process] = (),
        *,
        masses: Mapping[str, float] | None = None,
        screening: float | Screening | None = None,
        groups: Mapping[str, Sequence[str]] | None = None,
        name: str | None = None,
    ) -> "Model":
        """Return this model with more species and processes; existing masses and screening stay.

        >>> rb.gluons(0.3).extend([rb.Species("c", 6, -1)], [charm], masses={"c": 1.3})

        Parameters
        ----------
        species, processes : additions; a process may involve old and new species
        masses : constant masses of new species [GeV]; 0 by default. New species neither feel the
            mean field of the others nor contribute to it
        screening : replaces the model's screening: a mass [GeV] or a Screening of all species
        groups : names for several species, old or new, in addition to those of the model
        name : name of the new model; by default that of this model and the additions
        """
        more = listed(species, Species, 'Species("c", 6, -1)')
        added_processes = listed(processes, Process, 'Process("c g -> c g", sigma=1.0)')
        for key in masses or {}:
            if key in self.names:
                raise InputError(
                    f"masses.{key}: {self.name} has {key} already, with a mass; set the mass where "
                    "that model is built"
                )
        old, size = len(self.names), len(self.names) + len(more)
        coupling = np.zeros((size, size))
        coupling[:old, :old] = self.mass_coupling
        added = " + ".join([self.name, *(s.name for s in more)])
        extended = Model(
            [*self.species, *more],
            [*self.processes, *added_processes],
            masses=masses,
            mass_coupling=coupling,
            screening=self.screening.padded(len(more)) if screening is None else screening,
            groups={**self.groups, **(groups or {})},
            name=added if name is None else name,
        )
        extended.constant_mass_squared[:old] = self.constant_mass_squared
        return extended

    @property
    def value(self) -> tuple[object, ...]:
        """Return all data on which results depend; models with equal values are equal."""
        arrays = (self.degeneracy, self.statistics, self.constant_mass_squared, self.mass_coupling)
        processes = (
            (p.name, p.matrix_element, p.peak, *p.parameters.items()) for p in self.processes
        )
        screening = (repr(self.screenings), repr(self.screening.exchange))
        return (self.names, *(a.tobytes() for a in arrays), *screening, *processes)

    def __repr__(self) -> str:
        many = f"{len(self.processes)} process{'es' * (len(self.processes) != 1)}"
        return f"<Model {self.name}: {len(self.species)} species, {many}>"

    def _repr_html_(self) -> str:
        """Return a table of species and processes, for notebooks."""
        kinds = {1: "Bose", -1: "Fermi", 0: "classical"}
        thermal = [bool(row.any()) for row in self.mass_coupling]
        masses = [
            f"{m:.4g} GeV" * (m > 0 or not t) + " + " * (m > 0 and t) + "thermal" * t
            for m, t in zip(np.sqrt(self.constant_mass_squared).tolist(), thermal, strict=True)
        ]
        rows = [
            (s.name, f"{s.degeneracy:g}", kinds[s.statistics], mass,
             ", ".join(f"{key} {value:.3g}" for key, value in s.charges.items()))
            for s, mass in zip(self.species, masses, strict=True)
        ]  # fmt: skip
        columns = ("species", "states", "statistics", "mass", "charges")
        by_row: dict[str, list[str]] = {}
        for process in self.processes:
            by_row.setdefault(process.row, []).append(process.name)
        listed = [
            (len(names), ", ".join(names[:3]) + ", ..." * (len(names) > 3), row)
            for row, names in by_row.items()
        ]
        return (
            html.line(repr(self)[1:-1], "b") + html.table(columns, rows)
            + html.table(("processes", "", "matrix element"), listed)
            + html.line(f"conserved: {', '.join(self.conserved) or 'nothing'}")
        )  # fmt: skip

    def _check_lists(self) -> None:
        if not self.species:
            raise InputError("a model needs at least one species")
        if len(set(self.names)) != len(self.names):
            raise InputError(f"species names must differ: {', '.join(self.names)}")
        for name in self.screening.exchange:
            self._known(name, f"unknown species screening.exchange.{name}")
        for row in self.screenings:
            if row.coupling is not None and len(row.coupling) != len(self.species):
                raise InputError(
                    f"screening.coupling has {len(row.coupling)} entries for "
                    f"{len(self.species)} species"
                )
        for group, members in self.groups.items():
            for member in members:
                self._known(member, f"group {group}: unknown species {member!r}")
        seen: dict[frozenset[tuple[str, ...]], str] = {}
        for process in self.processes:
            for leg in process.legs:
                self._known(leg, f"process {process.name}: unknown species {leg!r}")
            key = frozenset(tuple(sorted(side)) for side in process.sides)
            if key in seen:
                raise InputError(
                    f"process {process.name} is the same as {seen[key]}: list each physical "
                    "process once, its reverse is included"
                )
            seen[key] = process.name
            none = self.screening.constant == 0 and self.screening.coupling is None
            if process.peak == "t" and none:
                raise InputError(
                    f'process {process.name}: peak = "t" needs a screening mass: '
                    "give Model(..., screening=mass in GeV)"
                )

    def _known(self, name: str, otherwise: str) -> None:
        if name not in self.names:
            raise InputError(f"{otherwise}; {suggest(name, self.names)}")

    def index(self, name: str) -> int:
        """Return the position of a species."""
        return self.names.index(name)

    def indices(self, name: str, where: str) -> list[int]:
        """Return the positions of a species or of the members of a group."""
        if name in self.names:
            return [self.index(name)]
        if name in self.groups:
            return [self.index(member) for member in self.groups[name]]
        raise InputError(
            f"unknown species {where}.{name}; {suggest(name, (*self.names, *self.groups))}"
        )

    @property
    def thermal(self) -> bool:
        """Whether masses or screening depend on the state."""
        depends = any(row.coupling is not None for row in self.screenings)
        return bool(self.mass_coupling.any()) or depends

    def mass_squared(self, y: Array) -> Array:
        """Return m_a^2 [GeV^2] of a state with Y_b = y [GeV^2]."""
        # without BLAS, for reproducible bits
        return self.constant_mass_squared + (self.mass_coupling * y).sum(axis=1)

    def screening_squared(self, y: Array) -> Array:
        """Return the squared masses [GeV^2] of ``screenings`` in a state with Y_b = y [GeV^2].

        The first one screens t and u; the others screen the exchange of species.
        """
        return np.array([row.squared(y) for row in self.screenings])

    def exchange_row(self, name: str) -> int:
        """Return the position in ``screenings`` of the screening of a species' exchange."""
        return self.screenings.index(self.screening.exchange.get(name, self.screening))

    def describe(self) -> dict[str, Any]:
        """Return the model as TOML values; every output file contains them."""
        return {
            "name": self.name,
            "species": [
                {"name": s.name, "degeneracy": float(s.degeneracy), "statistics": s.statistics}
                for s in self.species
            ],
            "processes": [
                {"reaction": p.name, "matrix_element": p.row, "peak": p.peak or "",
                 "parameters": dict(p.parameters)}
                for p in self.processes
            ],
            "constant_mass_squared": self.constant_mass_squared.tolist(),
            "mass_coupling": self.mass_coupling.tolist(),
            "screening": self.screening.describe(),
        }  # fmt: skip

    @cached_property
    def stoichiometry(self) -> Integers:
        """Change of each species' number in one reaction, one row per process."""
        table = np.zeros((len(self.processes), len(self.species)), dtype=np.int64)
        for row, process in zip(table, self.processes, strict=True):
            for side, sign in zip(process.sides, (-1, 1), strict=True):
                for leg in side:
                    row[self.index(leg)] += sign
        return table

    @cached_property
    def conserved(self) -> dict[str, tuple[int, ...]]:
        """Conserved charges: an integer basis of the null space of the stoichiometry.

        The particle number comes first if every process conserves it, as 2 <-> 2 processes do; then
        named integer charges of the species, then the rest of the null space.
        """
        candidates: list[tuple[str, tuple[int, ...]]] = [("number", (1,) * len(self.species))]
        for key in dict.fromkeys(k for s in self.species for k in s.charges):
            values = [Fraction(s.charges.get(key, 0)).limit_denominator(1000) for s in self.species]
            if all(v.denominator == 1 for v in values):
                name = f"charge {key}" if key == "number" else key
                candidates.append((name, tuple(int(v) for v in values)))
        for vector in null_space(self.stoichiometry):
            candidates.append((charge_name(vector, self.names), vector))
        basis: dict[str, tuple[int, ...]] = {}
        for name, vector in candidates:
            rows = np.array([*basis.values(), vector], dtype=float)
            kept = not (self.stoichiometry @ np.array(vector)).any()
            if kept and np.linalg.matrix_rank(rows) == len(rows):
                basis[name] = vector
        return basis


def check_model(model: Any) -> Model:
    """Return the model; raise InputError for anything else."""
    if not isinstance(model, Model):
        raise InputError(
            f"model = {shown(model)}: use a Model, such as relboltz.gluons(0.3), or your own"
        )
    return model
