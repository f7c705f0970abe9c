"""Console output of commands: lines, plain warnings, and how to resume an interrupted run."""

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

plain = False if started() else None  # mpirun emulates a terminal, even for a file
console = Console(highlight=False, force_terminal=plain)
errors = Console(stderr=True, highlight=False, force_terminal=plain)


def tell(text: object) -> None:
    """Print a line on standard output; markup in names, titles and paths is escaped."""
    console.print(unmarked(text), soft_wrap=True)


def waiting(text: str, quiet: bool = False) -> AbstractContextManager[Any]:
    """Show a status message on a terminal, but not in a log, while work is in progress."""
    return nullcontext() if quiet else errors.status(f"{unmarked(text)} ...")


def announced(run: object) -> None:
    """Print a description of the run that is about to start."""
    from ..analysis import tables

    for line in tables.announcement(run):
        tell(line)


def delivered() -> None:
    """Exit with code 1 if the output, the only purpose of the command, could not be written."""
    if isinstance(sys.stdout, FailSafeStream) and sys.stdout.error is not None:
        raise typer.Exit(1)


@contextmanager
def told(path: Path, quiet: bool, kept_apart: bool = False) -> Iterator[None]:
    """Print warnings as plain text and, after an interrupt, how to resume the run.

    kept_apart : the error message itself says where the results so far are
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
    """Print accuracy warnings and notes as one line each on standard error; quiet: no notes."""
    with warnings.catch_warnings():
        warnings.simplefilter("always", AccuracyWarning)
        warnings.simplefilter("always", CheckpointWarning)
        warnings.simplefilter("ignore" if quiet else "always", BackendNotice)

        def show(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
            label = "note" if issubclass(category, BackendNotice) else "warning"
            text = f"{label}: {harmless(message)}"
            print(text, file=sys.stderr)  # a running progress bar makes room for the line

        warnings.showwarning = show
        yield
