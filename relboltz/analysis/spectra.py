"""Spectra and flow of a result: sums over its nodes, so that their integrals are exact."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr

from ..arrays import Array, Integers
from ..errors import InputError
from ..units import HBARC
from ..words import shown

SPACE = ("x", "y", "z")
MOMENTA = ("px", "py", "pz")
INSIDE = "whether it lies inside the box; beyond momentum_max its corners alone do"
AT_REST = 1e-9
"""p_T below this part of a spacing has no direction."""


def _spacing(ds: xr.Dataset, axis: str) -> float:
    """Width of the cells of a momentum axis [GeV]."""
    widths = dict(zip(MOMENTA, ds.attrs["momentum_max"], strict=True))
    return 2 * float(widths[axis]) / ds.sizes[axis]


def _variable(dims: Any, values: Any, unit: str, words: str) -> xr.Variable:
    return xr.Variable(dims, values, {"units": unit, "long_name": words})


def dN_dp(ds: xr.Dataset) -> xr.DataArray:
    """dN/d|p| per volume (time, species, p) [fm^-3 GeV^-1], in shells of about one spacing.

    The coordinate ``width`` (p) [GeV] is that of a shell with the volume of its nodes, so that the
    sum of dN/dp times width is ``number``, exactly. Beyond momentum_max a shell lies in corners of
    the box alone: ``inside`` (p) is False there.
    """
    volume = ds.shell_weight.values * (2 * np.pi * HBARC) ** 3
    width = _widths(volume, ds.p.values, 4 * np.pi, 2)
    values = ds.spectrum * ds.degeneracy * ds.shell_weight / xr.DataArray(width, dims="p")
    attrs = {"units": "fm^-3 GeV^-1", "long_name": "dN/d|p| per volume"}
    values = values.transpose(*ds.spectrum.dims).rename("dN_dp").assign_attrs(attrs)
    whole = _variable("p", ds.p.values <= _face(ds, MOMENTA), "1", INSIDE)
    return values.assign_coords(
        width=_variable("p", width, "GeV", "width of a shell"), inside=whole
    )


def _face(ds: xr.Dataset, axes: Sequence[str]) -> float:
    """The radius at which shells or rings begin to leave the box [GeV]."""
    widths = dict(zip(MOMENTA, map(float, ds.attrs["momentum_max"]), strict=True))
    return min((widths[axis] for axis in axes if ds.sizes[axis] > 1), default=np.inf)


def _widths(size: Array, radius: Array, full: float, power: int) -> Array:
    """Widths of shells or rings of given sizes: size = full radius^power width.

    One that has its node at 0 alone is a ball or a disc.
    """
    ball = ((power + 1) * size / full) ** (1 / (power + 1))
    with np.errstate(divide="ignore"):
        return np.where(radius > 1e-9 * ball, size / (full * radius**power), ball)


# --- of snapshots -------------------------------------------------------------------------------


def _particles(ds: xr.Dataset) -> Array:
    """Particles per volume at every node (snapshot, species, px, py, pz) [fm^-3]."""
    if "f" not in ds or not ds.sizes.get("snapshot"):
        raise InputError("this result has no snapshot of f; ask for one: snapshots = [times in fm]")
    measure = float(ds.shell_weight.sum()) / np.prod([ds.sizes[axis] for axis in MOMENTA])
    number = ds.f * ds.degeneracy * measure
    number = number.mean([axis for axis in SPACE if axis in number.dims])
    return np.asarray(number.transpose("snapshot", "species", *MOMENTA).values)


def _rings(ds: xr.Dataset) -> tuple[Array, Array, Integers]:
    """p_T and angle of the nodes (px, py), and the ring of each, about a spacing wide."""
    px, py = np.meshgrid(ds.px.values, ds.py.values, indexing="ij")
    width = min(_spacing(ds, "px"), _spacing(ds, "py"))
    pt = np.hypot(px, py)
    _, ring = np.unique(np.floor(pt / width + 1e-9), return_inverse=True)
    return pt, np.arctan2(py, px), ring.reshape(pt.shape)


def _by_ring(values: Array, ring: Integers) -> Array:
    """Sums over the nodes of every ring: (..., px, py) to (..., rings)."""
    flat = values.reshape(-1, ring.size)
    found = np.stack([np.bincount(ring.ravel(), row, ring.max() + 1) for row in flat], dtype=float)
    return found.reshape(*values.shape[:-2], -1)


def _radius(pt: Array, ring: Integers) -> xr.Variable:
    """Mean p_T of the nodes of a ring."""
    mean = np.bincount(ring.ravel(), pt.ravel()) / np.bincount(ring.ravel())
    return _variable("pT", mean, "GeV", "transverse momentum")


def dN_dpT(ds: xr.Dataset) -> xr.DataArray:
    """dN/dp_T per volume of the snapshots (snapshot, species, pT) [fm^-3 GeV^-1].

    All p_z and angles together, in rings of about one spacing; the sum of it times the coordinate
    ``width`` (pT) [GeV] is the number. Beyond momentum_max a ring lies in corners of the box alone:
    ``inside`` (pT) is False there. In space the average over the box, without what left it.
    """
    pt, _, ring = _rings(ds)
    radius = _radius(pt, ring)
    area = np.bincount(ring.ravel()).astype(float) * (_spacing(ds, "px") * _spacing(ds, "py"))
    width = _widths(area, radius.values, 2 * np.pi, 1)
    values = _by_ring(_particles(ds).sum(axis=-1), ring) / width
    coords = {"snapshot": ds.snapshot, "species": ds.species, "pT": radius}
    attrs = {"units": "fm^-3 GeV^-1", "long_name": "dN/dpT per volume"}
    found = xr.DataArray(values, coords, ("snapshot", "species", "pT"), "dN_dpT", attrs)
    whole = _variable("pT", radius.values <= _face(ds, MOMENTA[:2]), "1", INSIDE)
    return found.assign_coords(width=_variable("pT", width, "GeV", "width of a ring"), inside=whole)


def mean_pT(ds: xr.Dataset) -> xr.DataArray:
    """Mean transverse momentum of the snapshots (snapshot, species) [GeV]; NaN if empty."""
    pt, *_ = _rings(ds)
    number = _particles(ds).sum(axis=-1)
    with np.errstate(invalid="ignore"):
        values = (number * pt).sum(axis=(-2, -1)) / number.sum(axis=(-2, -1))
    attrs = {"units": "GeV", "long_name": "mean transverse momentum"}
    coords = {"snapshot": ds.snapshot, "species": ds.species}
    return xr.DataArray(values, coords, ("snapshot", "species"), "mean_pT", attrs)


def flow(ds: xr.Dataset, n: int = 2) -> xr.Dataset:
    """v_n = <cos n(phi - Psi_n)> of the snapshots, against p_T and of all.

    ``v`` (snapshot, species, pT), ``v_integrated`` (snapshot, species) and ``angle`` (snapshot)
    Psi_n [rad], that of all species together. ``v`` is NaN for rings that leave the box: those of
    its corners have directions of their own. Nodes on a square lattice have a v_4, v_8, ... of
    their own, also where f is round: compare with a round start.
    """
    if isinstance(n, bool) or not isinstance(n, int) or n < 1:
        raise InputError(f"flow({shown(n)}): n is a whole number, 1 or more")
    pt, angle, ring = _rings(ds)
    number = _particles(ds).sum(axis=-1) * (pt > AT_REST * _spacing(ds, "px"))
    turned = number * np.exp(1j * n * angle)
    whole = turned.sum(axis=(1, 2, 3))
    plane = np.angle(whole) / n
    cosine = (turned * np.exp(-1j * n * plane)[:, None, None, None]).real
    with np.errstate(invalid="ignore"):
        rings = _by_ring(cosine, ring) / _by_ring(number, ring)
        together = cosine.sum(axis=(-2, -1)) / number.sum(axis=(-2, -1))
    radius = _radius(pt, ring)
    rings[..., radius.values > _face(ds, MOMENTA[:2])] = np.nan
    words = f"v_{n} = <cos {n}(phi - Psi)>"
    return xr.Dataset(
        {
            "v": _variable(("snapshot", "species", "pT"), rings, "1", words),
            "v_integrated": _variable(("snapshot", "species"), together, "1", f"{words}, all pT"),
            "angle": _variable("snapshot", plane, "rad", f"Psi_{n}, of all species together"),
        },
        {"snapshot": ds.snapshot, "species": ds.species, "pT": radius},
    )
