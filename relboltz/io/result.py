"""Access to a result Dataset for plots and tables."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from xarray import Dataset

from ..util.errors import InputError


@contextmanager
def undamaged(path: str | Path) -> Iterator[None]:
    """Context manager that turns missing or malformed variables of a file into an InputError."""
    try:
        yield
    except InputError:
        raise
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        description = str(error).splitlines() or [""]
        raise InputError(
            f"{path}: is damaged, or not a result of this version of relboltz "
            f"({type(error).__name__}: {description[0]})"
        ) from error


def is_in_space(ds: Dataset) -> bool:
    """Whether quantities have values in space cells."""
    return "x" in ds.number.dims


def box(ds: Dataset, left: bool = False) -> Dataset:
    """Return box averages under the names without ``total_``.

    left : include losses in E and P; for expanding matter also the work done (``comoving``)
    """
    mean = average(ds, left)
    return comoving(mean) if left else mean


def average(ds: Dataset, left: bool = False) -> Dataset:
    """Return box averages as ``box``, but without the work done."""
    if not is_in_space(ds):
        return ds
    mean = ds.drop_dims(("x", "y", "z"))
    totals = [str(name) for name in mean if str(name).startswith("total_")]
    mean = mean.rename({name: name.removeprefix("total_") for name in totals})
    for name in totals:
        of = mean[name.removeprefix("total_")].attrs
        of["long_name"] = of["long_name"].removesuffix(", average over the box")
    description = f"{ds.attrs.get('title', '')}, average over the box"
    if left and mean.left_energy.any():
        description += "; the total energy includes what left"
        for name, gone in ("energy_total", mean.left_energy), ("momentum", mean.left_momentum):
            mean[name] = (mean[name] + gone.sum("wall")).assign_attrs(mean[name].attrs)
    return mean.assign_attrs(title=description)


def comoving(ds: Dataset) -> Dataset:
    """Return quantities conserved in expansion: per initial volume, energy plus work done."""
    if "scale" not in ds or ds.energy_total.attrs.get("volume") == "comoving":
        return ds
    volume = ds.scale.prod("axis")
    found = {
        "number": ds.number * volume,
        "charge_density": ds.charge_density * volume,
        "momentum": ds.momentum * volume * ds.scale,
        "energy_kinetic": ds.energy_kinetic * volume,
        "energy_total": ds.energy_total * volume + ds.energy_work,
    }
    attrs = {name: ds[name].attrs | {"volume": "comoving"} for name in found}
    return ds.assign({name: value.assign_attrs(attrs[name]) for name, value in found.items()})
