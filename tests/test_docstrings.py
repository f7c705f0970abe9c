"""Docstrings can be read alone: their first line says what something is or does."""

import ast
from pathlib import Path

import pytest

import relboltz

DANGLING = ("The same", "Of ", "Those", "That ", "Likewise", "What ", "Who ")
"""Beginnings that refer to something that the docstring does not name."""
PACKAGE = Path(relboltz.__file__).parent
ROOT = Path(__file__).parents[1]
PATHS = {
    path
    for folder in (PACKAGE, *(ROOT / name for name in ("benchmarks", "docs", "examples", "tests")))
    for path in folder.rglob("*.py")
    if "_build" not in path.parts
}


@pytest.mark.parametrize("path", sorted(PATHS), ids=lambda p: p.stem)
def test_first_lines_of_docstrings_make_sense_alone(path):
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef)
    nodes = [n for n in ast.walk(ast.parse(path.read_text())) if isinstance(n, documented)]
    texts = [ast.get_docstring(node) or "" for node in nodes]
    assert [text for text in texts if text.startswith(DANGLING)] == []
