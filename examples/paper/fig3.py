"""Fig. 3: numbers after one step, with and without symmetrical sampling.

With symmetrical sampling an event changes all four of its cells, so that the total number is exact;
without it a sample changes only one cell. (a) pure gluons; (b) to (d) gluons that turn into quarks.
"""

import numpy as np
import paper_runs as paper
import xarray as xr

import relboltz as rb

DT = 0.01
WAYS = {"with": True, "without": False}


def setup(job):
    """Describe what is computed."""
    cells, count, samples = sizes(job)
    return (
        f"gluons random in [0, 1], no quarks, {cells}³ nodes in a box of 2 GeV, {samples} samples "
        f"per node and process, delta function through k2, one Euler step of {DT} fm, "
        f"{count} evaluations each"
    )


def sizes(job):
    """Cells along an axis, evaluations, samples."""
    return job.pick((10, 30, 100), (40, 60, 100))


def evaluate(job, model, way):
    """Numbers by species of all evaluations, (evaluation, species)."""
    cells, count, samples = sizes(job)
    grid = rb.PhaseSpace(cells, paper.BOX)
    f = paper.random_gluons(model, grid)

    def once(seed):
        options = {"seed": seed, "symmetrical": WAYS[way]}
        return list(paper.stepped(job, model, grid, f, DT, samples, **options).values())

    name = f"{model.name}, {cells}^3, {way} symmetrical sampling"
    return np.array(job.repeat(name, count, once))


def draw(job, sheet):
    """Four panels of numbers, and their spreads."""
    found = {}
    for way in WAYS:
        found["gluons", way] = evaluate(job, rb.gluons(paper.ALPHA_S), way)
        found["mixture", way] = evaluate(job, rb.qcd(paper.ALPHA_S), way)
    shown = {
        "gluons, alone": ("gluons", lambda n: n[:, 0]),
        "gluons of the mixture": ("mixture", lambda n: n[:, 0]),
        "all particles of the mixture": ("mixture", lambda n: n.sum(axis=1)),
        "quarks and antiquarks": ("mixture", lambda n: n[:, 1:].sum(axis=1)),
    }
    figure, axes = paper.panels(2, 2)
    data = {}
    for ax, (words, (matter, of)) in zip(axes, shown.items(), strict=True):
        numbers = {f"{way} symmetrical sampling": of(found[matter, way]) for way in WAYS}
        paper.evaluations(ax, numbers, f"{words}\nin 216 fm³")
        for way, values in zip(WAYS, numbers.values(), strict=True):
            exact = way == "with" and words in ("gluons, alone", "all particles of the mixture")
            spread = 100 * np.std(values, ddof=1) / np.mean(values)
            sheet.compare(
                f"spread of {words}, {way} symmetrical sampling", spread,
                "0" if exact else "not 0", "%",
                between=(0, 1e-11) if exact else (1e-6, 100), same=(spread < 1e-11) == exact,
            )  # fmt: skip
            data[f"{words}, {way}".replace(", ", "_").replace(" ", "_")] = ("evaluation", values)
    paper.legend(figure, axes[0])
    return figure, xr.Dataset(data)


if __name__ == "__main__":
    paper.main("fig3")
