"""What can go wrong, in the user's words."""

import sys
import warnings
from pathlib import Path
from typing import Any, TypeVar

Notice = TypeVar("Notice", bound=Warning)


class RelboltzError(Exception):
    """Base of all errors raised on purpose; its text is meant for the user."""


class InputError(RelboltzError, ValueError):
    """Bad input: the message names the key, the value and the remedy."""


class RunError(RelboltzError, RuntimeError):
    """The run had to stop; ``dataset`` holds everything up to the last good state."""

    def __init__(self, message: str, dataset: Any = None):
        super().__init__(message)
        self.dataset = dataset


class Interrupted(KeyboardInterrupt):
    """The run was interrupted; ``dataset`` holds everything up to that moment."""

    def __init__(self, message: str, dataset: Any = None, signal: int = 2):
        super().__init__(message)
        self.dataset = dataset
        self.signal = signal


class AccuracyWarning(UserWarning):
    """The result is legal, but an accuracy that can be measured is worse than it should be.

    Where a filter makes an error of it, a run raises it when all is done and written; ``dataset``
    is the result.
    """

    dataset: Any = None


class BackendNotice(UserWarning):
    """Where the work is done, if that is not where one might think."""


class CheckpointWarning(UserWarning):
    """A checkpoint could not be written or read, another than the newest is used, or its code runs.

    Also: records are lost, or the output could not be locked.
    """


class CacheWarning(UserWarning):
    """Compiled code is not kept between runs."""


class Halted(Exception):
    """Work in hand was dropped because of an interrupt; never reaches the user."""


def negative_element(name: str, value: float, s: float, t: float, u: float) -> InputError:
    """The error for a matrix element that is negative or undefined somewhere."""
    return InputError(
        f"process {name}: the matrix element is {value:.6g} at s = {s:.6g}, t = {t:.6g}, "
        f"u = {u:.6g} GeV^2; |M|^2 must be a number >= 0 everywhere it is reached"
    )


def raising_element(name: str, error: Exception) -> InputError:
    """The error for a matrix element that raises one itself."""
    return InputError(f"process {name}: the matrix element raised {type(error).__name__}: {error}")


def say(text: str, category: type[Notice]) -> Notice | None:
    """Warn; nothing that comes of it stops the work in hand.

    Returns the warning if a filter makes an error of it.
    """
    try:
        warnings.warn(text, category, stacklevel=depth_of_user())
    except category as error:
        return error
    except Exception:  # such as a stream that cannot be written
        pass
    return None


def depth_of_user() -> int:
    """How many frames up the first caller outside this package stands."""
    frame, depth = sys._getframe(1), 1
    package = str(Path(__file__).parent.parent)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(package):
        frame, depth = frame.f_back, depth + 1
    return depth
