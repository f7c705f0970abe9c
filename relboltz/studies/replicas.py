"""Replicas: independent runs that differ only in their seed, their mean and standard error.

Each replica is a separate run in the folder F.replicas with its own checkpoints; F.nc is written
when all of them are done. After an interruption, starting again completes the missing replicas.
"""

import hashlib
import json
import math
import tomllib
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
import tomli_w
import xarray as xr

from ..config.settings import GridSettings
from ..io import checkpoint, kinds, output
from ..io.output import GROWING
from ..io.reservation import Reservation, base
from ..run.input_file import Config
from ..run.progress import Report
from ..run.resume import elsewhere
from ..run.runner import Run
from ..run.setup import Case, derived_seed, folder_of, is_finished
from ..util.errors import AccuracyWarning, CheckpointWarning, InputError, Interrupted, RunError, say
from ..util.trust import doubt, path_of

MOST = 10_000
DRIFTS = ("charge_drift", "momentum_drift")
"""Exact integers for which the largest over all replicas is stored; a mean would hide it."""
PLAN = "plan.json"

Between = Callable[[int, int, Case], None]
"""Called with the replica number, the number of replicas, and the case about to run."""


def check_count(replicas: Any) -> int:
    """Return the number of replicas if it allows a standard error; raise InputError otherwise."""
    whole = isinstance(replicas, int) and not isinstance(replicas, bool)
    if not whole or not 2 <= replicas <= MOST:
        raise InputError(
            f"replicas = {replicas!r}: use a whole number from 2 to {MOST}; one run has no "
            "standard error, leave replicas out for it"
        )
    return int(replicas)


def replicated(
    case: Case,
    replicas: int,
    file: Path | None = None,
    progress: Report | None = None,
    announce: Callable[[Run], None] | None = None,
    between: Between | None = None,
) -> xr.Dataset:
    """Return mean and standard error over seeds; write them to ``file`` if given."""
    count, reserved = check_count(replicas), None
    if file is not None:
        output.check_writable(file)
        folder, reserved = folder_of(file, "replicas"), Reservation(file)
        reserved.take()
        _keep_plan(folder, case, count)
    try:
        parts: list[xr.Dataset] = []
        with ExitStack() as files:
            for k in range(count):
                one = case.with_keys("collisions", seed=derived_seed(case.seed, k))
                path = None if file is None else folder / f"replica-{k + 1}-{one.digest()}.nc"
                if between is not None:
                    between(k + 1, count, one)
                with _said_once(parts):
                    ds = _part(one, path, (k + 1, count), progress, None if parts else announce)
                parts.append(ds if not parts else _in_file(ds, path, files))
            ds = combined(parts)
        if file is not None:
            ds.attrs["configuration"] = _of_file(ds.attrs["configuration"], file)
            ds.attrs["plan"] = _digest((folder / PLAN).read_bytes())
            output.write(ds, file)
        return ds
    finally:
        if reserved is not None:
            reserved.free()


@contextmanager
def _said_once(parts: Sequence[xr.Dataset]) -> Iterator[None]:
    """Show the warnings of the first run only."""
    with warnings.catch_warnings():
        if parts:
            warnings.simplefilter("ignore", AccuracyWarning)
        yield


def _in_file(ds: xr.Dataset, path: Path | None, files: ExitStack) -> xr.Dataset:
    """Return the dataset read lazily from its file, because many may not fit into memory."""
    if path is None or not is_finished(path):
        return ds
    return files.enter_context(xr.open_dataset(path, engine="h5netcdf", cache=False))


def _of_file(configuration: str, file: Path) -> str:
    """Return the configuration of a replica with the output file of the mean."""
    described = tomllib.loads(configuration)
    described["output"]["file"] = str(file)
    return tomli_w.dumps(described)


def _part(
    case: Case, path: Path | None, place: tuple[int, int], progress: Report | None, announce: Any
) -> xr.Dataset:
    """Run one replica; errors name the replica in which they occurred."""
    description = f"in replica {place[0]} of {place[1]}"
    try:
        return case.done(path, progress, announce)
    except Interrupted as error:
        where = f"; what is done is in {path.parent}" if path else ""
        raise Interrupted(f"{error} {description}{where}", error.dataset, error.signal) from None
    except RunError as error:
        raise RunError(f"{description}: {error}", error.dataset) from error


# --- mean and error -----------------------------------------------------------------------------


def combined(parts: Sequence[xr.Dataset]) -> xr.Dataset:
    """Combine replicas: means, and ``*_error``, the standard error of the mean.

    If any replica has no value (NaN), neither has the mean: averaging the others would select a
    subset. A quantity that is equal in all replicas keeps its value, with error 0.
    """
    first = parts[0]
    for part in parts[1:]:
        if not np.array_equal(part.time.values, first.time.values):
            raise RunError("replicas have records at different times; start them again")
    found: dict[str, Any] = {}
    for name, variable in first.data_vars.items():
        values, description = ReplicaValues(parts, str(name)), variable.attrs.get("long_name", name)
        grows = any(dim in GROWING for dim in variable.dims)
        if variable.dtype.kind not in "fiu" or (not grows and np.all(_same(values))):
            found[str(name)] = variable
        elif name in DRIFTS:
            largest = reduce(lambda a, b: np.where(np.abs(b) > np.abs(a), b, a), values)
            description = f"{description}; of all replicas the largest"
            found[str(name)] = _like(variable, largest, description)
        else:
            mean, error = mean_and_error(values)
            found[str(name)] = _like(variable, mean, description)
            found[f"{name}_error"] = _like(
                variable, error, f"standard error of the mean over replicas: {description}"
            )
    return xr.Dataset(found, coords=first.coords, attrs=_attributes(parts))


@dataclass(frozen=True)
class ReplicaValues:
    """Values of a quantity in all replicas, one after the other."""

    parts: Sequence[xr.Dataset]
    name: str

    def __len__(self) -> int:
        return len(self.parts)

    def __iter__(self) -> Iterator[Any]:
        return (part[self.name].values for part in self.parts)


def mean_and_error(values: Any) -> tuple[Any, Any]:
    """Return the mean of arrays and its standard error; exactly the value and 0 if all are equal.

    values : iterated more than once, so that only one array is in memory at a time
    """
    first, same = next(iter(values)), _same(values)
    with np.errstate(invalid="ignore", over="ignore"):
        mean = sum(values) / len(values)
        squares = sum((value - mean) ** 2 for value in values)
        error = np.sqrt(squares / (len(values) - 1)) / math.sqrt(len(values))
    return np.where(same, first, mean), np.where(same, 0.0 * first, error)


def _same(values: Any) -> Any:
    """Return where all values are the same number; NaN never counts as equal."""
    first = next(iter(values))
    return reduce(np.logical_and, (value == first for value in values))


def _like(variable: xr.DataArray, values: Any, description: str) -> tuple[Any, Any, dict[str, Any]]:
    return variable.dims, values, {**variable.attrs, "long_name": description}


def _attributes(parts: Sequence[xr.Dataset]) -> dict[str, Any]:
    """Return attributes of the first replica, with total time and steps and all warnings."""
    told = [part.attrs for part in parts]
    lines = dict.fromkeys(line for one in told for line in str(one["warnings"]).splitlines())
    loads = ("worker_seconds", "worker_waiting", "worker_places")  # of single replicas
    own = {key: value for key, value in told[0].items() if key not in loads}
    return own | {
        "title": f"{told[0]['title']}, mean of {len(parts)} replicas",
        "kind": kinds.REPLICAS,
        "replicas": len(parts),
        "seeds": np.array([int(one["seed"]) for one in told], dtype=np.int64),
        "warnings": "\n".join(lines),
        "wall_seconds": float(sum(one["wall_seconds"] for one in told)),
        "steps": int(sum(one["steps"] for one in told)),
    }


# --- to go on -----------------------------------------------------------------------------------


def _keep_plan(folder: Path, case: Case, count: int) -> None:
    """Store what ``relboltz resume F.nc`` needs to start the replicas of a configuration."""
    plan: dict[str, Any] = {"replicas": count}
    if isinstance(case.settings, Config):
        given = case.settings.to_dict()
        given["grid"] |= GridSettings.describe(case.grid)  # the values chosen for "auto"
        plan |= {"configuration": tomli_w.dumps(given), "folder": str(case.settings.folder)}
        plan["sources"] = case.settings.sources()
    (folder / PLAN).write_text(json.dumps(plan, indent=1))


def plan_of(file: Path) -> Path | None:
    """Return the plan of unfinished replicas; None if F.nc is complete or a single run's."""
    path = file.with_name(f"{base(file)}.replicas") / PLAN
    if not path.is_file() or checkpoint.of_run(file):
        return None
    return path if _digest_in(file) != _digest(path.read_bytes()) else None


def _digest(plan: bytes) -> str:
    return hashlib.sha256(plan).hexdigest()[:16]


def _digest_in(file: Path) -> str:
    """Return the digest of the plan of a result; empty if there is no file or no plan."""
    try:
        return str(output.attributes(file).get("plan", ""))
    except InputError:
        return ""


def planned_again(file: Path, run: dict[str, Any], trust: bool = False) -> tuple[Case, int]:
    """Return the case and number of interrupted replicas.

    run : other keys of [run]; trust : accept files named in the plan that have changed since it
    began
    """
    path = plan_of(file)
    assert path is not None
    try:
        plan = json.loads(path.read_text())
        count = check_count(plan["replicas"])
        text = plan.get("configuration")
        data = tomllib.loads(text) if text else None
    except (OSError, ValueError, KeyError) as error:
        raise InputError(f"{path} cannot be read ({error}); start the replicas again") from None
    if data is None:
        raise InputError(
            f"{file}: its replicas were begun by solve(); call it again with the same arguments: "
            "what is done is kept"
        )
    data["run"] = elsewhere(data["run"], run)
    config = Config.from_dict(data, folder=plan["folder"])
    for one in map(path_of, config.functions()):
        why = doubt(one, plan.get("sources", {}).get(str(one)))
        if why and not trust:
            raise InputError(
                f"{path} names {one}, which {why}: bring back what it was, or use --trust, if you "
                "know who wrote this plan: then all replicas are done again with the file as it is"
            )
        if why:
            description = f"{one} {why}: all replicas are done again with the file as it is now"
            say(description, CheckpointWarning)
    return Case.of_config(config), count
