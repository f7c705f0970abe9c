"""Short HTML tables for notebooks, with all text escaped."""

from collections.abc import Iterable, Sequence
from html import escape


def line(text: object, tag: str = "div") -> str:
    """Return one line of text."""
    return f"<{tag}>{escape(str(text))}</{tag}>"


def table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table, with a header unless there are no columns."""
    head = "".join(line(name, "th") for name in columns)
    head = f"<thead><tr>{head}</tr></thead>" if columns else ""
    body = "".join("<tr>" + "".join(line(cell, "td") for cell in row) + "</tr>" for row in rows)
    return f"<table>{head}<tbody>{body}</tbody></table>"


def text_block(text: str) -> str:
    """Return preformatted monospaced text."""
    style = "line-height:1.15;font-family:Menlo,'DejaVu Sans Mono',consolas,monospace"
    return f'<pre style="{style}">{escape(text)}</pre>'
