"""Conversion of Ray's own messages to plain notices if standard output is no terminal.

Raylets print to standard output, in colours and in paragraphs, whatever ``log_to_driver`` says.
``RayWorkerPool`` reports on workers anyway; the other messages must not be lost either.
"""

import os
import re
import sys
from typing import Any

from ..util.errors import BackendNotice, say

PRINTER = "print_to_stdstream"
"""Name of the function in Ray's driver that prints messages of raylets."""
COLOURS = re.compile(r"\x1b\[[0-9;]*m")


def speak_plainly(ray: Any) -> None:
    """Turn raylet messages into one-line notices if standard output is no terminal."""
    if sys.stdout.isatty():
        return
    os.environ.setdefault("RAY_COLOR_PREFIX", "0")
    driver = ray._private.worker
    usual = getattr(driver, PRINTER, None)
    if usual is None or hasattr(usual, "usual"):  # another version of Ray, or done already
        return

    def printer(data: Any, *given: Any, **named: Any) -> None:
        if data.get("pid") != "raylet":
            usual(data, *given, **named)
            return
        for text in data.get("lines", ()):
            say(f"Ray: {shortened(str(text))}", BackendNotice)

    printer.usual = usual  # type: ignore[attr-defined]
    setattr(driver, PRINTER, printer)


def speak_as_usual(ray: Any) -> None:
    """Undo ``speak_plainly``: the user may continue to use Ray."""
    driver = ray._private.worker
    usual = getattr(getattr(driver, PRINTER, None), "usual", None)
    if usual is not None:
        setattr(driver, PRINTER, usual)


def shortened(text: str) -> str:
    """Return the first sentence of a message, without colours and line ends."""
    description = " ".join(COLOURS.sub("", text).split())
    end = re.search(r"\.\s", description)
    return description if end is None else f"{description[: end.start()]}; more in the logs of Ray"
