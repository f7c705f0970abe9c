"""Kind of a result file, a run or a combination of runs, and messages for unreadable files."""

import os
from pathlib import Path

import h5py
import numpy as np
from xarray import Dataset

from ..util.errors import InputError

RUN, REPLICAS, SCAN, CONVERGENCE, COEFFICIENTS = (
    "run", "replicas", "scan", "convergence", "coefficients",
)  # fmt: skip
"""Values of the attribute ``kind`` of a result."""
OTHERS = {
    SCAN: (
        "is a scan of several runs",
        "name one of its points in the folder {base}.scan; in Python take one with .sel(...)",
    ),
    CONVERGENCE: (
        "is what relboltz converge found, not a run",
        "name one of the runs in the folder beside it",
    ),
    COEFFICIENTS: (
        "holds transport coefficients, not a run",
        "see relboltz info, or open it with relboltz.load",
    ),
}
"""Advice for files that are not runs."""
AGAIN = {
    REPLICAS: "all of its replicas are done; run its configuration with more: --replicas R",
    SCAN: "the same relboltz scan command does what is missing of it (--force replaces the file)",
    CONVERGENCE: "the same relboltz converge command does what is missing of it",
    COEFFICIENTS: "there is nothing to go on with; relboltz coefficients makes them anew",
}
"""How to continue files that are not single runs."""


OWN = "point_"
"""Prefix of variables of a scan that hold attributes of its points."""


def kind_of(ds: Dataset) -> str:
    """Return the kind of a Dataset from its content: one point of a scan is a run."""
    if "knob" in ds.dims:
        return CONVERGENCE
    if "shear_viscosity" in ds:
        return COEFFICIENTS
    if "status" in ds and ds["status"].ndim:
        return SCAN
    return REPLICAS if "replicas" in ds.attrs else RUN


def recorded(file: Path) -> str:
    """Return the kind of a file from its attributes; RUN if absent, damaged or unspecified."""
    try:
        with h5py.File(file, "r") as found:
            usual = REPLICAS if "replicas" in found.attrs else RUN
            return str(found.attrs.get("kind", usual))
    except (OSError, ValueError):
        return RUN


def check_run(ds: Dataset, name: str | Path) -> Dataset:
    """Return the Dataset; raise InputError unless it is a run or the mean of its replicas."""
    kind = kind_of(ds)
    if kind in OTHERS:
        what, remedy = OTHERS[kind]
        base = str(name).removesuffix(".nc")
        raise InputError(f"{name}: {what}; {remedy.format(base=base)}")
    return ds


def as_run(ds: Dataset) -> Dataset:
    """Give one point of a scan the attributes and shells of its run; keep other Datasets unchanged.

    Raises
    ------
    InputError : the point has no result, with the reason
    """
    if ds.attrs.get("kind") != SCAN or kind_of(ds) != RUN:
        return ds
    if (status := str(ds["status"].values[()])) != "done":
        raise InputError(f"this point of the scan has no result: {status}")
    told = {name: ds[name].values[()] for name in ("steps", "wall_seconds", "warnings", "status")}
    own = [str(name) for name in ds.data_vars if str(name).startswith(OWN)]
    told |= {name.removeprefix(OWN): ds[name].values[()] for name in own}
    if "shell" in ds.dims:
        ds = ds.isel(shell=np.isfinite(ds["p"].values)).set_coords("p").swap_dims(shell="p")
    return ds.drop_vars(own).assign_attrs(told, kind=RUN)


def unreadable(path: Path, error: Exception) -> str:
    """Say why a file is not a result, and what to do."""
    result = "name the result of a run, such as run.nc"
    try:
        head = path.open("rb").read(16)
    except OSError as trouble:
        return f"{path}: cannot be read: {trouble.strerror or trouble}"
    if not head:
        return f"{path}: is empty; {result}"
    if head.startswith(b"relboltz"):
        of, found, _ = path.name.partition(".checkpoint-")
        name = f", {of}.nc" if found else ""
        return f"{path}: is a checkpoint; name the result that it belongs to{name}"
    if path.suffix == ".toml":
        return f"{path}: is a configuration; {result}, or make one: relboltz run {path}"
    if head.startswith(b"\x89HDF"):
        first = (str(error).splitlines() or [type(error).__name__])[0]
        why = first.removeprefix("Unable to synchronously open file ").strip("()")
        return (
            f"{path}: is damaged ({why}); copy it again, or go on with its run "
            "(relboltz resume, --until T if it was done): a damaged file is kept"
        )
    return f"{path}: is not a NetCDF file written by relboltz; {result}"


def missing(path: Path) -> str:
    """Say why there is no file to read."""
    if os.path.isdir(path):
        return f"{path}: is a folder; name a file in it"
    return f"{path}: there is no such file"
