"""Adapt pages of the repository for the site: links, docstrings, formulas."""

import os
import re
from pathlib import Path

DOCS = Path(__file__).parent
ROOT = DOCS.parent
BORROWED = {
    "architecture": "ARCHITECTURE.md",
    "contributing": "CONTRIBUTING.md",
    "changelog": "CHANGELOG.md",
    "benchmarks": "benchmarks/README.md",
}
"""Pages of the site that are files elsewhere in the repository."""


# --- links --------------------------------------------------------------------------------------


def source_read(app, name, source):
    """A page as the site has it: borrowed ones are fetched, links lead to pages of the site."""
    if Path(app.env.doc2path(name)).suffix == ".ipynb":
        return
    path = ROOT / BORROWED[name] if name in BORROWED else DOCS / f"{name}.md"
    text = path.read_text() if name in BORROWED else source[0]
    source[0] = linked(text, path, DOCS / f"{name}.md")


def linked(text, path, page):
    """The text of a file with links that lead from a page of the site to others of it."""

    def replaced(found):
        description, target, anchor = found[1], found[2], found[3] or ""
        if "://" in target or target.startswith("mailto:"):
            return found[0]
        there = (path.parent / target).resolve()
        place = page_of(there)
        if place is None:
            return description  # a file that the site does not have: its name is enough
        return f"[{description}]({os.path.relpath(place, page.parent)}{anchor})"

    return re.sub(r"(?<!!)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)#\s]+)(#[^)]*)?\)", replaced, text)


def page_of(there):
    """The page of the site that shows a file, if any."""
    for name, file in BORROWED.items():
        if there == ROOT / file:
            return DOCS / f"{name}.md"
    if there == ROOT / "README.md":
        return DOCS / "index.md"
    if there.is_relative_to(DOCS):
        return there
    if there.is_relative_to(ROOT / "examples") and "paper" not in there.parts:
        return DOCS / "examples.md"
    return None


# --- docstrings ---------------------------------------------------------------------------------

SECTIONS = {"Parameters": "param", "Raises": "raises", "Returns": "returns"}


def readable_docstring(app, what, name, obj, options, lines):
    """``name : words`` below a heading become fields; stars and bars are no markup."""
    result, section, index = [], None, 0
    while index < len(lines):
        line = lines[index]
        under = lines[index + 1] if index + 1 < len(lines) else ""
        if line.strip() in SECTIONS and set(under.strip()) == {"-"}:
            section, index = SECTIONS[line.strip()], index + 2
            result.append("")
            if section == "returns":
                result.append(":returns:")
            continue
        result.append(_field(line, section))
        index += 1
    lines[:] = result


def _field(line, section):
    """A line of a section as reStructuredText."""
    found = re.match(r"(\S[^:]*?) : (.*)", line)
    if section in ("param", "raises") and found:
        name = _plain(found[1]) if section == "raises" else _plain(found[1]).replace(", ", ",")
        return f":{section} {name}: {_plain(found[2])}"
    return f"    {_plain(line)}" if section == "returns" and line else _plain(line)


def _plain(text):
    """Without accidental markup outside of ``literals``."""
    parts = re.split(r"(``.*?``)", text)
    for i in range(0, len(parts), 2):
        parts[i] = re.sub(r"(?<!\S)\*\w+\*(?=[\s,.;]|$)|([*|\\])", _escaped, parts[i])
        parts[i] = re.sub(r"_(?=\W|$)", r"\\_", parts[i])
    return "".join(parts)


def _escaped(found):
    """Stars around a word are meant; single ones and bars are not."""
    return f"\\{found[1]}" if found[1] else found[0]


# --- formulas -----------------------------------------------------------------------------------


def math_as_mathml(app):
    """Formulas as MathML, which browsers draw by themselves: no script and no network."""
    from docutils.utils.math.latex2mathml import tex2mathml

    def inline(self, node):
        self.body.append(str(tex2mathml(node.astext())))
        raise _skip()

    def block(self, node):
        text = str(tex2mathml(node.astext(), as_block=True))
        self.body.append(f'<div class="math">{text}</div>')
        raise _skip()

    app.add_html_math_renderer("mathml", (inline, None), (block, None))


def _skip():
    from docutils import nodes

    return nodes.SkipNode
