"""(s, C^-1 s) in a basis, with its statistical error.

C is a mean over independent batches of events. The value is a convex function of C, so that noise
makes it too large by O(1/events); the jackknife removes this bias and gives the error.
"""

from dataclasses import dataclass

import numpy as np

from ..util.arrays import Array
from ..util.errors import InputError

DEPENDENT = 1e-11
"""Combinations of trial functions with a squared norm below this fraction of the largest are
rounding and are dropped.
"""


@dataclass(frozen=True)
class InverseEstimate:
    """Values for all pairs of sources, their standard errors, and the bias that was removed."""

    value: Array
    error: Array
    bias: Array


def independent(gram: Array) -> tuple[Array, Array, Array]:
    """Return squared norms, independent combinations (functions, n), and norms of functions.

    Functions of norm 0 are left out.
    """
    norms = np.sqrt(np.diag(gram))
    scale = np.divide(1, norms, out=np.zeros_like(norms), where=norms > 0)
    values, vectors = np.linalg.eigh(gram * scale * scale[:, None])
    kept = values > DEPENDENT * values[-1]
    return values[kept], scale[:, None] * vectors[:, kept], norms


def directions(gram: Array, conserved: Array) -> Array:
    """Return orthonormal combinations (functions, n) orthogonal to the conserved functions."""
    values, vectors, norms = independent(gram)
    functions = vectors / np.sqrt(values)
    if not len(conserved):
        return functions
    zero = (np.sqrt(values)[:, None] * vectors.T * norms) @ (conserved * norms).T
    complete, _ = np.linalg.qr(zero, mode="complete")
    return np.asarray(functions @ complete[:, zero.shape[1] :])


def inverted(matrix: Array, sources: Array) -> Array:
    """Return sources^T matrix^-1 sources for a positive matrix."""
    try:
        half = np.linalg.solve(np.linalg.cholesky(matrix), sources)
    except np.linalg.LinAlgError:
        raise InputError(
            "events: too few of them meet all trial functions; give more events, or fewer powers"
        ) from None
    return np.asarray(half.T @ half)


def dissipation(batches: Array, gram: Array, conserved: Array, sources: Array) -> InverseEstimate:
    """Return (s, C^-1 s') for all pairs of sources.

    batches : C (batch, function, function); conserved (n, function): conserved combinations;
    sources (n, function): their products with the functions
    """
    q = directions(gram, conserved)
    if not q.shape[1]:
        nothing = np.zeros((len(sources), len(sources)))
        return InverseEstimate(nothing, nothing, nothing)
    parts = q.T @ batches @ q
    s, n, mean = q.T @ sources.T, len(batches), parts.mean(axis=0)
    whole = inverted(mean, s)
    without = np.array([inverted((n * mean - part) / (n - 1), s) for part in parts])
    middle = without.mean(axis=0)
    error = np.sqrt((n - 1) / n * ((without - middle) ** 2).sum(axis=0))
    bias = (n - 1) * (middle - whole)
    return InverseEstimate(whole - bias, error, bias)


def response(batches: Array, gram: Array, conserved: Array, source: Array) -> Array:
    """Return y = C^-1 s in terms of the functions: the value changes by -y dC y."""
    q = directions(gram, conserved)
    if not q.shape[1]:
        return np.zeros(len(source))
    return np.asarray(q @ np.linalg.solve(q.T @ batches.mean(axis=0) @ q, q.T @ source))
