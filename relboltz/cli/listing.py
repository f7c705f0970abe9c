"""relboltz list: models, initial conditions and sampling methods, one line each."""

import inspect
from collections.abc import Iterator
from dataclasses import fields
from typing import Any

from ..util.text import unmarked
from .console import console, delivered

SAMPLINGS = {
    "projection": {
        "conserving": "scattered pairs land such that number, momentum and energy are exact",
        "nearest": "they land in the nearest cells, as in the paper: the energy is not exact",
    },
    "kinematics": {
        "cm": "directions in the centre-of-mass frame; all weights are bounded",
        "k2": "the paper's: the delta function fixes k2 (with projection = 'nearest')",
        "k3": "the paper's: the delta function fixes k3 (with projection = 'nearest')",
    },
    "pair_sampling": {
        "importance": "pairs are drawn where there are particles: least noise",
        "uniform": "all pairs of nodes alike",
    },
}


def known() -> None:
    """List models, shapes of initial conditions and sampling methods, one line each."""
    from rich.table import Table

    for title, rows in _all():
        table = Table(show_header=False, box=None, pad_edge=False, padding=(0, 2, 0, 0))
        for row in rows:
            table.add_row(*map(unmarked, row))
        console.print(f"[bold]{unmarked(title)}[/]")
        console.print(table)
        console.print()
    delivered()


def _all() -> Iterator[tuple[str, list[tuple[str, str, str]]]]:
    from ..initial import SHAPES
    from ..run.input_file import MODELS

    models = [(name, _line(model), _arguments(model)) for name, model in MODELS.items()]
    models.append(("file.py:function", "your own: a function that returns a Model", ""))
    yield "models, [model] name", models
    shapes = [(name, _line(shape), _keys(shape)) for name, shape in SHAPES.items()]
    shapes.append(("file.py:function", "your own: f(px, py, pz) or f(x, y, z, px, py, pz)", ""))
    yield "starts, [initial.SPECIES] shape", shapes
    for key, rows in SAMPLINGS.items():
        yield f"[collisions] {key}", [(name, description, "") for name, description in rows.items()]


def _line(thing: Any) -> str:
    return (inspect.getdoc(thing) or "").partition("\n")[0].replace("``", "")


def _arguments(function: Any) -> str:
    return ", ".join(inspect.signature(function).parameters)


def _keys(shape: Any) -> str:
    return ", ".join(f.name for f in fields(shape) if f.init and f.name != "function")
