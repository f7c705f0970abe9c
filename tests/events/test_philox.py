"""Random words: the published answers of Philox4x32-10, and uniforms inside (0, 1)."""

import numpy as np
import pytest

from relboltz.backends.physics import compiled
from relboltz.events.philox import philox, uniform

# counter, key, answer: kat_vectors of Random123
KNOWN = [
    ("00000000 00000000 00000000 00000000", "00000000 00000000",
     "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
    ("ffffffff ffffffff ffffffff ffffffff", "ffffffff ffffffff",
     "408f276d 41c83b0e a20bc7c6 6d5451fd"),
    ("243f6a88 85a308d3 13198a2e 03707344", "a4093822 299f31d0",
     "d16cfe09 94fdcceb 5001e420 24126ea1"),
]  # fmt: skip


def words(text):
    """Hexadecimal words as uint64."""
    return [np.uint64(int(word, 16)) for word in text.split()]


@pytest.mark.parametrize("function", [philox, compiled.philox], ids=["python", "compiled"])
@pytest.mark.parametrize(("counter", "key", "answer"), KNOWN)
def test_philox_gives_the_published_answers(function, counter, key, answer):
    """Random123's known-answer vectors, word by word."""
    assert [int(w) for w in function(*words(counter), *words(key))] == [
        int(w) for w in words(answer)
    ]


def test_every_counter_and_key_word_matters():
    """Changing one bit of any identity word changes all four words."""
    start = [np.uint64(v) for v in (7, 3, 11, 2, 1, 0)]
    base = philox(*start)
    for position in range(6):
        other = list(start)
        other[position] ^= np.uint64(1)
        assert all(a != b for a, b in zip(base, philox(*other), strict=True))


def test_compiled_words_are_the_python_words():
    """Bit for bit on random identities."""
    rng = np.random.default_rng(1)
    for row in rng.integers(0, 2**32, (50, 6), dtype=np.uint64):
        expected = [int(w) for w in philox(*row)]
        assert [int(w) for w in compiled.philox(*row)] == expected
        assert all(0 <= w < 2**32 for w in expected)


@pytest.mark.parametrize("function", [uniform, compiled.uniform], ids=["python", "compiled"])
def test_uniforms_lie_strictly_inside_the_unit_interval(function):
    """The first and the last word give half a unit from either end, exactly."""
    first = function(np.uint64(0))
    last = function(np.uint64(2**32 - 1))
    assert first == 2.0**-33 > 0
    assert 1 - last == 2.0**-33


def test_uniforms_are_uniform():
    """First and second moments of 4 x 4000 numbers within 4 sigma, no correlation of words."""
    n = 4000
    zero = np.uint64(0)
    u = np.array(
        [[uniform(w) for w in philox(np.uint64(i), zero, zero, zero, zero, zero)] for i in range(n)]
    )
    assert np.all(np.abs(u.mean(axis=0) - 0.5) < 4 * np.sqrt(1 / 12 / n))
    assert np.all(np.abs((u**2).mean(axis=0) - 1 / 3) < 4 * np.sqrt(4 / 45 / n))
    correlation = np.corrcoef(u.T) - np.eye(4)
    assert np.abs(correlation).max() < 4 / np.sqrt(n)
