"""relboltz validate: problems with known answers, with errors, tolerances and verdicts."""

import json
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table

from ..util.errors import InputError
from ..util.text import suggest, unmarked
from .console import console, delivered, errors, tell
from .options import Backend, Json, Threads, check_place

if TYPE_CHECKING:
    from ..studies.validation import Comparison, KnownProblem, ValidationEffort


def validate(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="PROBLEM",
            help="Problems to solve, see --list; default: all.",
        ),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Sizes for two CPU cores.")] = False,
    json_: Json = None,
    backend: Backend = "auto",
    threads: Threads = 0,
    list_: Annotated[bool, typer.Option("--list", help="List the problems, solve none.")] = False,
    document: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Write validation.md and its plot here.")
    ] = None,
) -> None:
    """Solve problems with known answers; the exit code is 1 if one of them fails.

    Ctrl-C stops the command; rows found so far are printed and written.
    """
    from ..io import output
    from ..studies.validation import PROBLEMS, ValidationEffort

    if list_:
        for problem in PROBLEMS.values():
            tell(f"{problem.name:14s} {problem.title}")
        delivered()
        return
    where, many = check_place(backend, threads)
    for name in names or ():
        if name not in PROBLEMS:
            raise InputError(f"problem {name}: {suggest(name, PROBLEMS)}")
    if json_ is not None:
        output.check_writable(json_, "--json")
    if document is not None and not document.is_dir():
        raise InputError(f"--document {document}: is no folder; create it first")
    effort = ValidationEffort(quick, resolved(where), many)
    found = solved([PROBLEMS[name] for name in dict.fromkeys(names or PROBLEMS)], effort)
    if json_ is not None:
        json_.write_text(json.dumps(found, indent=1) + "\n")
        tell(f"written: {json_}")
    if "interrupted" in found:
        raise typer.Exit(128 + found["interrupted"])
    if document is not None:
        tell(f"written: {documented(document, found, effort)}")
    delivered()
    if not found["passed"]:
        raise typer.Exit(1)


def resolved(backend: str) -> str:
    """Return the backend that "auto" selects; raise InputError if "cuda" is not available."""
    from ..backends import resolve

    return resolve(backend)[0]


def documented(folder: Path, found: dict[str, Any], effort: "ValidationEffort") -> Path:
    """Write the page on all problems, with errors of the exact solution against resolution."""
    import warnings

    from ..studies.validation.studies import studied
    from .document import write_document

    studies = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for study in studied(effort):
            errors.print(unmarked(f"errors against resolution: {study['words']}"))
            studies.append(study)
    return write_document(folder, found, studies)


def device(backend: str) -> str:
    """Return the name of the GPU, or the number of CPU cores."""
    if backend == "cuda":
        from ..backends.cuda.driver import device as gpu

        return str(gpu()["name"])
    from ..backends.cpu.threads import available_cores

    return f"{available_cores()} CPU cores"


def solved(problems: list["KnownProblem"], effort: "ValidationEffort") -> dict[str, Any]:
    """Solve the problems, print their rows, and return the contents of the JSON file.

    After a signal the result holds the rows so far, and the signal number as "interrupted".
    """
    from .. import __version__

    parts: list[dict[str, Any]] = []
    stop: dict[str, int] = {}
    began = time.perf_counter()
    for number, problem in enumerate(problems, 1):
        errors.print(unmarked(f"{number}/{len(problems)} {problem.name}: {problem.title} ..."))
        start, rows = time.perf_counter(), list["Comparison"]()
        try:
            _gather(problem, effort, rows)
        except KeyboardInterrupt as error:  # during a run or between two
            stop = {"interrupted": int(getattr(error, "signal", signal.SIGINT))}
        seconds = time.perf_counter() - start
        if rows:
            console.print(_table(problem, rows, seconds))
            parts.append({
                "name": problem.name, "title": problem.title, "seconds": round(seconds, 2),
                "passed": all(row.passed for row in rows),
                "rows": [row.described() for row in rows],
            })  # fmt: skip
        if stop:
            break
    seconds = time.perf_counter() - began
    failed = [part["name"] for part in parts if not part["passed"]]
    rows_in_all = sum(len(part["rows"]) for part in parts)
    description = f"{rows_in_all} rows of {len(parts)} problems in {seconds:.0f} s"
    description += f", interrupted in {problem.name}" if stop else ""
    tell(f"{description}: {'all hold' if not failed else 'FAILED: ' + ', '.join(failed)}")
    return {
        "version": __version__, "quick": effort.quick, "backend": effort.backend,
        "device": device(effort.backend),
        "seconds": round(seconds, 2), "passed": not failed and not stop, "problems": parts, **stop,
    }  # fmt: skip


def _gather(problem: "KnownProblem", effort: "ValidationEffort", rows: list["Comparison"]) -> None:
    """Append rows as they are found, so that rows before an interrupt are kept."""
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # from set-ups that are coarse on purpose
        for row in problem.solved(effort):
            rows.append(row)


def _table(problem: "KnownProblem", rows: list["Comparison"], seconds: float) -> Table:
    """Return a table of the rows of a problem."""
    table = Table(title=unmarked(f"{problem.name}: {problem.title} ({seconds:.1f} s)"),
                  title_justify="left", box=SIMPLE_HEAD, pad_edge=False)  # fmt: skip
    table.add_column("quantity", overflow="fold")
    for name in ("measured", "exact", "error", "tolerance"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    for row in rows:
        unit = " %" if row.relative else ""
        scale = 100 if row.relative else 1
        table.add_row(
            unmarked(row.quantity), f"{row.measured:.6g}", f"{row.expected:.6g}",
            f"{scale * row.error:.2g}{unit}", f"{scale * row.tolerance:.2g}{unit}",
            "[green]ok[/]" if row.passed else "[bold red]FAILED[/]",
        )  # fmt: skip
    return table
