"""What a problem answers: rows with a measured and an exact value, and how far apart they are."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Comparison:
    """One comparison: it holds if the error is at most the tolerance.

    relative : whether error and tolerance are parts of the expected value
    reason : where the tolerance comes from, in one phrase
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
        """Whether it holds; what is not a number does not."""
        return bool(math.isfinite(self.error) and self.error <= self.tolerance)

    def described(self) -> dict[str, Any]:
        """As JSON values; what is not a finite number as null."""
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
    """A value against the exact one; the error is a part of that."""
    measured, expected = float(measured), float(expected)
    error = abs(measured / expected - 1.0) if expected else math.inf
    return Comparison(quantity, measured, expected, error, float(tolerance), reason)


def absolute(
    quantity: str, measured: float, expected: float, tolerance: float, reason: str
) -> Comparison:
    """A value against the exact one, in its own units."""
    measured, expected = float(measured), float(expected)
    return Comparison(
        quantity, measured, expected, abs(measured - expected), tolerance, reason, False
    )


def nothing(quantity: str, measured: float, tolerance: float, reason: str) -> Comparison:
    """A value that should vanish."""
    return absolute(quantity, measured, 0.0, tolerance, reason)


def at_least(quantity: str, measured: float, bound: float, reason: str) -> Comparison:
    """A value that must not be below a bound: the error is what is missing."""
    measured = float(measured)
    return Comparison(quantity, measured, bound, max(bound - measured, 0.0), 0.0, reason, False)


def failed(error: Exception) -> Comparison:
    """A problem that could not be solved at all."""
    description = f"{type(error).__name__}: {error}"
    return Comparison(description, math.nan, math.nan, math.inf, 0.0, "must run", False)


@dataclass(frozen=True)
class ValidationEffort:
    """How much work may be done, and where.

    quick : sizes for two CPU cores, a few seconds a problem
    """

    quick: bool = False
    backend: str = "auto"
    threads: int = 0
    seed: int = 1

    @property
    def options(self) -> dict[str, Any]:
        """What collision_term() is given."""
        return {"backend": self.backend, "threads": self.threads, "seed": self.seed}

    @property
    def solving(self) -> dict[str, Any]:
        """What solve() is given."""
        return {**self.options, "progress": False}


@dataclass(frozen=True)
class KnownProblem:
    """A problem with a known answer."""

    name: str
    title: str
    rows: Callable[[ValidationEffort], Iterator[Comparison]]

    def solved(self, effort: ValidationEffort) -> Iterator[Comparison]:
        """Its rows, one after the other; the last one fails if it cannot be solved."""
        try:
            yield from self.rows(effort)
        except Exception as error:  # whatever is wrong, the others are solved
            yield failed(error)
