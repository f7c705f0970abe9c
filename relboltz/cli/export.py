"""relboltz export: write a result in formats of other programs."""

from pathlib import Path
from typing import Annotated

import typer

from ..util.errors import InputError
from .console import delivered, plain_warnings, tell
from .options import Result

NAMES = ("csv", "music", "vtk")


def export(
    file: Result,
    format_: Annotated[
        str,
        typer.Option(
            "--format",
            metavar="NAME",
            help="vtk (ParaView, VisIt; in space), csv or music (Bjorken flow in space).",
            autocompletion=lambda incomplete: [f for f in NAMES if f.startswith(incomplete)],
        ),
    ],
    out: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Default: F-vtk, ... beside F.nc.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Write into a non-empty folder.")] = False,
    time: Annotated[
        float | None, typer.Option(metavar="FM", help="music: proper time; default: the last.")
    ] = None,
    eta_max: Annotated[
        float | None, typer.Option(metavar="NUMBER", help="music: half width in eta; default: 0.5.")
    ] = None,
    eta_cells: Annotated[
        int | None, typer.Option(metavar="N", help="music: identical slices in eta; default: 1.")
    ] = None,
) -> None:
    """Export a result as VTK (one file per record), as CSV tables, or one record for MUSIC."""
    from ..analysis.exports import FORMATS
    from ..analysis.exports import export as exported
    from ..io import output
    from ..io.reservation import base
    from ..io.result import undamaged

    if format_ not in FORMATS:
        raise InputError(f"--format {format_}: use vtk, csv or music")
    asked = {"time": time, "eta_max": eta_max, "eta_cells": eta_cells}
    options = {key: value for key, value in asked.items() if value is not None}
    if options and format_ != "music":
        name = next(iter(options)).replace("_", "-")
        raise InputError(f"--{name}: is for --format music; leave it out")
    folder = out if out is not None else file.with_name(f"{base(file)}-{format_}")
    if folder.exists() and not folder.is_dir():
        raise InputError(f"--out {folder}: is a file; name a folder")
    ds = output.load_run(file)
    if not force and folder.is_dir() and any(folder.iterdir()):
        raise InputError(f"--out {folder}: has files in it; add --force, or name another folder")
    with undamaged(file), plain_warnings():
        paths = exported(ds, folder, format_, base(file), **options)
    shown = paths if len(paths) <= 4 else [paths[-1]]
    for path in shown:
        tell(f"written: {path}" + (f"   ({len(paths) - 1} records)" if len(paths) > 4 else ""))
    delivered()
