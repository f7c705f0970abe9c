"""relboltz run --replicas R, and relboltz resume of interrupted replicas."""

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import xarray as xr

from ..initial import FromFile
from ..io import kinds, output
from ..run import progress
from ..run.input_file import Config
from ..run.setup import Case
from ..studies.replicas import check_count, plan_of, planned_again, replicated
from ..util.errors import InputError
from .console import announced, console, tell, told


def run_replicas(settings: Config, path: Path, count: int, force: bool, quiet: bool) -> xr.Dataset:
    """Run a configuration with several seeds."""
    check_count(count)
    output.check_free(path, force, "choose another name (--out), replace it (--force), or")
    for name, state in settings.build_initial().items():
        if isinstance(state, FromFile) and output.same_file(state.path, path):
            raise InputError(
                f"output.file = {str(path)!r} is what initial.{name} starts from; choose another"
            )
    with told(path, quiet, kept_apart=True):
        return _replicated(Case.of_config(settings), path, count, quiet)


def resume_replicas(
    file: Path, until: float | None, run: dict[str, Any], quiet: bool, trust: bool = False
) -> xr.Dataset | None:
    """Run the remaining replicas; return None if the file does not belong to replicas."""
    if until is not None and _of_replicas(file):
        raise InputError(
            f"until = {until!r}: {file} is the mean of replicas; run its configuration with this "
            "end: relboltz run FILE.toml --replicas R --set time.end=T"
        )
    if plan_of(file) is None:
        return None
    with told(file, quiet, kept_apart=True):
        others = {k: v for k, v in run.items() if v is not None}
        case, count = planned_again(file, others, trust)
        return _replicated(case, file, count, quiet)


def _of_replicas(file: Path) -> bool:
    """Whether a file is, or will be, a mean over replicas."""
    if plan_of(file) is not None:
        return True
    return kinds.recorded(file) == kinds.REPLICAS


def _replicated(case: Case, path: Path, count: int, quiet: bool) -> xr.Dataset:
    """Run all replicas, each with a line of text and a progress bar."""
    with nullcontext() if quiet else progress.bar(console) as report:
        return replicated(
            case, count, path, report, *((None, None) if quiet else (announced, _say))
        )


def _say(number: int, count: int, case: Case) -> None:
    tell(f"replica {number} of {count}, seed {case.seed}")
