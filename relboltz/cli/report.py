"""relboltz report: one or more results as a self-contained HTML page."""

from pathlib import Path
from typing import Annotated

import typer

from ..util.errors import InputError
from .console import delivered, tell
from .options import Results

SEVERAL = "report.html"


def report(
    files: Results,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="F.html", help=f"Default: F.html beside F.nc; for several results {SEVERAL}."
        ),
    ] = None,
) -> None:
    """Write an HTML report on results, one file that opens in any browser without a network.

    It holds set-up, verdict, plots with a time slider and configuration; several are compared.
    """
    from ..io import output
    from ..io.reservation import base
    from ..visualization.report import written
    from .drawing import short

    beside = files[0].with_name(f"{base(files[0])}.html") if len(files) == 1 else Path(SEVERAL)
    path = out if out is not None else beside
    if path.suffix.lower() not in (".html", ".htm"):
        raise InputError(f"--out {path}: a report is a page; use a name that ends in .html")
    results = {name: output.load_run(file) for name, file in zip(short(files), files, strict=True)}
    output.check_writable(path, "--out")
    tell(f"written: {written(results, path)}")
    delivered()
