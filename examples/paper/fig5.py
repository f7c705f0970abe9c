"""Fig. 5: the energy error at 1 fm against the number of momentum cells.

Gluons of constant mass, m² = 0.5 GeV², so that the kinetic energy is the energy. Landing in the
nearest cell heats the gas; the conserving scheme splits every event such that its energy is exact.
"""

import math

import numpy as np
import paper_runs as paper
import xarray as xr

import relboltz as rb
from relboltz.visualization.plots import style

MASS = math.sqrt(0.5)
DT = 1e-4
K2, CM = "nearest cells, through k2", "nearest cells, centre of mass"
SCHEMES = {
    K2: paper.PAPERS,
    CM: {"projection": "nearest"},
    "conserving": {"projection": "conserving"},
}
ROUNDED = {
    K2: "the paper's sampling: three of four momenta are rounded to a node",
    CM: "two of four momenta are rounded to a node",
}


def setup(job):
    """Describe what is computed."""
    return (
        "pure gluons, m² = 0.5 GeV² in kinematics and screening, f = 0.5 below 1.5 GeV, "
        f"{sizes(job)[0]}³ to {sizes(job)[-1]}³ nodes in a box of 2 GeV, 1 fm"
    )


def sizes(job):
    """Cells along an axis."""
    return job.pick([10, 14, 20, 30], [10, 14, 20, 26, 30, 36, 40, 50])


def error(ds):
    """|E(end) - E(0)| / E(0)."""
    return float(abs(ds.energy_total[-1] / ds.energy_total[0] - 1))


def solve(job, cells, scheme, end=1.0, **step):
    """One run of constant mass."""
    words = "".join(f", steps of {dt:g} fm" for dt in step.values())
    return job.solve(
        f"constant mass, {cells}^3, {scheme}{words}, {end:g} fm",
        rb.gluons(paper.ALPHA_S, masses={"g": MASS}, screening=MASS),
        rb.PhaseSpace(cells, paper.BOX), {"g": paper.STEP}, end=end, every=end, snapshots=[],
        precision="float64", **SCHEMES[scheme], **step,
    )  # fmt: skip


def draw(job, sheet):
    """A curve for each scheme; a stretch with the paper's step."""
    cells = sizes(job)
    found = {scheme: [solve(job, n, scheme) for n in cells] for scheme in SCHEMES}
    errors = {scheme: [error(ds) for ds in runs] for scheme, runs in found.items()}
    at = cells.index(30)
    for scheme, runs in found.items():
        sheet.ran(f"30³ to 1 fm, {scheme}", runs[at])
        value = errors[scheme][at]
        if scheme == "conserving":
            sheet.compare("energy error at 1 fm, 30³: conserving", value, "", "", "in float64",
                          between=(0, 1e-12))  # fmt: skip
            continue
        sheet.compare(
            f"energy error at 1 fm, 30³: {scheme}", 100 * value, "about 1.5 %", "%",
            ROUNDED[scheme] + "; check: 0.5 to 2 %", between=(0.5, 2.0),
        )  # fmt: skip
    order = np.log(errors[K2][0] / errors[K2][at]) / np.log(cells[at] / cells[0])
    sheet.compare("it falls as cells to the power", -order, "decreases fast", "", K2,
                  same=order > 1)  # fmt: skip
    stretch(job, sheet)
    rows = xr.DataArray(
        list(errors.values()), dims=("scheme", "cells"),
        coords={"scheme": list(SCHEMES), "cells": cells}, attrs={"units": "1"},
    )  # fmt: skip
    return picture(cells, errors), xr.Dataset({"energy_error": rows})


def stretch(job, sheet):
    """The paper's own step: the same error as with automatic ones."""
    cells, end = job.pick((14, 0.05), (30, 1.0))
    short, ours = (100 * error(solve(job, cells, K2, end, **o)) for o in ({"step": DT}, {}))
    sheet.compare(
        f"energy error at {end:g} fm, {cells}³, steps of {DT} fm: {K2}", short, "", "%",
        f"with automatic steps {ours:.3g} %", between=(0.8 * ours, 1.25 * ours),
    )  # fmt: skip


def picture(cells, errors):
    """(a) as in the paper, (b) down to rounding."""
    figure, axes = paper.panels(1, 2)
    looks = [("^-", paper.GLUONS), ("o-", style.COLORS[2]), ("s-", paper.QUARKS)]
    for ax, factor in zip(axes, (100, 1), strict=True):
        for (scheme, values), (look, color) in zip(errors.items(), looks, strict=True):
            shown = factor * np.maximum(values, 1e-16)
            ax.plot(cells, shown, look, color=color, markersize=5, label=scheme)
        ax.plot(30, factor * 0.015, "*", color="black", markersize=12, label="the paper", zorder=5)
        ax.set(xlabel="momentum cells along an axis", xlim=(8, cells[-1] + 2))
    axes[0].set(ylabel="energy error at 1 fm [%]", ylim=(-0.3, None))
    axes[1].set(ylabel="$|E(1\\,{\\rm fm}) - E(0)|\\,/\\,E(0)$", yscale="log", ylim=(1e-17, 1))
    axes[0].legend()
    return figure


if __name__ == "__main__":
    paper.main("fig5")
