"""Compare physical numbers shown on pages and in examples with their converged values.

    python benchmarks/page_numbers.py [SET-UP ...] [--backend B] [--markdown F] [--json F]

Every set-up is that of a block of a page or of an example. It is run as on the page, with the
spacing of momenta divided by 1.5 and by 2, with a box 1.25 times as wide, with a quarter of the
tolerance and, in space, with half the cell size, each alone. The limit is the sum of these changes;
the order in the spacing is measured from the three spacings, between 1 and 2. Its uncertainty is
half the difference of the limits of first and second order, half of each other change, and the
scatter of three seeds. A number printed on the page is read from the page, so that changes of the
page are detected.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

import relboltz as rb

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "examples"))
Values = dict[str, float]


@dataclass(frozen=True)
class Finer:
    """A refinement of a set-up: factors of spacing, box, tolerance and space cells; a seed."""

    spacing: float = 1.0
    box: float = 1.0
    tolerance: float = 1e-3
    space: int = 1
    seed: int = 1
    backend: str = "auto"

    def grid(self, cells: Any, width: Any, space: Any = None, *more: Any, **keys: Any) -> Any:
        """Return a grid refined along all axes; the parity of the numbers of nodes is kept."""
        n, w = np.broadcast_to(cells, 3), np.broadcast_to(np.asarray(width, float), 3)
        h = 2 * w / n * self.spacing
        fine = [int(k) + 2 * round((k * self.box / self.spacing - k) / 2) for k in n]
        widths = [float(0.5 * a * b) for a, b in zip(h, fine, strict=True)]
        if space is None:
            return rb.PhaseSpace(fine, widths, **keys)
        sites = [k * self.space if k > 1 else 1 for k in space]
        return rb.PhaseSpace(fine, widths, sites, *more, **keys)

    def solve(self, model: Any, grid: Any, initial: Any, **options: Any) -> Any:
        """Solve with this tolerance, seed and backend."""
        usual = {"tolerance": self.tolerance, "seed": self.seed, "backend": self.backend}
        return rb.solve(model, grid, initial, progress=False, **usual | options)


# --- set-ups ------------------------------------------------------------------------------------


def automatic(cells: int, model: Any, start: Any) -> tuple[int, float]:
    """Return the cells and the width of an automatic box."""
    run = rb.solve(model, cells, start, end=1e-6, every=1e-6, samples=1, progress=False)
    return cells, float(np.ravel(run.attrs["momentum_max"])[0])


def gluons(finer: Finer) -> Values:
    """README and first_run.md: over-occupied gluons in an automatic box."""
    model, start = rb.gluons(0.3), {"g": rb.initial.step(0.5, 1.5)}
    run = finer.solve(model, finer.grid(*automatic(41, model, start)), start, end=2.0)
    one, two = (run.sel(time=t, method="nearest") for t in (1.0, 2.0))
    return {
        "% out of equilibrium at 1 fm": 100 * float(one.equilibrium_distance),
        "% out of equilibrium at 2 fm": 100 * float(two.equilibrium_distance),
        "T at 1 fm [GeV]": float(one.temperature),
        "T predicted [GeV]": float(run.equilibrium_temperature),
        "mu at 1 fm [GeV]": float(one.chemical_potential[0]),
        "mu predicted [GeV]": float(run.equilibrium_chemical_potential[0]),
    }


def tutorial(finer: Finer) -> Values:
    """tutorial.md: a squeezed Gaussian of gluons turns into quarks."""
    start = {"g": rb.initial.gaussian(0.6, [0.8, 0.8, 0.4], sampling="node")}
    run = finer.solve(
        rb.qcd(0.3, flavor_symmetric=True),
        finer.grid(28, 4.2),
        start,
        end=3.0,
        every=0.1,
        samples=8,
    )
    return {
        "relaxation time of P_z/P_T [fm]": float(run.rb.relaxation_time("pressure_ratio")),
        "quarks at 3 fm [fm^-3]": float(run.number.sel(species="q")[-1]),
        "quarks predicted [fm^-3]": float(run.equilibrium_number.sel(species="q")),
        "T at 0 fm [GeV]": float(run.temperature[0]),
        "T at 3 fm [GeV]": float(run.temperature[-1]),
        "P_z/P_T at 0 fm": float(run.pressure_ratio[0]),
        "P_z/P_T at 3 fm": float(run.pressure_ratio[-1]),
        "energy [GeV fm^-3]": float(run.energy_total[-1]),
    }


def bjorken(finer: Finer) -> Values:
    """expansion.md: gluons in Bjorken flow."""
    grid = finer.grid([24, 24, 53], [3.6, 3.6, 4.5], expansion="bjorken")
    start = {"g": rb.initial.romatschke_strickland(temperature=0.4, xi=5.0, sampling="node")}
    run = finer.solve(rb.gluons(0.3), grid, start, start=0.3, end=3.0, every=0.3)
    found = {}
    for tau in (0.3, 0.6, 1.5, 3.0):
        now = run.sel(time=tau, method="nearest")
        found[f"P_L/P_T at {tau} fm"] = float(now.pressure_ratio)
    return found | {"dN/dy [fm^-2]": float(now.dN_dy.sum())}


def attractor(finer: Finer, name: str, xi: float) -> Values:
    """examples/attractor.py: matter in Bjorken flow forgets its initial conditions."""
    model = rb.gluons(0.3) if name == "gluons" else rb.qcd(0.3, flavor_symmetric=True)
    grid = finer.grid([20, 20, 49], [4.0, 4.0, 4.8], expansion="bjorken")
    shape = rb.initial.romatschke_strickland(0.5, xi=xi, sampling="node")
    start = dict.fromkeys(model.names, shape)
    run = finer.solve(model, grid, start, start=0.3, end=6.0, every=0.1, samples=8)
    return {
        "P_L/P_T at 0.3 fm": float(run.pressure_ratio[0]),
        "P_L/P_T at 6 fm": float(run.pressure_ratio[-1]),
        "(P_T - P_L) tau/(2 eta) at 6 fm": float(run.rb.first_order(model).driven[-1]),
    }


def quark_production(finer: Finer) -> Values:
    """examples/quark_production.py: quarks made while matter expands."""
    grid = finer.grid([20, 20, 49], [4.0, 4.0, 4.8], expansion="bjorken")
    start = {"g": rb.initial.glasma(amplitude=2.0, scale=1.0, xi=2.0)}
    run = finer.solve(
        rb.qcd(0.3, flavor_symmetric=True), grid, start, start=0.3, end=6.0, every=0.3, samples=8
    )
    part = 100 * run.dN_dy.sel(species="q") / run.dN_dy.sum("species")
    return {
        f"% quarks at {tau} fm": float(part.sel(time=tau, method="nearest"))
        for tau in (0.6, 1.5, 3.0, 6.0)
    }


def almond(finer: Finer) -> Values:
    """examples/almond.py: elliptic flow in the transverse plane."""
    grid = finer.grid(
        [9, 9, 17], [2.5, 2.5, 3.0], [12, 12, 1], [6.0, 6.0, 1.0], boundary="open",
        expansion="bjorken",
    )  # fmt: skip
    shape = rb.initial.gaussian_profile(radius=1.5, eccentricity=0.4)
    start = {"g": rb.initial.romatschke_strickland(0.5, xi=2.0, profile=shape)}
    run = finer.solve(rb.gluons(0.3), grid, start, start=0.3, end=3.0, every=0.3, samples=8)
    return {
        "eccentricity at 0.3 fm": float(run.rb.eccentricity(2).eccentricity[0]),
        "eccentricity at 3 fm": float(run.rb.eccentricity(2).eccentricity[-1]),
        "energy flow at 3 fm": float(run.rb.momentum_anisotropy().epsilon_p[-1]),
        "v_2": float(run.rb.flow(2).v_integrated[-1, 0]),
    }


def hadron_gas(finer: Finer) -> Values:
    """examples/hadron_gas.py: kaons made by pions."""
    from hadron_gas import gas

    start = {"pi": rb.initial.thermal(0.18)}
    run = finer.solve(gas, finer.grid(26, 2.1), start, end=20.0, every=1.0, samples=4)
    tau = run.rb.relaxation_time("number", "K", start=10.0, end=20.0)
    return {"relaxation time of kaons [fm]": float(tau)}


def charm(finer: Finer) -> Values:
    """examples/charm.py: a charm quark is slowed down in gluons."""
    from charm import model, start

    run = finer.solve(model, finer.grid(18, 4.5), start, end=12.0, every=0.5, samples=8)
    tau = run.rb.relaxation_time("momentum_by_species", "c", axis="x")
    return {"relaxation time of the momentum [fm]": float(tau)}


def continued(finer: Finer) -> Values:
    """examples/continued.py: relaxation of a squeezed Gaussian of gluons."""
    start = {"g": rb.initial.gaussian(0.5, [0.9, 0.9, 0.5], sampling="node")}
    run = finer.solve(rb.gluons(0.3), finer.grid(36, 4.6), start, end=3.0)
    return {
        "relaxation time of P_z/P_T [fm]": float(run.rb.relaxation_time("pressure_ratio")),
        "thermal to 10 % after [fm]": float(run.rb.thermalisation_time(0.1)),
    }


def coupling_scan(finer: Finer) -> Values:
    """examples/coupling_scan.py: relaxation against the coupling."""
    start = {"g": rb.initial.gaussian(0.5, [0.9, 0.9, 0.5], sampling="node")}
    found = {}
    for alpha_s in (0.1, 0.2, 0.3):
        run = finer.solve(rb.gluons(alpha_s), finer.grid(36, 4.6), start, end=2.0, every=0.1)
        tau = run.rb.relaxation_time("pressure_ratio")
        found[f"relaxation time at alpha_s = {alpha_s} [fm]"] = float(tau)
    return found


def own_model(finer: Finer) -> Values:
    """examples/own_model.py: a hot gas warms a cold gas."""
    from own_model import model, start

    run = finer.solve(model, finer.grid(*automatic(33, model, start)), start, end=5.0)
    share = (run.energy_by_species / run.number).values
    return {
        "GeV per a at 0 fm": share[0, 0], "GeV per b at 0 fm": share[0, 1],
        "GeV per a at 5 fm": share[-1, 0], "GeV per b at 5 fm": share[-1, 1],
    }  # fmt: skip


def landau_frame(finer: Finer) -> Values:
    """examples/landau_frame.py: the Landau frame beside the middle of a hot spot."""
    from landau_frame import spot

    grid = finer.grid(8, 2.5, [8, 8, 1], space_max=3.0, boundary="open")
    run = finer.solve(rb.gluons(0.3), grid, {"g": spot}, end=1.0, every=0.5, samples=2)
    there = run.interp(x=1.125, y=0.375).isel(z=0, time=-1)
    return {
        "landau_energy at 1 fm [GeV fm^-3]": float(there.landau_energy),
        "landau_temperature at 1 fm [GeV]": float(there.landau_temperature),
    }


def hot_spot(finer: Finer) -> Values:
    """examples/hot_spot.py: gluons expand into vacuum."""
    from hot_spot import spot

    grid = finer.grid(10, 2.5, [12, 12, 1], space_max=3.0, boundary="open")
    run = finer.solve(rb.gluons(0.3), grid, {"g": spot}, end=3.0, every=1.0, samples=8)
    left = 100 * run.left_number.sum(("wall", "species")) / run.total_number[0].sum()
    return {
        f"% that left by {t} fm": float(left.sel(time=t, method="nearest")) for t in (1.0, 2.0, 3.0)
    }


SET_UPS: dict[str, Callable[[Finer], Values]] = {
    "gluons": gluons,
    "tutorial": tutorial,
    "bjorken": bjorken,
    "attractor, gluons, xi = 0": lambda finer: attractor(finer, "gluons", 0.0),
    "attractor, gluons, xi = 10": lambda finer: attractor(finer, "gluons", 10.0),
    "attractor, mixture, xi = 0": lambda finer: attractor(finer, "mixture", 0.0),
    "attractor, mixture, xi = 10": lambda finer: attractor(finer, "mixture", 10.0),
    "quark_production": quark_production,
    "continued": continued,
    "coupling_scan": coupling_scan,
    "own_model": own_model,
    "charm": charm,
    "hadron_gas": hadron_gas,
    "landau_frame": landau_frame,
    "hot_spot": hot_spot,
    "almond": almond,
}
IN_SPACE = ("landau_frame", "hot_spot", "almond")


@dataclass(frozen=True)
class Quoted:
    """Statement of a page or an example about a number.

    pattern : the number and the text around it; "" if the number is printed. stated : the literal
    statement about its error
    """

    page: str
    pattern: str = ""
    stated: str = ""


QUOTED = {
    ("gluons", "% out of equilibrium at 1 fm"): Quoted(
        "docs/first_run.md",
        r"equilibrium at 1 fm, in place of ([\d.]+) %",
        "10.6 % of the particles are not yet in equilibrium at 1 fm",
    ),
    ("gluons", "% out of equilibrium at 2 fm"): Quoted(
        "docs/first_run.md", r"% at 2 fm, in place of ([\d.]+) %", "3.7 % at 2 fm"
    ),
    ("gluons", "T at 1 fm [GeV]"): Quoted(
        "docs/first_run.md",
        r"temperature \[GeV\] +([\d.]+)",
        "the temperature is 0.385 in place of 0.387 GeV",
    ),
    ("gluons", "T predicted [GeV]"): Quoted(
        "docs/first_run.md",
        r"temperature \[GeV\] +[\d.]+ +([\d.]+)",
        "the predicted one 0.3838 GeV",
    ),
    ("gluons", "mu at 1 fm [GeV]"): Quoted("docs/first_run.md", r"mu of g \[GeV\] +([\d.]+)"),
    ("gluons", "mu predicted [GeV]"): Quoted(
        "docs/first_run.md", r"mu of g \[GeV\] +[\d.]+ +([\d.]+)"
    ),
    **{
        ("bjorken", f"P_L/P_T at {tau} fm"): Quoted(
            "docs/expansion.md",
            rf"tau = {tau} fm: P_L/P_T = ([\d.]+),",
            "P_L/P_T is within 2 % of these numbers",
        )
        for tau in (0.3, 0.6, 1.5, 3.0)
    },
    ("bjorken", "dN/dy [fm^-2]"): Quoted(
        "docs/expansion.md", r"tau = 3.0 fm: P_L/P_T = [\d.]+, dN/dy = ([\d.]+) per"
    ),
    ("tutorial", "relaxation time of P_z/P_T [fm]"): Quoted(
        "docs/tutorial.md", r"with tau = ([\d.]+) fm\n", "give τ = 1.26 ± 0.02 fm"
    ),
    ("tutorial", "quarks at 3 fm [fm^-3]"): Quoted(
        "docs/tutorial.md",
        r"quarks at the end: ([\d.]+) per",
        "the numbers of quarks are the same to 0.4 %",
    ),
    ("tutorial", "quarks predicted [fm^-3]"): Quoted(
        "docs/tutorial.md", r"predicted for late times: ([\d.]+)"
    ),
    ("tutorial", "T at 0 fm [GeV]"): Quoted("docs/tutorial.md", r"\n0\.0 +([\d.]+)"),
    ("tutorial", "T at 3 fm [GeV]"): Quoted("docs/tutorial.md", r"\n3\.0 +([\d.]+)"),
    ("tutorial", "P_z/P_T at 0 fm"): Quoted("docs/tutorial.md", r"\n0\.0 +[\d.]+ +([\d.]+)"),
    ("tutorial", "P_z/P_T at 3 fm"): Quoted("docs/tutorial.md", r"\n3\.0 +[\d.]+ +([\d.]+)"),
    ("tutorial", "energy [GeV fm^-3]"): Quoted(
        "docs/tutorial.md", r"\n3\.0 +[\d.]+ +[\d.]+ +([\d.]+)"
    ),
    **{
        (name, what): Quoted("docs/examples.md", stated=stated)
        for stated, numbers in {
            "times of `continued.py` and `coupling_scan.py` are 3 % too small": (
                ("continued", "relaxation time of P_z/P_T [fm]"),
                ("continued", "thermal to 10 % after [fm]"),
                *(
                    ("coupling_scan", f"relaxation time at alpha_s = {alpha_s} [fm]")
                    for alpha_s in (0.1, 0.2, 0.3)
                ),
            ),
            "shares of quarks of `quark_production.py` 3 % too small": tuple(
                ("quark_production", f"% quarks at {tau} fm") for tau in (3.0, 6.0)
            ),
            "of `hadron_gas.py` 4 ± 2 %": (("hadron_gas", "relaxation time of kaons [fm]"),),
            "of `charm.py` 2 ± 2 % too large": (("charm", "relaxation time of the momentum [fm]"),),
        }.items()
        for name, what in numbers
    },
}
"""Numbers that appear on a page; the others are printed by a block or an example."""


# --- limits -------------------------------------------------------------------------------------

FINER, FINEST = 1.5, 2.0
"""Divisors of the spacing."""


def order_of(values: tuple[float, float, float]) -> float:
    """Return the order in h, between 1 and 2, implied by three spacings h, h/1.5, h/2."""
    first, second, third = values
    if (first - second) * (second - third) <= 0:
        return 1.5
    orders = np.linspace(1.0, 2.0, 101)
    ratio = (1 - FINER**-orders) / (FINER**-orders - FINEST**-orders)
    return float(orders[np.argmin(np.abs(ratio - (first - second) / (second - third)))])


def extrapolated(values: tuple[float, float, float], order: float) -> float:
    """Return the value at spacing 0 from those at h and h/2, for an order."""
    first, _, third = values
    return third + (third - first) / (FINEST**order - 1)


def rows(name: str, backend: str) -> Iterator[dict[str, Any]]:
    """Run a set-up unchanged and refined; yield a row for every number."""
    usual = Finer(backend=backend)
    refined = {
        "h/1.5": replace(usual, spacing=1 / FINER, seed=2),
        "h/2": replace(usual, spacing=1 / FINEST, seed=3),
        "box": replace(usual, box=1.25),
        "tolerance": replace(usual, tolerance=2.5e-4),
    }
    if name in IN_SPACE:
        refined["space"] = replace(usual, space=2)
    solve = SET_UPS[name]
    here = solve(usual)
    seeds = [here, *(solve(replace(usual, seed=seed)) for seed in (4, 5))]
    others = {key: solve(finer) for key, finer in refined.items()}
    for what, value in here.items():
        mean = float(np.mean([one[what] for one in seeds]))
        noise = float(np.std([one[what] for one in seeds], ddof=1))
        along = mean, others["h/1.5"][what], others["h/2"][what]
        order = order_of(along)
        ends = [extrapolated(along, p) for p in (1.0, order, 2.0)]
        changes = {key: others[key][what] - mean for key in refined if "h/" not in key}
        limit = ends[1] + sum(changes.values())
        spread = 0.5 * abs(ends[0] - ends[2]) + 0.5 * sum(map(abs, changes.values())) + noise
        quoted = QUOTED.get((name, what))
        yield {
            "set-up": name, "what": what, "page": quoted.page if quoted else "printed",
            "shown": on_page(quoted, value), "limit": limit, "uncertainty": spread,
            "stated": quoted.stated if quoted else "", "order": order,
            "changes": changes | {"h/2": along[2] - mean}, "noise": noise,
        }  # fmt: skip


def on_page(quoted: Quoted | None, value: float) -> float:
    """Read a number from its page, or return the printed value; check the stated error."""
    if quoted is None:
        return value
    text = " ".join((ROOT / quoted.page).read_text().split())
    if quoted.stated not in text:
        raise SystemExit(f"{quoted.page} does not say {quoted.stated!r}")
    if not quoted.pattern:
        return value
    found = re.search(quoted.pattern, (ROOT / quoted.page).read_text())
    if found is None:
        raise SystemExit(f"{quoted.page} no longer has {quoted.pattern!r}")
    return float(found.group(1))


def line(row: dict[str, Any]) -> str:
    """Format a row of a Markdown table."""
    off = 100 * (row["shown"] / row["limit"] - 1) if row["limit"] else np.nan
    known = 100 * row["uncertainty"] / abs(row["limit"]) if row["limit"] else np.nan
    return (
        f"| {row['set-up']} | {row['what']} | {row['page']} | {row['shown']:.4g} "
        f"| {row['limit']:.4g} ± {row['uncertainty']:.1g} | {off:+.1f} ± {known:.1f} "
        f"| {row['stated']} |"
    )


def main() -> None:
    """Compute and print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", choices=[*SET_UPS, []])
    parser.add_argument("--backend", default="auto")
    parser.add_argument("--markdown")
    parser.add_argument("--json")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    table = [
        "| set-up | number | page | shown | converged | off by [%] | the page says |",
        "|---|---|---|---|---|---|---|",
    ]  # fmt: skip
    print("\n".join(table))
    found = []
    for name in given.names or SET_UPS:
        began = time.perf_counter()
        for row in rows(name, given.backend):
            found.append(row)
            table.append(line(row))
            print(table[-1], flush=True)
        print(f"<!-- {name}: {time.perf_counter() - began:.0f} s -->", flush=True)
    if given.markdown:
        Path(given.markdown).write_text("\n".join(table) + "\n")
    if given.json:
        Path(given.json).write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
