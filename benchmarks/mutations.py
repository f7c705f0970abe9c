"""Deliberate mistakes in copies of the package, each of which ``relboltz validate`` must find.

    python benchmarks/mutations.py [NAME ...] [--list] [--json F] [--all-problems]

A mistake replaces a piece of source that occurs exactly once. Every copy is tested with the few
problems that should detect the mistake (with --all-problems all of them) and must fail; the
unchanged package must pass the same problems. The exit code is 1 if a mistake is not detected.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from mistakes import IN_RUNS, Mutation
from mistakes_linear import IN_COEFFICIENTS

PACKAGE = Path(__file__).parent.parent / "relboltz"

MUTATIONS = IN_RUNS + IN_COEFFICIENTS


def copied(folder: Path, mutation: Mutation | None) -> None:
    """Copy the package and insert a mistake."""
    target = folder / "relboltz"
    shutil.copytree(PACKAGE, target, ignore=shutil.ignore_patterns("__pycache__"))
    if mutation is None:
        return
    path = target / mutation.file
    text = path.read_text()
    if text.count(mutation.right) != 1:
        raise SystemExit(
            f"{mutation.name}: {mutation.right!r} is {text.count(mutation.right)} times in "
            f"{mutation.file}; name a piece of source that is there once"
        )
    path.write_text(text.replace(mutation.right, mutation.wrong))


def asked(mutation: Mutation | None, problems: tuple[str, ...]) -> dict:
    """Return the result of ``relboltz validate --quick`` for a copy."""
    with tempfile.TemporaryDirectory(prefix="relboltz-") as name:
        folder = Path(name)
        copied(folder, mutation)
        # Keep compiled code of a mistake out of the cache.
        cache = {"XDG_CACHE_HOME": name} if mutation is not None else {}
        result = folder / "result.json"
        command = [sys.executable, "-m", "relboltz", "validate", "--quick", "--backend", "cpu"]
        done = subprocess.run(
            [*command, "--json", str(result), *problems], cwd=folder, capture_output=True,
            text=True, env={**os.environ, **cache, "PYTHONPATH": name},
        )  # fmt: skip
        if not result.exists():
            words = done.stderr.strip().splitlines() or ["no message"]
            return {"passed": False, "problems": [], "crashed": words[-1]}
        return json.loads(result.read_text())


def noticed(found: dict) -> list[str]:
    """Return the problems that failed, each with the row farthest beyond its tolerance."""
    lines = [found["crashed"]] if "crashed" in found else []
    for part in found["problems"]:
        wrong = [row for row in part["rows"] if not row["passed"]]
        if wrong:
            worst = max(wrong, key=lambda row: float("inf") if row["error"] is None
                        else row["error"] / max(row["tolerance"], 1e-300))  # fmt: skip
            error = "raised" if worst["error"] is None else f"{worst['error']:.3g}"
            lines.append(
                f"{part['name']}: {len(wrong)} of {len(part['rows'])} rows, e.g. "
                f"{worst['quantity']}: {error}, allowed {worst['tolerance']:.2g}"
            )
    return lines


def main() -> int:
    """Make all mistakes, or those named."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="parts of names")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--json")
    parser.add_argument("--all-problems", action="store_true")
    given = parser.parse_args()
    chosen = [m for m in MUTATIONS if not given.names or any(n in m.name for n in given.names)]
    if given.list:
        for m in MUTATIONS:
            print(f"{m.name:56s} {m.file:28s} {', '.join(m.problems)}")
        return 0
    figures, missed = [], []
    problems = (
        () if given.all_problems else tuple(dict.fromkeys(p for m in chosen for p in m.problems))
    )
    untouched = asked(None, problems)
    print(f"as it is: {'all hold' if untouched['passed'] else noticed(untouched)}", flush=True)
    for number, m in enumerate(chosen, 1):
        began = time.perf_counter()
        found = asked(m, () if given.all_problems else m.problems)
        lines = noticed(found)
        seconds = time.perf_counter() - began
        figures.append({"name": m.name, "file": m.file, "caught": bool(lines), "by": lines})
        print(f"{number}/{len(chosen)} {m.name} ({seconds:.0f} s): {'; '.join(lines) or 'MISSED'}",
              flush=True)  # fmt: skip
        if not lines:
            missed.append(m.name)
    if given.json:
        Path(given.json).write_text(json.dumps(figures, indent=1) + "\n")
    print(
        f"{len(chosen) - len(missed)} of {len(chosen)} caught"
        + (f"; missed: {missed}" if missed else "")
    )
    return int(bool(missed) or not untouched["passed"])


if __name__ == "__main__":
    sys.exit(main())
