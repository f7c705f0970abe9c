"""``relboltz plot``: pictures of a result, films, and several results compared."""

from collections.abc import Sequence
from pathlib import Path

import pandas as pd
from rich.table import Table

from .. import plots
from ..analysis.comparison import compare, telling
from ..errors import InputError
from ..records import output
from ..records.result import undamaged
from ..terminal import console, delivered, tell
from ..words import unmarked


def film(file: Path, path: Path, quantity: str, species: str | None, fps: float) -> None:
    """A film of a quantity in space."""
    ds = output.load(file)
    output.check_writable(path, "--animate")
    with undamaged(file):
        plots.animation(ds, path, quantity, species.split(",") if species else None, fps)
    tell(f"written: {path}")


def drawn(file: Path, out: Path | None) -> None:
    """Every picture of a result."""
    ds = output.load(file)
    folder = _made(out if out is not None else file.with_suffix(""))
    with undamaged(file):
        paths = plots.save_all(ds, folder)
    for path in paths:
        tell(f"written: {path}")


def compared(files: Sequence[Path], out: Path | None) -> None:
    """Several results in the same axes; how far the others are from the first."""
    results = {name: output.load(file) for name, file in zip(short(files), files, strict=True)}
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
    """Short names that tell files apart."""
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
    """The largest differences, relative; those that vanish are left out."""
    table = Table(title=unmarked(f"{title}, relative differences"), title_justify="left")
    for column in ("quantity", "largest", r"at \[fm]", "at the end", "relative to"):
        words = column in ("quantity", "relative to")
        table.add_column(column, justify="left" if words else "right")
    moved = telling(differences)
    for name, largest, at, last, scale in moved.itertuples():
        table.add_row(unmarked(name), f"{largest:+.2e}", f"{at:.3g}", f"{last:+.2e}", scale)
    if moved.empty:
        table.add_row("no difference but rounding", "", "", "", "")
    return table
