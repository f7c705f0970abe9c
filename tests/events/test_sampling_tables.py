"""Drawing nodes: probabilities are exact integers, p is stratified, k3 is independent."""

import numpy as np
import pytest

from relboltz.backends.cpu import collision_events as kernels
from relboltz.grid.phase_space import PhaseSpace

UNIT = 2**32


def build(weight):
    """The table for f and 1/E whose weights are these, its records taken apart again.

    sqrt(f + 0.02 f_max)/E with f = 1 at every node is proportional to 1/E.
    """
    n = len(weight)
    buckets = 1 << max(0, (n - 1).bit_length())
    cumulative = np.zeros(n + 1, np.int64)
    record, guide = np.empty(n, np.int64), np.full(buckets, -1, np.int64)
    packed = GRID.packed if n == GRID.size else np.arange(n)
    kernels.sampling_table(np.ones(n), np.asarray(weight, float), packed, cumulative, record, guide)
    assert np.array_equal(record & ((1 << kernels.PACKED_BITS) - 1), packed)
    return {
        "tables": (cumulative, record, guide),
        "cumulative": cumulative,
        "probability": record >> kernels.PACKED_BITS,
        "guide": guide,
    }


GRID = PhaseSpace((5, 3, 7), (1.0, 2.0, 0.5))
GEOMETRY = (
    tuple(float(n) for n in GRID.momentum_cells),
    tuple(float(h) for h in GRID.spacing),
)


RNG = np.random.default_rng(1)
WEIGHTS = {
    "one": [3.0],
    "two": [1.0, 2.0],
    "power of two, equal": np.ones(64),
    "equal": np.ones(105),
    "random": RNG.random(105),
    "steep": np.exp(RNG.uniform(-60, 0, 343)),
    "one holds all": [1e-30, 1.0, 1e-30, 0.0, 1e-30],
    "large": RNG.exponential(size=29791),
}
ON_WEIGHTS = pytest.mark.parametrize("weight", WEIGHTS.values(), ids=WEIGHTS)


@ON_WEIGHTS
def test_probabilities_add_up_to_exactly_one(weight):
    """2^32 in integers, none of them 0, and the cumulative sums are theirs."""
    table = build(weight)
    probability = table["probability"]
    assert probability.sum() == UNIT
    assert probability.min() >= 1
    assert table["cumulative"][0] == 0
    assert np.array_equal(table["cumulative"][1:], np.cumsum(probability))


@ON_WEIGHTS
def test_probabilities_follow_the_weights(weight):
    """In 1024 whole steps of the largest, at least one, and n units of 2^-32 to be reachable."""
    weight = np.asarray(weight)
    q = build(weight)["probability"] / UNIT
    whole = 1 + np.floor(1023 * weight / weight.max() + 0.5)
    assert np.abs(q - whole / whole.sum()).max() <= 2 * len(q) / UNIT


@ON_WEIGHTS
def test_the_guide_names_the_node_of_every_buckets_first_word(weight):
    """So that a search from there never has to go back."""
    table = build(weight)
    width = UNIT // len(table["guide"])
    words = np.arange(len(table["guide"])) * width
    node = np.searchsorted(table["cumulative"], words, side="right") - 1
    assert np.array_equal(table["guide"], node)


def test_tables_do_not_depend_on_the_last_bits_of_f():
    """A relative change of 1e-9 leaves a table as it is: backends round differently."""
    f, inverse_e = RNG.exponential(size=4096), RNG.uniform(0.3, 1.0, 4096)
    near = f * (1 + 1e-9 * RNG.uniform(-1, 1, 4096))
    tables = []
    for values in (f, near, f * (1 + 0.5 * RNG.uniform(-1, 1, 4096))):
        tables.append(
            (np.zeros(4097, np.int64), np.empty(4096, np.int64), np.empty(4096, np.int64))
        )
        kernels.sampling_table(values, inverse_e, np.arange(4096), *tables[-1])
    assert np.array_equal(tables[0][0], tables[1][0])
    assert not np.array_equal(tables[0][0], tables[2][0])


def draw(table_p, table_k, samples, parts=None):
    """Nodes p, k3 and a copy of the scratch rows of all samples, chunk by chunk."""
    words = np.empty(4 * kernels.CHUNK, np.uint64)
    nodes = np.empty(4 * kernels.CHUNK, np.int64)
    w = np.zeros(kernels.ROWS * kernels.CHUNK)
    drawn, rows = [], []
    size = parts or kernels.CHUNK
    for first in range(0, samples, size):
        count = min(size, samples - first)
        kernels.draw_words(first, count, 5, 11, 0, 1, words)
        kernels.draw_pairs(
            first, count, samples, words, table_p["tables"], table_k["tables"], GEOMETRY, w, nodes
        )
        drawn.append(nodes.reshape(4, -1)[:2, :count].copy())
        rows.append(w.reshape(kernels.ROWS, -1)[:, :count].copy())
    return np.hstack(drawn), np.hstack(rows)


P_TABLE = build(np.exp(RNG.uniform(-6, 0, GRID.size)))
K_TABLE = build(RNG.random(GRID.size) + 0.05)


@pytest.mark.parametrize("samples", [1, 97, 2048, 50001])
def test_p_is_stratified(samples):
    """Up to every node, the number of samples differs by less than 1 from N times its weight."""
    (p, _), _ = draw(P_TABLE, K_TABLE, samples)
    counts = np.concatenate([[0], np.cumsum(np.bincount(p, minlength=GRID.size))])
    expected = samples * (P_TABLE["cumulative"] / UNIT)
    assert counts[-1] == samples
    assert np.abs(counts - expected).max() < 1


def test_k3_is_drawn_with_its_weights():
    """Counts within 4 sigma of N q (105 nodes, fixed seed), chi^2 as expected."""
    samples = 200_000
    (p, k), _ = draw(P_TABLE, K_TABLE, samples)
    q = K_TABLE["probability"] / UNIT
    counts = np.bincount(k, minlength=GRID.size)
    pull = (counts - samples * q) / np.sqrt(samples * q * (1 - q))
    assert np.abs(pull).max() < 4
    chi2 = np.sum((counts - samples * q) ** 2 / (samples * q))
    assert abs(chi2 - (GRID.size - 1)) < 4 * np.sqrt(2 * (GRID.size - 1))
    assert abs(np.corrcoef(p, k)[0, 1]) < 4 / np.sqrt(samples)


def test_weights_undo_the_probabilities():
    """<1/(q q)> over samples is the number of pairs, for p and k3 alike: an unbiased sum."""
    samples = 200_000
    (p, k), rows = draw(P_TABLE, K_TABLE, samples)
    inverse = rows[kernels.INVERSE_Q // kernels.CHUNK]
    qp, qk = (t["probability"] / UNIT for t in (P_TABLE, K_TABLE))
    np.testing.assert_allclose(inverse * qp[p] * qk[k], 1, rtol=1e-14)
    sigma = inverse.std() / np.sqrt(samples)
    assert abs(inverse.mean() - GRID.size**2) < 4 * sigma


def test_drawn_momenta_are_those_of_the_nodes():
    """Momenta, index sums and uniforms of every sample."""
    (p, k), rows = draw(P_TABLE, K_TABLE, 3000)
    row = {name: getattr(kernels, name) // kernels.CHUNK for name in
           ("PX", "PY", "PZ", "KX", "KY", "KZ", "TX", "TY", "TZ", "U0", "U1")}  # fmt: skip
    index = np.array(np.unravel_index(np.arange(GRID.size), GRID.momentum_cells))
    for i, axis in enumerate("XYZ"):
        assert np.array_equal(rows[row["P" + axis]], GRID.momenta[i, p])
        assert np.array_equal(rows[row["K" + axis]], GRID.momenta[i, k])
        assert np.array_equal(rows[row["T" + axis]], index[i, p] + index[i, k])
    for name in ("U0", "U1"):
        u = rows[row[name]]
        assert 0 < u.min() and u.max() < 1
        assert abs(u.mean() - 0.5) < 4 * np.sqrt(1 / 12 / len(u))


def test_a_sample_does_not_depend_on_how_the_work_is_cut():
    """Chunks of 2048 and of 311 draw the same events, bit for bit."""
    whole_nodes, whole_rows = draw(P_TABLE, K_TABLE, 5000)
    nodes, rows = draw(P_TABLE, K_TABLE, 5000, parts=311)
    assert np.array_equal(whole_nodes, nodes)
    assert np.array_equal(whole_rows, rows)
