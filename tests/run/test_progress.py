"""How far a run is, in a log."""

import io
import time
import warnings

import pytest
from rich.console import Console

import relboltz as rb
from relboltz.run import progress
from relboltz.run import solve as simulation
from relboltz.run.progress import ProgressLog, RunProgress, StageLog, listening, stage


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


def moment(time, end=4.0):
    return RunProgress(time, end, 0.012, 0, 1.4e-9)


def lines(seconds, reached, every=0.5, end=4.0):
    """Return the log of a run that has ``reached(wall)`` fm after a given number of seconds."""
    clock, said = Clock(), []
    report = ProgressLog(lambda text: said.append((clock.now, text)), clock)
    for i in range(int(seconds / every) + 1):
        clock.now = i * every
        report(moment(reached(clock.now), end))
    return said


def test_a_short_run_says_nothing():
    assert lines(9.5, lambda wall: 0.4 * wall) == []


def test_a_line_after_ten_seconds_and_then_every_thirty():
    said = lines(150, lambda wall: 0.02 * wall)
    assert [wall for wall, _ in said] == [10, 40, 70, 100, 130]
    assert said[1][1] == (
        "t = 0.8 of 4 fm, step 0.012 fm, 20 %, about 3 min left, energy moved by 1e-09"
    )


def test_drifts_are_told_of_when_they_were_looked_at():
    """At the start nothing has moved, which says nothing of later."""
    clock, said = Clock(), []
    report = ProgressLog(said.append, clock)
    for wall, recorded in ((0.0, 0.0), (10.0, 0.0), (40.0, 0.5), (70.0, 1.75)):
        clock.now = wall
        report(RunProgress(0.025 * wall, 4.0, 0.01, 0, 3e-2, recorded))
    first, second, third = said
    assert "energy" not in first
    assert second.endswith("energy moved by 3e-02 until 0.5 fm")
    assert third.endswith("energy moved by 3e-02")


def test_the_end_is_told_by_others():
    assert lines(40, lambda wall: min(4.0, 0.4 * wall)) == []


def test_the_time_left_follows_the_pace_of_late():
    """Steps that grew by a hundred: what came before says nothing of what is left."""

    def reached(wall):
        return 1e-3 * wall if wall < 300 else 0.3 + 0.01 * (wall - 300)

    wall, text = lines(380, reached)[-1]
    assert wall == 370 and "about 5 min left" in text  # 3 fm at 0.01 fm/s; 17 min by the average


def test_long_steps_give_an_estimate_too():
    """Ten minutes each: the last ones count, however long ago they were."""
    said = [text for _, text in lines(12000, lambda wall: 1e-5 * wall, every=600, end=40.0)]
    assert len(said) == 20 and all("about 46 days left" in text for text in said)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.2, "0 s"), (89, "89 s"), (100, "2 min"), (5000, "83 min"), (7000, "2 h"), (1e6, "12 days")],
)
def test_durations_read_well(seconds, words):
    assert progress.duration(seconds) == words


def test_a_log_gets_plain_lines_at_once(monkeypatch):
    """No bar and no escapes; flushed, since a log is watched while the run goes on."""
    monkeypatch.setattr(progress, "FIRST", 0.0)
    flushed = []

    class Log(io.StringIO):
        def flush(self):
            flushed.append(self.getvalue())

    with progress.bar(Console(file=Log())) as report:
        report(moment(1.0))
    assert flushed[-1] == "t = 1 of 4 fm, step 0.012 fm, 25 %, energy moved by 1e-09\n"


# --- before the first step ----------------------------------------------------------------------


def test_stages_are_told_to_whoever_listens_last():
    outer, inner = [], []
    stage("nobody hears this")
    with listening(outer.append):
        stage("one")
        with listening(inner.append):
            stage("two")
        stage("three")
    assert (outer, inner) == (["one", "three"], ["two"])


def waited(said, count):
    """Return the log once it has the given number of lines."""
    for _ in range(500):
        if len(said) >= count:
            break
        time.sleep(0.01)
    return said


def test_a_log_is_told_of_stages_that_take_long_and_again_now_and_then(monkeypatch):
    monkeypatch.setattr(progress, "PATIENCE", 0.02)
    monkeypatch.setattr(progress, "PAUSE", 0.02)
    said = []
    stages = StageLog(said.append)
    stages("initial state")
    first = waited(said, 3)[:3]
    assert first[0] == "initial state ..." and first[1] == "initial state, 0 s so far ..."
    stages("first step")
    assert waited(said, len(said) + 1)[-1].startswith("first step")
    stages.end()


def test_a_log_is_not_told_of_stages_that_are_short():
    said = []
    stages = StageLog(said.append)
    for text in ("initial state", "masses", "first step"):
        stages(text)
    stages.end()
    assert progress.PATIENCE >= 0.5 and said == []


def test_a_run_tells_what_it_does_before_its_first_step(monkeypatch):
    """All of it within the time that the bar, or the log, is there."""
    told, heard = [], []

    @progress.contextmanager
    def bar():
        with listening(told.append):
            yield lambda now: heard.append(list(told))

    monkeypatch.setattr(simulation, "bar", bar)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rb.solve(
            rb.gluons(0.3), rb.PhaseSpace(5, 2.0), {"g": rb.initial.step(0.5, 1.5)}, end=0.02,
            step=0.01, samples=1, backend="cpu", threads=1,
        )  # fmt: skip
    begin = ("initial state: 1 species at 125 nodes", "masses", "predicted", "first record")
    words = (*begin, "first step")
    assert len(told) == len(words) and heard[0] == told
    assert all(text.startswith(word) for text, word in zip(told, words, strict=True))
