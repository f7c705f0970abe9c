"""Stands in for a program on a page that is only tried: looks at its arguments, does nothing.

relboltz parses its command line with its own options; pip knows the extras of this package; srun
and mpirun start what they are given.
"""

import re
import subprocess
import sys
from pathlib import Path


def relboltz(arguments):
    """Options and arguments must be those of the command."""
    import click
    import typer

    from relboltz.cli.app import app

    group = typer.main.get_command(app)
    try:
        with group.make_context("relboltz", list(arguments), resilient_parsing=True):
            pass
        command = group.commands[arguments[0]]
        command.make_context(arguments[0], list(arguments[1:]))
    except click.ClickException as error:
        sys.exit(f"relboltz {' '.join(arguments)}: {error.format_message()}")
    except KeyError:
        sys.exit(f"relboltz {arguments[0]}: no such command")


def pip(arguments):
    """Extras must be there."""
    from importlib.metadata import metadata

    known = set(metadata("relboltz").get_all("Provides-Extra") or ())
    for extras in re.findall(r"(?:\.|relboltz)\[([\w,]+)\]", " ".join(arguments)):
        missing = set(extras.split(",")) - known
        if missing:
            sys.exit(f"pip {' '.join(arguments)}: no extra {missing} of relboltz")


def launched(arguments):
    """The program that mpirun or srun is given, without their own options."""
    rest = list(arguments)
    while rest and rest[0] not in ("relboltz", "python", "ray"):
        rest.pop(0)
    if rest and rest[0] != "python":
        sys.exit(subprocess.run(rest, check=False).returncode)


def main():
    name, *arguments = sys.argv[1:]
    if name == "relboltz":
        relboltz(arguments)
    elif name == "pip":
        pip(arguments)
    elif name in ("srun", "mpirun"):
        launched(arguments)
    elif name == "git":  # a clone has a folder
        Path(arguments[-1]).mkdir()
    elif name == "python3":  # -m venv FOLDER
        (Path(arguments[-1]) / "bin").mkdir(parents=True)
        (Path(arguments[-1]) / "bin" / "activate").touch()
    elif name == "scontrol":
        print("node")


if __name__ == "__main__":
    main()
