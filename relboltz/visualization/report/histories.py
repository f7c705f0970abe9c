"""Charts against time, and spectra with a slider; in space, of averages over the grid."""

from collections.abc import Callable, Iterator

import numpy as np
from xarray import DataArray, Dataset

from ...io.result import box
from ...util.arrays import Array
from ..plots import histories, momenta, style
from ..plots.pages import telling
from ..plots.style import groups, mean, spelt
from .charts import GREY, INK, Chart, Curve, frames, style_of, thinned
from .number_format import number, numbers, with_unit

TIME = "time [fm]"
MOST_RATES = 8
"""Largest number of collision types shown."""
POINTS = 81
"""Points of a predicted spectrum."""
CONSTANT = {
    "numbers": "particle densities", "distance": "distance from equilibrium",
    "entropy": "entropy density", "temperature": "temperature",
    "chemical_potentials": "chemical potentials", "energies": "kinetic energy density",
    "masses": "masses", "anisotropy": "pressure anisotropy",
}  # fmt: skip
"""Charts that are left out if their quantity is constant."""


def label(group: list[str]) -> str:
    """Return a short name of a group of species in Unicode letters."""
    return style.label(group, spelt)


def charts(ds: Dataset) -> Iterator[Chart]:
    """Yield the charts of quantities that change, the most informative first."""
    short = thinned(ds)
    for panel in telling(box(ds)):
        yield CHARTS[panel.__name__](short)
    rates = _rates(box(short))
    if rates.curves:
        yield rates
    moved = _drifts(short)
    if moved.curves:
        yield moved


def constant(ds: Dataset) -> list[str]:
    """Return the quantities without a chart because they are constant."""
    drawn = {panel.__name__ for panel in telling(box(ds))}
    return [description for name, description in CONSTANT.items() if name not in drawn]


# --- curves -------------------------------------------------------------------------------------


def _error(ds: Dataset, name: str) -> Array | None:
    values = ds.get(f"{name}_error")
    return None if values is None else values.values


def predicted(ds: Dataset, value: float, color: int = INK, of: str = "") -> list[Curve]:
    """Return a dashed horizontal line if there is a prediction."""
    if not np.isfinite(value):
        return []
    ends = ds.time.values[[0, -1]]
    level = np.full(2, float(value))
    return [Curve("predicted", level, ends, color, kind="predicted", of=of)]


def _by_group(
    ds: Dataset, values: DataArray, final: DataArray, errors: DataArray | None, each: bool = False
) -> list[Curve]:
    """Return a curve per group of species, and its prediction."""
    found = []
    for group in groups(ds):
        color, dash = style_of(ds, group[0])
        y = mean(values, group)
        if not np.isfinite(y).any():
            continue
        description = label(group) + " (each)" * (each and len(group) > 1)
        error = None if errors is None else mean(errors, group)
        found.append(Curve(description, y, color=color, dash=dash, error=error))
        found += predicted(ds, mean(final, group).item(), color, description)
    return found


# --- histories ----------------------------------------------------------------------------------


def _numbers(ds: Dataset) -> Chart:
    """Particle densities; logarithmic if a species is rare."""
    ds = box(ds)
    final, errors = histories.predicted_densities(ds)[0], ds.get("number_error")
    curves = _by_group(ds, ds.number, final, errors, each=True)
    total = ds.number.sum("species")
    if ds.species.size > 1:
        curves.append(Curve("all", total.values))
    top = float(total.max()) or 1.0
    least = min(float(mean(ds.number, group).max()) for group in groups(ds))
    rare = 0 < least < histories.RARE * top
    description = with_unit("particle density", ds.number.attrs["units"])
    limits = (0.3 * least, 3 * top) if rare else (0.0, 1.1 * top)
    return Chart("Particle densities", TIME, description, ds.time.values, curves, rare, limits)


def _energies(ds: Dataset) -> Chart:
    ds = box(ds, left=True)
    kinetic = Curve("kinetic", ds.energy_kinetic.values, color=5, dash=1,
                    error=_error(ds, "energy_kinetic"))  # fmt: skip
    expands = "scale" in ds
    description = "total and work done" if expands else "total, fields included"
    total = Curve(description, ds.energy_total.values, color=1)
    curves = [total, kinetic]
    if np.allclose(kinetic.y, total.y, rtol=1e-9):
        curves = [Curve("kinetic, which is all", total.y, color=1)]
    description = "energy per comoving volume" if expands else "energy density"
    description = with_unit(description, ds.energy_total.attrs["units"])
    note = "What left the box is included." if "what left" in ds.attrs.get("title", "") else ""
    return Chart("Energy", TIME, description, ds.time.values, curves, note=note)


def _masses(ds: Dataset) -> Chart:
    ds = box(ds)
    mass, errors = np.sqrt(ds.mass_squared), ds.get("mass_squared_error")
    if errors is not None:
        errors = errors / (2 * mass.where(mass > 0))
    curves = _by_group(ds, mass, np.sqrt(ds.equilibrium_mass_squared), errors)
    screening = ds.screening_mass_squared
    if not any(np.allclose(m2, screening) for m2 in ds.mass_squared.values.T):
        curves.append(Curve("screening", np.sqrt(screening.values), dash=2))
    top = 1.1 * max(float(np.nanmax(curve.y)) for curve in curves)
    limits = (0.0, max(top, 1e-3))
    return Chart("Masses", TIME, "mass [GeV]", ds.time.values, curves, limits=limits)


def _temperature(ds: Dataset) -> Chart:
    ds = box(ds)
    name = "landau_temperature" if "scale" in ds else "temperature"
    description = "T, Landau frame" if "scale" in ds else "T"
    curves = [Curve(description, ds[name].values, error=_error(ds, name))]
    curves += predicted(ds, float(ds.equilibrium_temperature))
    return Chart("Temperature", TIME, "temperature [GeV]", ds.time.values, curves)


def _chemical_potentials(ds: Dataset) -> Chart:
    ds = box(ds)
    final, errors = ds.equilibrium_chemical_potential, ds.get("chemical_potential_error")
    curves = _by_group(ds, ds.chemical_potential, final, errors)
    description = "chemical potential [GeV]"
    return Chart("Chemical potentials", TIME, description, ds.time.values, curves)


def _entropy(ds: Dataset) -> Chart:
    ds = box(ds)
    curves = [Curve("entropy", ds.entropy.values, color=2, error=_error(ds, "entropy"))]
    curves += predicted(ds, histories.predicted_densities(ds)[1], 2)
    description = with_unit("entropy density", ds.entropy.attrs["units"])
    return Chart("Entropy", TIME, description, ds.time.values, curves)


def _distance(ds: Dataset) -> Chart:
    """Return a chart of the fraction of particles that would have to change cell."""
    far = ds.equilibrium_distance.where(ds.equilibrium_distance > 0)
    error = _error(ds, "equilibrium_distance")
    curves = [Curve("not yet in equilibrium", far.values, color=6, error=error)]
    description = "part of the particles that still has to move"
    return Chart("Distance from equilibrium", TIME, description, ds.time.values, curves, log=True)


def _anisotropy(ds: Dataset) -> Chart:
    ds, description = box(ds), "longitudinal over transverse pressure"
    ends = ds.time.values[[0, -1]]
    error = _error(ds, "pressure_ratio")
    curves = [
        Curve("pressure along z over that across", ds.pressure_ratio.values, color=3, error=error),
        Curve("isotropic", np.ones(2), ends, GREY, kind="predicted"),
    ]
    return Chart("Pressure anisotropy", TIME, description, ds.time.values, curves)


CHARTS: dict[str, Callable[[Dataset], Chart]] = {
    "numbers": _numbers, "distance": _distance, "entropy": _entropy, "temperature": _temperature,
    "chemical_potentials": _chemical_potentials, "energies": _energies, "masses": _masses,
    "anisotropy": _anisotropy,
}  # fmt: skip
"""Charts by the names of the plot functions."""


def _rates(ds: Dataset) -> Chart:
    """Return a chart of the most frequent collision types."""
    kinds, quarks = histories.collisions(ds, spelt)
    top = max((float(np.nanmax(rate, initial=0)) for rate in kinds.values()), default=0.0)
    curves = []
    for k, (kind, rate) in enumerate(list(kinds.items())[:MOST_RATES]):
        shown = np.where(rate > 1e-9 * top, rate, np.nan)
        if np.isfinite(shown).any():
            curves.append(Curve(kind, shown, color=k % len(style.COLORS), dash=k % 3))
    description = with_unit("collisions per volume and time", ds.rate.attrs["units"])
    note = f"q stands for {label(quarks[0])}." if len(quarks) == 1 else ""
    limits = (1e-5 * (top or 1), 3 * (top or 1))
    least = min((float(np.nanmin(curve.y)) for curve in curves), default=0.0)
    limits = (max(0.5 * least, limits[0]), limits[1])
    return Chart(
        "Collision rates", TIME, description, ds.time.values, curves, True, limits, note=note
    )


def _drifts(ds: Dataset) -> Chart:
    """Return a chart of drifts of conserved quantities that exceed rounding."""
    found = histories.drifts(ds)
    curves = [
        Curve(name, drift, color=k, dash=k)
        for k, (name, drift) in enumerate(found.items())
        if abs(drift).max() > histories.ROUNDING
    ]
    exact = [name for name, drift in found.items() if not drift.any()]
    note = f"Exactly 0: {', '.join(exact)}." if exact else ""
    return Chart("Drifts", TIME, "change since the start, relative", ds.time.values, curves,
                 note=note)  # fmt: skip


# --- spectra ------------------------------------------------------------------------------------


def spectra(ds: Dataset, slider: str) -> Iterator[Chart]:
    """Yield charts of f against |p| per group of species, at slider times and in equilibrium."""
    ds = box(ds)
    some, inside = ds.isel(time=frames(ds)), ds.p.values <= style.faces(ds)[1]
    p = np.linspace(0, style.faces(ds)[1], POINTS)
    for group in groups(ds):
        one, color = ds.sel(species=group[0]), style_of(ds, group[0])[0]
        f = mean(some.spectrum, group)[:, inside]
        error = None
        if "spectrum_error" in ds:
            error = mean(some.spectrum_error, group)[:, inside]
        curves = [
            Curve("at the start", np.where(f[:1] > 0, f[:1], np.nan)[0], color=GREY, kind="start"),
            Curve("now", np.where(f > 0, f, np.nan), color=color, kind="points", error=error),
        ]
        final = momenta.prediction(ds, group[0], p)
        if np.isfinite(final).any():
            curves.append(Curve("equilibrium", final, p, kind="predicted"))
        t, mu = (float(one[f"equilibrium_{n}"]) for n in ("temperature", "chemical_potential"))
        note = ""
        if np.isfinite(t + mu):
            note = number(f"Equilibrium: T = {t:.3f} GeV, μ = {mu + 0.0:.3f} GeV.")
        straight = {
            "eta": int(one.statistics), "squares": numbers(mean(some.mass_squared, group)),
            "last": numbers(one.equilibrium_mass_squared.values),
        }  # fmt: skip
        ring = "dN_dy" in ds
        yield Chart(
            label(group) + ", mean of them" * (len(group) > 1),
            f"{'transverse momentum' if ring else 'momentum |p|'} [GeV]",
            "f, mean over all p_z" if ring else "occupation f", ds.p.values[inside], curves,
            True, momenta.limits(ds, group), slider, note, {"straight": straight},
        )  # fmt: skip
