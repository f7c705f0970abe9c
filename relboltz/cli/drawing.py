"""relboltz plot: figures of a result, animations, and comparisons of several results."""

from collections.abc import Sequence
from pathlib import Path

import pandas as pd
from rich.table import Table

from ..analysis.comparison import compare, telling
from ..io import kinds, output
from ..io.result import is_in_space, undamaged
from ..util.errors import InputError
from ..util.text import unmarked
from ..visualization import plots
from .console import console, delivered, tell

SINGLE = {kinds.COEFFICIENTS: plots.coefficients, kinds.CONVERGENCE: plots.changes}
"""Kinds of results that are not runs, and the single figure of each."""


def film(file: Path, path: Path, quantity: str, species: str | None, fps: float) -> None:
    """Write an animation of a quantity in space."""
    if path.suffix not in plots.FILMS:
        raise InputError(f"--animate {path}: films end in {' or '.join(plots.FILMS)}")
    ds = output.load_run(file)
    if not is_in_space(ds):
        raise InputError(
            f"{file}: has one space cell, of which there is no film; leave --animate out"
        )
    output.check_writable(path, "--animate")
    with undamaged(file):
        plots.animation(ds, path, quantity, species.split(",") if species else None, fps)
    tell(f"written: {path}")


def drawn(file: Path, out: Path | None) -> None:
    """Write all figures of a result; results of coefficients and converge have a single one."""
    ds = output.load(file)
    single = SINGLE.get(kinds.kind_of(ds))
    if single is None:
        kinds.check_run(ds, file)
    folder = _made(out if out is not None else file.with_suffix(""))
    with undamaged(file):
        if single is None:
            paths = plots.save_all(ds, folder)
        else:
            paths = plots.save(single(ds), folder, kinds.kind_of(ds), ("png", "pdf"))
    for path in paths:
        tell(f"written: {path}")


def compared(files: Sequence[Path], out: Path | None) -> None:
    """Plot several results in the same axes, and print their differences from the first."""
    results = {name: output.load_run(file) for name, file in zip(short(files), files, strict=True)}
    folder = _made(out if out is not None else Path("comparison"))
    with undamaged(", ".join(map(str, files))):
        figure = plots.comparison(results)
        (first, ds), *others = results.items()
        for name, other in others:
            console.print(_table(f"{name} against {first}", compare(ds, other)))
    for path in plots.save(figure, folder, "comparison", ("png", "pdf")):
        tell(f"written: {path}")
    delivered()


def short(files: Sequence[Path]) -> list[str]:
    """Return short distinct names of files."""
    stems = [file.stem for file in files]
    names = stems if len(set(stems)) == len(stems) else [str(file) for file in files]
    return [n if names.index(n) == i else f"{n} ({i + 1})" for i, n in enumerate(names)]


def _made(folder: Path) -> Path:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"--out {folder}: cannot be created: {error.strerror}") from None
    return folder


def _table(title: str, differences: pd.DataFrame) -> Table:
    """Return a table of the largest relative differences; vanishing ones are left out."""
    table = Table(title=unmarked(f"{title}, relative differences"), title_justify="left")
    for column in ("quantity", "largest", r"at \[fm]", "at the end", "relative to"):
        is_text = column in ("quantity", "relative to")
        table.add_column(column, justify="left" if is_text else "right")
    moved = telling(differences)
    for name, largest, at, last, scale in moved.itertuples():
        table.add_row(unmarked(name), f"{largest:+.2e}", f"{at:.3g}", f"{last:+.2e}", scale)
    if moved.empty:
        table.add_row("no difference but rounding", "", "", "", "")
    return table
