"""docs/validation.md: the table of ``relboltz validate`` and errors against resolution."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

PICTURE = "validation.png"


def write_document(folder: Path, found: dict[str, Any], studies: list[dict[str, Any]]) -> Path:
    """Write the page and its plot; every number on the page comes from the arguments."""
    from ..visualization.plots.errors import draw_studies

    draw_studies(studies, folder / PICTURE)
    path = folder / "validation.md"
    path.write_text("\n".join(_lines(found, studies)) + "\n", encoding="utf-8")
    return path


def _lines(found: dict[str, Any], studies: list[dict[str, Any]]) -> Iterator[str]:
    """Yield the lines of the page."""
    quick = "--quick " if found["quick"] else ""
    rows = sum(len(part["rows"]) for part in found["problems"])
    held = sum(row["passed"] for part in found["problems"] for row in part["rows"])
    yield "# Problems with known answers"
    yield ""
    yield (
        f"Written by `relboltz validate {quick}--backend {found['backend']} --document docs`, "
        f"version {found['version']}, {found['device']}: {held} of {rows} rows hold, "
        f"{found['seconds']:.0f} s in all (compilation included where it was due). "
        "`relboltz validate --list` names the problems, `--json F` writes the same as data; the "
        "exit code is 1 if a row fails. What each problem is and where its exact answer comes "
        "from is said in the modules of `relboltz/studies/validation/`."
    )
    yield ""
    yield "## Errors against resolution"
    yield ""
    yield f"![errors of the exact solution against spacing, box, step and samples]({PICTURE})"
    yield ""
    yield (
        "The exact solution of a massless gas with a constant cross section at τ = 4, against the "
        "exact f summed over the same nodes."
    )
    for study in studies:
        yield from _study(study)
    for part in found["problems"]:
        yield from _problem(part)


def _study(study: dict[str, Any]) -> Iterator[str]:
    """Yield one study as a table."""
    yield ""
    description, setups = study["words"], study["setups"]
    yield f"**{description[0].upper()}{description[1:]}** ({setups[0]}; ... {setups[-1]})"
    yield ""
    yield f"| {study['unit']} | " + " | ".join(f"{x:.3g}" for x in study["x"]) + " |"
    yield "|---|" + "---|" * len(study["x"])
    for name, description in (
        ("moments", "worst of ⟨k²⟩ … ⟨k⁵⟩"), ("left", "what is left of the deviation"),
        ("shells", "f in shells, rms"),
    ):  # fmt: skip
        yield f"| {description} [%] | " + " | ".join(f"{100 * v:.2g}" for v in study[name]) + " |"


def _problem(part: dict[str, Any]) -> Iterator[str]:
    """Yield the table of one problem."""
    yield ""
    yield f"## {part['name']}: {part['title']}"
    yield ""
    yield "| quantity | measured | exact | error | tolerance | why so much | |"
    yield "|---|---|---|---|---|---|---|"
    for row in part["rows"]:
        unit, scale = (" %", 100) if row["relative"] else ("", 1)
        numbers = [f"{row[name]:.6g}" if row[name] is not None else "–"
                   for name in ("measured", "expected")]  # fmt: skip
        error = f"{scale * row['error']:.2g}{unit}" if row["error"] is not None else "–"
        tolerance = f"{scale * row['tolerance']:.2g}{unit}"
        cells = [_plain(row["quantity"]), *numbers, error, tolerance, _plain(row["reason"]),
                 "ok" if row["passed"] else "**failed**"]  # fmt: skip
        yield "| " + " | ".join(cells) + " |"


def _plain(description: str) -> str:
    """Escape characters that are markup in a Markdown table."""
    for character in "|<>^*_":
        description = description.replace(character, f"\\{character}")
    return description
