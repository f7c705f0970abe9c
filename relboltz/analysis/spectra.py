"""Spectra and flow of a result: sums over its nodes, so that their integrals are exact."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr

from ..arrays import Array
from ..errors import InputError
from ..units import HBARC
from ..words import shown

SPACE = ("x", "y", "z")
MOMENTA = ("px", "py", "pz")
INSIDE = "whether it lies inside the box; beyond momentum_max its corners alone do"
POINTS = 8
"""Points of a cell along an axis over which its particles are spread."""
STEEP = 4.0
"""Largest change of ln f over a cell that is followed."""


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
    the box alone: ``inside`` (p) is False there. In Bjorken flow p is p_T, and shells are rings.
    Where all axes expand, p and width are comoving momenta.
    """
    rings = is_bjorken(ds)
    volume = ds.shell_weight.values * (2 * np.pi * HBARC) ** 3
    if rings:
        height = _spacing(ds, "pz") * ds.sizes["pz"]
        width = _widths(volume / height, ds.p.values, 2 * np.pi, 1)
    else:
        width = _widths(volume, ds.p.values, 4 * np.pi, 2)
    values = ds.spectrum * ds.degeneracy * ds.shell_weight / xr.DataArray(width, dims="p")
    if "scale" in ds:
        values = values * (2**ds.doublings / ds.scale).prod("axis")
    attrs = {"units": "fm^-3 GeV^-1", "long_name": f"dN/d{'pT' if rings else '|p|'} per volume"}
    values = values.transpose(*ds.spectrum.dims).rename("dN_dp").assign_attrs(attrs)
    faces = _face(ds, MOMENTA[:2] if rings else MOMENTA)
    whole = _variable("p", ds.p.values <= faces, "1", INSIDE)
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


# --- of snapshots, in Bjorken flow of records ---------------------------------------------------


def is_bjorken(ds: xr.Dataset) -> bool:
    """Whether matter expands along z, the same at all rapidities."""
    return "dN_deta" in ds


def _when(ds: xr.Dataset) -> str:
    """The dimension of spectra of transverse momenta."""
    return "time" if is_bjorken(ds) else "snapshot"


def _particles(ds: xr.Dataset) -> Array:
    """Particles of every column of nodes (snapshot, species, px, py), per volume [fm^-3].

    In Bjorken flow of every record, per rapidity, what left included: per area [fm^-2], or in
    space of all of the plane.
    """
    if is_bjorken(ds):
        columns = ds.dN_d2pT.transpose("time", "species", *MOMENTA[:2]).values
        return np.asarray(columns * _spacing(ds, "px") * _spacing(ds, "py"))
    if "f" not in ds or not ds.sizes.get("snapshot"):
        raise InputError("this result has no snapshot of f; ask for one: snapshots = [times in fm]")
    measure = float(ds.shell_weight.sum()) / np.prod([ds.sizes[axis] for axis in MOMENTA])
    number = ds.f * ds.degeneracy * measure
    if "momentum_scale" in ds:
        number = number * ds.momentum_scale.prod("axis")
    number = number.mean([axis for axis in SPACE if axis in number.dims]).sum("pz")
    return np.asarray(number.transpose("snapshot", "species", *MOMENTA[:2]).values)


def _stretched(ds: xr.Dataset) -> Array:
    """Physical over comoving transverse momenta, the same at all times."""
    if is_bjorken(ds) or "momentum_scale" not in ds:
        return np.ones(2)
    scales = np.asarray(ds.momentum_scale.values[:, :2])
    if np.ptp(scales, axis=0).max(initial=0.0) > 1e-12:
        raise InputError(
            "transverse momenta expand, and snapshots have other rings of them; take one, such as "
            "result.isel(snapshot=[-1])"
        )
    return scales[0]


class Rings:
    """Particles in rings of p_T, a spacing wide, and how their directions are distributed.

    Between nodes ln f is a parabola through the neighbours: the particles of a node are spread over
    POINTS x POINTS points of its cell, so that rings and directions know little of the lattice.
    """

    def __init__(self, ds: xr.Dataset):
        stretched = dict(zip(MOMENTA, _stretched(ds), strict=False))
        px, py = (ds[axis].values * factor for axis, factor in stretched.items())
        hx, hy = (_spacing(ds, axis) * factor for axis, factor in stretched.items())
        at = (np.arange(POINTS) + 0.5) / POINTS - 0.5
        x, y = px[:, None] + hx * at, py[:, None] + hy * at
        self.pt = np.hypot(x[:, :, None, None], y)
        self.angle = np.arctan2(*np.broadcast_arrays(y, x[:, :, None, None]))
        self.number = _spread(_particles(ds), at)
        self.width = min(hx, hy)
        self._ring = np.floor(self.pt / self.width).astype(int).ravel()
        self.count = int(self._ring.max()) + 1
        edges = self.width * np.arange(self.count + 1)
        middle = (2 / 3) * np.diff(edges**3) / np.diff(edges**2)
        self.radius = _variable("pT", middle, "GeV", "transverse momentum")
        face = _face(ds, MOMENTA[:2]) * min(stretched.values())
        self.inside = edges[1:] <= face * (1 + 1e-9)

    def sums(self, values: Array) -> Array:
        """Sums over the points of every ring: (snapshot, species, points...) to (..., rings)."""
        flat = values.reshape(*values.shape[:2], -1)
        found = np.empty((*values.shape[:2], self.count))
        for i, j in np.ndindex(*values.shape[:2]):
            found[i, j] = np.bincount(self._ring, flat[i, j], self.count)
        return found


def _spread(number: Array, at: Array) -> Array:
    """Particles at the points of all cells: (snapshot, species, px, ., py, .), as many in all.

    ln N is expanded to second order about each node; where a neighbour is empty, it is flat.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(number)
        x, y = (_slope(logs, axis) for axis in (2, 3))
        xx, yy, xy = _slope(x, 2), _slope(y, 3), _slope(x, 3)
    parts = [np.where(np.isfinite(v), v, 0.0)[:, :, :, None, :, None] for v in (x, y, xx, yy, xy)]
    u, v = at[:, None, None], at
    bend = parts[0] * u + parts[1] * v
    bend = bend + 0.5 * parts[2] * u**2 + 0.5 * parts[3] * v**2 + parts[4] * u * v
    spread = number[:, :, :, None, :, None] * np.exp(np.clip(bend, -STEEP, STEEP))
    points = (2, 3, 4, 5)
    total = spread.sum(axis=points, keepdims=True)
    whole = number.sum(axis=(2, 3))[:, :, None, None, None, None]
    return spread * np.divide(whole, total, out=np.zeros_like(total), where=total > 0)


def _slope(values: Array, axis: int) -> Array:
    """Change over a cell along an axis, from the neighbours."""
    return np.gradient(values, axis=axis) if values.shape[axis] > 1 else np.zeros_like(values)


def dN_dpT(ds: xr.Dataset) -> xr.DataArray:
    """dN/dp_T per volume of the snapshots (snapshot, species, pT) [fm^-3 GeV^-1].

    All p_z and angles together, in rings of one spacing; the sum of it times the coordinate
    ``width`` (pT) [GeV] is the number. Beyond momentum_max a ring lies in corners of the box alone:
    ``inside`` (pT) is False there. In space the average over the box, without what left it.

    In Bjorken flow of every record (time, species, pT), per rapidity and area [fm^-2 GeV^-1]; in
    space of all of the plane [GeV^-1], what left included.
    """
    rings, when = Rings(ds), _when(ds)
    width = np.full(rings.count, rings.width)
    values = rings.sums(rings.number) / width
    coords = {when: ds[when], "species": ds.species, "pT": rings.radius}
    unit, words = "fm^-3 GeV^-1", "dN/dpT per volume"
    if is_bjorken(ds):
        unit = f"{ds.dN_deta.attrs['units']} GeV^-1".removeprefix("1 ")
        words = "dN/dpT per rapidity" + " and area" * ("fm" in unit)
    attrs = {"units": unit, "long_name": words}
    found = xr.DataArray(values, coords, (when, "species", "pT"), "dN_dpT", attrs)
    return found.assign_coords(
        width=_variable("pT", width, "GeV", "width of a ring"),
        inside=_variable("pT", rings.inside, "1", INSIDE),
    )


def mean_pT(ds: xr.Dataset) -> xr.DataArray:
    """Mean transverse momentum of the snapshots (snapshot, species) [GeV]; NaN if empty.

    In Bjorken flow of every record (time, species), in space with what left.
    """
    number, when = _particles(ds), _when(ds)
    x, y = np.meshgrid(ds.px.values, ds.py.values, indexing="ij")
    scales = np.ones((len(number), 2))
    if when == "snapshot" and "momentum_scale" in ds:
        scales = ds.momentum_scale.values[:, :2]
    pt = np.hypot(scales[:, 0, None, None, None] * x, scales[:, 1, None, None, None] * y)
    with np.errstate(invalid="ignore"):
        values = (number * pt).sum(axis=(-2, -1)) / number.sum(axis=(-2, -1))
    attrs = {"units": "GeV", "long_name": "mean transverse momentum"}
    coords = {when: ds[when], "species": ds.species}
    return xr.DataArray(values, coords, (when, "species"), "mean_pT", attrs)


def flow(ds: xr.Dataset, n: int = 2, weight: str = "number") -> xr.Dataset:
    """v_n = <cos n(phi - Psi_n)> of the snapshots, against p_T and of all.

    ``v`` (snapshot, species, pT), ``v_integrated`` (snapshot, species) and ``angle`` (snapshot)
    Psi_n [rad], that of all species together. Rings that leave the box do not count, and ``v`` is
    NaN for them: its corners have directions of their own. f is taken as smooth between nodes;
    what is left of the lattice falls with the square of the spacing, and a round start shows its
    size.

    In Bjorken flow of every record (time in place of snapshot), in space with what left.

    weight : of a particle in averages over p_T and in Psi_n: "number", or "pT"
    """
    if isinstance(n, bool) or not isinstance(n, int) or n < 1:
        raise InputError(f"flow({shown(n)}): n is a whole number, 1 or more")
    if weight not in ("number", "pT"):
        raise InputError(f"weight = {shown(weight)}: use 'number' or 'pT'")
    rings, when = Rings(ds), _when(ds)
    number = rings.number if weight == "number" else rings.number * rings.pt
    turned = number * np.exp(1j * n * rings.angle)
    re, im, all_ = (rings.sums(v) for v in (turned.real, turned.imag, number))
    inside = rings.inside
    plane = np.angle((re + 1j * im)[..., inside].sum(axis=(1, 2))) / n
    cosine = re * np.cos(n * plane)[:, None, None] + im * np.sin(n * plane)[:, None, None]
    with np.errstate(invalid="ignore", divide="ignore"):
        by_ring = cosine / all_
        together = cosine[..., inside].sum(axis=-1) / all_[..., inside].sum(axis=-1)
    by_ring[..., ~inside] = np.nan
    words = f"v_{n} = <cos {n}(phi - Psi)>"
    return xr.Dataset(
        {
            "v": _variable((when, "species", "pT"), by_ring, "1", words),
            "v_integrated": _variable((when, "species"), together, "1", f"{words}, all rings"),
            "angle": _variable(when, plane, "rad", f"Psi_{n}, of all species together"),
        },
        {when: ds[when], "species": ds.species, "pT": rings.radius},
    )
