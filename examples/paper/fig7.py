"""Fig. 7: f of gluons and u quarks in space at several times.

Gluons that increase along x and move towards −x turn into quarks and level out. f is averaged over
all other directions.
"""

import paper_runs as paper
import xarray as xr

DT = 0.0005


def setup(job):
    """Describe what is computed."""
    (nx, ny, nz), samples, end = paper.space_size(job)
    return (
        "the mixture, gluons linear in x and p_x (minimum 0.1, maximum 0.2), no quarks, α_s = 0.3, "
        f"{nx} × {ny} × {nz} cells of a periodic box of 6 fm, 10 × 10 × 1 momentum cells of a box "
        f"of 2 GeV, nearest cells, {samples} samples, automatic steps to {end:g} fm"
    )


def draw(job, sheet):
    """f against x and y, and what became of it."""
    ds = paper.relax_in_space(job)
    sheet.ran("mixture in space", ds, "3312 s")
    figure = paper.profiles(
        ds, lambda species, axis: ds[f"f_{axis}"].sel(species=species), "$f_{{\\rm {}}}$"
    )
    paper.levels(sheet, ds, "f", lambda species: ds.f_x.sel(species=species))
    moved = int(abs(ds.charge_drift).max())
    sheet.compare("change of charges", moved, "0", "quanta", between=(0, 0), same=moved == 0)
    mean = ds.f_x.mean("x")
    gluons, quarks = (mean.sel(species=species) for species in "gu")
    sheet.compare("mean f of gluons, last over first", gluons[-1] / gluons[0], "gluons turn", "",
                  same=gluons[-1] < gluons[0])  # fmt: skip
    sheet.compare("mean f of u quarks at the end", quarks[-1], "into quarks", "",
                  same=quarks[-1] > 0)  # fmt: skip
    stretch(job, sheet)
    return figure, xr.Dataset({"f_x": ds.f_x, "f_y": ds.f_y})


def stretch(job, sheet):
    """The paper's own step: f as with automatic ones."""
    end = job.pick(0.005, 0.5)
    options = ({"step": DT}, {"samples": 64, "tolerance": 1e-3})
    runs = [paper.relax_in_space(job, end, **o) for o in options]
    short, ours = (ds.f_x.isel(time=-1) for ds in runs)
    apart = float(abs(short - ours).max() / ours.max())
    steps = [int(ds.attrs["steps"]) for ds in runs]
    sheet.compare(
        f"change of f(x) at {end:g} fm, the paper's step", 100 * apart, "", "% of the largest f",
        f"{steps[0]} steps of {DT:g} fm against {steps[1]} automatic ones", between=(0, 1),
    )  # fmt: skip


if __name__ == "__main__":
    paper.main("fig7")
