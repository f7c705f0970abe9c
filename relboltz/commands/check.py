"""relboltz check FILE.toml: is it legal, and what will it take?"""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from ..errors import InputError
from ..terminal import console, delivered, errors, plain_warnings, tell


def check(
    file: Annotated[Path, typer.Argument(help="Configuration, TOML.")],
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="key=value, e.g. time.end=2.0; repeatable.")
    ] = None,
    seconds: Annotated[float, typer.Option(help="For each of two short trials.")] = 10.0,
    threads: Annotated[int | None, typer.Option(help="Threads; 0 = all cores.")] = None,
    backend: Annotated[str | None, typer.Option(help="auto, cpu or cuda.")] = None,
    json_: Annotated[Path | None, typer.Option("--json", help="Write the figures here.")] = None,
) -> None:
    """Check a configuration, and estimate time, memory and disk on this machine."""
    from .. import config, estimating, tables
    from ..cases import Case
    from ..records import output

    if not 0.1 <= seconds <= 3600:
        raise InputError(f"--seconds {seconds:g}: use a number from 0.1 to 3600")
    overrides = list(set_ or [])
    overrides += [f"run.threads={threads}"] if threads is not None else []
    overrides += [f"run.backend={backend!r}"] if backend is not None else []
    if json_ is not None:
        output.check_writable(json_, "--json")
    settings = config.load(file, overrides)
    tell(f"{file}: all keys are legal")
    with plain_warnings():
        with errors.status("choosing the grid ..."):
            case = Case.of_config(settings)
        with errors.status("trying some steps ..."):
            found = estimating.estimate(case, seconds)
    console.print(tables.estimate(case, found))
    if json_ is not None:
        json_.write_text(json.dumps(_plain(found), indent=1) + "\n")
        tell(f"written: {json_}")
    else:
        delivered()


def _plain(found: Any) -> dict[str, Any]:
    names = (
        "steps", "seconds_per_step", "seconds_per_record", "seconds", "records", "snapshots",
        "memory", "device_memory", "file_size", "checkpoint_size", "finished",
    )  # fmt: skip
    return {name: getattr(found, name) for name in names}
