"""The table of a result: its charges by name, its end against what was predicted."""

import numpy as np
import pytest

import relboltz as rb
from relboltz.analysis import tables


@pytest.fixture(scope="module")
def result():
    """A tiny run of gluons and one flavour."""
    start = {"g": rb.initial.step(0.5, 1.2), "u": rb.initial.step(0.3, 1.0)}
    grid = rb.PhaseSpace(8, 2.0)
    return rb.solve(rb.qcd(0.3, flavors=1), grid, start, end=0.02, samples=1, progress=False)


def rows(ds):
    """Words -> (value, predicted) of a summary."""
    words, *values = (column._cells for column in tables.summary(ds).columns)
    return dict(zip(words, zip(*values, strict=True), strict=True))


def test_what_is_conserved_is_told_by_name(result):
    """Number and net u here; other charges, or none at all, where reactions change the number."""
    found = rows(result)
    assert found["change of number"] == found["change of net u"] == ("0 (exact)", "0")
    alone = rows(result.isel(charge=[1]))
    assert "change of net u" in alone and "change of number" not in alone
    none = rows(result.isel(charge=[]))
    assert not [words for words in none if words.startswith("change of n")]
    assert none["change of total energy, relative"] == found["change of total energy, relative"]
    lost = result.copy(deep=True)
    lost.charge_drift[-1] = -5
    lost.charge_density[-1] -= 1e-3 * float(result.number[0].sum())
    assert rows(lost)["change of net u"] == ("-1.0e-03", "0")


def test_the_end_stands_next_to_what_was_predicted(result):
    found = rows(result)
    for words, name in ("temperature [GeV]", "temperature"), (r"entropy \[fm^-3]", "entropy"):
        numbers = float(result[name][-1]), float(result[f"equilibrium_{name}"])
        assert found[words] == tuple(f"{value:.4f}" for value in numbers)
    assert found["m^2 of g [GeV^2]"][0] == f"{float(result.mass_squared[-1, 0]):.4f}"
    unknown = result.assign(equilibrium_distance=result.equilibrium_distance * np.nan)
    assert rows(unknown)["particles not yet in equilibrium"] == ("unknown", "0")


def test_a_benchmark_has_three_tables():
    run = {"model": "qcd", "cells": 30, "pairs": "uniform", "samples": 16,
           "events_per_second": 2e8, "ms_per_step": 3.0, "additions_per_second": 5e10,
           "part_of_bound": 0.25, "memory_gib": 1.5,
           "ms": {"draw": 1.0, "land": 1.0, "deposit": 0.5, "update": 0.5}}  # fmt: skip
    variance = {"uniform": {"variance": 2.0, "seconds": 0.5, "cost": 1.0}}
    found = {"backend": "cuda", "gpu": "some GPU", "processor": "x", "precision": "float32",
             "runs": [run], "variance": variance}  # fmt: skip
    speed, parts, cost = tables.benchmark(found)
    assert [column._cells[0] for column in speed.columns] == [
        "qcd", "30^3", "uniform", "16", "200.0", "50", "0.25", "1.50"
    ]  # fmt: skip
    assert [column._cells[0] for column in parts.columns][3:] == [
        "3.000", "1.000", "1.000", "0.500", "0.500"
    ]  # fmt: skip
    assert [column._cells[0] for column in cost.columns] == ["uniform", "2", "0.5000", "1"]
    speed, *_ = tables.benchmark(found | {"backend": "cpu"})
    assert len(speed.columns) == 5
