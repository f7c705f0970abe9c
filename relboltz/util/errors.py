"""Errors and warnings, with messages for the user."""

import sys
import warnings
from pathlib import Path
from typing import Any, TypeVar

Notice = TypeVar("Notice", bound=Warning)


class RelboltzError(Exception):
    """Base class of all errors raised on purpose, with a message for the user."""


class InputError(RelboltzError, ValueError):
    """Bad input: the message names the key, the value and the remedy."""


class RunError(RelboltzError, RuntimeError):
    """The run had to stop; ``dataset`` holds the result up to the last valid state."""

    def __init__(self, message: str, dataset: Any = None):
        super().__init__(message)
        self.dataset = dataset


class Interrupted(KeyboardInterrupt):
    """The run was interrupted; ``dataset`` holds the result up to that time."""

    def __init__(self, message: str, dataset: Any = None, signal: int = 2):
        super().__init__(message)
        self.dataset = dataset
        self.signal = signal


class AccuracyWarning(UserWarning):
    """The result is valid, but a measured accuracy is worse than it should be.

    If a filter turns this warning into an error, a run raises it after everything is computed and
    written; ``dataset`` is the result.
    """

    dataset: Any = None


class BackendNotice(UserWarning):
    """The computation runs on a different backend or device than the user might expect."""


class CheckpointWarning(UserWarning):
    """A checkpoint could not be written or read, is not the newest, or contains code that runs.

    Also issued if records are lost or the output could not be locked.
    """


class CacheWarning(UserWarning):
    """Compiled code is not kept between runs."""


class Halted(Exception):
    """The current step was abandoned because of an interrupt; never reaches the user."""


def negative_element(name: str, value: float, s: float, t: float, u: float) -> InputError:
    """Return the error for a matrix element that is negative or undefined somewhere."""
    return InputError(
        f"process {name}: the matrix element is {value:.6g} at s = {s:.6g}, t = {t:.6g}, "
        f"u = {u:.6g} GeV^2; |M|^2 must be a number >= 0 everywhere it is reached"
    )


def raising_element(name: str, error: Exception) -> InputError:
    """Return the error for a matrix element that raises an exception."""
    return InputError(f"process {name}: the matrix element raised {type(error).__name__}: {error}")


def say(text: str, category: type[Notice]) -> Notice | None:
    """Issue a warning without interrupting the computation.

    Returns the warning if a filter turns it into an error.
    """
    try:
        warnings.warn(text, category, stacklevel=depth_of_user())
    except category as error:
        return error
    except Exception:  # such as an unwritable stream
        pass
    return None


def depth_of_user() -> int:
    """Return the number of stack frames up to the first caller outside this package."""
    frame, depth = sys._getframe(1), 1
    package = str(Path(__file__).parent.parent)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(package):
        frame, depth = frame.f_back, depth + 1
    return depth
