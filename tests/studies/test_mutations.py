"""Deliberate mistakes can be made: each is a piece of source that is there exactly once."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
import mutations

import relboltz
from relboltz.studies.validation import PROBLEMS


def test_every_mistake_has_its_place_and_its_problems():
    assert len(mutations.MUTATIONS) >= 18
    assert len({m.name for m in mutations.MUTATIONS}) == len(mutations.MUTATIONS)
    for mutation in mutations.MUTATIONS:
        source = (Path(relboltz.__file__).parent / mutation.file).read_text()
        assert source.count(mutation.right) == 1 and mutation.wrong != mutation.right, mutation
        assert set(mutation.problems) <= set(PROBLEMS)
