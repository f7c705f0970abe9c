"""Fig. 10: masses against time, pure gluons and pure quarks.

The runs of Fig. 9 in both schemes, and the fitted chemical potentials: those of the thermal state
with the current number and kinetic energy. Dashed: the prescribed final values.
"""

import paper_runs as paper
import thermal
import xarray as xr
from fig9 import SPECIES

SAYS = {"gluons": "decreases", "quarks": "oscillates"}


def setup(job):
    """Describe what is computed."""
    return "the runs of Fig. 9"


def draw(job, sheet):
    """Masses, and chemical potentials, in both schemes."""
    figure, axes = paper.panels(2, 2, 2.8)
    data = {}
    for column, (matter, species) in enumerate(SPECIES.items()):
        masses, potentials = axes[column], axes[2 + column]
        for scheme, words in thermal.SCHEMES.items():
            ds = thermal.thermalise(job, matter, scheme)
            thermal.history(masses, ds, "mass_squared", species, scheme, f"{matter}, {words}")
            thermal.history(potentials, ds, "chemical_potential", species, scheme, words)
            thermal.trend(sheet, ds, species, f"{matter}, {words}", SAYS[matter])
            names = ["mass_squared", "chemical_potential"]
            data |= thermal.renamed(ds, f"{matter}_{scheme}", names)
        thermal.first_mass(job, sheet, matter, species)
        thermal.grid_error(job, sheet, matter, species)
        masses.set_ylabel(f"$m_{{\\rm {species}}}^2$ [GeV$^2$]")
        masses.legend()
        potentials.set_ylabel(f"fitted $\\mu_{{\\rm {species}}}$ [GeV]")
        thermal.near_zero(potentials)
    return figure, xr.Dataset(data)


if __name__ == "__main__":
    paper.main("fig10")
