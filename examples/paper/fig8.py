"""Fig. 8: the squared masses of gluons and u quarks in space at several times.

The run of Fig. 7. The masses follow the local density and become uniform with it.
"""

import paper_runs as paper
import xarray as xr


def setup(job):
    """Describe what is computed."""
    return "the run of Fig. 7"


def draw(job, sheet):
    """m² against x and y."""
    ds = paper.relax_in_space(job)
    m2 = ds.mass_squared
    figure = paper.profiles(
        ds,
        lambda species, axis: m2.sel(species=species).mean(["xyz".replace(axis, "")[0], "z"]),
        "$m_{{\\rm {}}}^2$ [GeV$^2$]",
    )
    paper.levels(sheet, ds, "m²", lambda species: m2.sel(species=species).mean(["y", "z"]))
    return figure, xr.Dataset({"mass_squared": m2})


if __name__ == "__main__":
    paper.main("fig8")
