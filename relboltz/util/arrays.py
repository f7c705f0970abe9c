"""Array types for annotations, a cache for functions of arrays, and free memory."""

import math
import os
import threading
from collections import OrderedDict
from collections.abc import Callable
from copy import deepcopy
from functools import wraps
from pathlib import Path
from typing import Any, ParamSpec, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]

P = ParamSpec("P")
R = TypeVar("R")
REMEMBERED = 16
"""Number of results that a function keeps."""


def _value(argument: object) -> object:
    """Return the value by which an argument is compared."""
    if isinstance(argument, np.ndarray | list):
        array = np.asarray(argument)
        return array.shape, array.dtype.str, array.tobytes()
    return getattr(argument, "value", argument)


def remembered(function: Callable[P, R]) -> Callable[P, R]:
    """Cache the latest results of a pure function; compare arrays and models by value.

    For results shared by many runs of one model with different seeds, steps or samples.
    """
    kept: OrderedDict[tuple[object, ...], R] = OrderedDict()
    lock = threading.Lock()

    @wraps(function)
    def found(*arguments: P.args, **named: P.kwargs) -> R:
        given = (*arguments, *named.items())
        key = tuple(_value(a) for a in given)
        with lock:
            known = key in kept
            result = kept[key] if known else None
        if not known:
            result = function(*arguments, **named)
        with lock:
            kept[key] = cast(R, result)
            kept.move_to_end(key)
            while len(kept) > REMEMBERED:
                kept.popitem(last=False)
        return deepcopy(cast(R, result))  # callers may change it

    return found


def free_memory() -> float:
    """Return the available memory of this machine in bytes; inf if unknown."""
    try:
        there = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        lines = Path("/proc/meminfo").read_text().splitlines()
        there = max(there, *(1024 * int(v.split()[1]) for v in lines if v.startswith("MemAvail")))
    except (OSError, ValueError, AttributeError):  # not a Linux machine
        return math.inf
    return float(there)


def listed(values: NDArray[Any]) -> Any:
    """Return numbers as lists for JSON; values that are not finite become null."""
    if values.dtype.kind != "f":
        return values.tolist()
    plain = values.astype(object)
    plain[~np.isfinite(values)] = None
    return plain.tolist()
