"""Python files that a checkpoint names: which of them may run without the user's consent.

A checkpoint is data until its model, or the law of its expansion, comes from a Python file: then
going on means running a program. The file on the disk runs if it is byte for byte the one that the
run began with; anything else runs only if the user trusts the checkpoint.
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
"""Folders of installed Python packages and of this one: others know their files, byte for byte."""
LIBRARY = re.compile(r"(site|dist)-packages|python\d(\.\d+)?")
"""Names of folders in which other installations of Python keep theirs."""


def path_of(name: str) -> Path:
    """Return the file of "file.py:function"."""
    return Path(name.rpartition(":")[0]).resolve()


def text_of(path: Path) -> str | None:
    """Return the source of a file, a character for every byte; None if there is no such file."""
    return path.read_bytes().decode("latin-1") if path.is_file() else None


def doubt(path: Path, source: str | None) -> str:
    """Say why a file is not known to be the one that a run began with; nothing if it is.

    source : of that file, as it was kept when the run began
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

    name : "file.py:function"; source : of that file, as the checkpoint keeps it

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
    """Refuse if a file that the run began with was changed since; an absent one is no obstacle."""
    for name, text in sources.items():
        if text_of(Path(name)) not in (None, text):
            raise InputError(
                f"{name} was changed since {file} was begun: bring back what it was, or start a "
                "new run, or go on all the same with --trust (in Python trust=True)"
            )


def as_kept(name: str, source: str | None) -> str:
    """Return "file.py:function" with that source: the file itself, or a temporary copy of it."""
    path, function = path_of(name), name.rpartition(":")[2]
    if source is None or text_of(path) == source:
        return name
    folder = Path(tempfile.mkdtemp(prefix="relboltz-source-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    (folder / path.name).write_bytes(source.encode("latin-1"))
    return f"{folder / path.name}:{function}"
