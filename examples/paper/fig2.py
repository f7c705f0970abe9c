"""Fig. 2: the delta function through k2 or through k3, without symmetrical sampling.

The number of gluons after one step of 0.01 fm, from the same random start in many independent
evaluations. The true number does not change; the spread is the error of the integration.
"""

import numpy as np
import paper_runs as paper
import xarray as xr

import relboltz as rb

DT = 0.01


def setup(job):
    """Describe what is computed."""
    cells, count, samples = sizes(job)
    return (
        f"pure gluons, f random in [0, 1], {cells}³ nodes in a box of 2 GeV, {samples} samples per "
        f"node, one Euler step of {DT} fm, {count} evaluations each"
    )


def sizes(job):
    """Cells along an axis, evaluations, samples."""
    return job.pick((20, 60, 100), (40, 100, 100))


def draw(job, sheet):
    """N(t + dt) = N + dt Sum C for both ways, and their spreads."""
    cells, count, samples = sizes(job)
    model, grid = rb.gluons(paper.ALPHA_S), rb.PhaseSpace(cells, paper.BOX)
    f = paper.random_gluons(model, grid)
    ways = {"through k2": "k2", "through k3": "k3"}
    numbers = {}
    for words, way in ways.items():

        def once(seed, way=way):
            return paper.stepped(job, model, grid, f, DT, samples, seed=seed, sampling=way)["g"]

        numbers[words] = job.repeat(f"gluons, {cells}^3, {words}", count, once)
    spread = {words: np.std(values, ddof=1) for words, values in numbers.items()}
    before = paper.number(model, grid, f)["g"]
    for words, values in numbers.items():
        sheet.compare(f"spread of N, {words}", 100 * spread[words] / before, "", "% of N")
        off = (np.mean(values) - before) / (spread[words] / np.sqrt(count))
        sheet.compare(
            f"mean of N(t + dt) − N(t), {words}, in standard errors", off, "", "",
            between=(-4, 4),
        )  # fmt: skip
    ratio = spread["through k3"] / spread["through k2"]
    sheet.compare("spread through k3 over spread through k2", ratio, "> 1", "", same=ratio > 1)

    figure, (ax,) = paper.panels(1, 1)
    paper.evaluations(ax, numbers, "gluons in 216 fm³")
    ax.axhline(before, color="black", linestyle="--", linewidth=1, zorder=0, label="before")
    paper.legend(figure, ax)
    values = xr.DataArray(
        list(numbers.values()), dims=("way", "evaluation"), attrs={"units": "1"},
        coords={"way": list(ways.values())}, name="gluons",
    )  # fmt: skip
    return figure, xr.Dataset({"gluons": values, "gluons_before": before})


if __name__ == "__main__":
    paper.main("fig2")
