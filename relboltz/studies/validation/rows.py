"""Results of a validation problem: rows with measured and exact values and their difference."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Comparison:
    """One comparison, passed if the error is at most the tolerance.

    relative : whether error and tolerance are relative to the expected value
    reason : origin of the tolerance, in one phrase
    """

    quantity: str
    measured: float
    expected: float
    error: float
    tolerance: float
    reason: str
    relative: bool = True

    @property
    def passed(self) -> bool:
        """Whether the comparison holds; NaN and infinite errors fail."""
        return bool(math.isfinite(self.error) and self.error <= self.tolerance)

    def described(self) -> dict[str, Any]:
        """Return the row as JSON values, with null for numbers that are not finite."""
        numbers = {
            name: float(value) if math.isfinite(value) else None
            for name, value in (
                ("measured", self.measured), ("expected", self.expected), ("error", self.error),
                ("tolerance", self.tolerance),
            )
        }  # fmt: skip
        return {
            "quantity": self.quantity, **numbers, "relative": self.relative,
            "reason": self.reason, "passed": self.passed,
        }  # fmt: skip


def relative(
    quantity: str, measured: float, expected: float, tolerance: float, reason: str
) -> Comparison:
    """Compare a value with the exact value; the error is relative to the exact value."""
    measured, expected = float(measured), float(expected)
    error = abs(measured / expected - 1.0) if expected else math.inf
    return Comparison(quantity, measured, expected, error, float(tolerance), reason)


def absolute(
    quantity: str, measured: float, expected: float, tolerance: float, reason: str
) -> Comparison:
    """Compare a value with the exact value; the error is in its own units."""
    measured, expected = float(measured), float(expected)
    return Comparison(
        quantity, measured, expected, abs(measured - expected), tolerance, reason, False
    )


def nothing(quantity: str, measured: float, tolerance: float, reason: str) -> Comparison:
    """Compare a value with zero."""
    return absolute(quantity, measured, 0.0, tolerance, reason)


def at_least(quantity: str, measured: float, bound: float, reason: str) -> Comparison:
    """Compare a value with a lower bound; the error is the shortfall."""
    measured = float(measured)
    return Comparison(quantity, measured, bound, max(bound - measured, 0.0), 0.0, reason, False)


def failed(error: Exception) -> Comparison:
    """Return the row of a problem that raised an error."""
    description = f"{type(error).__name__}: {error}"
    return Comparison(description, math.nan, math.nan, math.inf, 0.0, "must run", False)


@dataclass(frozen=True)
class ValidationEffort:
    """Amount of work and where it is done.

    quick : problem sizes for two CPU cores, a few seconds per problem
    """

    quick: bool = False
    backend: str = "auto"
    threads: int = 0
    seed: int = 1

    @property
    def options(self) -> dict[str, Any]:
        """Arguments of collision_term()."""
        return {"backend": self.backend, "threads": self.threads, "seed": self.seed}

    @property
    def solving(self) -> dict[str, Any]:
        """Arguments of solve()."""
        return {**self.options, "progress": False}


@dataclass(frozen=True)
class KnownProblem:
    """A problem with a known answer."""

    name: str
    title: str
    rows: Callable[[ValidationEffort], Iterator[Comparison]]

    def solved(self, effort: ValidationEffort) -> Iterator[Comparison]:
        """Yield the rows one by one; the last row fails if the problem raises an error."""
        try:
            yield from self.rows(effort)
        except Exception as error:  # any error, so that the other problems still run
            yield failed(error)
