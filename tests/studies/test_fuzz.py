"""Configurations at random: refused in words, or they start."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
import fuzz

SEED, COUNT = 5, 150


@pytest.mark.filterwarnings("ignore")
def test_configurations_are_refused_in_words_or_start(tmp_path):
    """Every one is the function of a seed: fuzz.py --seed 12 --first NUMBER --count 1."""
    fuzz.files(tmp_path)
    found, failures = fuzz.examined(SEED, range(COUNT), tmp_path)
    assert not failures, "\n".join(failures)
    assert sum(found.values()) == COUNT and min(found[k] for k in ("refused", "read")) > 15
    assert found["accepted"] + found["stepped"] > 3


def test_the_same_number_is_the_same_configuration():
    first = [repr(fuzz.generated(3, n)) for n in (0, 17, 101) if n]
    assert first == [repr(fuzz.generated(3, n)) for n in (17, 101)]
    assert first[0] != first[1] != repr(fuzz.generated(4, 101))
