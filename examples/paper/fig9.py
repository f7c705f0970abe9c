"""Fig. 9: from a step to a thermal distribution, pure gluons and pure quarks.

f against the energy at several times: above with the conserving scheme, below with landing in the
nearest cells. Dashed: the thermal state with the initial number and total energy.
"""

import paper_runs as paper
import thermal
import xarray as xr

TIMES = {"gluons": [0, 0.2, 0.6, 2, 5, 10, 50], "quarks": [0, 0.2, 0.6, 2, 5, 10, 20]}
SPECIES = {"gluons": "g", "quarks": "u"}
SIGN = {"gluons": "< 0", "quarks": "> 0"}
V100 = {"gluons": "60 h", "quarks": "2 h"}


def setup(job):
    """Describe what is computed."""
    cells, samples, _ = thermal.size(job, "gluons")
    return (
        f"f = 0.5 below 1.5 GeV at the nodes, α_s = 0.3, thermal masses, {cells}³ nodes in a box "
        f"of 2 GeV, {samples} samples, automatic steps; gluons to 50 fm, u quarks to 20 fm"
    )


def draw(job, sheet):
    """Spectra of both kinds of matter in both schemes."""
    figure, axes = paper.panels(2, 2, 3.2)
    data = {}
    for row, (scheme, words) in enumerate(thermal.SCHEMES.items()):
        for column, (matter, species) in enumerate(SPECIES.items()):
            ds, ax = thermal.thermalise(job, matter, scheme), axes[2 * row + column]
            thermal.spectra(ax, ds, species, TIMES[matter], f"{matter}, {words}")
            thermal.late_state(sheet, ds, matter, species, scheme, SIGN[matter])
            thermal.energy_gain(sheet, ds, matter, scheme)
            if matter == "gluons":
                thermal.piling_up(sheet, ds, "gluons", scheme)
            sheet.ran(f"{matter}, {words}", ds, V100[matter])
            data |= thermal.renamed(ds, f"{matter}_{scheme}", ["spectrum"])
    for matter, species in SPECIES.items():
        runs = {scheme: thermal.thermalise(job, matter, scheme) for scheme in thermal.SCHEMES}
        thermal.found(sheet, runs, species, f"Pure {matter}")
        if matter == "gluons":
            thermal.stated(sheet, runs, "pure")
            thermal.contradicted(job, sheet, matter)
    axes[0].lines[-2].set_label("50 fm (quarks: 20 fm)")
    paper.legend(figure, axes[0])
    thermal.short_steps(job, sheet, "gluons", 5e-5, *job.pick((0.1, 12), (0.5, 30)))
    thermal.short_steps(job, sheet, "quarks", 1e-3, *job.pick((1.0, 12), (5.0, 30)))
    return figure, xr.Dataset(data)


if __name__ == "__main__":
    paper.main("fig9")
