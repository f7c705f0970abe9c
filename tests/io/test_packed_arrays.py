"""Entries of a file that only grows: whole, torn, damaged."""

import os

import numpy as np
import pytest

from relboltz.io import packed_arrays
from relboltz.io.packed_arrays import PackedArray


def written(path, payloads):
    end = 0
    for payload in payloads:
        end = packed_arrays.append(path, end, payload)
    return path


@pytest.mark.parametrize("lost", range(1, 18))
def test_a_torn_entry_is_ignored(tmp_path, lost):
    """5 bytes and 12 before them: whatever is missing of the last entry."""
    path = written(tmp_path / "log", [b"first", b"second", b"third"])
    assert list(packed_arrays.entries(path)) == [b"first", b"second", b"third"]
    os.truncate(path, path.stat().st_size - lost)
    assert list(packed_arrays.entries(path)) == [b"first", b"second"]


def test_a_wrong_bit_is_noticed(tmp_path):
    path = written(tmp_path / "log", [b"first", b"second"])
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    assert list(packed_arrays.entries(path)) == [b"first"]


def test_an_entry_replaces_what_a_failure_left(tmp_path):
    path = written(tmp_path / "log", [b"first"])
    end = path.stat().st_size
    with open(path, "ab") as handle:
        handle.write(bytes(100))
    packed_arrays.append(path, end, b"second")
    assert list(packed_arrays.entries(path))[:2] == [b"first", b"second"]


def test_rows_survive_their_bytes():
    rng = np.random.default_rng(1)
    row = {
        "a": PackedArray.of(3),
        "b": PackedArray.of(rng.random((4, 5))),
        "c": PackedArray.of(rng.random(9000)),
    }
    again = packed_arrays.unpack(packed_arrays.pack(row))
    assert again.keys() == row.keys() and again["a"].values == 3
    np.testing.assert_array_equal(again["b"].values, row["b"].values)
    assert again["c"].chunks and [bytes(p) for p in again["c"].parts] == row["c"].parts
