"""Warnings about the accuracy of a run, before and after it."""

import math
import warnings
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from ..config.settings import TimeSettings
from ..grid.phase_space import MAX_CELLS, PhaseSpace
from ..model.model import Model
from ..stepping.accuracy_watch import AccuracyRecord
from ..thermodynamics import states as equilibrium
from ..thermodynamics.states import Equilibrium
from ..util.arrays import Array
from ..util.errors import AccuracyWarning, say
from . import spacing
from .equilibrium_collisions import EquilibriumCollisions

Record = Mapping[str, Any]
Problem = tuple[float | Array, str]
"""A sufficient spacing [GeV], for all axes or each of them, and a warning; "" if there is none."""
ACCEPTED_LOSS = 0.01
"""Share of a state that may lie outside the box before a warning."""
ACCEPTED_RELAXATION = 0.05
"""Share of the relaxation rate that may be lost to the momentum cut-off before a warning."""
WANTED_RELAXATION = 0.02
"""Share of the relaxation rate lost to the momentum cut-off of boxes that are chosen or
recommended.
"""
ACCEPTED_NOISE, ACCEPTED_NOISE_IN_SPACE = 0.5, 0.9
"""Standard error of C in a step over the measured C: in space it is that of all cells, and the
quantities of interest, densities and flows over many steps, have much less.
"""
LONG_CHANGE = 0.75
"""Relative change of C within a fixed step above which the step is called too long; less with
noise. At 0.7 the remaining deviation from equilibrium is about 4 % too large.
"""
NOTABLE_NOISE = 0.2
"""Noise above which more samples would allow longer steps."""
ACCEPTED_LIMITED = 0.01
ACCEPTED_NULL = 0.03
ACCEPTED_DRIFT = 1e-3
FASTEST_FLOW = 0.2
"""Flow velocity above which the frame of the screening matters."""
FEWEST_ODD = 21
"""Odd numbers of momentum cells below this leave too much matter at rest in space."""
LARGEST_BOX, HOTTEST = 50.0, 20.0
"""Half width and temperature [GeV] above which the units are probably wrong."""
FEWEST_TO_DOUBLE = 24
"""Nodes along an expanding axis: with fewer, twice the spacing is coarser than 2 T."""
IN_MEV = "momenta, temperatures and masses are in GeV; were some given in MeV?"


def warn(texts: Iterable[str], said: list[str]) -> None:
    """Issue each warning once, and keep it for the output file."""
    for text in texts:
        if text not in said:
            said.append(text)
            say(text, AccuracyWarning)


def made_error(said: Iterable[str]) -> AccuracyWarning | None:
    """Return the first warning that a filter turns into an error, without repeating any."""
    with warnings.catch_warnings():
        warnings.showwarning = lambda *_, **__: None
        return next(filter(None, (say(text, AccuracyWarning) for text in said)), None)


# --- before the first step ----------------------------------------------------------------------


def of_setup(
    grid: PhaseSpace, model: Model, mass_squared: Array, predicted: Equilibrium, leaks: bool = False
) -> Iterator[str]:
    """Warn before the first step, except of spacing and box; leaks : expect no final state."""
    if max(grid.momentum_max) > LARGEST_BOX:
        yield f"the box reaches {max(grid.momentum_max):g} GeV: {IN_MEV}"
    if all(n % 2 for n in grid.momentum_cells):
        yield from _of_nodes_at_rest(grid, model, mass_squared)
    if predicted.found:
        yield from _of_final_state(predicted)
    elif not leaks:
        yield (
            "no final equilibrium was found for this start on this grid: nothing to compare the "
            "final state with. Fermions may be close to full, the box too small, or nodes too far "
            "apart"
        )


def of_expansion(grid: PhaseSpace, time: TimeSettings, temperature: float) -> Iterator[Problem]:
    """Find momenta spaced too far apart for the cooled matter, or too few to double the spacing.

    temperature : initial temperature at zero chemical potential [GeV]
    """
    law = grid.expansion
    if law is None:
        return
    scales = law.scales(time.end, time.start)
    volume = scales[0] * scales[1] * scales[2]
    cold, slowest = temperature / volume ** (1 / 3), min(scales)
    coarse, few, size = "", "", 0.0
    wanted, enough = np.full(3, np.inf), np.full(3, np.inf)
    for i, (n, h, a) in enumerate(zip(grid.momentum_cells, grid.spacing, scales, strict=True)):
        error = spacing.relaxation_error(h / a, cold)
        if a == slowest and error > spacing.ACCEPTED:
            coarse, size = coarse + "xyz"[i], max(size, error)
            wanted[i] = a * cold * math.sqrt(spacing.WANTED / spacing.COARSE)
        elif a > 1.5 * slowest and n < FEWEST_TO_DOUBLE:
            few += "xyz"[i]
            enough[i] = 2 * grid.momentum_max[i] / FEWEST_TO_DOUBLE
    if coarse:
        now, axes = grid.spacing["xyz".index(coarse[0])] / slowest, " and ".join(coarse)
        text = f"ideal matter would cool to T = {cold:.2g} GeV, and the spacing of momenta along "
        text += f"{axes} will be {now:.2g} GeV then: late rates of relaxation are off by "
        yield wanted, text + spacing.size_of(size)
    if few:
        n = grid.momentum_cells["xyz".index(few[0])]
        text = f"the spacing of momenta along {few} will double as matter expands, and {n} nodes "
        yield enough, text + "are few for that"


def _of_nodes_at_rest(grid: PhaseSpace, model: Model, mass_squared: Array) -> Iterator[str]:
    """Warn of species for which a node at p = 0 is unsuitable."""
    coarsest = grid.largest_spacing
    for species, m2 in zip(model.species, mass_squared, strict=True):
        if 0 < m2 < (0.25 * coarsest) ** 2:
            yield (
                f"{species.name} with m = {math.sqrt(m2):.3g} GeV is light for a spacing of "
                f"{coarsest:.3g} GeV: the node at p = 0 stands for a whole cell with 1/E = 1/m. "
                "Use even numbers of momentum_cells, or masses = 0"
            )
        if m2 == 0:
            yield (
                f"a massless {species.name} at rest scatters with no other massless one: the node "
                "at p = 0 relaxes too slowly, and with it all that is left late. Use even numbers "
                "of momentum_cells"
            )


def _of_final_state(predicted: Equilibrium) -> Iterator[str]:
    """Warn of final states that are implausibly hot, or that condense."""
    if predicted.temperature > HOTTEST:
        yield f"the final temperature would be {predicted.temperature:.4g} GeV: {IN_MEV}"
    if predicted.condensate_fraction > 0:
        yield (
            f"over-populated: no state with mu < m holds these particles at this energy; "
            f"{100 * predicted.condensate_fraction:.1f} % of them must condense. The surplus "
            "gathers in the softest nodes, and where it gathers depends on the grid"
        )


def of_grid(
    grid: PhaseSpace, problems: Iterable[Problem], box: tuple[float, str], even: bool = False
) -> Iterator[str]:
    """Warn of problems with the nodes, each time with one grid that solves all of them.

    problems : sufficient spacings [GeV], for all axes or each, and warnings; box : a sufficient
    half width and a warning. An empty warning: no problem. even : whether numbers of cells must be
    even
    """
    wrong = list(problems)
    spacings = np.min([np.broadcast_to(wanted, 3) for wanted, _ in wrong], axis=0)
    spacings = np.where(np.isfinite(spacings), spacings, grid.largest_spacing)
    width, small = box
    widths = [max(w, width) if small else w for w in grid.momentum_max]
    cells = _cells(PhaseSpace(grid.momentum_cells, widths), spacings.tolist(), even)
    remedy = f"Use momentum_cells = {cells}"
    if small:
        remedy = f"Use momentum_max = {widths} and momentum_cells = {cells}"
    elif cells == list(grid.momentum_cells):
        remedy = f"It would take more than {MAX_CELLS} cells along an axis"
    for text in [*(text for _, text in wrong), small]:
        if text:
            yield f"{text}. {remedy}"


def of_box(
    grid: PhaseSpace, model: Model, predicted: Equilibrium, reach: EquilibriumCollisions | None
) -> tuple[float, str]:
    """Return a sufficient half width [GeV], and a warning if collisions leave the box.

    reach : collisions in unlimited momentum space; without them, the state itself must fit
    """
    widths = list(grid.momentum_max)
    if reach is None:
        cut = equilibrium.edge_loss(grid, model, predicted)
        if not cut > ACCEPTED_LOSS:
            return 0.0, ""
        return rounded_up(1.25 * max(widths)), (
            f"the box cuts off {100 * cut:.1f} % of the predicted final state (momentum_max = "
            f"{widths} GeV)"
        )
    rate, relaxation = reach.loss(widths)
    if max(rate, relaxation) <= ACCEPTED_RELAXATION:
        return 0.0, ""
    state = "predicted equilibrium" if predicted.found else "equilibrium of an unlimited box"
    return rounded_up(reach.half_width(WANTED_RELAXATION)), (
        f"the box is small: {100 * rate:.1f} % of the collisions in the {state} "
        f"need momenta beyond momentum_max = {widths} GeV, and with them "
        f"{100 * relaxation:.0f} % of what relaxes the spectrum; tails and late rates suffer"
    )


def rounded_up(half_width: float) -> float:
    """Round a half width [GeV] up to a multiple of 0.05."""
    return math.ceil(half_width * 20 - 1e-9) / 20


def _cells(grid: PhaseSpace, spacings: list[float], even: bool) -> list[int]:
    """Return cells for spacings [GeV], never fewer than now, of the same parity unless ``even``."""
    cells = []
    for width, n, h in zip(grid.momentum_max, grid.momentum_cells, spacings, strict=True):
        wanted = math.ceil(2 * width / max(h, 1e-3) - 1e-9)
        wanted = max(n, min(wanted, MAX_CELLS - 1)) if n > 1 else 1
        parity = 0 if even and n > 1 else n % 2
        cells.append(wanted + (wanted % 2 != parity))
    return cells


def of_parity(grid: PhaseSpace) -> Iterator[str]:
    """Warn of coarse grids on which many particles never move along an axis."""
    for axis in grid.moving_axes:
        n, name = grid.momentum_cells[axis], "xyz"[axis]
        if n % 2 and n < FEWEST_ODD:
            yield (
                f"grid.momentum_cells: {n} along {name}: the nodes with p_{name} = 0, one in {n}, "
                f"never move along {name}: matter stays behind. Use an even number, or more cells"
            )


# --- after the last step ------------------------------------------------------------------------


def _particles(record: Record) -> float:
    """Return the density of all species, averaged over the box [fm^-3]."""
    number = np.asarray(record["number"])
    return float(number.reshape(len(number), -1).mean(axis=1).sum())


def charge_drifts(model: Model, first: Record, last: Record, density: float) -> dict[str, float]:
    """Return changes of the conserved charges between two records, relative to the particle number.

    density : density of one quantum in the whole box [fm^-3]
    """
    total = _particles(first)
    changes = zip(model.conserved, last["charge_drift"], strict=True)
    return {name: int(quanta) * density / total for name, quanta in changes}


def of_drift(
    charges: Mapping[str, float], energy: float, nearest: bool = False, in_space: bool = False
) -> Iterator[str]:
    """Warn if conserved quantities change; charges: ``charge_drifts``, energy: relative change."""
    for name, change in charges.items():
        if change != 0:
            what = "particle number" if name == "number" else name
            unit = "%" if name == "number" else "% of all particles"
            yield (
                f"{what} changed by {100 * change:.2g} {unit}: sampling without symmetry does not "
                "conserve it; use collisions.symmetrical = true"
            )
    remedy = "use shorter steps (time.step or time.tolerance)"
    if in_space:
        remedy += ", and finer cells in space and momentum where masses have gradients"
    if nearest:
        remedy = "collisions.projection = 'nearest' does not conserve it, use 'conserving'"
    if abs(energy) > ACCEPTED_DRIFT:
        yield f"total energy changed by {100 * energy:.2g} %: {remedy}"


def of_flow(model: Model, velocity: Array) -> Iterator[str]:
    """Warn of frame-dependent screening; velocity: (axis, ...) of the records."""
    squares = (np.nan_to_num(velocity) ** 2).sum(axis=0)
    speed = math.sqrt(float(squares.max(initial=0.0)))
    if model.screening.ekt and speed > FASTEST_FLOW:
        yield (
            "screening = 'ekt' takes momentum transfers in the frame of the grid, and matter flows "
            f"with v = {speed:.2f}: it relaxes too fast, by some 5 % at v = 0.4 and 20 % at 0.7. "
            "Use screening = 'thermal' or a mass for matter that flows"
        )


def of_refusals(last: Record, first: Record) -> Iterator[str]:
    """Warn of matter that forces pile up at the edges of momentum space."""
    part = float(np.sum(last.get("refused_number", 0.0))) / _particles(first)
    if part > ACCEPTED_LOSS:
        yield (
            f"forces would have pushed {100 * part:.1f} % of the particles beyond momentum_max: "
            "they stay at the edge; use a larger momentum_max"
        )


def of_steps(seen: AccuracyRecord, step: float | str, in_space: bool = False) -> Iterator[str]:
    """Warn of too few samples, too long steps or too small a box; step: time.step."""
    if seen.noise > (ACCEPTED_NOISE_IN_SPACE if in_space else ACCEPTED_NOISE):
        alone = seen.noise / math.sqrt(max(1 - seen.noise**2, 1e-4))  # C^2 without its noise
        yield (
            f"too few samples: the standard error of C[f] in a step is {100 * alone:.0f} % of "
            "C[f] itself; raise collisions.samples"
        )
    if not isinstance(step, str) and seen.change > LONG_CHANGE * (1 - seen.noise):
        noisy = seen.noise > NOTABLE_NOISE
        yield (
            f"time.step = {step!r}: too long{' for its samples' if noisy else ''}: C[f] changes by "
            f"{100 * seen.change:.0f} % of itself within a step, and its standard error is "
            f"{100 * seen.noise:.0f} %, so that deviations from equilibrium need not decay; use "
            f"time.step = 'auto', or halve it until this is gone"
        )
    if seen.limited > ACCEPTED_LIMITED:
        yield (
            f"too few samples or too long a step: limits refused {100 * seen.limited:.1f} % of "
            "what events wanted to move; raise collisions.samples or shorten time.step"
        )
    if seen.null > ACCEPTED_NULL:
        yield (
            f"{100 * seen.null:.1f} % of the collisions between particles in the box found no "
            "place in it (partners that would be outside are not even counted): rates near its "
            "edge are too low; use a larger momentum_max"
        )
