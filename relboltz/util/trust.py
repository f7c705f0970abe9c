"""Rules for Python files named in a checkpoint: which of them may run without the user's consent.

A checkpoint is mere data unless its model, or its expansion law, comes from a Python file: then
resuming means running a program. The file on disk runs if it is byte for byte the one with which
the run began; any other code runs only if the user trusts the checkpoint.
"""

import atexit
import re
import shutil
import sysconfig
import tempfile
from collections.abc import Mapping
from pathlib import Path

from .errors import CheckpointWarning, InputError, say

KINDS = ("stdlib", "platstdlib", "purelib", "platlib")
PACKAGES = (
    *(Path(sysconfig.get_paths()[kind]).resolve() for kind in KINDS),
    Path(__file__).resolve().parent.parent,
)
"""Folders of installed Python packages, this one included: their files are publicly known."""
LIBRARY = re.compile(r"(site|dist)-packages|python\d(\.\d+)?")
"""Names of folders with the packages of other Python installations."""


def path_of(name: str) -> Path:
    """Return the file of "file.py:function"."""
    return Path(name.rpartition(":")[0]).resolve()


def text_of(path: Path) -> str | None:
    """Return the source of a file, one character per byte; None if there is no such file."""
    return path.read_bytes().decode("latin-1") if path.is_file() else None


def doubt(path: Path, source: str | None) -> str:
    """Say why a file is not known as the one with which a run began; return "" if it is.

    source : source of that file, saved when the run began
    """
    there = text_of(path)
    if there is None:
        return "is absent"
    if source is None:
        return "has no copy in the checkpoint"
    if there != source:
        return "was changed since"
    library = any(LIBRARY.fullmatch(part) for part in path.parts)
    if library or any(path.is_relative_to(folder) for folder in PACKAGES):
        return "belongs to an installed package"
    return ""


def allow_code(name: str, source: str | None, file: Path | str, trust: bool) -> None:
    """Refuse to run a function that the checkpoint of ``file`` names, unless known or trusted.

    name : "file.py:function"; source : source of that file in the checkpoint

    Raises
    ------
    InputError : the file is absent, differs, or belongs to an installed package
    """
    path = path_of(name)
    why = doubt(path, source)
    if source is None and not path.is_file():
        raise InputError(f"{file}: its run needs {path}, which is absent; bring it back")
    if why and not trust:
        code = f"code of {path.name} kept in the checkpoint" if source is not None else "it"
        raise InputError(
            f"{file}: its run needs {path}, which {why}: bring back what it was, or start a new "
            f"run, or run {code} with --trust (in Python trust=True), if you know who wrote the "
            "checkpoint: it is a program"
        )
    if why:
        kept = "named by" if source is None else "kept in"
        say(f"runs code of {path.name} {kept} the checkpoint", CheckpointWarning)


def refuse_changed(sources: Mapping[str, str], file: Path | str) -> None:
    """Refuse if a file used at the start of the run has changed; an absent file is accepted."""
    for name, text in sources.items():
        if text_of(Path(name)) not in (None, text):
            raise InputError(
                f"{name} was changed since {file} was begun: bring back what it was, or start a "
                "new run, or go on all the same with --trust (in Python trust=True)"
            )


def as_kept(name: str, source: str | None) -> str:
    """Return "file.py:function" for the given source: the file itself, or a temporary copy."""
    path, function = path_of(name), name.rpartition(":")[2]
    if source is None or text_of(path) == source:
        return name
    folder = Path(tempfile.mkdtemp(prefix="relboltz-source-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    (folder / path.name).write_bytes(source.encode("latin-1"))
    return f"{folder / path.name}:{function}"
