"""Fig. 11: gluons convert into quarks, and both become thermal.

f of gluons and of u quarks against the energy at several times: above with the conserving scheme,
below with landing in the nearest cells. Dashed: the thermal state prescribed by the initial state.
"""

import paper_runs as paper
import thermal
import xarray as xr

TIMES = [0, 0.2, 0.6, 2, 5, 10, 50]
WORDS = {"g": "gluons of the mixture", "u": "u quarks of the mixture"}


def setup(job):
    """Describe what is computed."""
    cells, samples, end = thermal.size(job, "mixture")
    return (
        "gluons, three flavours of quarks and antiquarks, 34 processes; f_g = 0.5 below 1.5 GeV at "
        f"the nodes, no quarks, α_s = 0.3, thermal masses, {cells}³ nodes in a box of 2 GeV, "
        f"{samples} samples, automatic steps to {end:g} fm"
    )


def draw(job, sheet):
    """Spectra of gluons and u quarks in both schemes."""
    figure, axes = paper.panels(2, 2, 3.2)
    data = {}
    for row, (scheme, words) in enumerate(thermal.SCHEMES.items()):
        ds = thermal.thermalise(job, "mixture", scheme)
        for column, (species, name) in enumerate(WORDS.items()):
            ax = axes[2 * row + column]
            thermal.spectra(ax, ds, species, TIMES, f"{name}, {words}")
            thermal.late_state(sheet, ds, name, species, scheme, "< 0")
        thermal.energy_gain(sheet, ds, "mixture", scheme)
        thermal.piling_up(sheet, ds, "mixture", scheme)
        sheet.ran(f"mixture, {words}", ds, "about 2 days")
        data |= thermal.renamed(ds, scheme, ["spectrum"])
    runs = {scheme: thermal.thermalise(job, "mixture", scheme) for scheme in thermal.SCHEMES}
    for species, name in WORDS.items():
        thermal.found(sheet, runs, species, f"The {name}")
    thermal.stated(sheet, runs, "mixture")
    thermal.contradicted(job, sheet, "mixture")
    paper.legend(figure, axes[0])
    thermal.short_steps(job, sheet, "mixture", 5e-5, *job.pick((0.02, 8), (0.1, 30)))
    return figure, xr.Dataset(data)


if __name__ == "__main__":
    paper.main("fig11")
