"""Conserved charges: the integer null space of the stoichiometry of the reactions."""

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from ..util.arrays import Integers


def charge_name(vector: Sequence[int], names: Sequence[str]) -> str:
    """Return a charge as text, such as 'a + 2 b - c'."""
    terms = [(v, name) for v, name in zip(vector, names, strict=True) if v]
    description = []
    for k, (v, name) in enumerate(terms):
        sign = ("-" if v < 0 else "") if k == 0 else (" - " if v < 0 else " + ")
        description.append(f"{sign}{'' if abs(v) == 1 else f'{abs(v)} '}{name}")
    return "".join(description)


def null_space(matrix: Integers) -> list[tuple[int, ...]]:
    """Return an integer basis of {v : matrix v = 0}, by exact row reduction."""
    rows = [[Fraction(int(v)) for v in row] for row in matrix]
    n = matrix.shape[1]
    pivots: list[int] = []
    for column in range(n):
        rank = len(pivots)
        pivot = next((r for r in range(rank, len(rows)) if rows[r][column]), None)
        if pivot is None:
            continue
        rows[rank], rows[pivot] = rows[pivot], rows[rank]
        rows[rank] = [v / rows[rank][column] for v in rows[rank]]
        for r in range(len(rows)):
            if r != rank and rows[r][column]:
                factor = rows[r][column]
                rows[r] = [v - factor * w for v, w in zip(rows[r], rows[rank], strict=True)]
        pivots.append(column)
    basis = []
    for free in (c for c in range(n) if c not in pivots):
        vector = [Fraction(0)] * n
        vector[free] = Fraction(1)
        for r, column in enumerate(pivots):
            vector[column] = -rows[r][free]
        scale = int(np.lcm.reduce([v.denominator for v in vector]))
        basis.append(tuple(int(v * scale) for v in vector))
    return basis
