"""transport_coefficients(): viscosities, diffusion and conductivity of a model in equilibrium."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import xarray as xr

from ..backends.bracket_requests import BracketRequest, TrialFunctions
from ..backends.elements import Elements
from ..checks import poles
from ..checks.accuracy import warn
from ..grid.phase_space import PhaseSpace
from ..model.model import Model, check_model
from ..model.qcd import qq_qq, qq_qq_ekt
from ..thermodynamics.states import thermal
from ..util.arrays import Array
from ..util.errors import InputError
from ..util.text import shown, suggest
from . import basis, brackets, dataset, given
from .inverse_operator import InverseEstimate, dissipation, independent, response
from .reference_state import COMPONENTS, MomentumPoints, ReferenceState, scale_of

BATCHES = 32
"""Number of independent sums over events, used to estimate errors."""
PILOT = 0.1
"""Fraction of the events used to decide how many events each process needs."""
CELLS, WIDTH = 20, 4.0
"""Nodes on which matrix elements are checked, and their half width in units of the momenta."""
FIRST = 3
"""Number of powers used to decide where events are needed."""
FEW, FEW_SHARP = 3, 5
"""Number of distinct functions needed for a reliable value, and the number needed at a Fermi
surface, where f falls within T.
"""
MOST_THREADS = 1024
FEWEST = 64
"""Smallest number of events per batch of any channel."""


def transport_coefficients(
    model: Model,
    temperature: float | Sequence[float] | Array,
    chemical_potential: given.Potentials = 0.0,
    *,
    grid: PhaseSpace | None = None,
    events: float = 1_000_000,
    seed: int = 1,
    powers: given.Powers | None = None,
    tagged: str | None = None,
    backend: str = "auto",
    threads: int = 0,
) -> xr.Dataset:
    """Compute viscosities, charge diffusion and electric conductivity of a model.

    Parameters
    ----------
    model : a model in which all species collide
    temperature : T [GeV], a number or a sequence
    chemical_potential : mu [GeV], a number for all species, or numbers by species, group or charge;
        every process must conserve it
    grid : a PhaseSpace, for the coefficients of a run on its nodes; by default momentum space is
        unlimited
    events : total number for all processes, at every temperature
    seed : seed of the random numbers; results are bit-for-bit independent of the number of threads
    powers : k of the trial functions tensor x E^k by rank ("shear", "vector", "scalar"), the most
        useful first; multiples of 1/2
    tagged : a species; adds ``tagged_diffusion`` [fm], D in <x^2> = 2 D t, ``tagged_drag`` [fm^-1],
        the initial momentum loss dp/dt = -drag p, and mean relaxation times of velocity and
        momentum [fm], Int <p(t) p(0)> dt over <p^2>, for a dilute set of tagged particles. If two
        particles of the species collide, either one carries the tag afterwards; with peak = "t"
        and |M|^2 symmetric in t and u, it is the less deflected one, and D is larger
    backend : "auto", "cpu" or "cuda"
    threads : CPU threads; 0 = all cores

    Returns
    -------
    xarray.Dataset with ``shear_viscosity`` and ``bulk_viscosity`` [GeV fm^-2],
    ``diffusion(charge, charge2)`` [fm^-2], ``conductivity`` [fm^-1] and ``entropy`` [fm^-3], ratios
    to the entropy, relaxation times [fm], ``*_error`` (one standard error) and ``*_by_basis``,
    values with only the first 1, 2, ... powers. The conductivity is NaN if no species has a charge
    "electric", or if a process does not conserve this charge
    """
    check_model(model)
    all_t = given.temperatures(temperature)
    mu = given.potentials(model, chemical_potential)
    given.check_connected(model)
    sizes = given.powers(powers)
    many = given.whole("events", events, 1000)
    seed = given.whole("seed", seed, 0, 2**63 - 1)
    threads = given.whole("threads", threads, 0, MOST_THREADS)
    if tagged is not None and tagged not in model.names:
        raise InputError(f"tagged = {shown(tagged)}: {suggest(str(tagged), model.names)}")
    if any(p.matrix_element in (qq_qq, qq_qq_ekt) and tagged in p.legs for p in model.processes):
        raise InputError(
            f"tagged = {tagged!r}: stands for all quarks and antiquarks, whose tags differ; use a "
            "model with all of them, flavor_symmetric = False, and tag one"
        )
    if grid is not None and not isinstance(grid, PhaseSpace):
        raise InputError(f"grid = {shown(grid)}: give a PhaseSpace, or leave it out")
    measure = _measure(backend, threads, model)
    elements = Elements(model)
    found, said = [], list[str]()
    for t in all_t:
        points = (
            MomentumPoints.nodes(grid.without_space) if grid is not None
            else MomentumPoints.around(float(t), mu, model.constant_mass_squared)
        )  # fmt: skip
        state = ReferenceState.of(model, points, float(t), mu)
        _check_elements(elements, state, said)
        warn(_of_basis(state, sizes), said)
        drawn = _drawn(elements, state, sizes, many, seed, tagged, measure)
        found.append(dataset.dataset(_coefficients(state, drawn, sizes, tagged), state, tagged))
    result = found[0] if np.ndim(temperature) == 0 else dataset.joined(found, all_t)
    return dataset.described(result, model, grid, many, seed, sizes)


def _check_elements(elements: Elements, state: ReferenceState, said: list[str]) -> None:
    """Raise InputError for matrix elements with a pole; warn if screening makes them negative."""
    t, mu = state.temperature, state.chemical_potential
    width = WIDTH * scale_of(t, mu, state.mass_squared)
    grid = PhaseSpace(CELLS, width) if state.points.grid is None else state.points.grid
    f = thermal(grid, elements.model, t, mu, np.zeros(3), state.mass_squared)
    poles.check_state(elements, grid, f, (state.mass_squared, state.screening2), said)


def _of_basis(state: ReferenceState, sizes: dict[str, tuple[float, ...]]) -> Iterator[str]:
    """Warn if energies differ so little that their powers are nearly linearly dependent."""
    model = state.model
    sharp = (model.statistics == -1) & (state.chemical_potential > np.sqrt(state.mass_squared))
    for rank, power in _ranks(state, sizes).items():
        for a, name in enumerate(model.names):
            one = basis.Basis(state, rank, power, (a,))
            many = len(independent(one.gram())[0])
            if many < min(FEW_SHARP if sharp[a] else FEW, int(one.bounded().sum())):
                yield (
                    f"{name} at T = {state.temperature:.6g} GeV: its energies differ too little "
                    f"(heavy, or a sharp Fermi surface): of the powers of E ({rank}) only {many} "
                    "are different functions; what they give can be too small, even 0"
                )


def _measure(backend: str, threads: int, model: Model) -> brackets.Measure:
    """Return the function that sums events on the requested backend."""
    from ..backends import bracket_measure

    return bracket_measure(backend, threads, model)


def _ranks(
    state: ReferenceState, sizes: dict[str, tuple[float, ...]]
) -> dict[str, tuple[float, ...]]:
    """Return the powers for the ranks of the kernels."""
    return {rank: sizes.get(rank, sizes["shear"]) for rank in state.points.ranks}


def _drawn(
    elements: Elements,
    state: ReferenceState,
    sizes: dict[str, tuple[float, ...]],
    events: int,
    seed: int,
    tagged: str | None,
    measure: brackets.Measure,
) -> brackets.EventSums:
    """Sample all events: a pilot sample to distribute them over processes, then the rest."""
    model, trial = elements.model, TrialFunctions.of(_ranks(state, sizes))
    tasks, members = brackets.plan(elements, state)

    def draw(counts: Array, first_batch: int) -> brackets.EventSums:
        some = tuple(replace(task, samples=int(n)) for task, n in zip(tasks, counts, strict=True))
        request = BracketRequest(some, trial, BATCHES, first_batch, seed, state.points.grid)
        return brackets.EventSums(model, trial, tuple(members), measure(elements, request))

    if len(tasks) == 1:
        return draw(np.array([max(FEWEST, round(events / BATCHES))]), 0)
    even = np.full(len(tasks), max(FEWEST, round(PILOT * events / (BATCHES * len(tasks)))))
    pilot = draw(even, 0)
    spread = _spread(state, pilot, sizes, tagged)
    share = 0.1 / len(tasks) + 0.9 * spread / spread.sum()
    return draw(np.maximum(FEWEST, np.ceil(share * events / BATCHES)), BATCHES)


def _spread(
    state: ReferenceState,
    drawn: brackets.EventSums,
    sizes: dict[str, tuple[float, ...]],
    tagged: str | None,
) -> Array:
    """Return the contribution of every task to the statistical error of the coefficients."""
    charges = np.array(list(state.model.conserved.values()), float)
    everyone = tuple(range(len(state.model.species)))
    total = np.zeros(len(drawn.members))

    def add(whole: basis.Basis, sources: list[basis.Function], tag: int | None) -> None:
        some, where = whole.first(min(FIRST, len(whole.powers)))
        zero = np.zeros((0, some.size)) if tag is not None else _zero(some, whole.rank, charges)
        matrices = drawn.matrices(whole.rank) if tag is None else drawn.tagged(whole.rank, tag)
        for source in sources:
            y = np.zeros(whole.size)
            few = matrices[:, where[:, None], where]
            y[where] = response(few, some.gram(), zero, some.products(source))
            each = drawn.by_task(whole.rank, y, tag)
            size = abs(each.mean(axis=1).sum())
            if size > 0:
                total[:] += (each.std(axis=1, ddof=1) / size) ** 2

    for rank, power in _ranks(state, sizes).items():
        add(basis.Basis(state, rank, power, everyone), _sources(state, rank, charges), None)
    if tagged is not None:
        tag, one = state.model.index(tagged), np.ones(len(everyone))
        add(
            basis.Basis(state, "vector", sizes["vector"], (tag,), state.density), [{-1.0: one}], tag
        )
    return np.sqrt(total) if total.any() else np.ones_like(total)


def _sources(state: ReferenceState, rank: str, charges: Array) -> list[basis.Function]:
    """Return the sources that gradients create, by rank."""
    if rank == "vector":
        return [basis.charge_source(state, row) for row in charges]
    if rank == "scalar":
        return [basis.bulk_source(state, charges)]
    return [basis.shear_source(state)]


def _zero(some: basis.Basis, rank: str, charges: Array) -> Array:
    """Return the conserved functions in a basis."""
    functions = basis.conserved(some.state, rank, charges)
    rows = [some.coefficients(f) for f in functions]
    return np.array([row for row in rows if row is not None]).reshape(-1, some.size)


def _coefficients(
    state: ReferenceState,
    drawn: brackets.EventSums,
    sizes: dict[str, tuple[float, ...]],
    tagged: str | None,
) -> dict[str, dataset.ResponseRows]:
    """Return (s, C^-1 s) of all sources, by rank, for every number of powers up to all."""
    charges = np.array(list(state.model.conserved.values()), float)
    electric = np.array([s.charges.get("electric", 0.0) for s in state.model.species])
    found: dict[str, dataset.ResponseRows] = {}
    for rank, power in _ranks(state, sizes).items():
        whole = basis.Basis(state, rank, power, tuple(range(len(state.model.species))))
        sources = _sources(state, rank, charges)
        if rank == "vector":
            sources.append(basis.charge_source(state, electric))
        norms = np.array([basis.product(state, rank, s, s) for s in sources])
        rows = _by_size(whole, drawn.matrices(rank), charges, sources, rank)
        found[rank] = dataset.ResponseRows(rows, norms / COMPONENTS[rank])
    if tagged is not None:
        found["tagged"] = _tagged(state, drawn, sizes["vector"], state.model.index(tagged))
    return found


def _by_size(
    whole: basis.Basis, matrices: Array, charges: Array, sources: list[basis.Function], rank: str
) -> list[InverseEstimate]:
    """Return values with the first one, two, ... powers."""
    rows = []
    for count in range(1, len(whole.powers) + 1):
        some, where = whole.first(count)
        zero = _zero(some, rank, charges) if charges.size else np.zeros((0, some.size))
        found = dissipation(
            matrices[:, where[:, None], where], some.gram(), zero,
            np.array([some.products(s) for s in sources]),
        )  # fmt: skip
        c = COMPONENTS[rank]
        rows.append(InverseEstimate(found.value / c, found.error / c, found.bias / c))
    return rows


def _tagged(
    state: ReferenceState, drawn: brackets.EventSums, powers: tuple[float, ...], species: int
) -> dataset.ResponseRows:
    """Return values for the velocity p_x/E and momentum p_x [T] of a tagged particle.

    The weight is f, not f F.
    """
    whole = basis.Basis(state, "vector", powers, (species,), state.density)
    one = np.ones(len(state.model.species))
    sources: list[basis.Function] = [{-1.0: one}, {0.0: one}]
    matrices = drawn.tagged("vector", species)
    rows = _by_size(whole, matrices, np.zeros((0, 0)), sources, "vector")
    norms = [state.moment("vector", 2 * k, state.density)[species] for k in (-1.0, 0.0)]
    return dataset.ResponseRows(rows, np.array(norms) / COMPONENTS["vector"], matrices, whole)
