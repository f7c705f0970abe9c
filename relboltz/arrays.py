"""Arrays by what they hold, for annotations; results of functions of arrays that are kept."""

from collections import OrderedDict
from collections.abc import Callable
from copy import deepcopy
from functools import wraps
from typing import ParamSpec, TypeVar

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
    return argument


def remembered(function: Callable[P, R]) -> Callable[P, R]:
    """Keep the latest results of a pure function: arrays are compared by value, models by identity.

    For what many runs of one model ask again, with other seeds, steps or samples.
    """
    kept: OrderedDict[tuple[object, ...], R] = OrderedDict()

    @wraps(function)
    def found(*arguments: P.args, **named: P.kwargs) -> R:
        given = (*arguments, *named.items())
        key = tuple(_value(a) for a in given)
        if key not in kept:
            kept[key] = function(*arguments, **named)
        kept.move_to_end(key)
        while len(kept) > REMEMBERED:
            kept.popitem(last=False)
        return deepcopy(kept[key])  # whoever asks may change it

    return found
