"""Properties of an initial state: conserved totals, masses, and memory."""

import numpy as np

from ..backends.cpu.collider import EVENT_BYTES, STORE_LIMIT
from ..backends.cpu.masses import masses, total_energy
from ..events.collisions import SETS
from ..grid.phase_space import PhaseSpace
from ..io.observables import coupling_integrals
from ..model.gap_equation import field_energy
from ..model.model import Model
from ..thermodynamics import states as equilibrium
from ..thermodynamics.states import Equilibrium
from ..transport.moments import Moments, whole
from ..util.arrays import Array, free_memory
from ..util.errors import InputError

Squares = tuple[Array, Array]
"""Squared masses of the species, and squared screening masses [GeV^2]."""
Totals = tuple[Array, Array, float]
"""Numbers by species [fm^-3], momentum (3) and total energy [GeV fm^-3].

Of the numbers, only the model's charges are conserved.
"""
HOST_COPIES = 4
"""Copies of a state on the host during initialisation."""
NODE_BYTES, CELL_BYTES, THREAD_BYTES = 100, 100, 2**20
"""Further memory of a run per node, per f of a species at a node, and per thread: measured, rounded
down (96^3 nodes of gluons and 48^3 of QCD with three flavours).
"""


def totals(grid: PhaseSpace, model: Model, f: Array) -> Totals:
    """Return the conserved totals of f of one site, shape (species, nodes)."""
    m2 = masses(grid, model, f)
    density = model.degeneracy[:, None] * f * grid.measure
    momentum = np.array([(density * p).sum() for p in grid.momenta])
    return density.sum(axis=1), momentum, total_energy(grid, model, f, m2)


def totals_of_sites(
    grid: PhaseSpace, model: Model, moments: Moments, squares: Array, unit: float
) -> Totals:
    """Return conserved totals averaged over the sites; reflecting walls absorb momentum.

    squares : (sites, species + screenings) [GeV^2]; unit : one quantum of N_a f
    """
    density = unit * grid.measure / grid.sites
    numbers = moments.totals.sum(axis=0, dtype=float) * density
    quanta = zip(grid.spacing, whole(moments.momentum_words), strict=True)
    momentum = np.array([0.5 * h * density * q for h, q in quanta])
    for axis in grid.moving_axes:
        if grid.boundary[axis] != "periodic":
            momentum[axis] = 0.0
    kinetic = moments.sums[:, :, 0] @ model.degeneracy * grid.measure
    y = coupling_integrals(grid, model, moments)
    energy = kinetic + field_energy(model, squares[:, : len(model.species)], y)
    return numbers, momentum, float(energy.mean())


def predict_from(grid: PhaseSpace, model: Model, f: Array) -> Equilibrium:
    """Return the final state that follows from the conserved quantities of f."""
    return equilibrium.predict(grid, model, *totals(grid, model, f))


def leaks(grid: PhaseSpace) -> bool:
    """Return whether no final state is expected: particles can leave the box, or it expands."""
    return grid.expansion is not None or any(
        grid.boundary[axis] == "open" for axis in grid.moving_axes
    )


def typical_masses(model: Model, moments: Moments, squares: Array) -> Squares:
    """Return squared masses and screening masses averaged over particles."""
    weight = moments.totals.sum(axis=1, dtype=float)
    return _split(model, weight / weight.sum() @ squares)


def extreme_masses(model: Model, squares: Array) -> list[Squares]:
    """Return masses and screening masses of the sites with the highest and lowest masses.

    Empty for a single site, whose masses are already the typical ones.
    """
    if len(squares) == 1:
        return []
    species = len(model.species)
    scale = squares[:, species] + squares[:, :species].max(axis=1)
    return [_split(model, squares[i]) for i in (int(scale.argmax()), int(scale.argmin()))]


def _split(model: Model, squares: Array) -> Squares:
    """Return the squares of the species and of the screenings."""
    return squares[: len(model.species)], squares[len(model.species) :]


def host_memory(grid: PhaseSpace, model: Model, samples: int = 0, threads: int = 1) -> int:
    """Return the minimum memory of a run on the host in bytes.

    samples : samples of collisions on the host; 0 if collisions are on a GPU
    """
    cells = grid.size * len(model.species)
    events = samples * grid.size * len(model.processes) * EVENT_BYTES
    events = events if events <= STORE_LIMIT else 0
    workers = threads if threads <= grid.sites else 1  # otherwise all threads share a site
    sums = 8 * SETS * cells * (threads - workers)
    work = workers * (events + CELL_BYTES * cells) + sums + threads * THREAD_BYTES
    return HOST_COPIES * 8 * grid.sites * cells + NODE_BYTES * grid.size + work


def check_host_memory(
    grid: PhaseSpace, model: Model, samples: int = 0, threads: int = 1, processes: int = 1
) -> None:
    """Raise InputError if this machine has too little memory; arguments as in ``host_memory``.

    processes : number of processes of this size on this machine
    """
    needed, there = host_memory(grid, model, samples, threads), free_memory() // processes
    if needed <= there:
        return
    cells, less = list(grid.momentum_cells), grid
    while max(less.momentum_cells) > 1 and host_memory(less, model, samples, threads) > there:
        fewer = [max(1, int(0.98 * n)) for n in less.momentum_cells]
        less = PhaseSpace(fewer, 1.0, grid.space_cells)
    what = f"grid.momentum_cells = {cells}"
    remedy = f"use at most {list(less.momentum_cells)}"
    if grid.sites > 1:
        what = f"grid.space_cells = {list(grid.space_cells)} with momentum_cells = {cells}"
        remedy = f"use fewer space cells, or at most {list(less.momentum_cells)} in momentum"
    raise InputError(
        f"{what}: needs {needed / 2**30:.1f} GiB, and this machine has {there / 2**30:.1f} GiB "
        f"free{' for each of its workers' if processes > 1 else ''}; {remedy}"
    )
