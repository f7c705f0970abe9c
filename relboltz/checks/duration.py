"""Lower bound on the number of steps: a run with too many is refused before its first step."""

import math
from collections.abc import Iterator

from ..backends.contract import Backend
from ..config.settings import MOST_STEPS, TimeSettings
from ..stepping.control import CHANGE, largest_change
from ..stepping.state import State
from ..transport.plane import COURANT
from ..util.errors import InputError

MANY_STEPS = 1e6
"""Number of steps above which a warning is issued: three hours at 10 ms each."""
FREE_TIMES = 10.0
"""Upper bound of an automatic step in mean free times; at most 6 were observed."""
FASTEST = 1e3
"""Upper bound on the expected collisions of a particle per fm; the rate itself is measured if a run
at this bound would take many steps.
"""


def check_step(time: TimeSettings, longest: float) -> None:
    """Raise InputError if a given step is too long for the space cells.

    longest : Courant limit [fm]
    """
    step = time.step
    if not isinstance(step, str) and step > longest:
        raise InputError(
            f"time.step = {step!r}: a particle would cross more than {COURANT:g} of a "
            f"space cell in half a step; use at most {longest:.4g} fm, or fewer space_cells"
        )


def of_steps(time: TimeSettings, longest: float, backend: Backend, state: State) -> Iterator[str]:
    """Warn of runs with many steps; refuse too many. ``longest`` : Courant limit [fm]."""
    if not isinstance(time.step, str):
        bound, why = time.step, f"time.step = {time.step:.3g} fm"
    elif longest <= (between := _between_collisions(time, backend, state)):
        bound, why = longest, f"a step in these space cells is at most {longest:.2g} fm"
    else:
        bound = between
        why = f"with its collisions and time.tolerance = {time.tolerance:g} a step is at most "
        why += f"about {between:.2g} fm"
    steps = time.span / bound
    if steps > MOST_STEPS:
        raise InputError(
            f"time.end = {time.end!r}: would take {steps:.1e} steps, as {why}, and "
            f"{MOST_STEPS:.0e} are the most; use at most {MOST_STEPS * bound:.2g} fm"
        )
    if steps > MANY_STEPS:
        yield f"time.end = {time.end:g} fm takes at least {steps:.1e} steps, as {why}"


def _between_collisions(time: TimeSettings, backend: Backend, state: State) -> float:
    """Return the longest automatic step allowed by collisions [fm]; inf in short runs."""
    times = FREE_TIMES * min(1.0, largest_change(time.tolerance, 0.0) / CHANGE)
    if time.span * FASTEST <= MANY_STEPS * times:
        return math.inf
    grid = backend.grid
    report = backend.collide(state.step, 0.0, state.squares)
    collisions = float((report.flows.forward + report.flows.backward).sum())
    number = float(backend.get().sum(dtype=float)) * state.unit / grid.sites
    return times * number / (2 * collisions) if collisions > 0 else math.inf
