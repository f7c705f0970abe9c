"""relboltz check FILE.toml: validate the file and estimate time and memory."""

import json
from typing import Annotated, Any

import typer

from ..util.errors import InputError
from .console import console, delivered, plain_warnings, tell, waiting
from .options import Backend, Configuration, Json, Set, Threads, overridden


def check(
    file: Configuration,
    set_: Set = None,
    seconds: Annotated[
        float, typer.Option(metavar="S", help="Time limit for each of two short trial runs.")
    ] = 10.0,
    threads: Threads = None,
    backend: Backend = None,
    json_: Json = None,
) -> None:
    """Validate a configuration, and estimate time, memory and disk space on this machine.

    The estimate comes from two short trial runs, which write nothing.
    """
    with waiting(f"reading {file}"):
        from ..analysis import tables
        from ..io import output
        from ..run import input_file as config
        from ..run.setup import Case
        from ..studies import cost_estimate as estimating

    if not 0.1 <= seconds <= 3600:
        raise InputError(f"--seconds {seconds:g}: use a number from 0.1 to 3600")
    if json_ is not None:
        output.check_writable(json_, "--json")
    settings = config.load(file, overridden(set_, threads, backend))
    with plain_warnings():
        with waiting("choosing the grid"):
            case = Case.of_config(settings)
        tell(f"{file}: all keys are legal")
        with waiting("trying some steps"):
            found = estimating.estimate(case, seconds)
    console.print(tables.estimate(case, found))
    if json_ is not None:
        json_.write_text(json.dumps(_plain(found), indent=1) + "\n")
        tell(f"written: {json_}")
    else:
        delivered()


def _plain(found: Any) -> dict[str, Any]:
    names = (
        "steps", "seconds_to_begin", "seconds_per_step", "seconds_per_record", "seconds",
        "core_seconds", "records", "snapshots", "memory", "device_memory", "file_size",
        "checkpoint_size", "finished",
    )  # fmt: skip
    return {name: getattr(found, name) for name in names}
