"""Fig. 12: masses and numbers of the mixture against time.

The runs of Fig. 11 in both schemes, and the fitted chemical potentials. Dashed: the prescribed
final values.
"""

import paper_runs as paper
import thermal
import xarray as xr


def setup(job):
    """Describe what is computed."""
    return "the runs of Fig. 11"


def draw(job, sheet):
    """Masses, numbers and chemical potentials in both schemes."""
    figure, (masses, numbers, gluons, quarks) = paper.panels(2, 2, 2.8)
    data = {}
    for scheme, words in thermal.SCHEMES.items():
        ds = thermal.thermalise(job, "mixture", scheme)
        for species, ax in (("g", gluons), ("u", quarks)):
            thermal.history(masses, ds, "mass_squared", species, scheme, f"{species}, {words}")
            thermal.history(ax, ds, "chemical_potential", species, scheme, words)
            thermal.trend(sheet, ds, species, f"mixture, {words}", "decreases")
        populations(sheet, numbers, ds, scheme)
        data |= thermal.renamed(ds, scheme, ["mass_squared", "chemical_potential", "number"])
    for species in ("g", "u"):
        thermal.grid_error(job, sheet, "mixture", species)
    masses.set_ylabel("$m^2$ [GeV$^2$]")
    numbers.set_ylabel("particles in 216 fm³")
    for species, ax in (("g", gluons), ("u", quarks)):
        ax.set_ylabel(f"fitted $\\mu_{{\\rm {species}}}$ [GeV]")
        thermal.near_zero(ax)
    masses.legend(ncols=2)
    numbers.legend(loc="upper right", ncols=3)
    return figure, xr.Dataset(data)


def populations(sheet, ax, ds, scheme):
    """Numbers of gluons, of all quarks and of all, and when gluons have become quarks."""
    gluons, total = ds.number.sel(species="g"), ds.number.sum("species")
    quarks = total - gluons
    rows = {
        "gluons": (gluons, paper.GLUONS),
        "quarks": (quarks, paper.QUARKS),
        "all": (total, "black"),
    }
    for words, (values, color) in rows.items():
        label = words if scheme == "conserving" else None
        look = thermal.LOOKS[scheme]
        ax.plot(ds.time, values * paper.VOLUME, color=color, label=label, **look)
    ax.set(xlabel="time [fm]", xlim=(0, float(ds.time[-1])))
    ax.set_ylim(0, 1.25 * paper.VOLUME * float(total.max()))
    words = thermal.SCHEMES[scheme]
    share, drift = quarks / total, int(abs(ds.charge_drift.sel(charge="number")).max())
    final = float(1 - ds.equilibrium_number.sel(species="g") / ds.equilibrium_number.sum())
    sheet.compare(f"change of the total number: {words}", drift, "0", "quanta", between=(0, 0),
                  same=drift == 0)  # fmt: skip
    last = 100 * float(share[-1])
    sheet.compare(
        f"quarks at the end, part of all particles: {words}", last, "", "%",
        f"prescribed: {100 * final:.2f} %",
        between=(100 * final - 0.5, 100 * final + 0.5) if scheme == "conserving" else None,
    )  # fmt: skip
    soon = 100 * float(share.sel(time=10.0, method="nearest") / share[-1])
    sheet.compare(f"quarks at 10 fm, part of those at the end: {words}", soon,
                  "conversion within about 10 fm", "%")  # fmt: skip


if __name__ == "__main__":
    paper.main("fig12")
