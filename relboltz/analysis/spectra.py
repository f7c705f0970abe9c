"""Spectra and flow of a result; integrals of spectra equal sums over the nodes exactly."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr

from ..grid.units import HBARC
from ..util.arrays import Array, Flags
from ..util.errors import InputError
from ..util.text import is_number, shown
from .rings import Rings, is_harmonic

SPACE = ("x", "y", "z")
MOMENTA = ("px", "py", "pz")
NOTHING = 1e-12
"""Flow below this is rounding error and has no direction."""
LEAST = 3
"""Smallest number of nodes along p_x and p_y that resolves directions."""
INSIDE = "whether it lies inside the box; beyond momentum_max its corners alone do"


def _spacing(ds: xr.Dataset, axis: str) -> float:
    """Return the cell width along a momentum axis [GeV]."""
    widths = dict(zip(MOMENTA, ds.attrs["momentum_max"], strict=True))
    return 2 * float(widths[axis]) / ds.sizes[axis]


def _variable(dims: Any, values: Any, unit: str, description: str) -> xr.Variable:
    return xr.Variable(dims, values, {"units": unit, "long_name": description})


def dN_dp(ds: xr.Dataset) -> xr.DataArray:
    """Return dN/d|p| per volume (time, species, p) [fm^-3 GeV^-1], in shells of about one spacing.

    The coordinate ``width`` (p) [GeV] is that of a shell with the volume of its nodes, so that the
    sum of dN/dp times width equals ``number`` exactly. Beyond momentum_max a shell covers only
    corners of the grid, and ``inside`` (p) is False. In Bjorken flow p is p_T, and shells are
    rings. If all axes expand, p and width are comoving momenta.
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
    """Return the radius beyond which shells or rings are partly outside the grid [GeV]."""
    widths = dict(zip(MOMENTA, map(float, ds.attrs["momentum_max"]), strict=True))
    return min((widths[axis] for axis in axes if ds.sizes[axis] > 1), default=np.inf)


def _widths(size: Array, radius: Array, full: float, power: int) -> Array:
    """Return widths of shells or rings with given sizes: size = full radius^power width.

    A shell with only the node at 0 is a ball, or a disc.
    """
    ball = ((power + 1) * size / full) ** (1 / (power + 1))
    with np.errstate(divide="ignore"):
        return np.where(radius > 1e-9 * ball, size / (full * radius**power), ball)


# --- of snapshots, in Bjorken flow of records ---------------------------------------------------


def is_bjorken(ds: xr.Dataset) -> bool:
    """Whether matter is in Bjorken flow along z."""
    return "dN_dy" in ds


def _when(ds: xr.Dataset) -> str:
    """Return the time dimension of p_T spectra: "time" in Bjorken flow, else "snapshot"."""
    return "time" if is_bjorken(ds) else "snapshot"


def _particles(ds: xr.Dataset) -> Array:
    """Return particles per column of nodes (snapshot, species, px, py) and volume [fm^-3].

    In Bjorken flow, of every record, per rapidity, including particles that left the grid: per area
    [fm^-2], or in space integrated over the plane.
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
    """Return physical over comoving transverse momenta, which must not depend on time."""
    if is_bjorken(ds) or "momentum_scale" not in ds:
        return np.ones(2)
    scales = np.asarray(ds.momentum_scale.values[:, :2])
    if np.ptp(scales, axis=0).max(initial=0.0) > 1e-12:
        raise InputError(
            "transverse momenta expand, and snapshots have other rings of them; take one, such as "
            "result.isel(snapshot=[-1])"
        )
    return scales[0]


def tells_directions(ds: xr.Dataset) -> bool:
    """Whether there are enough nodes to resolve directions of p_T."""
    return min(ds.sizes["px"], ds.sizes["py"]) >= LEAST


def _rings(ds: xr.Dataset) -> tuple[Rings, xr.Variable, Flags]:
    """Return the rings of a result, their mean radii [GeV], and which lie inside the grid."""
    if not tells_directions(ds):
        raise InputError(
            f"momentum_cells = {[ds.sizes[axis] for axis in MOMENTA]}: directions of p_T need "
            f"{LEAST} nodes or more along p_x and p_y"
        )
    factors = _stretched(ds)
    px, py = (ds[axis].values * factor for axis, factor in zip(MOMENTA, factors, strict=False))
    half = [0.5 * _spacing(ds, axis) * x for axis, x in zip(MOMENTA, factors, strict=False)]
    rings = Rings(px, py, (half[0], half[1]))
    edges = rings.edges
    middle = (2 / 3) * np.diff(edges**3) / np.diff(edges**2)
    face = _face(ds, MOMENTA[:2]) * min(factors)
    radius = _variable("pT", middle, "GeV", "transverse momentum")
    return rings, radius, rings.within(face)


def dN_dpT(ds: xr.Dataset) -> xr.DataArray:
    """Return dN/dp_T per volume of the snapshots (snapshot, species, pT) [fm^-3 GeV^-1].

    The spectrum is integrated over p_z and angle in rings of one spacing; the sum of dN/dp_T times
    the coordinate ``width`` (pT) [GeV] is the number. Beyond momentum_max a ring covers only
    corners of the grid, and ``inside`` (pT) is False. In space it is the average over the grid,
    without particles that left.

    In Bjorken flow it is given for every record (time, species, pT), per rapidity and area [fm^-2
    GeV^-1], or in space integrated over the plane [GeV^-1], including particles that left.
    """
    columns, when = _particles(ds), _when(ds)
    rings, radius, inside = _rings(ds)
    width = np.full(rings.count, rings.width)
    values = rings.numbers(columns) / width
    coords = {when: ds[when], "species": ds.species, "pT": radius}
    unit, description = "fm^-3 GeV^-1", "dN/dpT per volume"
    if is_bjorken(ds):
        unit = f"{ds.dN_dy.attrs['units']} GeV^-1".removeprefix("1 ")
        description = "dN/dpT per rapidity" + " and area" * ("fm" in unit)
    attrs = {"units": unit, "long_name": description}
    found = xr.DataArray(values, coords, (when, "species", "pT"), "dN_dpT", attrs)
    return found.assign_coords(
        width=_variable("pT", width, "GeV", "width of a ring"),
        inside=_variable("pT", inside, "1", INSIDE),
    )


def mean_pT(ds: xr.Dataset) -> xr.DataArray:
    """Return the mean transverse momentum of the snapshots (snapshot, species) [GeV].

    NaN for species without particles. In Bjorken flow the result is given for every record (time,
    species), and in space includes particles that left the grid.
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


def flow(
    ds: xr.Dataset, n: int = 2, weight: str = "number", angle: float | None = None
) -> xr.Dataset:
    """Return v_n = <cos n(phi - Psi_n)> of the snapshots, against p_T and integrated.

    The result has ``v`` (snapshot, species, pT), ``v_integrated`` (snapshot, species) and ``angle``
    (snapshot), Psi_n [rad] of all species together (NaN without flow). Rings partly outside the
    grid are excluded, and ``v`` is NaN there, because the corners of the grid are anisotropic.

    f is interpolated between nodes, and the interpolation error for a smooth spectrum on the same
    nodes is subtracted (``analysis.rings``). At h = T, v_4 of 3e-5 remains in thermal matter, 6e-5
    with a node at rest, and up to 0.06 for a step in p_T. Lattice errors in f itself remain.

    In Bjorken flow v_n is given for every record (time in place of snapshot), and in space includes
    particles that left the grid.

    weight : of a particle in averages over p_T and in Psi_n: "number", or "pT"

    angle : in place of Psi_n [rad], such as that of the initial conditions. Relative to its own
        Psi_n, v_n is never negative, and noise looks like flow; relative to a given direction noise
        averages to 0
    """
    if not is_harmonic(n, 1):
        raise InputError(f"flow({shown(n)}): n is a whole number, 1 or more")
    if tells_directions(ds) and n > min(ds.sizes["px"], ds.sizes["py"]):
        raise InputError(f"flow({shown(n)}): use an n not above the nodes along p_x and p_y")
    if angle is not None and not (is_number(angle) and np.isfinite(angle)):
        raise InputError(f"angle = {shown(angle)}: use an angle in rad, or None for Psi_n")
    if weight not in ("number", "pT"):
        raise InputError(f"weight = {shown(weight)}: use 'number' or 'pT'")
    columns, when = _particles(ds), _when(ds)
    rings, radius, inside = _rings(ds)
    turned, all_ = rings.turned(columns, n, 0 if weight == "number" else 1)
    whole = turned[..., inside].sum(axis=(1, 2))
    plane = np.angle(whole) / n if angle is None else np.full(len(whole), float(angle))
    cosine = (turned * np.exp(-1j * n * plane)[:, None, None]).real
    with np.errstate(invalid="ignore", divide="ignore"):
        by_ring = cosine / all_
        together = cosine[..., inside].sum(axis=-1) / all_[..., inside].sum(axis=-1)
    by_ring[..., ~inside] = np.nan
    if angle is None:
        still = abs(whole) <= NOTHING * all_[..., inside].sum(axis=(1, 2))
        plane = np.where(still, np.nan, plane)
    told = f"Psi_{n}, of all species together" if angle is None else "as given"
    description = f"v_{n} = <cos {n}(phi - Psi)>"
    return xr.Dataset(
        {
            "v": _variable((when, "species", "pT"), by_ring, "1", description),
            "v_integrated": _variable(
                (when, "species"), together, "1", f"{description}, p_T in the box"
            ),
            "angle": _variable(when, plane, "rad", told),
        },
        {when: ds[when], "species": ds.species, "pT": radius},
    )
