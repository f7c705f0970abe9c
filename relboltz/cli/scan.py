"""relboltz scan FILE.toml --over key=value,value,...: a parameter scan as one Dataset."""

from contextlib import nullcontext
from pathlib import Path
from typing import Annotated, Any

import typer

from ..util.errors import InputError, Interrupted, RunError
from ..util.text import unmarked
from .console import console, errors, plain_warnings, tell
from .options import Configuration, Force, Quiet, Set, completed_key


def scan(
    file: Configuration,
    over: Annotated[
        list[str],
        typer.Option(
            "--over",
            metavar="KEY=VALUE,VALUE,...",
            autocompletion=completed_key,
            help="Values to scan, such as model.alpha_s=0.1,0.2; repeatable.",
        ),
    ],
    out: Annotated[
        Path | None, typer.Option(metavar="F.nc", help="Default: F-scan.nc beside output.file.")
    ] = None,
    set_: Set = None,
    workers: Annotated[
        int, typer.Option(metavar="N", help="Ray workers, a point each; 0 = serial.")
    ] = 0,
    address: Annotated[
        str, typer.Option(metavar="HOST", help="Ray cluster; by default one is started.")
    ] = "",
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Run every combination of values and write one Dataset with a dimension per key.

    A point that fails is reported and the others continue. The runs are kept in F.scan beside the
    output: repeating the command (with --force once the output is written) runs only the missing
    points.
    """
    from ..io import output
    from ..io.reservation import base
    from ..run import input_file as config
    from ..run import progress
    from ..studies.scan import check_free, check_spread, points_of, scanned

    settings = config.load(file, set_ or ())
    own = Path(settings.output.file)
    path = out if out is not None else own.with_name(f"{base(own)}-scan.nc")
    if output.same_file(path, file):
        raise InputError(f"--out {path}: is the configuration itself; use another name")
    check_spread(workers, address)
    check_free(path, force, "--force")
    asked = dict(_asked(text) for text in over)
    if len(asked) < len(over):
        raise InputError("--over: a key is there twice; give all of its values at once")
    points = points_of(file, asked, set_ or ())

    def say(number: int, count: int, description: str) -> None:
        if not quiet:
            tell(f"point {number} of {count}: {description}")

    try:
        with plain_warnings(quiet), nullcontext() if quiet else progress.bar(console) as report:
            ds = scanned(points, path, report, (workers, address), say)
    except Interrupted as error:
        description = f"[yellow]{unmarked(error)}[/]; the same command does what is left"
        errors.print(description, soft_wrap=True)
        raise typer.Exit(128 + error.signal) from None
    except RunError as error:
        if error.dataset is not None:
            tell(f"written: {path}   ({_size(error.dataset)})")
        raise
    tell(f"written: {path}   ({_size(ds)})")


def _size(ds: Any) -> str:
    return " x ".join(f"{n} {name}" for name, n in ds.status.sizes.items())


def _asked(text: str) -> tuple[str, list[Any]]:
    """Return key and values of "key=value,value,..."; lists and tables are TOML."""
    import tomllib

    from ..run.input_file import parsed_value

    key, equals, values = text.partition("=")
    if not equals or not key.strip() or not values.strip():
        raise InputError(f"--over {text}: write key=value,value,..., such as model.alpha_s=0.1,0.2")
    try:
        found = tomllib.loads(f"values = [{values}]")["values"]
    except (ValueError, RecursionError):  # bare words
        found = [parsed_value(one.strip(), f"--over {text}") for one in values.split(",")]
    return key.strip(), list(found)
