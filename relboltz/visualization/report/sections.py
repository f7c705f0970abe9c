"""Sections of the page as HTML; all text from files is escaped by ``number_format.text``."""

import re
from collections.abc import Iterable, Mapping, Sequence

from xarray import Dataset

from ...analysis import verdict
from ...analysis.spectra import is_bjorken
from ...io.result import is_in_space
from ..plots.space import directions
from . import comparing, histories, run_description, space
from .charts import Figures, frames
from .number_format import cut, listed, number, text, unit

PARTS = {
    "conserved": "What is conserved, and how far it moved",
    "state": "The final state, and what was predicted from the start alone",
    "lost": "What found no place in the box",
}


def table(columns: Sequence[str], rows: Iterable[Sequence[str]], caption: str) -> str:
    """Return a table in a frame that scrolls on narrow screens."""
    head = "".join(f'<th scope="col">{text(name)}</th>' for name in columns)
    body = "".join(
        f'<tr><th scope="row">{text(first)}</th>'
        + "".join(f"<td>{text(cell)}</td>" for cell in rest)
        + "</tr>"
        for first, *rest in rows
    )
    return (
        f'<div class="scroll" role="group" aria-label="{text(caption)}" tabindex="0"><table>'
        f"<caption>{text(caption)}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody>"
        "</table></div>"
    )


def terms(rows: Iterable[tuple[str, str]], kind: str = "") -> str:
    """Return a list of terms and their descriptions."""
    found = "".join(f"<div><dt>{text(a)}</dt><dd>{text(b)}</dd></div>" for a, b in rows)
    return f'<dl class="terms {kind}">{found}</dl>'


def section(key: str, title: str, body: str, level: int) -> str:
    """Return a section of the page with its heading; first-level sections are landmarks."""
    named = f' aria-labelledby="{key}-title"' if level == 2 else ""
    return (
        f'<section id="{key}"{named}><h{level} id="{key}-title">{text(title)}</h{level}>'
        f"{body}</section>"
    )


def grid(figures: Iterable[str]) -> str:
    """Return figures side by side, as many as fit."""
    return f'<div class="grid">{"".join(figures)}</div>'


def _row_words(description: str) -> str:
    """Return the label of a verdict line with raised exponents and a Greek mu."""
    return re.sub(r"^mu of ", "μ of ", unit(description)).replace(" at mu = 0", " at μ = 0")


# --- verdict ------------------------------------------------------------------------------------


def verdict_of(ds: Dataset) -> str:
    """Return the verdict as text, key numbers, warnings and tables."""
    rows = list(verdict.rows(ds))
    kept, state, lost = (_part(rows, part) for part in PARTS)
    return (
        f'<p class="lead">{text(_sentence(ds, rows))}</p>{_cards(ds, rows)}{_warnings(ds)}'
        f'<div class="tables"><div>{kept}{lost}</div><div>{state}</div></div>'
    )


def _part(rows: Sequence[verdict.VerdictLine], part: str) -> str:
    """Return the rows of one part as a table."""
    some = [r for r in rows if r.part == part]
    compared = any(r.predicted not in ("", "none") for r in some)
    columns = ["quantity", "value", *["predicted"] * compared]
    cells = [[_row_words(r.description), number(r.value) or "–",
              *[number(r.predicted) or "–"] * compared] for r in some]  # fmt: skip
    caption = PARTS[part] if compared or part != "state" else "The final state"
    return table(columns, cells, caption) if cells else ""


def _found(rows: Sequence[verdict.VerdictLine], key: str) -> verdict.VerdictLine | None:
    return next((row for row in rows if row.key == key), None)


def _sentence(ds: Dataset, rows: Sequence[verdict.VerdictLine]) -> str:
    """Return the verdict in a few sentences."""
    kept = [r for r in rows if r.key in ("charge", "momentum")]
    exact = [r for r in kept if r.value == "0 (exact)"]
    names = [r.description.removeprefix("change of ") for r in exact]
    said = []
    if names:
        said.append(f"{listed(names)} {'are' if names[1:] else 'is'} conserved exactly")
    for row in kept:
        if row not in exact:
            said.append(
                f"{row.description.removeprefix('change of ')} changed by {number(row.value)}"
            )
    energy = _found(rows, "energy_total")
    if energy is not None:
        said.append(f"total energy changed by {number(energy.value)} of itself")
    sentences = ["; ".join(said)]
    far, left = _found(rows, "equilibrium_distance"), _found(rows, "left_number")
    when = f"at t = {float(ds.time[-1]):g} fm"
    if far is not None and far.value != "unknown":
        sentences.append(f"{when} {far.value} of the particles still have to move")
    if left is not None:
        sentences.append(f"{when} {left.value} of the particles have left the box")
    warned = len(_lines(ds))
    sentences.append(f"the run gave {verdict.count(warned, 'warning') if warned else 'no warning'}")
    if ds.attrs.get("status", "done") != "done":
        sentences.append(f"it has not reached its end: {cut(ds.attrs['status'])}")
    told = " ".join(f"{s[0].upper()}{s[1:]}." for s in sentences if s)
    return re.sub(r"(?<=\d) (?=%|×|fm)|(?<=×) ", "\u00a0", told)  # no line break there


def _lines(ds: Dataset) -> list[str]:
    return str(ds.attrs.get("warnings", "")).splitlines()


def _card(description: str, value: str, more: str = "", kind: str = "") -> str:
    return (
        f'<div class="card {kind}"><dt>{text(description)}</dt><dd><strong>{text(value)}</strong>'
        f"<span>{text(more)}</span></dd></div>"
    )


def _cards(ds: Dataset, rows: Sequence[verdict.VerdictLine]) -> str:
    """Return cards with the key numbers."""
    found = []
    kept = [r for r in rows if r.key in ("charge", "momentum")]
    if kept:
        exact = all(r.value == "0 (exact)" for r in kept)
        moved = [r for r in kept if r.value != "0 (exact)"]
        worst = max(moved, key=lambda r: abs(float(r.value)), default=kept[0])
        names = ", ".join(r.description.removeprefix("change of ") for r in kept)
        value = "exact" if exact else number(worst.value)
        of = names if exact else worst.description
        found.append(_card("conservation", value, of, "good" if exact else ""))
    for key, title, more in (
        ("energy_total", "total energy", "relative change"),
        ("equilibrium_distance", "not yet in equilibrium", "of the particles"),
        ("left_number", "left the box", "of the particles"),
    ):
        row = _found(rows, key)
        if row is not None:
            found.append(_card(title, number(row.value), more))
    hot = _found(rows, "temperature")
    if hot is not None and hot.value != "none":
        value = number(hot.value.partition(" ±")[0]) + " GeV"
        known = hot.predicted != "none"
        more = f"predicted {number(hot.predicted)} GeV" if known else "mean over the box"
        found.append(_card("temperature", value, more))
    warned = len(_lines(ds))
    description = "see below" if warned else "from the run"
    found.append(
        _card("warnings", str(warned or "none"), description, "warn" if warned else "good")
    )
    return f'<dl class="cards">{"".join(found)}</dl>'


def _warnings(ds: Dataset) -> str:
    """Return the accuracy warnings of the run."""
    lines = _lines(ds)
    if not lines:
        return ""
    found = "".join(f"<li>{text(line)}</li>" for line in lines)
    description = "The run warned" if len(lines) > 1 else "The run warned once"
    return f'<div class="warned"><p><strong>{description}:</strong></p><ul>{found}</ul></div>'


# --- set-up -------------------------------------------------------------------------------------


def setup(ds: Dataset) -> str:
    """Return the set-up: terms, species and reactions."""
    reactions = run_description.processes(ds)
    items = "".join(f"<li>{text(reaction)}</li>" for reaction in reactions)
    many = verdict.count(len(reactions), "process")
    said = f"{many}, {'each ' * (len(reactions) > 1)}with its reverse"
    return (
        f'<div class="sides"><div>{terms(run_description.setup(ds))}</div>'
        f"<div>{table(*run_description.species(ds), 'Species, from start to end')}"
        f'<details class="list"><summary>{said}</summary>'
        f'<ul class="reactions">{items}</ul></details></div></div>'
    )


def configuration(ds: Dataset, key: str) -> str:
    """Return the configuration, with a copy button."""
    told = str(ds.attrs.get("configuration", ""))
    if not told:
        return "<p>The file holds no configuration.</p>"
    says = "Save it as a file and start it with relboltz run."
    if own := sorted(set(re.findall(r"[\w./-]+\.py(?=:)", told))):
        says = f"Save it as a file beside {', '.join(own)} and start it with relboltz run."
    if not run_description.runnable(run_description.configuration(ds)):
        says = (
            "This run was started from Python; what solve() was given is described here in the "
            "form of a configuration, for the record."
        )
    lines = verdict.count(told.count("\n") + 1, "line")
    return (
        f'<p>{text(says)}</p><div class="copying"><button type="button" class="copy" '
        f'data-copies="{key}">Copy the configuration</button>'
        '<span class="copied" role="status"></span></div>'
        f'<details class="code"><summary>{lines} of TOML</summary>'
        f'<pre id="{key}" tabindex="0" role="group" aria-label="Configuration, TOML">'
        f"{text(told)}</pre></details>"
    )


# --- pictures -----------------------------------------------------------------------------------


def spectra(ds: Dataset, figures: Figures, key: str, level: int) -> str:
    """Return charts of f against momentum, with a time slider."""
    slider = figures.add_slider(f"{key}-time", ds.time.values[frames(ds)])
    drawn = [figures.add(chart, level) for chart in histories.spectra(ds, f"{key}-time")]
    of = "Averages over the box" if is_in_space(ds) else "Averages"
    said = (
        f"<p>{of} over shells of |p|; points are shells, dashed is the predicted equilibrium.</p>"
    )
    if is_bjorken(ds):
        said = (
            f"<p>{of} over rings of p<sub>T</sub> and over all p<sub>z</sub> of the nodes, whose "
            "range shrinks with time and doubles now and then.</p>"
        )
    return said + slider + grid(drawn)


def against_time(ds: Dataset, figures: Figures, level: int) -> str:
    """Return charts of the histories that change."""
    drawn = [figures.add(chart, level) for chart in histories.charts(ds)]
    said = "Dashed lines are predicted from the start alone."
    if is_in_space(ds):
        said += " All are averages over the box."
    if "replicas" in ds.attrs:
        said += " Bands are one standard error of the mean over replicas."
    flat = histories.constant(ds)
    if flat:
        said += f" Not drawn, because nothing happens in them: {', '.join(flat)}."
    return f"<p>{text(said)}</p>{grid(drawn)}"


def in_space(ds: Dataset, figures: Figures, key: str, level: int, runs: int) -> str:
    """Return maps and profiles with a time slider."""
    slider = figures.add_slider(f"{key}-time", ds.time.values[space.times(ds, runs)])
    parts = []
    for place, charts in space.charts(ds, f"{key}-time", runs).items():
        drawn = grid(figures.add(chart, level + 1) for chart in charts)
        parts.append(f"<h{level}>{text(place)}</h{level}>{drawn}")
    said = "Axes and colours are those of all times together; grey is the start."
    if len(directions(ds)) > 1:
        said += " Arrows are the flow of the Landau frame."
    return f"<p>{said}</p>{slider}{''.join(parts)}"


# --- several ------------------------------------------------------------------------------------


def comparison(results: Mapping[str, Dataset], figures: Figures, level: int) -> str:
    """Return a comparison of runs: verdicts side by side, differences, and common charts."""
    names = [cut(name) for name in results]
    beside = [[_row_words(first), *map(number, rest)]
              for first, *rest in comparing.side_by_side(results)]  # fmt: skip
    ends, parts = table(["quantity", *names], beside, "How the runs ended, side by side"), []
    for title, rows, said in comparing.differences(results):
        if rows:
            columns = ["quantity", "largest difference", "at [fm]", "at the end"]
            parts.append(table(columns, rows, f"Relative differences, {cut(title)}"))
        else:
            parts.append(f"<p><strong>{text(cut(title))}:</strong> {text(said)}</p>")
    drawn = [figures.add(chart, level) for chart in comparing.charts(results)]
    found = (
        f'<div class="tables"><div>{ends}</div><div>{"".join(parts)}</div></div>'
        f"<h{level - 1}>Against time</h{level - 1}>{grid(drawn)}"
    )
    times = comparing.times(results)
    if not times.size:
        return found
    slider = figures.add_slider("compared-time", times)
    shells = [figures.add(chart, level) for chart in comparing.spectra(results, "compared-time")]
    return f"{found}<h{level - 1}>Spectra</h{level - 1}>{slider}{grid(shells)}"


Part = tuple[str, str, str]
"""Key, title and body of a section."""


def run(ds: Dataset, figures: Figures, key: str, level: int, runs: int) -> list[Part]:
    """Return all sections of a run."""
    parts = [
        ("verdict", "Verdict", verdict_of(ds)),
        ("setup", "Set-up", setup(ds)),
        ("spectra", "Spectra", spectra(ds, figures, f"{key}-spectra", level + 1)),
        ("history", "Against time", against_time(ds, figures, level + 1)),
    ]
    if is_in_space(ds):
        body = in_space(ds, figures, f"{key}-space", level + 1, runs)
        parts.insert(2, ("space", "In space", body))
    parts += [
        ("configuration", "Configuration", configuration(ds, f"{key}-toml")),
        ("origin", "Versions, seed, run time", terms(run_description.origin(ds), "short")),
    ]
    return [(f"{key}-{name}", title, body) for name, title, body in parts]
