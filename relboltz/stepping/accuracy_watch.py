"""What a run keeps an eye on: times to stop at, accuracy, and signals."""

import math
import signal
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType
from typing import Any, NamedTuple

import numpy as np

from ..util.arrays import Array
from ..util.errors import BackendNotice, say
from ..util.gc_pause import collector
from .step_report import StepReport

NEAREST = 1e-6
"""Times further apart [fm] are never the same: much less than a first step."""


class OutputTimes:
    """Times [fm] that a step must hit: records at every multiple and at the end, snapshots, others.

    Times closer than ``near`` are the same. None of them depends on the end but the last, so that
    a longer run has the same: multiples are rounded to 15 digits, and one that is near the end
    stands for it.
    """

    def __init__(
        self,
        end: float,
        every: float,
        snapshots: tuple[float, ...],
        start: float = 0.0,
        others: tuple[float, ...] = (),
    ):
        self.near = min(1e-9 * min(every, end - start), NEAREST)
        count = math.floor((end - start) / every + 1e-9)
        records = [float(f"{start + i * every:.15g}") for i in range(count + 1)]
        self.end = records[-1] if abs(records[-1] - end) <= self.near else end
        self.records = np.array([t for t in records if t < self.end] + [self.end])
        last = self.end - self.near
        self._snapshots = np.array(sorted(t if t < last else self.end for t in snapshots))
        self.all = np.union1d(self.records, self._snapshots)
        if others:
            self.all = np.union1d(self.all, [t for t in others if t < last])

    def _at(self, times: Array, now: float) -> bool:
        i = np.searchsorted(times, now - self.near)
        return bool(i < len(times) and times[i] <= now + self.near)

    def next(self, now: float) -> float:
        """The first stop after now."""
        return float(self.all[np.searchsorted(self.all, now + self.near)])

    def snapshots_until(self, now: float) -> int:
        """How many snapshots are due up to now."""
        due = self._snapshots[self._snapshots <= now + self.near]
        return int((np.diff(due, prepend=-np.inf) > self.near).sum())

    def wants_record(self, now: float) -> bool:
        """Whether a record is due."""
        return self._at(self.records, now)

    def wants_snapshot(self, now: float) -> bool:
        """Whether a snapshot of f is due."""
        return self._at(self._snapshots, now)


class AccuracyRecord(NamedTuple):
    """What all steps of a run showed of its accuracy."""

    noise: float = 0.0
    """Standard error of C over C, of all that moved."""
    limited: float = 0.0
    """Mean part that limits refused."""
    null: float = 0.0
    """Largest part of the collisions that found no place in the box."""
    change: float = 0.0
    """Mean over time of how much C changes within a step, relative to itself."""


@dataclass
class AccuracyWatch:
    """Keeps an eye on noise, limits and lost weight."""

    steps: int = 0
    noise: float = np.nan
    """Of the last step: standard error of C over C."""
    scatter: float = 0.0
    moved: float = 0.0
    null_max: float = 0.0
    changed: float = 0.0
    """Change of C within a step, relative to C, times the length of the step."""
    elapsed: float = 0.0
    limited_sum: float = 0.0
    limited_max: float = 0.0
    """Since the last record."""
    length: float = np.nan
    fastest: float = 0.0
    """Largest flow velocity of all records."""
    negative: list[float] = field(default_factory=list)
    """Largest ``negative_weight`` of all records, by process."""

    def see(self, report: StepReport, tolerance: float) -> None:
        """Take note of a step that stands."""
        self.steps += 1
        error, size = report.noise
        self.noise = math.sqrt(report.noise_ratio) if size > 0 else np.nan
        self.scatter += error
        self.moved += size
        self.length = report.length
        self.limited_max = max(self.limited_max, report.limited_weight)
        self.limited_sum += report.limited_weight
        self.null_max = max(self.null_max, report.null_weight)
        self.changed += report.change_ratio(tolerance) * report.length
        self.elapsed += report.length

    def since_last_record(self) -> dict[str, float]:
        """What a record holds of the steps before it."""
        result = {"step": self.length, "limited_weight": self.limited_max, "noise": self.noise}
        self.limited_max = 0.0
        return result

    def note(self, record: Mapping[str, Any]) -> None:
        """Take note of a record that is complete."""
        speed2 = (np.nan_to_num(record["velocity"]) ** 2).sum(axis=0)
        self.fastest = max(self.fastest, math.sqrt(float(speed2.max(initial=0.0))))
        below = np.nan_to_num(record["negative_weight"])
        self.negative = np.maximum(self.negative or np.zeros(len(below)), below).tolist()

    def summary(self) -> AccuracyRecord:
        """What all steps showed."""
        if not self.steps:
            return AccuracyRecord()
        noise = math.sqrt(self.scatter / self.moved) if self.moved > 0 else 0.0
        limited, change = self.limited_sum / self.steps, self.changed / self.elapsed
        return AccuracyRecord(noise, limited, self.null_max, change)


class Interrupt:
    """Set by a signal; true once it came."""

    signal = 0

    @property
    def name(self) -> str:
        """What came: SIGINT is Ctrl-C."""
        return "Ctrl-C" if self.signal == signal.SIGINT else signal.Signals(self.signal).name

    def __bool__(self) -> bool:
        return self.signal != 0


ALWAYS, UNLESS_TAKEN = ("SIGINT", "SIGTERM"), ("SIGUSR1", "SIGHUP", "SIGXCPU", "SIGQUIT")
"""What asks a run to end: Ctrl-C, batch systems; their warnings, a closed terminal, limits."""


def _handled() -> list[signal.Signals]:
    """Those that this system has, but none that are ignored (nohup; ``&`` in a script)."""
    found = []
    for name in ALWAYS + UNLESS_TAKEN:
        number = getattr(signal, name, None)
        now = number and signal.getsignal(number)
        if number and (now is signal.SIG_DFL or (name in ALWAYS and now is not signal.SIG_IGN)):
            found.append(number)
    return found


@contextmanager
def undisturbed() -> Iterator[None]:
    """Within it Ctrl-C waits: for what must not be left half done."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: came.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if came:
        raise KeyboardInterrupt


@contextmanager
def interruptible() -> Iterator[Interrupt]:
    """Within it Ctrl-C and other signals ask the run to end in good order.

    Work in hand is dropped after the current group of events; further signals while results are
    being saved change nothing.
    """
    interrupt = Interrupt()
    if threading.current_thread() is not threading.main_thread():
        yield interrupt
        return

    def handler(number: int, frame: FrameType | None) -> None:
        interrupt.signal = interrupt.signal or number
        if collector.resting:  # the compiler cannot be interrupted
            say("a function is being compiled: the run ends when that is done", BackendNotice)

    before = {number: signal.signal(number, handler) for number in _handled()}
    try:
        yield interrupt
    finally:
        for number, old in before.items():
            if old is not None:  # None: installed by other than Python code
                signal.signal(number, old)
