"""User functions from files; their exceptions become input errors."""

import importlib.util
import os
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from .errors import InputError
from .text import suggest


@contextmanager
def users_code(whose: str) -> Iterator[None]:
    """Turn any exception of a user's code, sys.exit() included, into an InputError.

    Ctrl-C and InputError pass unchanged.
    """
    try:
        yield
    except (KeyboardInterrupt, InputError):
        raise
    except BaseException as error:
        advice = ""
        if isinstance(error, TypeError) and "converted to Python scalar" in str(error):
            advice = " (it is given arrays: use functions of numpy, such as np.exp)"
        raise InputError(f"{whose} failed with {type(error).__name__}: {error}{advice}") from error


def load_function(text: str, key: str) -> Callable[..., Any]:
    """Return the function named by "file.py:function"; error messages begin with the key."""
    where, _, name = text.rpartition(":")
    path = Path(where)
    if path.suffix != ".py" or not name.isidentifier():
        raise InputError(f"{key} = {text!r}: write file.py:function")
    if not os.path.isfile(path):  # no exception for names that no file can have
        raise InputError(f"{key} = {text!r}: there is no file {path}")
    path = path.resolve()
    module_name = f"relboltz_user_{path.stem}_{zlib.crc32(str(path).encode()):08x}"
    spec = importlib.util.spec_from_file_location(module_name, path)
    module = importlib.util.module_from_spec(spec)  # type: ignore[arg-type]
    sys.modules[module_name] = module
    with users_code(f"{key} = {text!r}: {path.name}"):
        # the file itself, never its copy in __pycache__, which may be another program
        exec(compile(path.read_bytes(), str(path), "exec"), vars(module))
    function = getattr(module, name, None)
    if function is not None and not callable(function):
        raise InputError(
            f"{key} = {text!r}: {name} is a {type(function).__name__}, not a function; name a "
            "function that returns it"
        )
    if not callable(function):
        known = [k for k, v in vars(module).items() if callable(v) and not k.startswith("_")]
        raise InputError(
            f"{key} = {text!r}: {path.name} has no function {name!r}; {suggest(name, known)}"
        )
    return function
