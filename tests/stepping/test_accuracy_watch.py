"""Output times, accuracy and signals during a run."""

import os
import signal
import threading

import numpy as np
import pytest

import relboltz as rb
from relboltz.events.collisions import Flows
from relboltz.run import input_file as config
from relboltz.stepping.accuracy_watch import (
    AccuracyRecord,
    AccuracyWatch,
    OutputTimes,
    interruptible,
)
from relboltz.stepping.step_report import StepReport
from relboltz.util.gc_pause import resting

NONE = Flows(np.zeros(1), np.zeros(1), 0.0, 0.0)


def test_times_are_stops_whatever_their_rounding():
    settings = config.Settings.from_options(end=0.3, every=0.1, snapshots=[0.1 * 3])
    stops = OutputTimes(0.3, 0.1, settings.output.snapshots)
    now, times = 0.0, [0.0]
    while now < 0.3 - 1e-12:
        now = stops.next(now)
        times.append(now)
    assert len(times) == 4 and stops.wants_snapshot(0.3) and stops.wants_record(0.1 + 0.1 + 0.1)


def test_snapshots_are_stops_and_no_records():
    stops = OutputTimes(1.0, 0.4, (0.5,))
    assert [stops.next(t) for t in (0.0, 0.4, 0.5, 0.8)] == [0.4, 0.5, 0.8, 1.0]
    assert stops.wants_snapshot(0.5) and not stops.wants_record(0.5)
    assert stops.wants_record(0.0) and stops.wants_record(1.0) and not stops.wants_snapshot(1.0)


def seen(*steps):
    watch = AccuracyWatch()
    for length, limited, lost, noise in steps:
        counts = [(20, 100, 1000)]
        report = StepReport(length, counts, NONE, (1.0, lost), np.array([limited]), noise)
        watch.see(report, 1e-3)
    return watch


def test_all_steps_count_as_long_as_they_are():
    watch = seen((0.1, 0.0, 0.02, (1.0, 100.0)), (0.3, 0.4, 0.01, (3.0, 300.0)))
    summary = watch.summary()
    assert summary.noise == pytest.approx(0.1) and summary.limited == pytest.approx(0.2)
    assert summary.null == 0.02 and summary.change == pytest.approx(0.2)
    assert watch.steps == 2 and watch.elapsed == pytest.approx(0.4)
    assert AccuracyWatch().summary() == AccuracyRecord()


def test_a_record_holds_the_worst_limit_since_the_last_one():
    watch = seen((0.1, 0.4, 0.0, (1.0, 100.0)), (0.2, 0.1, 0.0, (4.0, 100.0)))
    assert watch.since_last_record() == {"step": 0.2, "limited_weight": 0.4, "noise": 0.2}
    assert watch.since_last_record()["limited_weight"] == 0.0


def test_records_leave_the_fastest_flow_and_the_most_negative_weight():
    watch = AccuracyWatch()
    for speed, negative in ((0.3, [0.0, 0.2]), (0.1, [0.1, np.nan])):
        velocity = np.array([[speed, np.nan], [0.0, 0.4], [0.0, np.nan]])
        watch.note({"velocity": velocity, "negative_weight": np.array(negative)})
    assert watch.fastest == pytest.approx(0.4) and watch.negative == [0.1, 0.2]


@pytest.mark.parametrize(
    ("number", "name"), [(signal.SIGINT, "Ctrl-C"), (signal.SIGTERM, "SIGTERM")]
)
def test_the_first_signal_counts_and_handlers_come_back(number, name):
    before = [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)]
    with interruptible() as interrupt:
        assert not interrupt
        for n in (number, signal.SIGTERM, signal.SIGINT):
            os.kill(os.getpid(), n)
        assert interrupt and interrupt.signal == number and interrupt.name == name
    assert [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)] == before


def test_a_signal_that_must_wait_for_the_compiler_is_answered_at_once():
    with interruptible() as interrupt, resting(), pytest.warns(rb.BackendNotice, match="compiled"):
        os.kill(os.getpid(), signal.SIGINT)
        assert interrupt


def test_other_threads_are_not_interrupted():
    """Signals are for the main thread; elsewhere nothing is installed."""
    found = []

    def work():
        with interruptible() as interrupt:
            found.append(bool(interrupt))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == [False]
