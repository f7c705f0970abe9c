"""Runs the blocks of a page: ``python tests/blocks.py [PAGE ...]`` also renews their pictures.

The blocks of a page share a namespace and a folder. What a fence means:

* ``python`` runs, ``sh`` runs in bash; the first line ``# name.py`` or ``# name.toml`` names a file
  that the block is written to instead; other ``toml`` must be legal TOML.
* ``output`` is what the block before it prints: words as they are, numbers within 2 %; ``...``
  stands for anything.
* ``![...](pictures/PAGE/NAME)`` is the file NAME that the blocks of this page make.

A comment before a fence says what else: ``<!-- exit: 2 -->`` is an exit code, ``<!-- tried -->``
has its programs (relboltz, pip, srun, ...) look at their arguments without doing anything.
"""

import contextlib
import io
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS, PICTURES = ROOT / "docs", ROOT / "docs" / "pictures"
FENCE = re.compile(
    r"(?:^<!-- *(?P<how>[^\n]*?) *-->\n\n?)?^```(?P<language>\S*)[^\n]*\n(?P<text>.*?)^```$",
    re.M | re.S,
)
NAMED = re.compile(r"# (\S+\.(?:py|toml))\n")
STANDING_IN = (
    "relboltz",
    "pip",
    "ray",
    "srun",
    "mpirun",
    "scontrol",
    "make",
    "git",
    "sleep",
    "python3",
)
TRIED = {"validation.md", "reproduction.md", "README.md"}
"""Pages whose commands take minutes, or are done elsewhere in the suite: they are only tried."""
CLOSE = 0.02
"""Numbers that are printed may differ by this part of themselves."""


@dataclass(frozen=True)
class Block:
    """Code on a page."""

    page: str
    line: int
    language: str
    text: str
    how: str = ""

    @property
    def file(self):
        """Where it is to be saved, if it says so."""
        found = NAMED.match(self.text)
        return found and found[1]

    @property
    def tried(self):
        return self.how == "tried" or self.page in TRIED

    @property
    def exit_code(self):
        found = re.match(r"exit: (\d+)", self.how)
        return int(found[1]) if found else 0


def blocks_of(path):
    """All blocks of a page, in order."""
    text = path.read_text()
    name = path.name
    return [
        Block(name, text.count("\n", 0, found.start("text")), found["language"], found["text"],
              found["how"] or "")
        for found in FENCE.finditer(text)
        if not found["language"].startswith("{")
    ]  # fmt: skip


def pictures_of(path):
    """Names of the pictures that a page shows and makes."""
    return re.findall(rf"\]\(pictures/{path.stem}/([^)]+)\)", path.read_text())


def run_page(path, folder):
    """Run the blocks of a page in a folder; raises AssertionError where one is not true."""
    names, printed = {"__name__": "__main__"}, ""
    for block in blocks_of(path):
        where = f"{block.page}:{block.line}"
        if block.file:
            (folder / block.file).write_text(block.text)
        elif block.language == "toml":
            tomllib.loads(block.text)
        elif block.language == "python":
            printed = run_python(block, names, folder)
        elif block.language in ("sh", "bash"):
            printed = run_shell(block, folder)
        elif block.language == "output":
            problem = difference(block.text, printed)
            assert problem is None, f"{where}: {problem}; it prints\n{printed}"
        else:
            raise AssertionError(f"{where}: a block of {block.language!r} is not known")
    return names


def run_python(block, names, folder):
    """Return what a block prints."""
    code = compile("\n" * block.line + block.text, str(DOCS / block.page), "exec")
    told = io.StringIO()
    with contextlib.chdir(folder), contextlib.redirect_stdout(told):
        if block.tried:
            return ""
        exec(code, names)
    return told.getvalue()


def run_shell(block, folder):
    """Return what a block prints, errors included; check that its exit code is as announced."""
    bin = folder / ".bin" / ("tried" if block.tried else "real")
    _install(bin, block.tried)
    path = os.pathsep.join([str(bin), str(Path(sys.executable).parent), os.environ["PATH"]])
    paths = [str(ROOT), *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    if not (ROOT / "relboltz").exists():  # the tests of an installed package
        paths = paths[1:]
    known = {"PATH": path, "PYTHONPATH": os.pathsep.join(paths), "MPLBACKEND": "Agg"}
    known |= {"COLUMNS": "88", "NO_COLOR": "1", "VIRTUAL_ENV_DISABLE_PROMPT": "1"}
    known |= {"SLURM_JOB_ID": "1", "SLURM_JOB_NODELIST": "node", "SLURM_NNODES": "2"}
    done = subprocess.run(
        ["bash", "-e", "-c", block.text], cwd=folder, env=os.environ | known, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
    )  # fmt: skip
    assert done.returncode == block.exit_code, (
        f"{block.page}:{block.line}: exit code {done.returncode}\n{block.text}\n{done.stdout}"
    )
    return done.stdout


def _install(bin, tried):
    """Programs that blocks call: this relboltz, or others that only look at their arguments."""
    if bin.exists():
        return
    bin.mkdir(parents=True)
    for name in STANDING_IN if tried else ("relboltz",):
        what = f"{Path(__file__).parent / 'standing_in.py'} {name}" if tried else "-m relboltz"
        (bin / name).write_text(f'#!/bin/sh\nexec {sys.executable} -W ignore {what} "$@"\n')
        (bin / name).chmod(0o755)


# --- what is printed ----------------------------------------------------------------------------


def difference(shown, printed):
    """Return the part of the page that the output lacks, or None."""
    words, found = _words(shown), _words(printed)
    while words and words[-1] == "...":
        words.pop()
    at = 0
    free = False
    for word in words:
        if word == "...":
            free = True
            continue
        while free and at < len(found) and not _alike(word, found[at]):
            at += 1
        if at >= len(found) or not _alike(word, found[at]):
            seen = found[at] if at < len(found) else "the end"
            return f"the page shows {word!r}, there is {seen!r}"
        at, free = at + 1, False
    return None


def _words(text):
    return re.sub(r"[┏┓┗┛┡┩━┳╇│┃┌┐└┘─┬┴├┤┼╞╡╪]", " ", text).split()


def _alike(word, other):
    """Return whether two words are equal, or numbers close to each other."""
    if word == other:
        return True
    number = r"[-+]?\d+\.?\d*(?:[eE][-+]?\d+)?"
    if re.sub(number, "#", word) != re.sub(number, "#", other):
        return False
    pairs = zip(re.findall(number, word), re.findall(number, other), strict=True)
    return all(
        abs(float(a) - float(b)) <= CLOSE * max(abs(float(a)), abs(float(b))) for a, b in pairs
    )


# --- pictures -----------------------------------------------------------------------------------


def unlike(kept, made):
    """How far two pictures are apart: mean difference of small grey versions, 0 to 1."""
    import numpy as np
    from PIL import Image

    small = [
        np.asarray(Image.open(p).convert("L").resize((64, 48)), dtype=float) for p in (kept, made)
    ]
    return float(abs(small[0] - small[1]).mean()) / 255


def main():
    """Run pages and renew the pictures that they show."""
    os.environ["MPLBACKEND"] = "Agg"
    wanted = [DOCS / name for name in sys.argv[1:]] or sorted(DOCS.glob("*.md"))
    for path in wanted:
        with tempfile.TemporaryDirectory() as folder:
            run_page(path, Path(folder))
            for name in pictures_of(path):
                target = PICTURES / path.stem / name
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(Path(folder) / name, target)
        print(path.name, "ran")


if __name__ == "__main__":
    main()
