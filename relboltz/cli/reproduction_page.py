"""Generate docs/reproduction.md from the recorded numbers of runs."""

import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..util.errors import InputError

SIZES = ("small", "full")
Sheet = Mapping[str, Any]
Records = Mapping[str, Mapping[str, Sheet]]
"""Sheets by figure and size."""

HEAD = """# The paper's figures

Figures 2 to 12 of Zhang, Wu, Pu, Qin and Wang, *Towards a full solution of relativistic Boltzmann
equation for quark-gluon matter on GPUs* ("the paper"; Fig. 1 is a sketch), made with relboltz:

```sh
relboltz reproduce all                            # a small size, minutes on a laptop
relboltz reproduce all --full --backend cuda      # the paper's own grids and times
relboltz reproduce fig5 --full                    # one of them
```

Each figure has a short script in `examples/paper/`, which writes the picture, its data (NetCDF)
and its numbers (JSON) into `reproduction/`. This page is generated from these files
(`relboltz reproduce --document docs --out FOLDER`): every number on it comes from a run.

The column "paper" has what the text of the paper states; it is empty if the paper has only a
curve. A check is a bound on our own number that the command tests; its exit code is 1 if a check
fails.
"Prescribed" is the thermal state with the initial number and total energy on the same
nodes; it follows from these alone, and the conserving runs end there. "Nearest cells" puts
scattered pairs into the nearest cells, as the paper does; then number is exact but energy is not,
and "as in the paper" in such rows means that the error of the method has the same effect.
"""


# --- one line -----------------------------------------------------------------------------------


def value(line: Mapping[str, Any]) -> str:
    """Return our number with its unit."""
    ours, unit = line["ours"], line["unit"]
    if ours is None:
        return "none"
    digits = 5 if unit.startswith("GeV") else 4
    text = f"{ours:.0f}" if unit == "quanta" else f"{ours:.{digits}g}"
    return f"{text} {unit}".strip()


def verdict(line: Mapping[str, Any]) -> str:
    """Return whether our number agrees with the paper, and whether a check holds."""
    description = {True: ["as in the paper"], False: ["differs"], None: []}[line["same"]]
    description += {True: ["check holds"], False: ["CHECK FAILS"], None: []}[line["passed"]]
    return ", ".join(description)


def failure(line: Mapping[str, Any]) -> str:
    """Return a message for a check that fails."""
    low, high = line["between"]
    return f"{line['what']}: {value(line)} is not between {low:.4g} and {high:.4g}"


def duration(seconds: float) -> str:
    """Return a duration in s or min."""
    if seconds < 100:
        return f"{seconds:.2g} s" if seconds < 9.95 else f"{seconds:.0f} s"
    return f"{seconds / 60:.1f} min"


# --- the page -----------------------------------------------------------------------------------


def written(records: Records) -> str:
    """Return the whole page."""
    parts = [HEAD, *_short(records), *_summary(records)]
    for figure in sorted(records, key=_number):
        parts += _figure(figure, records[figure])
    return "\n".join(parts).rstrip() + "\n"


def _number(figure: str) -> int:
    return int(figure.removeprefix("fig"))


def _best(sheets: Mapping[str, Sheet]) -> Sheet:
    """Return the sheet of the paper's size if it was run, else the small size."""
    return sheets["full"] if "full" in sheets else sheets["small"]


def _machines(records: Records) -> dict[str, str]:
    """Return the machine on which each size was run, from the results."""
    found = dict.fromkeys(SIZES, "")
    for sheets in records.values():
        for size, sheet in sheets.items():
            found[size] = found[size] or sheet["machine"]
    return found


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(_cell(c) for c in row) + " |" for row in lines) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


METHODS = ("fig2", "fig4", "fig5", "fig7", "fig8")
"""Figures about the paper's sampling, or made only from runs with nearest-cell projection."""
CERTAIN = ("0", "not 0")
"""The paper's statements on numbers fixed by the scheme itself: conserved, or not noise-free."""


def tested(figure: str, line: Mapping[str, Any]) -> str:
    """Return the subject of a comparison: "physics", the paper's "method", or "certain"."""
    if line["paper"] in CERTAIN:
        return "certain"
    return "method" if figure in METHODS or "nearest cells" in line["what"] else "physics"


def _count(told: Sequence[bool]) -> str:
    return f"{sum(told)} of {len(told)}"


def _short(records: Records) -> Iterator[str]:
    """Yield how many of the paper's statements are confirmed, by subject, and which are not."""
    lines = [
        (figure, line)
        for figure in sorted(records, key=_number)
        for line in _best(records[figure])["lines"]
    ]
    told: dict[str, list[bool]] = {"physics": [], "method": [], "certain": []}
    for figure, line in lines:
        if line["same"] is not None:
            told[tested(figure, line)].append(line["same"])
    held = [line["passed"] for _, line in lines if line["passed"] is not None]
    yield "## In short\n"
    yield (
        f"{_count(told['physics'])} statements of the paper about the physics are reproduced "
        "by the conserving scheme. Of the statements about its sampling, or compared with "
        f"nearest-cell runs, {_count(told['method'])} are reproduced: such rows show "
        f"the error of that method. {_count(told['certain'])} hold by construction (0, not 0) and "
        "test no physics. "
        f"{_count(held)} checks of our own hold. What differs:\n"
    )
    rows = [
        [_title(figure), line["what"], line["paper"], value(line), line["remark"]]
        for figure, line in lines
        if line["same"] is False
    ]
    yield _table(("figure", "what", "paper", "ours", "remark"), rows)
    yield from _grid_errors(records)


def _grid_errors(records: Records) -> Iterator[str]:
    """Yield a table of how far the curves move with the momentum spacing, where measured."""
    rows = [
        [_title(figure), line["what"].removeprefix(GRID), value(line), line["remark"]]
        for figure in sorted(records, key=_number)
        for line in next(_measured(records[figure]), ())
    ]
    if rows:
        yield (
            "Grid error of the curves of Figures 6 and 9 to 12, conserving scheme: how far they "
            "move when the spacing changes (the step is taken at the nodes, so that N of the start "
            "moves, too):\n"
        )
        yield _table(("figure", "curve", "largest difference", "remark"), rows)


def _measured(sheets: Mapping[str, Sheet]) -> Iterator[list[Mapping[str, Any]]]:
    """Yield lines on the grid error of a figure, best size first."""
    for size in reversed(SIZES):
        found = [line for line in sheets.get(size, {}).get("lines", ()) if is_grid_error(line)]
        if found:
            yield found


GRID = "grid error of "


def is_grid_error(line: Mapping[str, Any]) -> bool:
    """Whether a line is about the momentum spacing; such lines have a separate table."""
    return str(line["what"]).startswith(GRID)


def _summary(records: Records) -> Iterator[str]:
    """Yield the times of the long runs and the total times, on every machine."""
    yield "## Run times\n"
    machines = _machines(records)
    for size, description in {"small": "Small size", "full": "`--full`"}.items():
        total = sum(sheets[size]["seconds"] for sheets in records.values() if size in sheets)
        if machines[size]:
            yield (
                f"{description}: {machines[size]}; all figures together {duration(total)}, "
                "compilation included.\n"
            )
    yield (
        "The paper does not state its samples for its long runs, and the machines differ: read the "
        "table as time to a solution. Times are those of the time loop.\n"
    )
    rows = []
    for figure in sorted(records, key=_number):
        sheets = records[figure]
        for i, run in enumerate(_best(sheets)["runs"]):
            times = [_time(sheets.get(size), i) for size in reversed(SIZES)]
            rows.append([_title(figure), run["what"], run["paper"] or "–", *times])
    heads = ("V100 (the paper)", "`--full`", "small size")
    yield _table(("figure", "run", *heads), rows)


def _time(sheet: Sheet | None, run: int) -> str:
    """Return the wall time of a run and its number of steps."""
    if sheet is None or run >= len(sheet["runs"]):
        return "–"
    one = sheet["runs"][run]
    return f"{duration(one['seconds'])} ({one['steps']} steps)"


def _title(figure: str) -> str:
    return f"Fig. {_number(figure)}"


def _figure(figure: str, sheets: Mapping[str, Sheet]) -> Iterator[str]:
    """Yield plot, set-up and table of numbers of one figure."""
    best = _best(sheets)
    title, _, description = best["words"].partition(". ")  # "Fig. 5: ..."
    rest = description.partition(". ")
    yield f"## {title}. {rest[0]}\n"
    yield f"![{figure}](reproduction/{figure}.png)\n"
    if rest[2]:
        yield rest[2] + "\n"
    shown = "full" if "full" in sheets else "small"
    for size in SIZES:
        if size in sheets:
            name = {"small": "Small size", "full": "`--full`"}[size]
            where = " (shown)" if size == shown else ""
            yield f"- {name}{where}: {sheets[size]['setup']}."
    yield ""
    for text in best["findings"]:
        yield f"- {text}"
    if best["findings"]:
        yield ""
    yield _numbers(sheets)


def _numbers(sheets: Mapping[str, Sheet]) -> str:
    """Return a table of all numbers, with the sizes side by side."""
    present = [size for size in SIZES if size in sheets]
    heads = {"small": "ours, small", "full": "ours, `--full`"}
    found: dict[str, dict[str, Mapping[str, Any]]] = {}
    for size in present:
        for line in filter(lambda one: not is_grid_error(one), sheets[size]["lines"]):
            found.setdefault(line["what"], {})[size] = line
    rows = []
    for what, lines in found.items():
        last = lines[[size for size in present if size in lines][-1]]
        ours = [value(lines[size]) if size in lines else "–" for size in present]
        rows.append([what, last["paper"] or "–", *ours, verdict(last), last["remark"]])
    return _table(("what", "paper", *(heads[s] for s in present), "verdict", "remark"), rows)


# --- files --------------------------------------------------------------------------------------


def recorded(folder: Path) -> dict[str, dict[str, Sheet]]:
    """Return the sheets by figure and size in docs/reproduction/ (small.json and full.json)."""
    result: dict[str, dict[str, Sheet]] = {}
    for size in SIZES:
        path = folder / f"{size}.json"
        if path.exists():
            for figure, sheet in json.loads(path.read_text()).items():
                result.setdefault(figure, {})[size] = sheet
    return result


def update(document: Path, results: Path) -> Path:
    """Copy results of runs into a docs folder and rewrite the page."""
    keep = document / "reproduction"
    found = [json.loads(path.read_text()) for path in sorted(results.glob("fig*.json"))]
    if not found and not keep.is_dir():
        raise InputError(f"--out {results}: holds no results; run relboltz reproduce all first")
    keep.mkdir(parents=True, exist_ok=True)
    records = recorded(keep)
    for sheet in found:
        size, figure = SIZES[bool(sheet["full"])], sheet["figure"]
        records.setdefault(figure, {})[size] = sheet
        if size == "full" or "full" not in records[figure]:
            shutil.copyfile(results / f"{figure}.png", keep / f"{figure}.png")
    for size in SIZES:
        sheets = {f: records[f][size] for f in sorted(records, key=_number) if size in records[f]}
        if sheets:
            path = keep / f"{size}.json"
            path.write_text(json.dumps(sheets, indent=1, ensure_ascii=False) + "\n")
    path = document / "reproduction.md"
    path.write_text(written(records))
    return path
