"""Assembly of the HTML page: sections, style and script in one file."""

import base64
import hashlib
from collections.abc import Mapping
from pathlib import Path
from string import Template
from typing import Any

from xarray import Dataset

from ... import __version__
from ...analysis import verdict
from ...io.kinds import check_run
from ...io.result import undamaged
from ...util.errors import InputError
from . import palette, sections
from .charts import Figures
from .number_format import cut, embedded, listed, text

HERE = Path(__file__).parent
SCRIPTS = ("draw.js", "lines.js", "maps.js", "page.js")
"""Scripts in the order in which they are concatenated within one function."""


def report(results: Mapping[str, Dataset]) -> str:
    """Return a report on one result, or a comparison of several, given by name.

    The page is self-contained: it fetches nothing, and text from files is never executed.
    """
    if not results:
        raise InputError("nothing to report: give at least one result")
    figures = Figures()
    for name, ds in results.items():
        _check(name, ds)
    several = len(results) > 1
    level = 3 if several else 2
    body, contents = [], []
    if several:
        with undamaged(", ".join(results)):
            compared = sections.comparison(results, figures, 4)
        body.append(sections.section("comparison", "Comparison", compared, 2))
        contents.append(("comparison", "Comparison"))
    for k, (name, ds) in enumerate(results.items()):
        with undamaged(name):
            parts = sections.run(ds, figures, f"run{k}", level, len(results))
        inner = "".join(sections.section(*part, level) for part in parts)
        if several:
            about = f'<p class="about">{text(_about(ds))}</p>'
            body.append(sections.section(f"run{k}", cut(name), about + inner, 2))
            contents.append((f"run{k}", cut(name)))
        else:
            body.append(inner)
            contents += [(key, title) for key, title, _ in parts]
    return _assembled(results, "".join(body), contents, figures)


def written(results: Mapping[str, Dataset], path: str | Path) -> Path:
    """Write a report on results to a file and return its path."""
    if Path(path).suffix.lower() not in (".html", ".htm"):
        raise InputError(f"{path}: a report is a page; use a name that ends in .html")
    page, place = report(results), Path(path)
    try:
        place.write_text(page, encoding="utf-8")
    except OSError as error:
        raise InputError(
            f"{place} cannot be written: {error.strerror or error}; choose another place"
        ) from None
    return place


def _check(name: str, ds: Dataset) -> None:
    """Raise InputError if a Dataset is not the result of a run, or has no records."""
    check_run(ds, name)
    if "time" not in ds.dims or "species" not in ds.dims:
        raise InputError(f"{name}: is not the result of a run: it has no times and species")
    if ds.time.size == 0:
        raise InputError(f"{name}: has no record yet; wait for its first one")


def _about(ds: Dataset) -> str:
    """Return one line about a run."""
    return f"{cut(ds.attrs.get('title', ''))}; {verdict.ending(ds)}"


def _assembled(
    results: Mapping[str, Dataset], body: str, contents: list[tuple[str, str]], figures: Figures
) -> str:
    """Return the complete page as text."""
    first = next(iter(results.values()))
    names = listed([cut(name) for name in results])
    title = cut(first.attrs.get("title", "")) or names
    about = f"{names}: {verdict.ending(first)}"
    if len(results) > 1:
        title, about = f"{names}, compared", f"{len(results)} runs; the first is the reference"
    data: dict[str, Any] = {
        "charts": figures.charts, "sliders": figures.sliders, "scales": palette.scales(),
    }  # fmt: skip
    links = "".join(
        f'<li><a href="#{key}">{text(description)}</a></li>' for key, description in contents
    )
    script = _script()
    return Template(_read("page.html")).substitute(
        policy=_policy(script), title=text(title), about=text(about), style=_style(),
        version=text(__version__), contents=links, body=body, data=embedded(data), script=script,
    )  # fmt: skip


def _read(name: str) -> str:
    return (HERE / name).read_text(encoding="utf-8")


def _style() -> str:
    """Return the CSS, with the colours of curves in light and dark mode."""
    light, dark = (palette.variables(color) for color in (palette.LIGHT, palette.DARK))
    return _read("page.css").replace("/*light*/", light).replace("/*dark*/", dark)


def _script() -> str:
    """Return all scripts within one function."""
    return '(() => {\n"use strict";\n' + "".join(map(_read, SCRIPTS)) + "})();\n"


def _policy(script: str) -> str:
    """Return a content security policy: run this script only, and fetch nothing."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return (
        f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
