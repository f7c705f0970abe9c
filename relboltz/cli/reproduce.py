"""relboltz reproduce: reproduce the paper's figures and compare its numbers."""

from __future__ import annotations

import importlib
import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from ..util.errors import InputError, RelboltzError
from ..util.text import unmarked
from . import reproduction_page as page
from .console import console, errors, plain_warnings, tell
from .options import Backend, Threads, check_place

NAMES = tuple(f"fig{n}" for n in range(2, 13))
CHOICES = (*NAMES, "all")


def reproduce(
    name: Annotated[
        str,
        typer.Argument(
            metavar="FIGURE",
            help="fig2 to fig12, or all.",
            autocompletion=lambda incomplete: [n for n in CHOICES if n.startswith(incomplete)],
        ),
    ] = "",
    full: Annotated[
        bool, typer.Option("--full", help="Use the paper's grids and times; for a GPU.")
    ] = False,
    backend: Backend = "auto",
    threads: Threads = 0,
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Folder for results.")] = Path(
        "reproduction"
    ),
    document: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Update reproduction.md there with results in --out."),
    ] = None,
) -> None:
    """Reproduce figures of the paper: plot, data, and a comparison with its numbers."""
    names = _chosen(name, document)
    where, many = check_place(backend, threads)
    made: list[dict[str, Any]] = []
    stopped = None
    if names:
        _check_folder(out)
        _check_backend(where, full)
        with plain_warnings(), _scripts():
            paper = importlib.import_module("paper_runs")
            job = paper.Job(full, where, out, many, tell)
            stopped = _make(paper, job, names, made)
    if made:
        console.print(_table(made))
        tell(f"written: {out}/fig*.png, .nc, .json")
    if document is not None and stopped is None:
        tell(f"written: {page.update(document, out)}")
    failed = [line for sheet in made for line in sheet["lines"] if line["passed"] is False]
    for line in failed:
        errors.print(f"[bold red]failed:[/] {unmarked(page.failure(line))}", soft_wrap=True)
    if stopped is not None:
        raise typer.Exit(stopped)
    if failed:
        raise typer.Exit(1)


def _chosen(name: str, document: Path | None) -> tuple[str, ...]:
    """Return the requested figures."""
    if not name and document is not None:
        return ()  # write the page only
    if name == "all":
        return NAMES
    if name not in NAMES:
        known = f"known are {', '.join(NAMES)}, all"
        raise InputError(f"no figure {name!r}: {known}" if name else f"which figure? {known}")
    return (name,)


def _check_folder(out: Path) -> None:
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"--out {out}: cannot be created: {error.strerror}") from None


def _check_backend(backend: str, full: bool) -> None:
    """Raise InputError if a requested GPU is missing; note that --full is slow without one."""
    from ..backends import resolve

    if resolve(backend)[0] == "cpu" and full:
        tell("note: --full without a GPU takes hours; leave it out for a small size")


def folder() -> Path:
    """Return the folder of the scripts: inside an installed package, else in the checkout."""
    package = Path(__file__).resolve().parent.parent
    for place in (package / "paper", package.parent / "examples" / "paper"):
        if (place / "paper_runs.py").exists():
            return place
    raise InputError("the scripts of the paper's figures are missing; install relboltz again")


@contextmanager
def _scripts() -> Iterator[None]:
    """Add the folder of the scripts to sys.path: they import each other by name."""
    place = str(folder())
    sys.path.insert(0, place)
    try:
        yield
    finally:
        sys.path.remove(place)


def _make(paper: Any, job: Any, names: tuple[str, ...], made: list[dict[str, Any]]) -> int | None:
    """Make figures one by one and keep finished ones; return an exit code if stopped, else None."""
    began = time.perf_counter()
    for count, name in enumerate(names, start=1):
        tell(f"{name} ({count} of {len(names)}, {time.perf_counter() - began:.0f} s so far)")
        try:
            paper.make(job, name, importlib.import_module(name))
        except KeyboardInterrupt as stop:  # a run sets the signal number
            description = f"interrupted in {name}; figures that were done are in {job.out}"
            errors.print(f"[yellow]{unmarked(description)}[/]", soft_wrap=True)
            return 128 + int(getattr(stop, "signal", 2))
        except InputError:
            raise
        except RelboltzError as error:
            errors.print(f"[bold red]stopped:[/] {name}: {unmarked(error)}", soft_wrap=True)
            return 1
        made.append(json.loads((job.out / f"{name}.json").read_text()))
    tell(f"all done in {time.perf_counter() - began:.0f} s")
    return None


def _table(made: list[dict[str, Any]]) -> Table:
    """Return a table of the paper's numbers, ours, and the verdicts."""
    table = Table("figure", "what", "paper", "ours", "verdict", title="the paper and relboltz")
    for sheet in made:
        for i, line in enumerate(sheet["lines"]):
            row = (sheet["figure"] if i == 0 else "", line["what"], line["paper"],
                   page.value(line), page.verdict(line))  # fmt: skip
            table.add_row(*(unmarked(text) for text in row))
        table.add_section()
    return table
