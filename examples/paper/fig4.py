"""Fig. 4: numbers against time, with and without symmetrical sampling.

Gluons convert into quarks and antiquarks until both rates are equal. With symmetrical sampling the
total is exact to the last quantum; without it the total performs a random walk.
"""

import numpy as np
import paper_runs as paper
import xarray as xr

import relboltz as rb
from relboltz.visualization.plots import style

DT = 0.01


def setup(job):
    """Describe what is computed."""
    cells, samples, end = sizes(job)
    return (
        f"gluons random in [0, 1], no quarks, {cells}³ nodes in a box of 2 GeV, {samples} samples "
        f"per node and process, delta function through k2, nearest cells, steps of {DT} fm to "
        f"{end:g} fm"
    )


def sizes(job):
    """Cells along an axis, samples, last time [fm]."""
    return job.pick((10, 20, 1.0), (40, 100, 5.0))


def draw(job, sheet):
    """Both runs, numbers and the drift of their sum."""
    cells, samples, end = sizes(job)
    model, grid = rb.qcd(paper.ALPHA_S), rb.PhaseSpace(cells, paper.BOX)
    start = {"g": rb.initial.random(0.0, 1.0, seed=1)}
    runs = {
        way: job.solve(
            f"random gluons, {cells}^3, {way} symmetrical sampling", model, grid, start,
            samples=samples, step=DT, end=end, every=end / 50, snapshots=[],
            symmetrical=symmetrical, **paper.PAPERS,
        )
        for way, symmetrical in {"with": True, "without": False}.items()
    }  # fmt: skip
    sheet.ran("with symmetrical sampling", runs["with"], "8198 s")
    sheet.ran("without symmetrical sampling", runs["without"], "6456 s")
    total = {way: ds.number.sum("species") for way, ds in runs.items()}
    drift = {way: 100 * (n / n[0] - 1) for way, n in total.items()}
    quanta = abs(runs["with"].charge_drift.sel(charge="number")).max()
    sheet.compare(
        "largest change of the total number, with", quanta, "0", "quanta", between=(0, 0),
        same=bool(quanta == 0),
    )  # fmt: skip
    largest = float(abs(drift["without"]).max())
    sheet.compare("largest change of the total number, without", largest, "about 0.03 %", "%")
    scaled = largest * np.sqrt(samples * cells**3 / (100 * 40**3))
    sheet.compare(
        "– scaled to 40³ nodes and 100 samples", scaled, "about 0.03 %", "%",
        "the total walks at random: its steps fall as 1/√(nodes × samples)",
        between=(0.003, 0.3), same=0.01 <= scaled <= 0.1,
    )  # fmt: skip
    ds = runs["with"]
    gluons = ds.number.sel(species="g")
    quarks = ds.number.sum("species") - gluons
    left = float(gluons[-1] / gluons[0])
    sheet.compare("gluons left at the end", 100 * left, "fewer", "%", same=left < 1)

    figure, (numbers, totals) = paper.panels(1, 2)
    for words, values, color in (
        ("gluons", gluons, paper.GLUONS), ("quarks and antiquarks", quarks, paper.QUARKS),
        ("all", total["with"], "black"),
    ):  # fmt: skip
        numbers.plot(ds.time, values * paper.VOLUME, color=color, label=words)
    for way, color in (("with", paper.QUARKS), ("without", style.COLORS[2])):
        totals.plot(ds.time, drift[way], color=color, label=f"{way} symmetrical sampling")
    numbers.set(xlabel="time [fm]", ylabel="particles in 216 fm³", xlim=(0, end), ylim=(0, None))
    totals.set(xlabel="time [fm]", ylabel="change of the total number [%]", xlim=(0, end))
    numbers.legend(loc="center right")
    totals.legend(loc="best")
    data = {f"number_{way}": run.number for way, run in runs.items()}
    return figure, xr.Dataset(data)


if __name__ == "__main__":
    paper.main("fig4")
