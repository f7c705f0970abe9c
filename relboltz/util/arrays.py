"""Arrays by what they hold, for annotations; results of functions of arrays that are kept; room."""

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
"""Results that a function keeps."""


def _value(argument: object) -> object:
    """What is compared of an argument."""
    if isinstance(argument, np.ndarray | list):
        array = np.asarray(argument)
        return array.shape, array.dtype.str, array.tobytes()
    return getattr(argument, "value", argument)


def remembered(function: Callable[P, R]) -> Callable[P, R]:
    """Keep the latest results of a pure function; arrays and models are compared by value.

    For what many runs of one model ask again, with other seeds, steps or samples.
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
        return deepcopy(cast(R, result))  # whoever asks may change it

    return found


def free_memory() -> float:
    """Bytes that this machine has to give; inf where it does not tell."""
    try:
        there = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        lines = Path("/proc/meminfo").read_text().splitlines()
        there = max(there, *(1024 * int(v.split()[1]) for v in lines if v.startswith("MemAvail")))
    except (OSError, ValueError, AttributeError):  # not a Linux machine
        return math.inf
    return float(there)


def listed(values: NDArray[Any]) -> Any:
    """Lists of numbers as JSON has them: what is not finite is null."""
    if values.dtype.kind != "f":
        return values.tolist()
    plain = values.astype(object)
    plain[~np.isfinite(values)] = None
    return plain.tolist()
