"""Check out other versions of relboltz temporarily."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

HERE = Path(__file__).resolve().parent.parent


def git(*description: str) -> str:
    """Return the output of git."""
    done = subprocess.run(["git", *description], cwd=HERE, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"git {' '.join(description)}: {done.stderr.strip()}")
    return done.stdout.strip()


@contextmanager
def checked_out(revision: str) -> Iterator[Path]:
    """Check out a revision into a temporary folder; a folder is used unchanged."""
    if Path(revision).is_dir():
        yield Path(revision).resolve()
        return
    git("rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}")
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "version"
        git("worktree", "add", "--detach", str(place), revision)
        try:
            yield place
        finally:
            git("worktree", "remove", "--force", str(place))


def environment(tree: Path, **more: str) -> dict[str, str]:
    """Return the environment in which Python imports the relboltz of this tree."""
    paths = [str(tree), *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths), **more}
