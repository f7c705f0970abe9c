"""Shared parts of Fig. 6 and 9 to 12: runs from the step to a thermal state, in two schemes.

"conserving" is the scheme of relboltz; "nearest" puts scattered pairs into the nearest cells.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import paper_runs as paper
import xarray as xr
from matplotlib.axes import Axes
from scipy.optimize import brentq

import relboltz as rb
from relboltz.grid.units import HBARC
from relboltz.thermodynamics import unlimited
from relboltz.visualization.plots import style

SCHEMES = {"conserving": "conserving", "nearest": "nearest cells"}
LOOKS: dict[str, Any] = {"conserving": {"linestyle": "-"}, "nearest": {"linestyle": "-."}}


# --- runs ---------------------------------------------------------------------------------------


def matter_of(matter: str) -> tuple[rb.Model, dict[str, Any]]:
    """Model and start of "gluons", "quarks" (u alone) or the "mixture"."""
    return {
        "gluons": (rb.gluons(paper.ALPHA_S), {"g": paper.STEP}),
        "quarks": (rb.quarks(paper.ALPHA_S, flavors=1), {"u": paper.STEP}),
        "mixture": (rb.qcd(paper.ALPHA_S), {"g": paper.STEP}),
    }[matter]


def size(job: paper.Job, matter: str) -> tuple[int, int, float]:
    """Cells along an axis, samples, last time [fm]."""
    cells, samples = job.pick((12, 4) if matter == "mixture" else (16, 16), (30, 16))
    return cells, samples, 20.0 if matter == "quarks" else 50.0


def thermalise(job: paper.Job, matter: str, scheme: str) -> xr.Dataset:
    """From the step to a thermal state; done once for all figures."""
    model, start = matter_of(matter)
    cells, samples, end = size(job, matter)
    # what the nearest cell adds to C never becomes small: the default would take tiny steps
    tolerance = 1e-2 if scheme == "nearest" else 1e-3
    return job.solve(
        f"{matter}, {scheme}, {cells}^3", model, rb.PhaseSpace(cells, paper.BOX), start,
        projection=scheme, samples=samples, end=end, tolerance=tolerance,
        every=job.pick(0.2, 0.1), snapshots=[],
    )  # fmt: skip


def short_steps(
    job: paper.Job, sheet: paper.Sheet, matter: str, step: float, end: float, cells: int
) -> None:
    """A stretch with the paper's step beside automatic ones: masses and spectra are the same."""
    model, start = matter_of(matter)
    grid, ends = rb.PhaseSpace(cells, paper.BOX), []
    for words, options in {f"steps of {step:g} fm": {"step": step}, "automatic steps": {}}.items():
        name = f"{matter}, {cells}^3, {words}"
        options = {"samples": 4 if "step" in options else 64, **options}
        ends.append(
            job.solve(name, model, grid, start, end=end, every=end, snapshots=[], **options)
        )
    a, b = (ds.isel(time=-1) for ds in ends)
    there = b.number > 0
    moved = float(abs(a.mass_squared / b.mass_squared - 1).where(there).max())
    apart = float(abs(a.spectrum - b.spectrum).max() / b.spectrum.max())
    steps = [int(ds.attrs["steps"]) for ds in ends]
    remark = f"{cells}³, {steps[0]} steps of {step:g} fm against {steps[1]} automatic ones"
    sheet.compare(
        f"{matter} at {end:g} fm, the paper's step: change of m²", 100 * moved, "", "%", remark,
        between=(0, 0.1),
    )  # fmt: skip
    sheet.compare(
        f"{matter} at {end:g} fm, the paper's step: change of f", 100 * apart, "",
        "% of the largest f", remark, between=(0, 1),
    )  # fmt: skip


# --- numbers ------------------------------------------------------------------------------------


def late_state(
    sheet: paper.Sheet, ds: xr.Dataset, words: str, species: str, scheme: str, sign: str
) -> None:
    """T and mu at the end; the conserving scheme must end where number and energy prescribe.

    sign : of mu, as the paper says: "< 0" or "> 0"
    """
    one = ds.sel(species=species)
    end, words = float(ds.time[-1]), f"{words}, {SCHEMES[scheme]}"
    mu, t = float(one.chemical_potential[-1]), float(ds.temperature[-1])
    final_mu, final_t = float(one.equilibrium_chemical_potential), float(ds.equilibrium_temperature)
    exact = scheme == "conserving"
    sheet.compare(
        f"μ at {end:g} fm: {words}", mu, sign, "GeV", f"prescribed: {final_mu:.4f}",
        between=(final_mu - 0.01, final_mu + 0.01) if exact else None,
        same=(mu < 0) == (sign == "< 0"),
    )  # fmt: skip
    sheet.compare(
        f"T at {end:g} fm: {words}", t, "", "GeV", f"prescribed: {final_t:.4f}",
        between=(0.99 * final_t, 1.01 * final_t) if exact else None,
    )  # fmt: skip


def energy_gain(sheet: paper.Sheet, ds: xr.Dataset, words: str, scheme: str) -> None:
    """How far the total energy has moved at the end."""
    gain = float(ds.energy_total[-1] / ds.energy_total[0] - 1)
    sheet.compare(
        f"change of the total energy: {words}, {SCHEMES[scheme]}", 100 * gain, "", "%",
        between=(-1e-3, 1e-3) if scheme == "conserving" else None,
    )  # fmt: skip


EARLY = 0.2
"""Part of a run within which something happens early."""


def piling_up(sheet: paper.Sheet, ds: xr.Dataset, words: str, scheme: str) -> None:
    """Gluons in the softest shell: how high, when, and what is left of it at the end."""
    f = ds.spectrum.sel(species="g").isel(p=0)
    peak, when = float(f.max()), float(f.idxmax("time"))
    over = peak / float(f[-1])
    words = f"{words}, {SCHEMES[scheme]}"
    sheet.compare(
        f"softest gluons, largest f over that of the start: {words}", peak / float(f[0]),
        "accumulate early", "", f"at {when:g} fm, |p| = {float(ds.p[0]):.2g} GeV",
        same=peak > 1.5 * float(f[0]) and when < EARLY * float(ds.time[-1]),
    )  # fmt: skip
    sheet.compare(
        f"softest gluons, largest f over that of the end: {words}", over, "> 1: falls again", "",
        same=over > 1.01,
    )  # fmt: skip


CONVENTION = "the paper takes E = |p| in its first step; from that start m² decreases, too"


def trend(sheet: paper.Sheet, ds: xr.Dataset, species: str, words: str, says: str) -> None:
    """The squared mass from start to end; says : "decreases" or "oscillates", as in the paper."""
    m2 = ds.mass_squared.sel(species=species).values
    change = m2[-1] / m2[0] - 1
    fall = (np.maximum.accumulate(m2) - m2).max() / m2[0]
    bends = change > 0 and fall > 0.005
    same = change < 0 if says == "decreases" else bool(bends)
    remark = f"{m2[0]:.4f} → {m2[-1]:.4f} GeV², at most {m2.max():.4f}"
    sheet.compare(
        f"m² of {species}, end against start: {words}", 100 * change, says, "%",
        f"{remark}; {CONVENTION}" if says == "decreases" and not same else remark, same=same,
    )  # fmt: skip


def first_mass(job: paper.Job, sheet: paper.Sheet, matter: str, species: str) -> None:
    """m² of the start with E = |p|, which the paper takes in its first step."""
    model, start = matter_of(matter)
    grid = rb.PhaseSpace(size(job, matter)[0], paper.BOX)
    f = rb.initial.evaluate(rb.initial.starting_states(start, model), grid, model)
    p = np.sqrt((grid.momenta**2).sum(axis=0))
    y = model.degeneracy * (f / p).sum(axis=1) * grid.cell_volume / (2 * np.pi) ** 3
    m2 = float((model.mass_coupling @ y)[model.index(species)])
    ds = thermalise(job, matter, "conserving").mass_squared.sel(species=species)
    sheet.compare(
        f"m² of {species} of the start with E = |p|: {matter}", m2, "used in the first step",
        "GeV²", first_step(m2, float(ds[0]), float(ds[-1])),
    )  # fmt: skip
    unlimited_masses(sheet, matter, species)


def unlimited_masses(sheet: paper.Sheet, matter: str, species: str) -> None:
    """Squared masses of the start and of equilibrium without nodes and box."""
    model, _ = matter_of(matter)
    numbers, energy, m2 = _without_nodes(model, species)
    end = unlimited.predict(model, numbers, np.zeros(3), energy).mass_squared[model.index(species)]
    sheet.find(
        f"m² of {matter} without nodes and a limit to momenta: {m2[0]:.3f} GeV² at the start with "
        f"E = |p|, the convention of the paper's first step, {m2[-1]:.3f} GeV² from the gap "
        f"equation; {end:.3f} GeV² in equilibrium. Whether m² decreases depends on that convention."
    )


def first_step(start: float, solved: float, end: float) -> str:
    """How m² changes from the start that the paper takes, with E = |p|, and from our own."""
    words = "decreases" if end < start else "increases"
    return (
        f"from it to the end m² {words}: {start:.4f} → {end:.4f} GeV²; from the start that solves "
        f"the gap equation: {solved:.4f} → {end:.4f} GeV²"
    )


@dataclass(frozen=True)
class Fixed:
    """Predict the final state, on the nodes and with unlimited momenta."""

    number: float  # [fm^-3]
    energy: float  # total [GeV fm^-3]
    limited: tuple[float, float]  # T and mu [GeV]
    unlimited: tuple[float, float]
    at_zero: float  # energy of the thermal state with this number and mu = 0, over that of it


def fixed(job: paper.Job, matter: str, species: str) -> Fixed:
    """T and mu of a start; a thermal state of its number with mu = 0 needs more energy."""
    model, start = matter_of(matter)
    grid, states = rb.PhaseSpace(size(job, matter)[0], paper.BOX), rb.equilibrium
    f = rb.initial.evaluate(rb.initial.starting_states(start, model), grid, model)
    at, rest = model.index(species), np.zeros(3)
    energy = states.total_energy(grid, model, f, states.masses(grid, model, f))
    numbers = model.degeneracy * f.sum(axis=1) * grid.measure
    ends = states.predict(grid, model, numbers, rest, energy)
    whole, of_step, _ = _without_nodes(model, species)
    free = unlimited.predict(model, whole, rest, of_step)

    def missing(temperature: float) -> tuple[float, float]:
        m2 = np.zeros(len(model.species))
        for _ in range(60):  # the gap equation at this T, by iteration
            hot = states.thermal(grid, model, temperature, np.zeros(len(m2)), rest, m2 + 1e-9)
            m2 = 0.5 * (m2 + model.mass_squared(states.coupling_integrals(grid, model, hot, m2)))
        held = float((model.degeneracy * hot.sum(axis=1)).sum() * grid.measure)
        return held - float(numbers.sum()), states.total_energy(grid, model, hot, m2)

    hot = brentq(lambda t: missing(t)[0], 0.2, 2.0, xtol=1e-6)
    return Fixed(
        float(numbers.sum()), energy, (ends.temperature, float(ends.chemical_potential[at])),
        (free.temperature, float(free.chemical_potential[at])), missing(hot)[1] / energy,
    )  # fmt: skip


def _without_nodes(model: rb.Model, species: str) -> tuple[Any, float, list[float]]:
    """Numbers [fm^-3], total energy [GeV fm^-3] and m² [GeV²] of the step, by integrals over |p|.

    Squared masses are those of iterations of the gap equation, the first with E = |p|.
    """
    at, step = model.index(species), paper.STEP
    x, w = np.polynomial.legendre.leggauss(200)
    p = 0.5 * step.edge * (x + 1)
    weight = 0.5 * step.edge * w * step.height * model.degeneracy[at] * p**2 / (2 * np.pi**2)
    m2 = [0.0]
    for _ in range(100):
        energies = np.sqrt(p**2 + m2[-1])
        y = float((weight / energies).sum())
        m2.append(float(model.mass_coupling[at, at]) * y)
    numbers = np.zeros(len(model.species))
    numbers[at] = weight.sum() / HBARC**3
    energy = float((weight * energies).sum() - m2[-1] * y / 4) / HBARC**3
    return numbers, energy, m2[1:]


def contradicted(job: paper.Job, sheet: paper.Sheet, matter: str) -> None:
    """Say why mu cannot be negative where number and energy are conserved."""
    one = fixed(job, matter, "g")
    (t, mu), (free_t, free_mu) = one.limited, one.unlimited
    what = "pure" if matter == "gluons" else matter
    sheet.find(
        f"The paper's negative μ of gluons ({what}) contradicts "
        f"its own conserved number and energy. N = {one.number:.2f} fm⁻³ and E = {one.energy:.2f} "
        f"GeV fm⁻³ of the start fix T = {t:.5f} and μ = {mu:+.5f} GeV on these nodes in the box of "
        f"2 GeV (without nodes and a limit to momenta {free_t:.4f} and {free_mu:+.4f} GeV). A "
        f"thermal state with this N and μ ≤ 0 has at least {100 * (one.at_zero - 1):.0f} % more "
        "energy than the start; nearest cells reach μ < 0 because "
        "they add that much."
    )


# --- grid error ---------------------------------------------------------------------------------

GRIDS = {"gluons": (16, 22, 30), "quarks": (16, 22, 30), "mixture": (12, 18, 26)}
"""Nodes along an axis of the box of 2 GeV; the mixture with all quarks alike, the same physics."""


def grid_error(job: paper.Job, sheet: paper.Sheet, matter: str, species: str) -> None:
    """How far m²(t), μ(t) and the way to equilibrium move from one spacing to the next."""
    model, start = matter_of(matter)
    if matter == "mixture":
        model, species = rb.qcd(paper.ALPHA_S, flavor_symmetric=True), species.replace("u", "q")
    runs = [
        job.solve(
            f"{matter}, grid error, {n}^3", model, rb.PhaseSpace(n, paper.BOX), start, samples=8,
            end=size(job, matter)[2], every=0.2, snapshots=[], precision="float64",
        ).sel(species=species)
        for n in GRIDS[matter]
    ]  # fmt: skip
    finest, most = runs[-1], GRIDS[matter][-1]
    for name, words in {"mass_squared": "m²", "chemical_potential": "μ"}.items():
        last = float(finest[name][-1])
        for n, ds in zip(GRIDS[matter][:-1], runs, strict=False):
            apart = 100 * abs(ds[name] - finest[name])[1:] / abs(last)
            sheet.compare(
                f"grid error of {words}(t), {species}: {matter}, {n}³ against {most}³",
                float(apart.max()), "", "% of its last value",
                f"largest between 0.2 fm and the end; at the end {float(apart[-1]):.2g} %",
            )  # fmt: skip
    if species == "q":  # that of all species was told with gluons
        return
    for n, ds in zip(GRIDS[matter][:-1], runs, strict=False):
        apart = 100 * abs(ds.equilibrium_distance - finest.equilibrium_distance)
        sheet.compare(
            f"grid error of the part of particles that have still to move: {matter}, {n}³ against "
            f"{most}³", float(apart.max()), "", "% of all particles",
            f"at {float(apart.idxmax()):g} fm, "
            f"of {100 * float(finest.equilibrium_distance[0]):.0f} % at the start",
        )  # fmt: skip


def found(sheet: paper.Sheet, runs: dict[str, xr.Dataset], species: str, words: str) -> None:
    """Summarise the result of each scheme in a sentence; runs : by scheme."""
    for scheme, ds in runs.items():
        one, end = ds.sel(species=species), float(ds.time[-1])
        mu, t = float(one.chemical_potential[-1]), float(ds.temperature[-1])
        gain = 100 * float(ds.energy_total[-1] / ds.energy_total[0] - 1)
        above = one.time.values[one.chemical_potential.values >= 0]
        sign = f", below 0 after {above[-1]:.3g} fm" if mu < 0 and len(above) else ""
        text = (
            f"{words}, {SCHEMES[scheme]}: μ = {mu:.4g} GeV{sign}; T = {t:.4g} GeV at {end:g} fm. "
        )
        if scheme == "conserving":
            final_mu, final_t = one.equilibrium_chemical_potential, ds.equilibrium_temperature
            text += f"Prescribed are {float(final_mu):.4g} and {float(final_t):.4g} GeV."
        else:
            rate = 100 * float(ds.energy_total.differentiate("time")[-1] / ds.energy_total[0])
            text += f"The total energy has grown by {gain:.3g} %, at last by {rate:.2g} % per fm."
        sheet.find(text)


def stated(sheet: paper.Sheet, runs: dict[str, xr.Dataset], matter: str) -> None:
    """Which of the paper's statements about late gluons each scheme shows; runs : by scheme."""
    holds = {}
    for scheme, ds in runs.items():
        one = ds.sel(species="g")
        soft, m2 = one.spectrum.isel(p=0), one.mass_squared
        facts = {
            "μ below 0": bool(one.chemical_potential[-1] < 0),
            "soft gluons that pile up and then decrease": bool(soft.max() > 1.01 * soft[-1]),
            "a squared mass that ends below its start": bool(m2[-1] < m2[0]),
        }
        holds[scheme] = [words for words, true in facts.items() if true] or ["none"]
    sheet.find(
        f"The paper states of gluons ({matter}): {', '.join(facts)}. Of these the conserving "
        f"scheme shows: {', '.join(holds['conserving'])}; nearest cells show: "
        f"{', '.join(holds['nearest'])}. The paper does not state how well its runs conserved "
        "energy over such times, its samples, or how it fits μ."
    )


# --- pictures -----------------------------------------------------------------------------------


def spectra(ax: Axes, ds: xr.Dataset, species: str, times: Sequence[float], words: str) -> None:
    """f against energy at several times, dark to light; dashed: the prescribed equilibrium."""
    one = ds.sel(species=species)
    for t, look in style.shades(style.recorded(ds, times)):
        now = one.sel(time=t)
        inside = ds.p <= paper.BOX
        f = now.spectrum.where((now.spectrum > 1e-4) & inside)
        ax.plot(np.sqrt(ds.p**2 + now.mass_squared), f, **look)
    temperature, mu = float(ds.equilibrium_temperature), float(one.equilibrium_chemical_potential)
    energy = np.linspace(float(np.sqrt(one.equilibrium_mass_squared)), 2.3, 300)
    f = 1 / (np.exp((energy - mu) / temperature) - float(one.statistics))
    ax.plot(energy, f, "--", color="black", linewidth=1.2, label="prescribed")
    left, low = {"g": (0.5, 0.01), "u": (0.25, 0.001)}[species]
    ax.set(xlabel="energy $E$ [GeV]", ylabel=f"$f_{{\\rm {species}}}$", yscale="log")
    ax.set(xlim=(left, 2.3), ylim=(low, 9))
    ax.text(0.97, 0.96, words, transform=ax.transAxes, ha="right", va="top")


def history(ax: Axes, ds: xr.Dataset, name: str, species: str, scheme: str, words: str) -> None:
    """One quantity of a species against time, and its prescribed last value."""
    color = paper.GLUONS if species == "g" else paper.QUARKS
    one = ds.sel(species=species)
    ax.plot(ds.time, one[name], color=color, label=words, **LOOKS[scheme])
    if scheme == "conserving":
        final = float(one[f"equilibrium_{name}"])
        ax.axhline(final, color="black", linestyle="--", linewidth=1, zorder=0)
    ax.set(xlabel="time [fm]", xlim=(0, float(ds.time[-1])))


def renamed(ds: xr.Dataset, prefix: str, names: Sequence[str]) -> dict[str, xr.DataArray]:
    """Quantities of a run for a file that holds several: their axes get the run's name too."""
    axes = {"time": f"{prefix}_time", "p": f"{prefix}_p", "species": f"{prefix}_species"}
    return {
        f"{prefix}_{name}": ds[name].rename({a: b for a, b in axes.items() if a in ds[name].dims})
        for name in names
    }


def near_zero(ax: Axes) -> None:
    """Chemical potentials of a gas that grows ever hotter leave the picture, below -1 GeV."""
    highest = max(np.nanmax(line.get_ydata()) for line in ax.lines)
    if ax.get_ylim()[0] < -1.0:
        ax.set_ylim(-1.0, highest + 0.2)
    ax.axhline(0, color="0.6", linewidth=0.8, zorder=0)
