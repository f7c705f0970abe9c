"""Checkpoints whose checksums agree, but that no run has written: one message, nothing else."""

import json
import math
import re
import shutil

import numpy as np
import pytest
from continued import command, go_on, left, solve

import relboltz as rb
from relboltz.io import checkpoint


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """A finished run."""
    file = tmp_path_factory.mktemp("done") / "run.nc"
    solve("gluons", file, end=0.04, every=0.02)
    return file


@pytest.fixture
def forged(done, tmp_path):
    """Write a copy of the run whose last checkpoint has other facts, arrays or plain numbers."""

    def forge(facts=(), arrays=(), plain=()):
        for path in done.parent.iterdir():
            shutil.copy(path, tmp_path)
        saved = checkpoint.latest(tmp_path / "run.nc")
        for name, value in dict(facts).items():
            *tables, key = name.split(".")
            table = saved.facts
            for one in tables:
                table = table[one]
            table[key] = value
        found = saved.arrays | dict(arrays)
        if plain:
            text = json.dumps(json.loads(bytes(saved.arrays["plain"])) | plain)
            found["plain"] = np.frombuffer(text.encode(), np.uint8)
        kept = {name: value for name, value in found.items() if value is not None}
        checkpoint.write(saved.path, saved.facts, kept)
        return tmp_path / "run.nc"

    return forge


FACTS = {
    "place.parts": ["../run.parts-1-abcdefgh", "/tmp", "a/b.parts-1-abcdefgh", "..", 3, None],
    "place": [[1, 2], None],
    "place.records": ["5", -1, None, 1.5],
    "about.configuration": ["= no TOML =", "title = 'no tables'", None, 7],
    "about": [None, []],
    "time": ["now", math.nan, None],
    "settings.time": [None, []],
    "grid": [[], {"momentum_cells": "x"}],
    "known.negative": [[1], None],
    "known.predicted": [{"temperature": "hot"}, {}],
    "versions": [None],
}
SQUARES, NUMBER = np.full((1, 2), 0.5), np.ones((1, 1, 125), np.int64)
ARRAYS = {
    "no array": ("number", None, "'number' is missing"),
    "another shape": ("number", NUMBER[..., :-1], r"'number' has the shape \(1, 1, 124\), not"),
    "a flat one": ("squares", SQUARES[0], r"'squares' has the shape \(2,\), not \(1, 2\)"),
    "of texts": ("squares", np.array([["a", "b"]], "S1"), "'squares' holds no numbers"),
    "of floats": ("number", NUMBER.astype(float), "'number' is of type float64"),
    "negative": ("number", -NUMBER, "holds negative particle numbers"),
    "NaN": ("squares", SQUARES * np.nan, "'squares' holds NaN"),
    "no state": ("plain", None, "plain"),
    "NaN in a rate": ("rate 0 0", SQUARES * np.nan, "'rate 0 0' holds NaN"),
    "a rate of another shape": ("rate 1 0", SQUARES[:, :1], "'rate 1 0' has the shape"),
}
PLAIN = {"time": [math.nan, "now", 0.03], "wanted": [math.nan, 0.0, []], "step": [-1, 1.5, None],
         "said": ["text", [1]], "watch": [{"steps": []}, {"negative": [1, 2]}, None],
         "doublings": [[0], "no"], "bits": [None, math.nan]}  # fmt: skip


def refused(file):
    """Try to go on; return what is said. Nothing is written, in particular no checkpoint."""
    before = {path.name: path.read_bytes() for path in file.parent.iterdir()}
    with pytest.raises(rb.InputError) as caught:
        go_on(file, until=0.06)
    assert {path.name: path.read_bytes() for path in file.parent.iterdir()} == before
    words = str(caught.value)
    assert "run.checkpoint-000002 cannot be used: " in words
    assert words.endswith("remove it to go on from run.checkpoint-000001"), words
    return words


@pytest.mark.parametrize("name", FACTS)
def test_facts_of_another_kind_are_refused(forged, name):
    for value in FACTS[name]:
        words = refused(forged(facts={name: value}))
        assert name.rpartition(".")[2] in words.lower() or value == {}  # which misses what is in it
        assert "\n" not in words


@pytest.mark.parametrize("case", ARRAYS)
def test_arrays_that_no_run_has_are_refused(forged, case):
    name, values, words = ARRAYS[case]
    assert re.search(words, refused(forged(arrays={name: values})))


@pytest.mark.parametrize("name", PLAIN)
def test_a_state_that_no_run_has_is_refused(forged, name):
    for value in PLAIN[name]:
        refused(forged(plain={name: value}))


def test_the_remedy_works_and_the_command_has_no_traceback(forged):
    file = forged(arrays={"squares": SQUARES * np.nan})
    code, words = command("resume", file, "--until", "0.06", "--quiet")
    assert code == 2 and "\n" not in words
    (file.parent / "run.checkpoint-000002").unlink()
    assert go_on(file, until=0.06).attrs["status"] == "done"
    assert left(file.parent)[:2] == ["run.checkpoint-000002", "run.checkpoint-000003"]
