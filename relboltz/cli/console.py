"""What commands say, and where: lines, warnings in plain words, how an interrupted run goes on."""

import sys
import warnings
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any

import typer
from rich.console import Console

from ..util.console_streams import FailSafeStream
from ..util.errors import AccuracyWarning, BackendNotice, CheckpointWarning, Interrupted
from ..util.launcher import started
from ..util.text import harmless, unmarked

plain = False if started() else None  # mpirun feigns a terminal, also into a file
console = Console(highlight=False, force_terminal=plain)
errors = Console(stderr=True, highlight=False, force_terminal=plain)


def tell(text: object) -> None:
    """A line on standard output, which may hold what others wrote: names, titles, paths."""
    console.print(unmarked(text), soft_wrap=True)


def waiting(text: str, quiet: bool = False) -> AbstractContextManager[Any]:
    """Say on a terminal what one waits for, until that is done; a log gets nothing of it."""
    return nullcontext() if quiet else errors.status(f"{unmarked(text)} ...")


def announced(run: object) -> None:
    """Say what is about to be solved."""
    from ..analysis import tables

    for line in tables.announcement(run):
        tell(line)


def delivered() -> None:
    """What a command has to tell is all it is for: fail if nobody got it."""
    if isinstance(sys.stdout, FailSafeStream) and sys.stdout.error is not None:
        raise typer.Exit(1)


@contextmanager
def told(path: Path, quiet: bool, kept_apart: bool = False) -> Iterator[None]:
    """Warnings in plain words; an interrupted run says how to go on.

    kept_apart : the error itself says where what was computed is
    """
    with plain_warnings(quiet):
        try:
            yield
        except Interrupted as error:
            kept = "" if kept_apart else f"; everything so far is in {unmarked(path)}"
            description = f"[yellow]{unmarked(error)}[/]{kept}"
            errors.print(
                f"{description}; go on with it: relboltz resume {unmarked(path)}", soft_wrap=True
            )
            raise typer.Exit(128 + error.signal) from None


@contextmanager
def plain_warnings(quiet: bool = False) -> Iterator[None]:
    """Accuracy warnings and notes as one line each, on standard error; quiet: no notes."""
    with warnings.catch_warnings():
        warnings.simplefilter("always", AccuracyWarning)
        warnings.simplefilter("always", CheckpointWarning)
        warnings.simplefilter("ignore" if quiet else "always", BackendNotice)

        def show(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
            label = "note" if issubclass(category, BackendNotice) else "warning"
            text = f"{label}: {harmless(message)}"
            print(text, file=sys.stderr)  # a running bar makes room for it

        warnings.showwarning = show
        yield
