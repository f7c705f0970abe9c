"""Options shared by commands, with shell completion and validation."""

import re
from pathlib import Path
from typing import Annotated

import typer

from ..util.errors import InputError

BACKENDS = ("auto", "cpu", "cuda")
MOST_THREADS = 1024
WORDS = {
    "model.name": ("gluons", "qcd", "quarks"),
    "model.masses": ("thermal", "massless"),
    "model.screening": ("thermal", "ekt"),
    "grid.boundary": ("periodic", "reflecting", "open"),
    "grid.momentum_boundary": ("closed", "periodic"),
    "collisions.projection": ("conserving", "nearest"),
    "collisions.kinematics": ("cm", "k2", "k3"),
    "collisions.pair_sampling": ("importance", "uniform"),
    "run.backend": BACKENDS,
    "run.precision": ("auto", "float32", "float64"),
}
"""Allowed words of keys; those of initial.SPECIES.shape follow."""
SHAPES = (
    "step", "thermal", "gaussian", "random", "gradient", "romatschke-strickland", "glasma", "file",
)  # fmt: skip
TEMPLATE = Path(__file__).parent.parent / "config" / "template.toml"


def keys() -> list[str]:
    """Return all dotted keys of a configuration, in the order of the template."""
    found, table = [], ""
    for line in TEMPLATE.read_text().splitlines():
        if heading := re.match(r"(# )?\[([a-z.]+)\]", line):
            table = f"{heading[2]}."
        elif key := re.match(r"(# )?([a-z_]+) = ", line):
            found.append(f"{table}{key[2]}")
    return found


def completed_key(incomplete: str) -> list[str]:
    """Return completions of --set and --over: keys, or allowed words after "key="."""
    key, equals, _ = incomplete.partition("=")
    if not equals:
        return [f"{known}=" for known in keys() if known.startswith(incomplete)]
    description = SHAPES if re.fullmatch(r"initial\.[^.]+\.shape", key) else WORDS.get(key, ())
    return [one for one in (f"{key}={word}" for word in description) if one.startswith(incomplete)]


def completed_backend(incomplete: str) -> list[str]:
    """Return completions of --backend."""
    return [name for name in BACKENDS if name.startswith(incomplete)]


Set = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="KEY=VALUE", help="Override a key, such as time.end=2.0; repeatable.",
        autocompletion=completed_key,
    ),
]  # fmt: skip
Backend = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="auto, cpu or cuda.", autocompletion=completed_backend),
]
Threads = Annotated[int | None, typer.Option(metavar="N", help="CPU threads; 0 = all cores.")]
Workers = Annotated[int | None, typer.Option(metavar="N", help="Ray workers; 0 = none.")]
Configuration = Annotated[Path, typer.Argument(metavar="FILE.toml", help="Configuration.")]
Result = Annotated[Path, typer.Argument(metavar="F.nc", help="Result of a run, NetCDF.")]
Results = Annotated[
    list[Path], typer.Argument(metavar="F.nc", help="Result; several are compared.")
]
Json = Annotated[
    Path | None,
    typer.Option("--json", metavar="F.json", help="Also write the numbers to this file."),
]
Force = Annotated[bool, typer.Option("--force", help="Replace an existing result.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="No progress, no table.")]


def overridden(
    given: list[str] | None, threads: int | None, backend: str | None, workers: int | None = None
) -> list[str]:
    """Return --set together with the options that stand for keys of [run]."""
    found = list(given or [])
    found += [f"run.threads={threads}"] if threads is not None else []
    found += [f"run.backend={backend!r}"] if backend is not None else []
    found += [f"run.workers={workers}"] if workers is not None else []
    return found


def check_place(backend: str | None, threads: int | None) -> tuple[str, int]:
    """Return backend and threads; raise InputError if the options are invalid."""
    backend, threads = backend or "auto", threads or 0
    if backend not in BACKENDS:
        raise InputError(f"--backend {backend}: use auto, cpu or cuda")
    if not 0 <= threads <= MOST_THREADS:
        raise InputError(
            f"--threads {threads}: use a whole number, at most {MOST_THREADS}; 0 = all cores"
        )
    return backend, threads
