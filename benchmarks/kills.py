"""Check that runs that are killed, interrupted or run out of disk resume bit for bit.

    python benchmarks/kills.py kills|signals|damage|disk|size [--times N] [--seed S]

kills : SIGKILL at random moments of three set-ups, also while they are being resumed
signals : SIGUSR1 and SIGHUP at random moments, with their exit codes
damage : the newest checkpoint truncated or altered somewhere; the previous one is used
disk : the output on a small tmpfs that fills up (mounts one: needs root)
size : a state of about 1 GB: seconds of a checkpoint, of the disk alone, and of concurrent steps

Every result is compared bit by bit, in all variables, with an undisturbed run.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

import relboltz as rb
from relboltz.io import checkpoint

ROOT = Path(__file__).resolve().parents[1]
OWN = """
import numpy as np
import relboltz as rb

def exchange(s, t, u, ma2, mb2, mc2, md2, coupling, screening2):
    return coupling * (t - 4 * ma2) * (t - 4 * mb2) / (t - screening2) ** 2
def model(coupling):
    a, b = rb.Species("a", 2, -1), rb.Species("b", 3, +1)
    process = rb.Process("a b -> a b", exchange, peak="t", coupling=coupling)
    return rb.Model([a, b], [process], masses={"a": 0.3, "b": 0.4}, screening=0.5)
def hot(x, y, z, px, py, pz):
    p2 = px**2 + py**2 + pz**2
    return 0.1 + 0.6 * np.exp(-x**2 - y**2) * np.exp(-p2)
"""
COMMON = """
[output]
every = {every}
snapshots = [0.0, {middle}]
checkpoint_every = 0.2
[run]
threads = 1
"""
SETUPS = {
    "mixture": (
        """
        model = {name = "qcd", alpha_s = 0.3}
        grid = {momentum_cells = 12, momentum_max = 2.0}
        initial = {g = {shape = "step", height = 0.5, edge = 1.5}}
        collisions = {samples = 4}
        time = {end = 0.6}
        """, 0.02, 0.33,
    ),
    "open walls": (
        """
        model = {name = "gluons", alpha_s = 0.3}
        initial = {g = {shape = "own.py:hot"}}
        collisions = {samples = 2}
        time = {end = 0.3}
        [grid]
        momentum_cells = 8
        momentum_max = 2.0
        space_cells = [5, 4, 1]
        space_max = 2.0
        boundary = "open"
        """, 0.02, 0.11,
    ),
    "own model": (
        """
        model = {name = "own.py:model", coupling = 20000.0}
        grid = {momentum_cells = 14, momentum_max = 2.0}
        collisions = {samples = 8}
        time = {end = 2.0}
        [initial]
        a = {shape = "step", height = 0.5, edge = 1.0}
        b = {shape = "gaussian", height = 0.3, widths = [0.5, 0.6, 0.7]}
        """, 0.05, 0.77,
    ),
}  # fmt: skip
WORDS = ("run", "wall_seconds", "configuration")
"""Attributes that differ between identical runs."""


def relboltz(*words: object, **options: object) -> subprocess.Popen[str]:
    """Start a command in a separate process."""
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    return subprocess.Popen(
        [sys.executable, "-m", "relboltz", *map(str, words), "--quiet"], env=environment,
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, **options,
    )  # fmt: skip


class Setup:
    """A set-up in its own folder, and its undisturbed result."""

    def __init__(self, name: str, folder: Path):
        text, every, middle = SETUPS[name]
        self.name, self.folder, self.count = name, folder, 0
        folder.mkdir()
        (folder / "own.py").write_text(OWN)
        lines = [line.strip() for line in text.splitlines()]
        common = COMMON.format(every=every, middle=middle)
        (folder / "run.toml").write_text("\n".join(lines) + common)
        self._finished(self.start(folder / "whole.nc"))
        self.whole = rb.load(folder / "whole.nc")

    def start(self, file: Path) -> subprocess.Popen[str]:
        """Start an undisturbed run."""
        return relboltz("run", self.folder / "run.toml", "--out", file)

    @staticmethod
    def _finished(process: subprocess.Popen[str]) -> str:
        _, told = process.communicate()
        if process.returncode != 0:
            raise SystemExit(f"{process.args}: {process.returncode}\n{told}")
        return told

    def begun(self, folder: Path | None = None) -> tuple[Path, subprocess.Popen[str]]:
        """Start a run and wait for its first checkpoint."""
        self.count += 1
        file = (folder or self.folder) / f"run{self.count}.nc"
        process = self.start(file)
        while not checkpoint.of_run(file) and process.poll() is None:
            time.sleep(0.005)
        return file, process

    @cached_property
    def life(self) -> float:
        """Seconds from the first checkpoint to the end."""
        began = time.monotonic()
        _, process = self.begun()
        first = time.monotonic() - began
        self._finished(process)
        return max(0.1, time.monotonic() - began - first)

    def resumed(self, file: Path) -> str:
        """Resume to the end; return the messages."""
        return self._finished(relboltz("resume", file))

    def right(self, file: Path) -> bool:
        """Return whether a result equals the undisturbed run bit for bit."""
        return different(rb.load(file), self.whole) == []


def different(found: xr.Dataset, expected: xr.Dataset) -> list[str]:
    """Return names of variables and attributes that differ in any bit."""
    names = set(found.variables) ^ set(expected.variables)
    for name in set(found.variables) & set(expected.variables):
        a, b = found.variables[name], expected.variables[name]
        same = (a.dims, a.shape, a.dtype) == (b.dims, b.shape, b.dtype)
        if not same or (a.values.tobytes() != b.values.tobytes() and a.dtype.kind != "O"):
            names.add(name)
    for name in (set(found.attrs) | set(expected.attrs)) - set(WORDS):
        if not np.array_equal(found.attrs.get(name), expected.attrs.get(name)):
            names.add(name)
    return sorted(map(str, names))


def row(*words: object) -> None:
    """Print a line of the table."""
    print("| " + " | ".join(str(word) for word in words) + " |", flush=True)


def litter(file: Path) -> list[str]:
    """Return files left beside the result and its checkpoints."""
    known = {file.name, *(path.name for path in checkpoint.of_run(file))}
    return sorted(p.name for p in file.parent.glob(f"{file.stem}.*") if p.name not in known)


def done(file: Path) -> bool:
    """Return whether F.nc is the complete result."""
    return file.is_file() and rb.load(file).attrs["status"] == "done"


def kills(setups: list[Setup], times: int, chance: random.Random) -> bool:
    """Send SIGKILL at random moments, sometimes while the run is being resumed."""
    good = 0
    row("set-up", "killed after [s]", "checkpoints then", "again", "told", "bits", "left over")
    for number in range(times):
        setup = setups[number % len(setups)]
        life = setup.life
        file, process = setup.begun()
        moment, again = chance.uniform(0, life), 0
        time.sleep(moment)
        process.kill()
        process.communicate()
        there = len(checkpoint.of_run(file))
        while chance.random() < 0.4 and again < 3 and not done(file):
            process = relboltz("resume", file)
            time.sleep(chance.uniform(0, 1.0 + life))
            process.kill()
            process.communicate()
            again += 1
        told = "" if done(file) and not litter(file) else setup.resumed(file)
        right = setup.right(file)
        good += right
        about = [line for line in told.splitlines() if "checkpoint" in line]
        bits = "same" if right else different(rb.load(file), setup.whole)[:5]
        when = f"{moment:.2f} of {life:.2f}"
        row(setup.name, when, there, again, about or "-", bits, litter(file) or "-")
    row("all", "", "", "", "", f"{good} of {times}", "")
    return good == times


def signals(setups: list[Setup], times: int, chance: random.Random) -> bool:
    """Send SIGUSR1 and SIGHUP at random moments; check the exit codes."""
    good = 0
    row("set-up", "signal", "after [s]", "exit code", "bits")
    for number in range(2 * times):
        setup = setups[number % len(setups)]
        which, expected = ((signal.SIGUSR1, 138), (signal.SIGHUP, 129))[number % 2]
        code, late = 0, True
        while late:  # repeat if the run finished first
            file, process = setup.begun()
            moment = chance.uniform(0, 0.9 * setup.life)
            time.sleep(moment)
            process.send_signal(which)
            process.communicate()
            code = process.returncode
            late = done(file)
        setup.resumed(file)
        right = code == expected and setup.right(file)
        good += right
        row(setup.name, which.name, f"{moment:.2f}", code, "same" if right else "OTHER")
    row("all", "", "", "", f"{good} of {2 * times}")
    return good == 2 * times


def damage(setups: list[Setup], times: int, chance: random.Random) -> bool:
    """Truncate or alter the newest checkpoint somewhere."""
    good = 0
    row("set-up", "damage", "told", "bits")
    for number in range(times):
        setup = setups[number % len(setups)]
        found: list[Path] = []
        while len(found) < 2:
            file, process = setup.begun()
            until = time.monotonic() + chance.uniform(0.5, 2.0)
            while time.monotonic() < until or len(checkpoint.of_run(file)) < 2:
                time.sleep(0.01)
                if process.poll() is not None:
                    break
            process.kill()
            process.communicate()
            found = checkpoint.of_run(file)
        content = bytearray(found[-1].read_bytes())
        place = chance.randrange(len(content))
        if number % 2:
            content[place] ^= 1 << chance.randrange(8)
        else:
            del content[place:]
        found[-1].write_bytes(content)
        told = setup.resumed(file)
        used = f"{found[-2].name} is used instead" in told.replace("\n", " ")
        right = used and setup.right(file)
        good += right
        what = f"{'altered' if number % 2 else 'cut'} at {place}"
        row(setup.name, what, "yes" if used else told[:200], "same" if right else "OTHER")
    row("all", "", "", f"{good} of {times}")
    return good == times


def disk(setups: list[Setup], times: int, chance: random.Random) -> bool:
    """Write the output to a small disk that something else fills up during the run."""
    good = 0
    row("set-up", "bytes free", "exit code", "told", "saved before, read after", "bits after room")
    for number in range(times):
        setup = setups[number % len(setups)]
        small = Path(tempfile.mkdtemp(prefix="small-"))
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", small], check=True)
        try:
            file, process = setup.begun(small)
            time.sleep(chance.uniform(0, 0.5))
            free = chance.choice([0, 4096, 40_000, 100_000, 300_000])
            fill(small / "filler", free)
            saved = [p.name for p in checkpoint.of_run(file)]
            _, told = process.communicate()
            kept = [checkpoint.read(p).path.name for p in checkpoint.of_run(file)]
            code = process.returncode
            (small / "filler").unlink()
            if not done(file) or code:
                setup.resumed(file)
            right = setup.right(file) and bool(kept)
            good += right
            about = [line for line in told.splitlines() if " written" in line]
            row(setup.name, free, code, " ".join(about)[:160] or "-", f"{len(saved)}, {len(kept)}",
                "same" if right else "OTHER")  # fmt: skip
        finally:
            subprocess.run(["umount", small], check=True)
            small.rmdir()
    row("all", "", "", "", "", f"{good} of {times}")
    return good == times


def fill(path: Path, free: int) -> None:
    """Fill a disk except for ``free`` bytes."""
    with open(path, "wb", buffering=0) as handle:
        left = os.statvfs(path.parent)
        handle.write(bytes(max(0, left.f_bavail * left.f_frsize - free)))


def plain(path: Path, count: int) -> float:
    """Return the seconds that the disk needs to write ``count`` bytes."""
    content = np.random.default_rng(1).integers(0, 255, 2**22, np.uint8).data
    began = time.monotonic()
    with open(path, "wb", buffering=0) as handle:
        for _ in range(count // len(content) + 1):
            handle.write(content)
        os.fsync(handle.fileno())
    return time.monotonic() - began


def steps_of(file: Path | None) -> tuple[list[float], list[float]]:
    """Return the seconds of the steps of a large collisionless gas, and of its checkpoints."""
    grid = rb.PhaseSpace(50, 2.0, [1000, 1, 1], 300.0)
    model = rb.Model([rb.Species("a", 1, 0)], [], masses={"a": 0.3})
    f = np.full((1, *grid.space_cells, *grid.momentum_cells), 0.1)
    write, spans, marks = checkpoint.write, [], []

    def timed(path: Path, facts: Any, arrays: Any) -> None:
        began = time.monotonic()
        write(path, facts, arrays)
        spans.append(time.monotonic() - began)

    checkpoint.write = timed
    rb.solve(
        model, grid, f, end=0.6, step=0.1, every=0.6, file=file, checkpoint_every=1e-3,
        progress=lambda _: marks.append(time.monotonic()),
    )  # fmt: skip
    checkpoint.write = write
    return [b - a for a, b in pairwise(marks)], spans


def size(folder: Path) -> bool:
    """Time checkpoints of a 1 GB state, the disk alone, and concurrent steps."""
    file, before = folder / "run.nc", plain(folder / "plain", 10**9)
    quiet, _ = steps_of(None)
    busy, took = steps_of(file)
    count = checkpoint.of_run(file)[-1].stat().st_size
    alone = [before, plain(folder / "plain", count)]
    ratio = float(np.median(took) / np.mean(alone))
    row("what", "asked", "measured")
    row("checkpoints", "1 GB", f"{len(took)} of {count / 1e9:.2f} GB")
    row("disk alone, before and after [s]", "", ", ".join(f"{t:.1f}" for t in alone))
    row("a checkpoint [s]", "", ", ".join(f"{t:.1f}" for t in took))
    row("median over the disk alone", "<= 2", f"{ratio:.2f}")
    row("steps without checkpoints [s]", "", ", ".join(f"{t:.1f}" for t in quiet))
    row("steps meanwhile [s]", "goes on", ", ".join(f"{t:.1f}" for t in busy))
    return ratio <= 2


PARTS = {"kills": (kills, 20), "signals": (signals, 5), "damage": (damage, 12), "disk": (disk, 6)}


def main() -> None:
    """Run the named parts."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="+", choices=[*PARTS, "size"])
    parser.add_argument("--times", type=int)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folder", help="where to work; a temporary folder")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    chance = random.Random(given.seed)
    folder = Path(tempfile.mkdtemp(prefix="kills-", dir=given.folder))
    try:
        setups: list[Setup] = []
        if set(given.parts) & set(PARTS):
            setups = [Setup(name, folder / name) for name in SETUPS]
        good = True
        for part in given.parts:
            print(f"\n{part}")
            if part == "size":
                good &= size(folder)
            else:
                function, times = PARTS[part]
                good &= function(setups, given.times or times, chance)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    sys.exit(not good)


if __name__ == "__main__":
    main()
