"""Output times, accuracy statistics and signals of a run."""

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
"""Times further apart than this [fm] are always distinct: much less than a first step."""


class OutputTimes:
    """Times [fm] that a step must hit: records at every multiple and at the end, snapshots, others.

    Times closer than ``time_tolerance`` count as equal. Only the last time depends on ``end``, so
    a longer run shares all the others: multiples are rounded to 15 digits, and a multiple close
    to the end replaces it.
    """

    def __init__(
        self,
        end: float,
        every: float,
        snapshots: tuple[float, ...],
        start: float = 0.0,
        others: tuple[float, ...] = (),
    ):
        self.time_tolerance = min(1e-9 * min(every, end - start), NEAREST)
        count = math.floor((end - start) / every + 1e-9)
        records = [float(f"{start + i * every:.15g}") for i in range(count + 1)]
        self.end = records[-1] if abs(records[-1] - end) <= self.time_tolerance else end
        self.records = np.array([t for t in records if t < self.end] + [self.end])
        last = self.end - self.time_tolerance
        self._snapshots = np.array(sorted(t if t < last else self.end for t in snapshots))
        self.all = np.union1d(self.records, self._snapshots)
        if others:
            self.all = np.union1d(self.all, [t for t in others if t < last])

    def _at(self, times: Array, now: float) -> bool:
        i = np.searchsorted(times, now - self.time_tolerance)
        return bool(i < len(times) and times[i] <= now + self.time_tolerance)

    def next(self, now: float) -> float:
        """Return the first output time after ``now``."""
        return float(self.all[np.searchsorted(self.all, now + self.time_tolerance)])

    def snapshots_until(self, now: float) -> int:
        """Return the number of snapshots due up to ``now``."""
        due = self._snapshots[self._snapshots <= now + self.time_tolerance]
        return int((np.diff(due, prepend=-np.inf) > self.time_tolerance).sum())

    def wants_record(self, now: float) -> bool:
        """Return whether a record is due."""
        return self._at(self.records, now)

    def wants_snapshot(self, now: float) -> bool:
        """Return whether a snapshot of f is due."""
        return self._at(self._snapshots, now)


class AccuracyRecord(NamedTuple):
    """Accuracy of a run, summarized over all steps."""

    noise: float = 0.0
    """Standard error of C relative to C, over all particles moved."""
    limited: float = 0.0
    """Mean fraction of the particle transfer that the limiter refused."""
    null: float = 0.0
    """Largest fraction of collisions rejected because a product leaves the grid."""
    change: float = 0.0
    """Time average of the change of C within a step, relative to C."""


@dataclass
class AccuracyWatch:
    """Accumulates noise, limited weight and lost weight over the steps of a run."""

    steps: int = 0
    noise: float = np.nan
    """Standard error of C relative to C in the last step."""
    scatter: float = 0.0
    moved: float = 0.0
    null_max: float = 0.0
    changed: float = 0.0
    """Sum over steps of the relative change of C within the step times the step length."""
    elapsed: float = 0.0
    limited_sum: float = 0.0
    limited_max: float = 0.0
    """Largest limited weight since the last record."""
    length: float = np.nan
    fastest: float = 0.0
    """Largest flow velocity in any record."""
    negative: list[float] = field(default_factory=list)
    """Largest ``negative_weight`` in any record, by process."""

    def see(self, report: StepReport, tolerance: float) -> None:
        """Add an accepted step to the statistics."""
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
        """Return the statistics that a record stores about the preceding steps."""
        result = {"step": self.length, "limited_weight": self.limited_max, "noise": self.noise}
        self.limited_max = 0.0
        return result

    def note(self, record: Mapping[str, Any]) -> None:
        """Add a complete record to the statistics."""
        speed2 = (np.nan_to_num(record["velocity"]) ** 2).sum(axis=0)
        self.fastest = max(self.fastest, math.sqrt(float(speed2.max(initial=0.0))))
        below = np.nan_to_num(record["negative_weight"])
        self.negative = np.maximum(self.negative or np.zeros(len(below)), below).tolist()

    def summary(self) -> AccuracyRecord:
        """Return the accuracy of all steps so far."""
        if not self.steps:
            return AccuracyRecord()
        noise = math.sqrt(self.scatter / self.moved) if self.moved > 0 else 0.0
        limited, change = self.limited_sum / self.steps, self.changed / self.elapsed
        return AccuracyRecord(noise, limited, self.null_max, change)


class Interrupt:
    """Flag set by a signal handler; true once a signal arrived."""

    signal = 0

    @property
    def name(self) -> str:
        """Name of the signal; SIGINT is called Ctrl-C."""
        return "Ctrl-C" if self.signal == signal.SIGINT else signal.Signals(self.signal).name

    def __bool__(self) -> bool:
        return self.signal != 0


ALWAYS, UNLESS_TAKEN = ("SIGINT", "SIGTERM"), ("SIGUSR1", "SIGHUP", "SIGXCPU", "SIGQUIT")
"""Signals that end a run: Ctrl-C and batch systems; batch warnings, a closed terminal, limits."""


def _handled() -> list[signal.Signals]:
    """Return the signals to handle; ignored signals (nohup; ``&`` in a script) stay ignored."""
    found = []
    for name in ALWAYS + UNLESS_TAKEN:
        number = getattr(signal, name, None)
        now = number and signal.getsignal(number)
        if number and (now is signal.SIG_DFL or (name in ALWAYS and now is not signal.SIG_IGN)):
            found.append(number)
    return found


@contextmanager
def undisturbed() -> Iterator[None]:
    """Defer Ctrl-C until the block, which must not be interrupted, is complete."""
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
    """Turn Ctrl-C and other signals into a request to end the run cleanly.

    Work in progress is abandoned after the current group of events; further signals have no effect
    while results are being saved.
    """
    interrupt = Interrupt()
    if threading.current_thread() is not threading.main_thread():
        yield interrupt
        return

    def handler(number: int, frame: FrameType | None) -> None:
        interrupt.signal = interrupt.signal or number
        if collector.resting:  # a compilation cannot be interrupted
            say("a function is being compiled: the run ends when that is done", BackendNotice)

    before = {number: signal.signal(number, handler) for number in _handled()}
    try:
        yield interrupt
    finally:
        for number, old in before.items():
            if old is not None:  # None: the handler was not installed from Python
                signal.signal(number, old)
