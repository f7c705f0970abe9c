"""Compare this version with another version bit by bit, in every feature.

    python benchmarks/same_numbers.py --against HEAD~3          # a revision: both are run now
    python benchmarks/same_numbers.py --keep before.npz         # or in two steps: one version,
    python benchmarks/same_numbers.py --against before.npz      # then another

Every variable of every set-up of ``set_ups.py`` is compared bit by bit: all set-ups on the CPU,
the tiny ones in the CUDA simulator, and with ``--backend cuda`` all on a GPU. The exit code is 1 if
a variable that ``intended_changes.toml`` does not list differs in any bit, or if a variable is
missing. Renamed variables are compared using the map in that file.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import subprocess
import sys
import tempfile
import time
import warnings
from contextlib import ExitStack
from fnmatch import fnmatchcase
from pathlib import Path

import numpy as np
import set_ups
from set_ups import CHANGES, SET_UPS, TEAMS, TINY, Numbers
from versions import checked_out, environment

import relboltz as rb

SIMULATED = os.environ.get("NUMBA_ENABLE_CUDASIM") == "1"
FEW = 4
"""Number of variables of a set-up that are named when many differ."""


def computed(name: str, given: argparse.Namespace) -> Numbers:
    """Return the numbers of a set-up."""
    options = {"backend": given.backend, "threads": 1}
    if given.precision:
        options["precision"] = given.precision
    if name in TINY:
        return TINY[name](**options)
    if name not in TEAMS:
        return SET_UPS[name](**options)
    which, launcher = TEAMS[name]
    if launcher == "ray":
        return SET_UPS[which](**options, workers=2)
    with tempfile.TemporaryDirectory() as folder:
        return set_ups.with_mpi(which, given.backend, folder)


def chosen(given: argparse.Namespace) -> list[str]:
    """Return the names of the set-ups that can run here."""
    if given.names:
        return list(given.names)
    if SIMULATED:
        return list(TINY)
    names = list(SET_UPS)
    for name, (_, launcher) in TEAMS.items():
        module = {"ray": "ray", "mpi": "mpi4py"}[launcher]
        if given.backend == "cpu" and importlib.util.find_spec(module):
            names.append(name)
        else:
            print(f"{name}: left out, {'it is for the CPU' if given.backend != 'cpu' else module}")
    return names


def all_numbers(given: argparse.Namespace) -> Numbers:
    """Compute all set-ups in this process, under "set-up/variable"."""
    warnings.simplefilter("ignore")
    if SIMULATED:  # the patches that make the simulator reliable belong to the version it runs
        tests = Path(rb.__file__).parent.parent / "tests"
        sys.path[1:1] = [str(tests / "helpers"), str(tests)]  # where versions have them
        importlib.import_module("begun")
    found: Numbers = {}
    for name in chosen(given):
        began = time.perf_counter()
        numbers = computed(name, given)
        found |= {f"{name}/{key}": values for key, values in numbers.items()}
        if given.verbose:
            print(f"{name}: {time.perf_counter() - began:.1f} s", flush=True)
    return found


# --- comparing ----------------------------------------------------------------------------------


def reason(name: str, variable: str) -> str | None:
    """Return why a variable of a set-up may differ, None if it may not."""
    for change in CHANGES.get("change", []):
        set_up = any(fnmatchcase(name, pattern) for pattern in change["set_ups"])
        if set_up and any(fnmatchcase(variable, pattern) for pattern in change["variables"]):
            return str(change["reason"])
    return None


def difference(now: np.ndarray | None, before: np.ndarray) -> str:
    """Describe how two arrays differ; '' if all bits are equal."""
    if now is None:
        return "gone"
    if (now.shape, now.dtype) != (before.shape, before.dtype):
        return f"{now.dtype}{list(now.shape)}, was {before.dtype}{list(before.shape)}"
    if now.tobytes() == before.tobytes():
        return ""
    a, b = now.astype(float), before.astype(float)
    if (np.isnan(a) != np.isnan(b)).any():
        return "NaN elsewhere"
    size = np.nanmax(np.abs(b), initial=0.0) or 1.0
    return f"{np.nanmax(np.abs(a - b), initial=0.0) / size:.1e} of the largest"


def compared(now: Numbers, before: Numbers) -> bool:
    """Print a line for every set-up; return whether all bits are equal or meant to differ."""
    renamed = CHANGES["variables"]
    former = {}
    for key, values in before.items():
        name, variable = key.split("/", 1)
        former[f"{name}/{renamed.get(variable, variable)}"] = values
    names = dict.fromkeys(key.split("/", 1)[0] for key in former)
    holds = bool(names)
    for name in names:
        keys = [key for key in former if key.startswith(f"{name}/")]
        if not any(key.startswith(f"{name}/") for key in now):
            print(f"NOT DONE    {name}")
            holds = False
            continue
        found = {key.split("/", 1)[1]: difference(now.get(key), former[key]) for key in keys}
        differ = {variable: words for variable, words in found.items() if words}
        wrong = {v: words for v, words in differ.items() if reason(name, v) is None}
        if wrong:
            holds = False
            listed = [f"{v} ({words})" for v, words in wrong.items()]
            more = f" and {len(listed) - FEW} more" if len(listed) > FEW else ""
            print(f"OTHER BITS  {name}: {', '.join(listed[:FEW])}{more}")
        elif differ:
            why = dict.fromkeys(str(reason(name, v)) for v in differ)
            print(f"intended    {name}: {len(differ)} of {len(keys)} variables; {'; '.join(why)}")
        else:
            print(f"same bits   {name}: {len(keys)} variables")
    for name in dict.fromkeys(key.split("/", 1)[0] for key in now):
        if name not in names:
            print(f"new         {name}")
    return holds


# --- the two versions ---------------------------------------------------------------------------


def started(
    given: argparse.Namespace, tree: Path, file: Path, simulator: bool
) -> subprocess.Popen[bytes]:
    """Start a process that computes with the relboltz of a tree and saves the numbers."""
    own = [name for name in given.names if (name in TINY) == simulator]
    words = [*own, "--keep", str(file), "--no-simulator"]
    words += ["--backend", "cuda" if simulator else given.backend]
    if simulator or given.precision:
        words += ["--precision", given.precision or "float64"]
    words += ["--verbose"] if given.verbose else []
    more = {"NUMBA_ENABLE_CUDASIM": "1"} if simulator else {}
    return subprocess.Popen(
        [sys.executable, __file__, *words], env=environment(tree, **more), cwd=tree
    )


def numbers_by(given: argparse.Namespace, trees: list[Path]) -> list[Numbers]:
    """Compute with the versions in these trees, side by side; the simulator after the CPU."""
    found: list[Numbers] = [{} for _ in trees]
    some, tiny = (f(name in TINY for name in given.names) for f in (any, all))
    if some and not given.simulator:
        raise SystemExit("tiny set-ups are for the CUDA simulator, which is not used here")
    rounds = [] if given.names and tiny else [False]
    rounds += [True] if given.simulator and (some or not given.names) else []
    with tempfile.TemporaryDirectory() as folder:
        for simulator in rounds:
            files = [Path(folder, f"{i}-{simulator}.npz") for i in range(len(trees))]
            pairs = zip(trees, files, strict=True)
            running = [started(given, tree, file, simulator) for tree, file in pairs]
            if any([process.wait() for process in running]):
                raise SystemExit("a version could not be computed, see above")
            for numbers, file in zip(found, files, strict=True):
                with np.load(file) as kept:
                    numbers.update(kept)
    return found


def main() -> int:
    """Compute, save and compare."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", help="set-ups; without any, all")
    parser.add_argument("--keep", help="write the numbers to this .npz file")
    parser.add_argument("--against", help="a .npz file, a revision or a folder with one")
    parser.add_argument("--backend", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--precision")
    parser.add_argument("--no-simulator", dest="simulator", action="store_false")
    parser.add_argument("--verbose", action="store_true", help="print the seconds of each set-up")
    given = parser.parse_args()
    unknown = sorted(set(given.names) - {*SET_UPS, *TEAMS, *TINY})
    if unknown:
        parser.error(f"no set-up is named {unknown[0]!r}; there are {[*SET_UPS, *TEAMS, *TINY]}")
    if given.backend == "cuda" or importlib.util.find_spec("numba_cuda") is None:
        given.simulator = False
    tree = Path(rb.__file__).resolve().parent.parent
    if given.against is None:
        simple = SIMULATED or not given.simulator
        now = all_numbers(given) if simple else numbers_by(given, [tree])[0]
        holds = True
    else:
        with ExitStack() as stack:
            file = Path(given.against)
            trees = [tree]
            if not file.is_file():
                trees.append(stack.enter_context(checked_out(given.against)))
            now, *others = numbers_by(given, trees)
        if others:
            before = others[0]
        else:
            with np.load(file) as kept:
                before = {
                    k: kept[k] for k in kept if not given.names or k.split("/")[0] in given.names
                }
        holds = compared(now, before)
        print("all bits are the same, or meant to differ" if holds else "THERE ARE OTHER BITS")
    if given.keep:
        np.savez_compressed(given.keep, **now)
    return int(not holds)


if __name__ == "__main__":
    sys.exit(main())
