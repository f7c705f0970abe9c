"""A progress bar: time left, time reached, step, drifts; silent where nobody watches."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn


@dataclass(frozen=True)
class Moment:
    """Where a run is: times in fm, drifts since the start."""

    time: float
    end: float
    step: float
    number_drift: int
    """Largest change of a conserved charge, in quanta."""
    energy_drift: float
    """Relative change of the total energy."""


Report = Callable[[Moment], None]


@contextmanager
def bar(console: Console | None = None) -> Iterator[Report | None]:
    """A bar on a terminal or in a notebook; None elsewhere."""
    console = console or Console(stderr=True)
    if not (console.is_terminal or console.is_jupyter):
        yield None
        return
    left, words = TimeRemainingColumn(), TextColumn("{task.description}")
    columns = (TextColumn("solving"), BarColumn(None), left, words)
    with Progress(*columns, console=console, transient=True) as display:
        task = display.add_task("compiling ...", total=None)

        def report(now: Moment) -> None:
            text = (
                f"t = {now.time:.3g} of {now.end:g} fm, step {now.step:.2g} fm, "
                f"dN = {now.number_drift}, dE/E = {now.energy_drift:.0e}"
            )
            display.update(task, completed=now.time, total=now.end, description=text)

        yield report
