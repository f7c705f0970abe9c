"""What is checked before a run, and what is said about its accuracy."""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ..backends.cpu.collider import Collider
from ..backends.elements import Elements
from ..equilibrium import states as equilibrium
from ..equilibrium.states import Equilibrium
from ..errors import AccuracyWarning, InputError, depth_of_user, negative_element
from ..events.collisions import LARGEST_ELEMENT, Draw, element_flaw, illegal
from ..events.kinematics import breakup_momentum2
from ..grid import PhaseSpace
from ..model import Model, Process
from ..qcd import EKT_OVER_GLUON
from ..records.moments import SiteMoments, momentum_total
from ..settings import Sampling
from ..stepping.state import State
from ..stepping.watch import Seen
from ..units import HBARC
from .reach import Reach

Squares = tuple[NDArray[np.float64], NDArray[np.float64]]
"""Squared masses of the species, and squared screening masses [GeV^2]."""
ACCEPTED_LOSS = 0.01
"""Part of a state that may lie outside the box before a warning."""
ACCEPTED_RELAXATION = 0.05
"""Part of what relaxes the spectrum that may need momenta outside the box before a warning."""
WANTED_RELAXATION = 0.02
"""The same for the boxes that are chosen or advised."""
ACCEPTED_NOISE = 0.5
LONG_CHANGE = 0.75
"""Change of C within a fixed step, relative to C, above which it is called too long; less with
noise. At 0.7 what is left of the deviation from equilibrium is some 4 % too much."""
NOTABLE_NOISE = 0.2
"""Noise above which more samples would allow longer steps."""
ACCEPTED_LIMITED = 0.01
ACCEPTED_NULL = 0.03
ACCEPTED_DRIFT = 1e-3
ACCEPTED_NEGATIVE, LARGEST_NEGATIVE = 0.01, 0.5
"""Weight of negative matrix elements, relative to the others of a process: warned of, refused."""
NEGATIVE_REMEDY = (
    "Lower model.alpha_s, or use thermal masses, or masses of the order of the screening mass"
)
DRAWN = 20000
"""Events of a process that are drawn to weigh negative matrix elements before a run."""
FASTEST_FLOW = 0.2
"""Flow velocity above which the frame of the screening matters."""
FEWEST_ODD = 21
"""Odd numbers of momentum cells below this leave too much matter at rest in space."""
HOST_COPIES = 4
"""Copies of a state in space that the host needs while it begins."""
LARGEST_BOX = 50.0
"""Half width [GeV] beyond which units are in doubt."""


def check_model(
    elements: Elements,
    grid: PhaseSpace,
    mass_squared: NDArray[np.float64],
    screening2: NDArray[np.float64],
) -> list[int]:
    """Refuse matrix elements with a pole, or that are negative or undefined over a range.

    Every process is evaluated on a grid of s (from threshold to the largest the box admits) and
    of the scattering angle, with the masses given. Returns those of this package's own rows that
    are negative somewhere: whether that matters is for ``weigh_negative`` to say.
    """
    model = elements.model
    negative = []
    largest = math.sqrt(float(grid.momentum_squared.max()))
    for index, process in enumerate(model.processes):
        m2 = tuple(float(mass_squared[model.index(leg)]) for leg in process.legs)
        roots = [math.sqrt(m) for m in m2]
        threshold = max(roots[0] + roots[1], roots[2] + roots[3], 1e-3) ** 2
        highest = (math.hypot(largest, roots[0]) + math.hypot(largest, roots[1])) ** 2
        s = np.geomspace(threshold * (1 + 1e-6), max(highest, 2 * threshold), 80)[:, None]
        cosine = (1 - 1e-9) * np.linspace(-1, 1, 61)[None, :]
        k_in = np.sqrt(np.maximum(breakup_momentum2(s, m2[2], m2[3]), 0))
        k_out = np.sqrt(np.maximum(breakup_momentum2(s, m2[0], m2[1]), 0))
        e1 = (s + m2[0] - m2[1]) / (2 * np.sqrt(s))
        e3 = (s + m2[2] - m2[3]) / (2 * np.sqrt(s))
        t = m2[0] + m2[2] - 2 * e1 * e3 + 2 * k_in * k_out * cosine
        u = sum(m2) - s - t
        row = model.exchange_row(process.legs[0])
        masses2 = (float(screening2[0]), float(screening2[row]))
        _check_poles(process, t, u, masses2, model.screening.ekt)
        q2 = k_in**2 + k_out**2 - 2 * k_in * k_out * cosine
        qu2 = k_in**2 + k_out**2 + 2 * k_in * k_out * cosine
        flat = [np.broadcast_to(v, t.shape).ravel() for v in (s, t, q2, qu2)]
        values = elements.evaluate(index, flat[0], flat[1], m2, screening2, flat[2], flat[3])
        _check_values(process, values, flat[0], flat[1], sum(m2))
        if (values < 0).any():
            negative.append(index)
    return negative


def _check_poles(
    process: Process,
    t: NDArray[np.float64],
    u: NDArray[np.float64],
    masses2: tuple[float, float],
    ekt: bool,
) -> None:
    """A propagator must not vanish inside phase space: t and u stay below the screening mass.

    At its very edge, where t or u reaches the pole at threshold only, it may.

    masses2 : squared screening mass, and that of the exchanged species
    """
    kinds = {"regulated": masses2[0]}
    if not ekt:
        kinds |= {"screened": masses2[0], "exchanged": masses2[1]}
    for name, values in (("t", t), ("u", u)):
        limits = [mass2 for kind, mass2 in kinds.items() if f"{name}_{kind}" in process.arguments]
        if name == process.peak:
            limits.append(masses2[0])
        highest, limit = float(values.max()), min(limits, default=np.inf)
        if highest > limit:
            raise InputError(
                f"process {process.name} has a pole: with these masses {name} reaches "
                f"{highest:.4g} GeV^2, beyond the screening mass squared of {limit:.4g} GeV^2; "
                "bring the masses of its species closer together or raise model.screening"
            )


def _check_values(
    process: Process,
    values: NDArray[np.float64],
    s: NDArray[np.float64],
    t: NDArray[np.float64],
    sum_m2: float,
) -> None:
    """Refuse what no chunk of events may have; the same rule as while running."""
    flaws, clamps = np.zeros(len(values)), float(process.built_in)
    for i in np.flatnonzero(~((values >= 0) & (values < LARGEST_ELEMENT))):  # the others have none
        flaws[i] = element_flaw(float(values[i]), clamps)
    if not illegal(flaws.sum(), values[(flaws == 0) & (values > 0)].sum()):
        return
    worst = int(np.argmax(flaws))
    at = (float(s[worst]), float(t[worst]), sum_m2 - float(s[worst]) - float(t[worst]))
    error = negative_element(process.name, float(values[worst]), *at)
    part = float(np.mean(flaws > 0))
    raise InputError(f"{error} (it fails at {100 * part:.0f} % of the s and t that were tried)")


def weigh_negative(
    grid: PhaseSpace,
    model: Model,
    processes: Sequence[int],
    f: NDArray[np.float64],
    squares: Squares,
    said: list[str],
    known: float = 0.0,
) -> float:
    """Refuse, or warn of, rows of the table that screening makes negative too often in a state.

    processes : those to look at; squares : masses and screening mass. By the weight that drawn
    events have in the collision term; returns the largest, ``known`` from before included.
    """
    if not processes:
        return known
    part = Model(model.species, [model.processes[i] for i in processes], screening=model.screening)
    sampling = Sampling(samples=max(1, math.ceil(DRAWN / grid.size)))
    backend = Collider(grid, Elements(part), sampling)
    weights = backend.negative_weight(Draw(0, *squares), f.ravel())
    worst = int(weights.argmax())
    if weights[worst] > LARGEST_NEGATIVE:
        raise InputError(
            f"process {part.processes[worst].name}: screening makes |M|^2 negative where it "
            f"weighs {100 * weights[worst]:.0f} % of the rest: masses and screening do not fit "
            f"together. {NEGATIVE_REMEDY}"
        )
    warn_of_negative(part, weights, known, said)
    return max(known, float(weights[worst]))


def warn_of_negative(
    model: Model, weights: NDArray[np.float64], known: float, said: list[str]
) -> None:
    """Warn of matrix elements that screening makes negative.

    known : what was found before, and told of; half as much again is worth another word
    """
    worst = int(np.nan_to_num(weights).argmax()) if len(weights) else 0
    if not len(weights) or not weights[worst] > max(ACCEPTED_NEGATIVE, 1.5 * known):
        return
    words = "screening makes |M|^2 negative, which counts as 0"
    part = f"{100 * weights[worst]:.1f} % of the rest" + (
        " in the course of the run" if known > 0 else ""
    )
    refused = weights[worst] > LARGEST_NEGATIVE
    refusable = " (a start like that would be refused)" if refused else ""
    warn(
        f"process {model.processes[worst].name}: {words}: {part}{refusable}, so that its rate is "
        f"uncertain by that much. {NEGATIVE_REMEDY}",
        said,
    )


def warn(text: str, said: list[str]) -> None:
    """Say it once, as a warning, and keep it for the output file."""
    if text not in said:
        said.append(text)
        warnings.warn(text, AccuracyWarning, stacklevel=depth_of_user())


def warn_of_setup(
    grid: PhaseSpace,
    model: Model,
    squares: Squares,
    predicted: Equilibrium,
    said: list[str],
    leaks: bool = False,
) -> None:
    """Warnings that can be given before the first step; squares: masses and screening mass.

    leaks : no final state is expected
    """
    mass_squared, _ = squares
    coarsest = max(grid.spacing)
    mass, what = _smallest_scale(model, squares)
    if coarsest > 0.5 * mass * (1 + 1e-9):
        warn(
            f"the grid is coarse: spacing {coarsest:.3g} GeV > {what}/2 = {0.5 * mass:.3g} GeV; "
            f"rates of soft scattering suffer. Use momentum_cells = {_cells(grid, 0.5 * mass)}",
            said,
        )
    if max(grid.momentum_max) > LARGEST_BOX:
        warn(
            f"the box reaches {max(grid.momentum_max):g} GeV: momenta, temperatures and masses are "
            "in GeV; were some given in MeV?",
            said,
        )
    for species, m2 in zip(model.species, mass_squared, strict=True):
        if 0 < m2 < (0.25 * coarsest) ** 2 and all(n % 2 for n in grid.momentum_cells):
            warn(
                f"{species.name} with m = {math.sqrt(m2):.3g} GeV is light for a spacing of "
                f"{coarsest:.3g} GeV: the node at p = 0 stands for a whole cell with 1/E = 1/m. "
                "Use even numbers of momentum_cells, or masses = 0",
                said,
            )
        if m2 == 0 and all(n % 2 for n in grid.momentum_cells):
            warn(
                f"a massless {species.name} at rest scatters with no other massless one: the node "
                "at p = 0 relaxes too slowly, and with it all that is left late. Use even numbers "
                "of momentum_cells",
                said,
            )
    if not predicted.found:
        if not leaks:
            warn(
                "no final equilibrium was found for this start on this grid: nothing to compare "
                "the final state with. Fermions may be close to full, or the box too small",
                said,
            )
        return
    if predicted.temperature < coarsest <= 0.5 * mass:
        warn(
            f"the grid is coarse: spacing {coarsest:.3g} GeV > final temperature "
            f"{predicted.temperature:.3g} GeV. Use momentum_cells = "
            f"{_cells(grid, predicted.temperature)}",
            said,
        )
    if predicted.condensate_fraction > 0:
        warn(
            f"over-populated: no state with mu < m holds these particles at this energy; "
            f"{100 * predicted.condensate_fraction:.1f} % of them must condense. The surplus "
            "gathers in the softest nodes, and where it gathers depends on the grid",
            said,
        )


def warn_of_box(
    grid: PhaseSpace,
    model: Model,
    squares: Squares,
    predicted: Equilibrium,
    reach: Reach | None,
    said: list[str],
) -> None:
    """Warn of a box that collisions of the final state leave; squares as in ``warn_of_setup``.

    reach : collisions in unlimited momentum space; without any, the state itself must fit
    """
    widths = list(grid.momentum_max)
    if reach is None:
        cut = equilibrium.edge_loss(grid, model, predicted)
        if cut > ACCEPTED_LOSS:
            warn(
                f"the box cuts off {100 * cut:.1f} % of the predicted final state (momentum_max = "
                f'{widths} GeV); use a larger momentum_max, or "auto"',
                said,
            )
        return
    rate, relaxation = reach.loss(widths)
    if max(rate, relaxation) > ACCEPTED_RELAXATION:
        wanted = rounded_up(reach.half_width(WANTED_RELAXATION))
        larger = PhaseSpace(grid.momentum_cells, [max(w, wanted) for w in widths])
        needed = 0.5 * _smallest_scale(model, squares)[0]
        kept = max(grid.spacing) <= needed
        cells = _cells(larger, max(grid.spacing) if kept else needed)
        warn(
            f"the box is small: {100 * rate:.1f} % of the collisions in the predicted equilibrium "
            f"need momenta beyond momentum_max = {widths} GeV, and with them "
            f"{100 * relaxation:.0f} % of what relaxes the spectrum; tails and late rates suffer. "
            f"Use momentum_max = {list(larger.momentum_max)}; momentum_cells = {cells} "
            + ("keep the spacing" if kept else "are fine enough for it"),
            said,
        )


def rounded_up(half_width: float) -> float:
    """A half width [GeV] in steps of 0.05."""
    return math.ceil(half_width * 20 - 1e-9) / 20


def _smallest_scale(model: Model, squares: Squares) -> tuple[float, str]:
    """What the spacing must resolve [GeV], and its name: the gluon mass, the peak in t."""
    mass_squared, screening2 = squares
    scales = [(np.inf, "")]
    if "g" in model.names and mass_squared[model.index("g")] > 0:
        scales.append((math.sqrt(mass_squared[model.index("g")]), "m_g"))
    if any(process.peak == "t" for process in model.processes):
        factor = EKT_OVER_GLUON if model.screening.ekt else 1.0
        scales.append((math.sqrt(max(float(screening2[0]) / factor, 0.0)), "screening mass"))
    return min(scales, key=lambda scale: scale[0])


def _cells(grid: PhaseSpace, spacing: float) -> list[int]:
    """Numbers of cells for a spacing [GeV]; odd ones stay odd."""
    wanted = [math.ceil(2 * w / max(spacing, 1e-3)) for w in grid.momentum_max]
    return [n + (n % 2 != m % 2) for n, m in zip(wanted, grid.momentum_cells, strict=True)]


def warn_of_drift(
    number: float, energy: float, said: list[str], nearest: bool = False, in_space: bool = False
) -> None:
    """Warn of relative changes of what ought to be conserved."""
    if abs(number) > 0:
        warn(
            f"particle number changed by {100 * number:.2g} %: sampling without symmetry does not "
            "conserve it; use collisions.symmetrical = true",
            said,
        )
    remedy = "use shorter steps (time.step or time.tolerance)"
    if in_space:
        remedy += ", and finer cells in space and momentum where masses have gradients"
    if nearest:
        remedy = "collisions.projection = 'nearest' does not conserve it, use 'conserving'"
    if abs(energy) > ACCEPTED_DRIFT:
        warn(
            f"total energy changed by {100 * energy:.2g} %: {remedy}",
            said,
        )


def warn_of_flow(model: Model, velocity: NDArray[np.float64], said: list[str]) -> None:
    """Warn of screening that depends on the frame; velocity: (axis, ...) of the records."""
    squares = (np.nan_to_num(velocity) ** 2).sum(axis=0)
    speed = math.sqrt(float(squares.max(initial=0.0)))
    if model.screening.ekt and speed > FASTEST_FLOW:
        warn(
            "screening = 'ekt' takes momentum transfers in the frame of the grid, and matter flows "
            f"with v = {speed:.2f}: it relaxes too fast, by some 5 % at v = 0.4 and 20 % at 0.7. "
            "Use screening = 'thermal' or a mass for matter that flows",
            said,
        )


def warn_of_refusals(last: Mapping, first: Mapping, said: list[str]) -> None:
    """Warn of matter that forces pile up at the edges of momentum space."""
    part = float(np.sum(last["refused_number"]) / np.sum(first["total_number"]))
    if part > ACCEPTED_LOSS:
        warn(
            f"forces would have pushed {100 * part:.1f} % of the particles beyond momentum_max: "
            "they stay at the edge; use a larger momentum_max",
            said,
        )


def warn_of_parity(grid: PhaseSpace, said: list[str]) -> None:
    """Warn of coarse grids on which many particles never move along an axis."""
    for axis in grid.moving_axes:
        n = grid.momentum_cells[axis]
        if n % 2 and n < FEWEST_ODD:
            name = "xyz"[axis]
            warn(
                f"grid.momentum_cells: {n} along {name}: the nodes with p_{name} = 0, one in {n}, "
                f"never move along {name}: matter stays behind. Use an even number, or more cells",
                said,
            )


def warn_of_run(seen: Seen, step: float | str, said: list[str]) -> None:
    """Warnings that the steps themselves give rise to; step: time.step."""
    if seen.noise > ACCEPTED_NOISE:
        alone = seen.noise / math.sqrt(max(1 - seen.noise**2, 1e-4))  # C^2 without its noise
        warn(
            f"too few samples: the standard error of C[f] in a step is {100 * alone:.0f} % of "
            "C[f] itself; raise collisions.samples",
            said,
        )
    if not isinstance(step, str) and seen.change > LONG_CHANGE * (1 - seen.noise):
        noisy = seen.noise > NOTABLE_NOISE
        warn(
            f"time.step = {step!r}: too long{' for its samples' if noisy else ''}: C[f] changes by "
            f"{100 * seen.change:.0f} % of itself within a step, and its standard error is "
            f"{100 * seen.noise:.0f} %, so that deviations from equilibrium need not decay; use "
            f"time.step = 'auto', or halve it until this is gone",
            said,
        )
    if seen.limited > ACCEPTED_LIMITED:
        warn(
            f"too few samples or too long a step: limits refused {100 * seen.limited:.1f} % of "
            "what events wanted to move; raise collisions.samples or shorten time.step",
            said,
        )
    if seen.null > ACCEPTED_NULL:
        warn(
            f"{100 * seen.null:.1f} % of the collisions between particles in the box found no "
            "place in it (partners that would be outside are not even counted): rates near its "
            "edge are too low; use a larger momentum_max",
            said,
        )


Totals = tuple[NDArray[np.float64], NDArray[np.float64], float]
"""What is conserved: numbers by species [fm^-3], momentum (3) and total energy [GeV fm^-3]."""


def totals(grid: PhaseSpace, model: Model, f: NDArray[np.float64]) -> Totals:
    """What a homogeneous state conserves."""
    m2 = equilibrium.masses(grid, model, f)
    density = model.degeneracy[:, None] * f * grid.measure
    momentum = np.array([(density * p).sum() for p in grid.momenta])
    return density.sum(axis=1), momentum, equilibrium.total_energy(grid, model, f, m2)


def totals_in_space(grid: PhaseSpace, model: Model, start: State, moments: SiteMoments) -> Totals:
    """Averages over the sites; walls that reflect take up momentum."""
    density = start.unit * grid.measure / grid.sites
    numbers = moments.totals.sum(axis=0, dtype=float) * density
    half = [0.5 * h * density for h in grid.spacing]
    momentum = np.array(
        [h * quanta for h, quanta in zip(half, momentum_total(moments.planes), strict=True)]
    )
    kinetic = moments.sums[:, :, 0] @ model.degeneracy * grid.measure
    y = model.degeneracy * moments.sums[:, :, 1] * (grid.cell_volume / (2 * np.pi) ** 3)
    field = 0.25 * ((start.mass_squared - model.constant_mass_squared) * y).sum(axis=1) / HBARC**3
    for axis in grid.moving_axes:
        if grid.boundary[axis] != "periodic":
            momentum[axis] = 0.0
    return numbers, momentum, float((kinetic - field).mean())


def leaks(grid: PhaseSpace) -> bool:
    """Whether particles can leave the box."""
    return any(grid.boundary[axis] == "open" for axis in grid.moving_axes)


def typical_masses(start: State, moments: SiteMoments) -> Squares:
    """Squared masses and screening masses as the average particle has them."""
    weight = moments.totals.sum(axis=1, dtype=float)
    weight /= weight.sum()
    return weight @ start.mass_squared, weight @ start.screening2


def check_host_memory(grid: PhaseSpace, model: Model) -> None:
    """Refuse states in space that this machine cannot hold."""
    needed = HOST_COPIES * 8 * grid.sites * grid.size * len(model.species)
    try:
        there = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        lines = Path("/proc/meminfo").read_text().splitlines()
        there = max(there, *(1024 * int(v.split()[1]) for v in lines if v.startswith("MemAvail")))
    except (OSError, ValueError, AttributeError):  # not a Linux machine
        return
    if grid.sites > 1 and needed > there:
        raise InputError(
            f"grid.space_cells = {list(grid.space_cells)} with momentum_cells = "
            f"{list(grid.momentum_cells)}: needs {needed / 2**30:.1f} GiB, and this machine has "
            f"{there / 2**30:.1f} GiB free; use fewer cells"
        )


def extreme_masses(start: State) -> list[Squares]:
    """Masses and screening masses where the largest of each together are most, and least."""
    scale = start.screening2[:, 0] + start.mass_squared.max(axis=1)
    places = (int(scale.argmax()), int(scale.argmin()))
    return [(start.mass_squared[i], start.screening2[i]) for i in places]


def predict_from(grid: PhaseSpace, model: Model, f: NDArray[np.float64]) -> Equilibrium:
    """The final state that the conserved quantities of f prescribe."""
    return equilibrium.predict(grid, model, *totals(grid, model, f))
