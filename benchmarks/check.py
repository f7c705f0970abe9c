"""Compare the predictions of ``relboltz check`` with actual runs in separate processes, in a table.

    python benchmarks/check.py [NAME ...] [--threads 2] [--often 1]

Wall times depend on the load of the machine, which may differ between the check and the run; so
core seconds are compared as well: those of the run (user time), and the prediction for its share of
the cores.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

GAS = '''
import numpy as np
import relboltz as rb


def gas(mass=0.2):
    """A classical gas of two kinds, with a cross section that is the same at all energies."""
    kinds = [rb.Species("a", 3), rb.Species("b", 2)]
    pairs = ["a a -> a a", "a b -> a b", "b b -> b b"]
    return rb.Model(kinds, [rb.Process(p, sigma=0.3) for p in pairs], masses={"a": mass})


def tilted(px, py, pz):
    return np.exp(-np.sqrt(px**2 + py**2 + 4 * pz**2) / 0.5)


def spot(x, y, z, px, py, pz):
    p = np.sqrt(px**2 + py**2 + pz**2)
    return 0.8 * np.exp(-(x**2) - y**2) * np.exp(-p / 0.5)
'''
STEP = '[initial.g]\nshape = "step"\nheight = 0.5\nedge = 1.5\n'
SETUPS = {
    "gluons": f"""
[model]
name = "gluons"
alpha_s = 0.3
[grid]
momentum_cells = 20
momentum_max = 2.5
{STEP}
[collisions]
samples = 400
[time]
end = 5.0
""",
    "mixture": f"""
[model]
name = "qcd"
alpha_s = 0.3
[grid]
momentum_cells = 16
momentum_max = 2.5
{STEP}
[time]
end = 2.0
""",
    "gluons 1-D": """
[model]
name = "gluons"
alpha_s = 0.3
[grid]
momentum_cells = 16
momentum_max = 2.5
space_cells = [24, 1, 1]
boundary = "open"
[initial.g]
shape = "own.py:spot"
sampling = "node"
[collisions]
samples = 4
[time]
end = 2.0
[output]
marginals = ["x px"]
""",
    "mixture 2-D": """
[model]
name = "qcd"
alpha_s = 0.3
[grid]
momentum_cells = 10
momentum_max = 2.5
space_cells = [8, 8, 1]
[initial.g]
shape = "own.py:spot"
sampling = "node"
[initial.quarks]
shape = "own.py:spot"
sampling = "node"
[collisions]
samples = 2
[time]
end = 1.0
""",
    "own gas": """
[model]
name = "own.py:gas"
[grid]
momentum_cells = 48
momentum_max = 5.0
[initial.a]
shape = "own.py:tilted"
[initial.b]
shape = "thermal"
temperature = 0.3
[collisions]
samples = 8
[time]
end = 3.0
step = 0.02
[output]
every = 0.02
""",
}


def measured(arguments: list[str], folder: str) -> tuple[float, float, float]:
    """Return wall seconds, core seconds and peak memory [bytes] of a separate process."""
    began = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "relboltz", *arguments],
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    _, status, used = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"relboltz {' '.join(arguments)}: status {status}")
    return time.perf_counter() - began, used.ru_utime + used.ru_stime, 1024 * used.ru_maxrss


def compared(name: str, threads: int) -> dict[str, float]:
    """Return predictions and measurements for a set-up."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "own.py").write_text(GAS)
        Path(folder, "own.toml").write_text(SETUPS[name])
        place = ["--backend", "cpu", "--threads", str(threads)]
        measured(["check", "own.toml", "--seconds", "0.1", *place], folder)  # compiles
        spent, _, _ = measured(["check", "own.toml", "--json", "told.json", *place], folder)
        told = json.loads(Path(folder, "told.json").read_text())
        wall, cores, memory = measured(["run", "own.toml", "--out", "run.nc", *place], folder)
        size = Path(folder, "run.nc").stat().st_size
        steps = _steps(Path(folder, "run.nc"))
    return {
        "predicted": told["seconds"], "wall": wall, "cores": cores, "check": spent,
        "predicted_cores": told["core_seconds"],
        "steps": steps, "predicted_steps": told["steps"],
        "memory": memory, "predicted_memory": told["memory"],
        "file": size, "predicted_file": told["file_size"],
    }  # fmt: skip


def _steps(path: Path) -> int:
    from relboltz.io import output

    return int(output.attributes(path)["steps"][0])


def main() -> None:
    """Run all set-ups, or those that are named."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help=f"of {', '.join(SETUPS)}; all by default")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--often", type=int, default=1)
    given = parser.parse_args()
    print("| set-up | steps | time [s] | all cores [s] | memory [MB] | file [MB] | check [s] |")
    print("|---|---|---|---|---|---|---|")
    for name in given.names or SETUPS:
        for _ in range(given.often):
            f = compared(name, given.threads)
            print(
                f"| {name} | {f['predicted_steps']:.0f} / {f['steps']:.0f} "
                f"| {f['predicted']:.1f} / {f['wall']:.1f} = {f['predicted'] / f['wall']:.2f} "
                f"| {f['predicted_cores']:.1f} / {f['cores']:.1f} "
                f"= {f['predicted_cores'] / f['cores']:.2f} "
                f"| {f['predicted_memory'] / 1e6:.0f} / {f['memory'] / 1e6:.0f} "
                f"= {f['predicted_memory'] / f['memory']:.2f} "
                f"| {f['predicted_file'] / 1e6:.2f} / {f['file'] / 1e6:.2f} "
                f"| {f['check']:.0f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
