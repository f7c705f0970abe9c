"""Tables that the code itself writes: ``python docs/tables.py`` renews them in the pages.

A page has ``<!-- table: NAME -->`` and ``<!-- end -->``; what is between them is written here.
"""

import re
import sys
import warnings
from pathlib import Path

DOCS = Path(__file__).parent
MARK = re.compile(r"(<!-- table: (\w+) -->\n).*?(<!-- end -->)", re.S)
USUAL = dict(end=0.1, every=0.1, samples=1, backend="cpu", progress=False)


def written(text):
    """A page with its tables as they are now."""
    return MARK.sub(lambda found: f"{found[1]}\n{TABLES[found[2]]()}\n\n{found[3]}", text)


def _row(*cells):
    return "| " + " | ".join(cells) + " |"


def _table(heads, rows):
    return "\n".join([_row(*heads), "|" + "---|" * len(heads), *(_row(*row) for row in rows)])


def _escaped(text):
    """Without what Markdown takes for markup."""
    return re.sub(r"([|*_<>])", r"\\\1", text)


def _unit(text):
    """GeV fm⁻³."""
    raised = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
    return "" if text == "1" else re.sub(r"\^(-?\d+)", lambda n: n[1].translate(raised), text)


# --- variables ----------------------------------------------------------------------------------


def _grids():
    import relboltz as rb

    return (
        rb.PhaseSpace(5, 2.5),
        rb.PhaseSpace(4, 2.5, [3, 1, 1], 2.0, "open"),
        rb.PhaseSpace([4, 4, 7], 2.5, expansion="bjorken"),
    )


def datasets():
    """Results that have every kind of variable: homogeneous, in space, expanding."""
    import relboltz as rb

    box, space, flow = _grids()
    start = {"g": rb.initial.step(0.5, 1.5)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [
            rb.solve(rb.gluons(0.3), box, start, **USUAL),
            rb.solve(
                rb.gluons(0.3), space, start, snapshots=[0.1], marginals=["x px"], **USUAL
            ),
            rb.solve(rb.gluons(0.3), flow, start, start=0.05, snapshots=[0.1], **USUAL),
        ]  # fmt: skip


def _dims(dims):
    return ", ".join(f"`{dim}`" for dim in dims) or "–"


def _listed(entries):
    rows = [
        (f"`{name}`", _dims(dims), _unit(unit), _escaped(words))
        for name, (dims, unit, words) in entries.items()
    ]
    return _table(("variable", "dimensions", "unit", "what it is"), rows)


def records():
    """Tabulate the variables of every record; in space, local ones have a place, too."""
    from relboltz.io.quantities import LOCAL, QUANTITIES

    entries = {
        name: (("time", *dims), unit, words + (" ◦" if name in LOCAL else ""))
        for name, (dims, unit, words) in QUANTITIES.items()
    }
    return _listed(entries)


def space():
    """Tabulate the variables that only results in space have."""
    from relboltz.io.quantities import LEDGER, OF_THE_BOX, WEIGHTED

    entries = {name: (("time", *dims), *rest) for name, (dims, *rest) in LEDGER.items()}
    entries["f_x_px"] = (
        ("time", "species", "x", "px"), "1", 'of marginals = ["x px"]: f averaged over all else'
    )  # fmt: skip
    of_box = ", ".join(f"`{name}`" for name in OF_THE_BOX)
    weights = ", ".join(f"`total_{name}` ({weight})" for name, weight in WEIGHTED.items())
    return (
        f"{_listed(entries)}\n\nOf the whole box are {of_box}. "
        f"Averages with a weight are {weights}; all other `total_*` are plain ones."
    )


def expansion():
    """Tabulate the variables that only results of expanding matter have."""
    from relboltz.io.quantities import BJORKEN, EXPANDING

    return _listed(
        {name: (("time", *dims), *rest) for name, (dims, *rest) in (EXPANDING | BJORKEN).items()}
    )


def once():
    """Tabulate the variables without a time: snapshots, the prediction, constants."""
    from relboltz.io.quantities import quantities

    found = {}
    for ds, grid in zip(datasets(), _grids(), strict=True):
        known = quantities(grid, ["x px"])
        for name, v in ds.data_vars.items():
            if name not in known:
                given = (v.dims, v.attrs["units"], v.attrs["long_name"])
                found.setdefault(name, given)
    return _listed(found)


def coordinates():
    """Coordinates of all kinds of results."""
    words = {
        "species": "names of the species", "process": "reactions, as written in the model",
        "charge": "conserved charges", "axis": "x, y, z", "axis2": "x, y, z",
        "mu": "t, x, y, z", "nu": "t, x, y, z", "wall": "x-, x+, ...: low and high ends of axes",
    }  # fmt: skip
    found = {}
    for ds in datasets():
        for name, v in ds.coords.items():
            given = v.attrs.get("units", ""), v.attrs.get("long_name", words.get(name, ""))
            if name in v.dims:
                found.setdefault(name, given)
    rows = [(f"`{n}`", _unit(unit), _escaped(text)) for n, (unit, text) in found.items()]
    return _table(("coordinate", "unit", "what it is"), rows)


# --- commands -----------------------------------------------------------------------------------


def commands():
    """Every command with its arguments and options."""
    import typer

    from relboltz.cli.app import app

    group = typer.main.get_command(app)
    parts = []
    for name, command in sorted(group.commands.items()):
        parts += [f"### relboltz {name}", " ".join((command.help or "").split())]
        rows = [
            _parameter(p)
            for p in command.params
            if p.name != "help" and not getattr(p, "hidden", False)
        ]
        parts.append(_table(("", "default", ""), rows) if rows else "It takes no arguments.")
    return "\n\n".join(parts)


def _parameter(parameter):
    """Name, default and words of an argument or option."""
    option = parameter.param_type_name == "option"
    name = ", ".join(parameter.opts) if option else parameter.name.upper()
    if parameter.multiple or parameter.nargs == -1:
        name += " ..."
    default = parameter.default if parameter.default is not None else ""
    if callable(default) or (option and getattr(parameter, "is_flag", False)):
        default = ""
    if parameter.required:
        default = "needed"
    return f"`{name}`", str(default), _escaped(parameter.help or "")


# --- settings -----------------------------------------------------------------------------------


def settings():
    """Keys of the tables of a configuration that options of solve() share."""
    from relboltz.config.settings import (
        GridSettings,
        OutputSettings,
        RunSettings,
        Sampling,
        TimeSettings,
    )

    rows = []
    kinds = (
        ("grid", GridSettings),
        ("collisions", Sampling),
        ("time", TimeSettings),
        ("run", RunSettings),
    )
    for table, kind in (*kinds, ("output", OutputSettings)):
        for key, field in kind.model_fields.items():
            default = "needed" if field.is_required() else _toml(field.default)
            if (table, key) == ("output", "snapshots"):
                default = "start and end; in space none"
            words = field.description or _choices(field.annotation)
            rows.append((f"`{table}.{key}`", default, _escaped(words)))
    return _table(("key", "default", "what to write"), rows)


def _toml(value):
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if value is None:
        return "none"
    if isinstance(value, tuple):
        return f"`{list(value)}`".replace("'", '"')
    return f"`{value!r}`".replace("'", '"')


def _choices(annotation):
    from typing import get_args

    return ", ".join(repr(one) for one in get_args(annotation) if isinstance(one, str))


TABLES = {
    function.__name__: function
    for function in (records, space, expansion, once, coordinates, commands, settings)
}


def main():
    """Renew all pages."""
    for path in sorted(DOCS.glob("*.md")):
        old = path.read_text()
        new = written(old)
        if new != old:
            path.write_text(new)
            print("renewed:", path.name, file=sys.stderr)


if __name__ == "__main__":
    main()
