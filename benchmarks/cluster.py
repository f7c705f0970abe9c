"""Compare many workers with one process: python benchmarks/cluster.py [bits|kills|all|speed].

bits   1 to 4 workers with Ray and with mpirun, homogeneous and in space, open and periodic walls
kills  kill -9 of one Ray worker at a random moment, ten runs: results must be bit-for-bit equal
all    kill -9 of everything, then resume with another number of workers
speed  two workers with one thread each against two threads of one process, alternately
swaps  (mpirun -n 2 python benchmarks/cluster.py swaps) time of an exchange with MPI and sockets
"""

import contextlib
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import relboltz as rb

HERE, PROGRAM = Path(sys.executable).parent, Path(__file__).resolve()
MPIRUN = ["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none"]
COMMON = """
[model]
name = "qcd"
alpha_s = 0.3
[initial.g]
shape = {shape}
[initial.quarks]
shape = {shape}
[run]
backend = "cpu"
threads = 1
"""
SPACE = """
[grid]
momentum_cells = {momenta}
momentum_max = 2.5
space_cells = {cells}
boundary = "{walls}"
[time]
end = {end}
[collisions]
samples = {samples}
[output]
every = 0.02
snapshots = [{end}]
marginals = ["x px", "y"]
"""
BOX = """
[grid]
momentum_cells = 12
momentum_max = 2.5
[time]
end = {end}
[collisions]
samples = {samples}
[output]
every = 0.02
snapshots = [{end}]
"""


def written(name: str, end: float = 0.1, samples: int = 2, momenta: int = 6) -> Path:
    """Write a configuration: "box", or cells and walls such as "8,4,1 open"."""
    path = Path(f"{name.replace(' ', '_').replace(',', 'x')}.toml")
    if name == "box":
        text = COMMON.format(shape='"gaussian"\nheight = 0.4\nwidths = [0.8, 0.8, 0.5]')
        text += BOX.format(end=10 * end, samples=2 * samples)
    else:
        cells, walls = name.split()
        text = COMMON.format(shape='"gradient"\nminimum = 0.2\nmaximum = 0.5')
        text += SPACE.format(cells=f"[{cells}]", walls=walls, end=end, samples=samples,
                             momenta=momenta)  # fmt: skip
    path.write_text(text)
    return path


def command(config: Path, out: str, *more: str, mpi: int = 0) -> list[str]:
    """Return the command line of a run."""
    before = [str(HERE / MPIRUN[0]), *MPIRUN[1:], "-n", str(mpi)] if mpi else []
    return [*before, str(HERE / "relboltz"), "run", str(config), "--out", out, "--quiet",
            "--force", *more]  # fmt: skip


def done(arguments: list[str]) -> str:
    """Run a program to its end; return its error message if it failed."""
    told = subprocess.run(arguments, capture_output=True, text=True, timeout=600)
    return told.stderr.strip()[-300:] if told.returncode else ""


def same(one: str, two: str) -> str:
    """Compare two results bit by bit; return the verdict."""
    a, b = rb.load(one), rb.load(two)
    bad = [
        n
        for n in b.variables
        if a[n].shape != b[n].shape
        or not np.array_equal(a[n].values, b[n].values, equal_nan=a[n].dtype.kind == "f")
    ]
    return "same bits" if not bad else f"DIFFERENT: {bad[:6]}"


def bits() -> None:
    for name in ("box", "8,4,1 open", "8,4,1 periodic", "24,2,1 open", "24,2,1 periodic"):
        config = written(name)
        done(command(config, "one.nc", "--workers", "0"))
        for count in (1, 2, 3, 4):
            for way in ("Ray", "MPI"):
                ray = ["--workers", str(count)] if way == "Ray" else []
                error = done(command(config, "many.nc", *ray, mpi=0 if ray else count))
                verdict = error or same("one.nc", "many.nc")
                print(f"{name:16s} {count} workers, {way}: {verdict}", flush=True)


def family(pid: int) -> dict[int, str]:
    """Return a process and all its descendants, with their command lines."""
    rows = subprocess.run(["ps", "-eo", "pid=,ppid=,args="], capture_output=True, text=True).stdout
    table = [line.split(None, 2) for line in rows.splitlines()]
    found, more = {}, {pid}
    while more:
        found |= {int(row[0]): row[-1] for row in table if int(row[0]) in more}
        more = {int(row[0]) for row in table if int(row[1]) in more} - found.keys()
    return found


def workers(pid: int) -> list[int]:
    """Return the process numbers of the Ray workers of a process."""
    return [one for one, description in family(pid).items() if description.startswith("ray::Actor")]


def kills(count: int = 10) -> None:
    dice = random.Random(1)
    names = ("box", "8,4,1 open", "24,2,1 periodic")
    for name in names:
        done(command(written(name, 0.3, 4, 8), f"{name[0]}.nc"))
    for turn in range(count):
        name = names[turn % len(names)]
        config = written(name, 0.3, 4, 8)
        arguments = command(config, "many.nc", "--workers", "2")
        process = subprocess.Popen(arguments, stderr=subprocess.DEVNULL)
        while len(workers(process.pid)) < 2 and process.poll() is None:
            time.sleep(0.05)
        wait = dice.uniform(0.0, 1.0) * (3.0 if name == "box" else 10.0)
        time.sleep(wait)
        there = workers(process.pid)
        victim = dice.choice(there) if there else 0
        if victim:
            os.kill(victim, signal.SIGKILL)
        code = process.wait(timeout=600)
        verdict = same(f"{name[0]}.nc", "many.nc") if code == 0 else f"exit code {code}"
        hit = f"killed {wait:.1f} s after the workers came" if victim else "was over before"
        print(f"{turn + 1}: {name}, {hit}: {verdict}", flush=True)


def everything(count: int = 6) -> None:
    dice = random.Random(2)
    for turn in range(count):
        name = ("box", "8,4,1 open", "24,2,1 periodic")[turn % 3]
        config = written(name, 0.3, 4, 8)
        done(command(config, "one.nc"))
        for path in Path(".").glob("many.*"):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        mpi = turn % 2
        arguments = command(config, "many.nc", *([] if mpi else ["--workers", "2"]),
                            "--set", "output.checkpoint_every=0.5", mpi=2 * mpi)  # fmt: skip
        process = subprocess.Popen(arguments, stderr=subprocess.DEVNULL)
        while not list(Path(".").glob("many.checkpoint-*")) and process.poll() is None:
            time.sleep(0.05)
        time.sleep(dice.uniform(0.0, 3.0))
        for one in family(process.pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(one, signal.SIGKILL)
        process.wait()
        time.sleep(1.0)
        back = [str(HERE / "relboltz"), "resume", "many.nc", "--quiet"]
        error = done([*back, "--workers", str((0, 3, 4)[turn % 3])])
        verdict = error or same("one.nc", "many.nc")
        began = "mpirun" if mpi else "Ray"
        print(f"{turn + 1}: {name}, {began} with 2, killed, resumed with {(0, 3, 4)[turn % 3]}: "
              f"{verdict}", flush=True)  # fmt: skip


STEP = 2e-3


def steps(way: str) -> None:
    """Print seconds per step of a mixture in space, and the share of the time spent waiting."""
    grid = rb.PhaseSpace(20, 2.5, [8, 4, 1], 3.0)
    start = {"g": rb.initial.gradient(0.2, 0.5), "quarks": rb.initial.gradient(0.2, 0.5)}
    seen = []
    options = {"threads": 2 if way == "2 threads" else 1, "workers": 2 if "Ray" in way else 0}
    ds = rb.solve(
        rb.qcd(0.3), grid, start, end=6 * STEP, every=6 * STEP, step=STEP, samples=4,
        backend="cpu", progress=lambda moment: seen.append((moment.time, time.perf_counter())),
        **options,
    )  # fmt: skip
    if seen:
        (first, began), (last, ended) = seen[0], seen[-1]
        parts = np.divide(ds.attrs.get("worker_waiting", 0.0), ds.attrs.get("worker_seconds", 1.0))
        print("found", (ended - began) * STEP / (last - first), float(np.mean(parts)))


def speed(turns: int = 3) -> None:
    found: dict[str, list[list[float]]] = {
        way: [] for way in ("1 thread", "2 threads", "2 Ray workers", "2 MPI workers")
    }
    mpi = [str(HERE / MPIRUN[0]), *MPIRUN[1:], "-n", "2"]
    for _ in range(turns):
        for way, rows in found.items():
            one = [sys.executable, "-W", "ignore", str(PROGRAM), "steps", way]
            told = subprocess.run([*(mpi if "MPI" in way else []), *one], capture_output=True,
                                  text=True, timeout=600)  # fmt: skip
            line = next(line for line in told.stdout.splitlines() if line.startswith("found"))
            rows.append([float(word) for word in line.split()[1:]])
    base = np.median([row[0] for row in found["1 thread"]])
    for way, rows in found.items():
        seconds, waiting = np.median(rows, axis=0)
        print(f"{way:14s} {seconds:.3f} s a step, {base / seconds:.2f} times one thread, "
              f"{100 * waiting:.1f} % waiting")  # fmt: skip


def swaps() -> None:
    """Time swaps between processes of mpirun, by MPI and by sockets."""
    from mpi4py import MPI

    from relboltz.backends.team.mpi import MpiExchange
    from relboltz.backends.team.sockets import SocketExchange, listen

    world = MPI.COMM_WORLD
    listener = listen("127.0.0.1")
    addresses = world.allgather(("127.0.0.1", listener.getsockname()[1]))
    ways = {
        "MPI": MpiExchange(world),
        "sockets": SocketExchange(world.rank, addresses, listener, b"k" * 16),
    }
    for count in (1250, 6_250_000, 25_000_000):
        mine = [np.full(count, k) for k in range(world.size)]
        rooms = [np.zeros(count, np.int64) for _ in range(world.size)]
        for way, exchange in ways.items():
            times = []
            for _ in range(8):
                world.Barrier()
                began = time.perf_counter()
                exchange.swap(mine, rooms)
                times.append(time.perf_counter() - began)
            if world.rank == 0:
                seconds = np.median(times[1:])
                print(f"{way}: {8e-6 * count:.2f} MB there and as much back: "
                      f"{1e3 * seconds:.3f} ms, {8e-9 * count / seconds:.2f} GB/s")  # fmt: skip


def main() -> None:
    """Run the named parts in a temporary folder."""
    if sys.argv[1:2] == ["swaps"]:
        return swaps()
    if sys.argv[1:2] == ["steps"]:
        return steps(sys.argv[2])
    ways = {"bits": bits, "kills": kills, "all": everything, "speed": speed}
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for name in sys.argv[1:] or ways:
            print(f"--- {name}")
            ways[name]()


if __name__ == "__main__":
    main()
