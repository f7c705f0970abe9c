"""relboltz report: a result, or several, as one page that needs nothing else."""

from pathlib import Path
from typing import Annotated

import typer

from ..errors import InputError
from ..terminal import delivered, tell

SEVERAL = "report.html"


def report(
    files: Annotated[list[Path], typer.Argument(help="Result, NetCDF; several are compared.")],
    out: Annotated[
        Path | None,
        typer.Option(help=f"Page, HTML; F.html beside F.nc, of several {SEVERAL} by default."),
    ] = None,
) -> None:
    """Write a page about a result: words, verdict, pictures that move; opens without a network."""
    from ..records import output
    from ..records.reserved import base
    from ..report import written
    from .drawing import short

    beside = files[0].with_name(f"{base(files[0])}.html") if len(files) == 1 else Path(SEVERAL)
    path = out if out is not None else beside
    if path.suffix.lower() not in (".html", ".htm"):
        raise InputError(f"--out {path}: a report is a page; use a name that ends in .html")
    results = {name: output.load(file) for name, file in zip(short(files), files, strict=True)}
    output.check_writable(path, "--out")
    tell(f"written: {written(results, path)}")
    delivered()
