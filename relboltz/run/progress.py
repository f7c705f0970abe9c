"""Progress of a run: a bar on a terminal or in a notebook, occasional lines in a log.

Stages before the first step are reported as well (``stage``), because compiling and preparing a
large run take long.
"""

import math
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from ..util.console_streams import FailSafeStream
from ..util.launcher import started

FIRST, PAUSE = 10.0, 30.0
"""Seconds before the first line in a log, and between lines."""
PATIENCE = 1.0
"""Seconds after which a log reports a stage."""
RECENT, FEWEST = 60.0, 8
"""The remaining time is estimated from the last RECENT seconds or the last FEWEST marks, whichever
reach back farther."""


@dataclass(frozen=True)
class RunProgress:
    """Progress of a run: times in fm, drifts since the start."""

    time: float
    end: float
    step: float
    number_drift: int
    """Largest change of a conserved charge, in quanta."""
    energy_drift: float
    """Relative change of the total energy."""
    recorded: float = math.nan
    """Time at which the drifts were measured: that of the last record."""

    @property
    def drifts_known(self) -> bool:
        """Whether there was a record since the start; before that, drifts are unknown."""
        return not self.recorded <= 0


Report = Callable[[RunProgress], None]
_heard: list[Callable[[str], None]] = []
"""Listeners to stages; only the last one is called."""


def stage(text: str) -> None:
    """Report a stage of the work before the first step."""
    if _heard:
        _heard[-1](text)


@contextmanager
def listening(listener: Callable[[str], None]) -> Iterator[None]:
    """Context manager in which stages are reported to a listener."""
    _heard.append(listener)
    try:
        yield
    finally:
        _heard.remove(listener)


class StageLog:
    """Log lines about long stages, written by a separate thread.

    A stage that takes more than PATIENCE seconds is reported, and again every PAUSE seconds.
    """

    def __init__(self, say: Callable[[str], None]):
        self._say = say
        self._over: threading.Event | None = None

    def __call__(self, text: str) -> None:
        """Begin a stage and end the previous one."""
        self.end()
        self._over = threading.Event()
        threading.Thread(target=self._tell, args=(text, self._over), daemon=True).start()

    def end(self) -> None:
        """End the current stage."""
        if self._over is not None:
            self._over.set()
            self._over = None

    def _tell(self, text: str, over: threading.Event) -> None:
        began, wait, so_far = time.monotonic(), PATIENCE, ""
        while not over.wait(wait):
            self._say(f"{text}{so_far} ...")
            wait = PAUSE
            so_far = f", {duration(time.monotonic() + PAUSE - began)} so far"


class ProgressLog:
    """Occasional progress lines for a log; short runs print none.

    clock : returns the elapsed seconds
    """

    def __init__(self, say: Callable[[str], None], clock: Callable[[], float] = time.monotonic):
        self._say, self._clock = say, clock
        self._next = math.inf
        self._marks: deque[tuple[float, float]] = deque()

    def __call__(self, now: RunProgress) -> None:
        """Register a step; print a line if one is due."""
        wall = self._clock()
        left = self._left(wall, now)
        if wall >= self._next and now.time < now.end:
            self._next = wall + PAUSE
            text = (
                f"t = {now.time:.3g} of {now.end:g} fm, step {now.step:.2g} fm, "
                f"{100 * now.time / now.end:.0f} %{left}"
            )
            if now.drifts_known:
                text += f", energy moved by {now.energy_drift:.0e}"
                if now.recorded < 0.9 * now.time:
                    text += f" until {now.recorded:.3g} fm"
            self._say(text)

    def _left(self, wall: float, now: RunProgress) -> str:
        """Estimate the remaining time from recent steps: steps grow, and a slow start is over."""
        marks = self._marks
        if not marks:  # after the first step everything is compiled
            self._next = wall + FIRST
        if not marks or wall >= marks[-1][0] + 1:
            marks.append((wall, now.time))
        while len(marks) > FEWEST and marks[1][0] < wall - RECENT:
            marks.popleft()
        seconds, reached = wall - marks[0][0], now.time - marks[0][1]
        if reached <= 0 or seconds <= 0:
            return ""
        return f", about {duration((now.end - now.time) * seconds / reached)} left"


def duration(seconds: float) -> str:
    """Format a duration in a suitable unit."""
    for unit, size, most in (("s", 1, 90), ("min", 60, 5400), ("h", 3600, 172800)):
        if seconds < most:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds / 86400:.0f} days"


@contextmanager
def bar(console: Console | None = None) -> Iterator[Report]:
    """Report progress with a bar on a terminal or in a notebook, with lines elsewhere."""
    lines = Console().is_jupyter and find_spec("ipywidgets") is None  # needed for a bar there
    plain: Any = {"force_jupyter": False, "force_terminal": False} if lines else {}
    console = console or Console(file=FailSafeStream(sys.stderr), **plain)  # type: ignore[arg-type]
    if started() or not (console.is_terminal or console.is_jupyter):  # mpirun imitates a terminal
        with _lines(console) as report:
            yield report
        return
    with _display(console) as report:
        yield report


@contextmanager
def _lines(console: Console) -> Iterator[Report]:
    """Report progress with lines in a log."""

    def say(text: str) -> None:
        console.print(text, soft_wrap=True, markup=False, highlight=False)

    lines, stages = ProgressLog(say), StageLog(say)

    def report(now: RunProgress) -> None:
        stages.end()
        lines(now)

    with listening(stages):
        try:
            yield report
        finally:
            stages.end()


@contextmanager
def _display(console: Console) -> Iterator[Report]:
    """Report progress with a bar."""
    label, words = TextColumn("{task.fields[label]}"), TextColumn("{task.description}")
    columns = (label, BarColumn(None), TimeRemainingColumn(), words)
    with Progress(*columns, console=console, transient=True) as display:
        task = display.add_task("starting ...", total=None, label="preparing")

        def report(now: RunProgress) -> None:
            text = f"t = {now.time:.3g} of {now.end:g} fm, step {now.step:.2g} fm"
            if now.drifts_known:
                text += f", dN = {now.number_drift}, dE/E = {now.energy_drift:.0e}"
            display.update(
                task, completed=now.time, total=now.end, description=text, label="solving"
            )

        def at(text: str) -> None:
            display.update(task, total=None, description=f"{text} ...", label="preparing")

        with listening(at):
            yield report
