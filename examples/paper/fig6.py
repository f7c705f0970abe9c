"""Fig. 6: the rate of change of the kinetic energy against the source due to changing masses.

∂T_kin^00/∂t, a difference of records, and S_ex^0 = ½ Σ Y dm²/dt, of the masses. Below, the total
energy, which the paper has for one species only, T_kin^00 − ¼ Σ m² Y. It is conserved for the
mixture as well.
"""

import paper_runs as paper
import thermal
import xarray as xr

WORDS = {"gluons": "pure gluons", "quarks": "pure u quarks", "mixture": "mixture"}


def setup(job):
    """Describe what is computed."""
    return "the conserving runs of Fig. 9 and 11: f = 0.5 below 1.5 GeV, thermal masses"


def draw(job, sheet):
    """Rates above, changes of kinetic and total energy below."""
    runs = {matter: thermal.thermalise(job, matter, "conserving") for matter in WORDS}
    figure, axes = paper.panels(2, 3, 3.0)
    data = {}
    for i, (matter, ds) in enumerate(runs.items()):
        words = WORDS[matter]
        rate = ds.energy_kinetic.differentiate("time")
        inner = slice(1, -1)  # differences to both sides
        source = ds.source
        top = float(abs(source).max())
        missed = float(abs(ds.energy_kinetic[-1] - ds.energy_kinetic[0] - source.integrate("time")))
        change = float(abs(ds.energy_kinetic - ds.energy_kinetic[0]).max())
        late = float(abs(rate - source)[inner].sel(time=slice(1.0, None)).max() / top)
        sheet.compare(
            f"largest |∂T_kin/∂t − S_ex| after 1 fm, {words}", 100 * late,
            "almost identical" if matter != "mixture" else "", "% of the largest S_ex",
            between=(0, 5), same=None if matter == "mixture" else late < 0.05,
        )  # fmt: skip
        sheet.compare(
            f"∫S_ex dt against the change of T_kin, {words}", 100 * missed / change, "",
            "% of it", f"trapezoids of records, every {float(ds.time[1]):g} fm",
        )  # fmt: skip
        total = ds.energy_total / ds.energy_total[0] - 1
        drift = float(abs(total).max())
        sheet.compare(
            f"largest change of the total energy, {words}", 100 * drift,
            "0.2 % (conserved to 99.8 %)" if matter != "mixture" else "none can usually be found",
            "%", between=(0, 1e-3), same=None if matter != "mixture" else False,
        )  # fmt: skip
        top_ax, low_ax = axes[i], axes[3 + i]
        top_ax.plot(ds.time[inner], rate[inner], color=paper.GLUONS, linewidth=3, alpha=0.5,
                    label="$\\partial_t T^{00}_{\\rm kin}$")  # fmt: skip
        top_ax.plot(ds.time, source, color="black", linewidth=1.1, label="$S^0_{\\rm ex}$")
        top_ax.set(xlabel="time [fm]", xscale="log", title=words)
        top_ax.xaxis.set_major_formatter("{x:g}")
        kinetic = ds.energy_kinetic / ds.energy_kinetic[0] - 1
        low_ax.plot(ds.time, 100 * kinetic, color=paper.GLUONS, label="kinetic")
        low_ax.plot(ds.time, 100 * total, color="black", label="total")
        low_ax.set(xlabel="time [fm]", xlim=(0, float(ds.time[-1])))
        data |= {f"{matter}_{name}": ds[name].rename(time=f"{matter}_time")
                 for name in ("energy_kinetic", "energy_total", "source")}  # fmt: skip
    axes[0].set_ylabel("rate [GeV fm$^{-4}$]")
    axes[3].set_ylabel("change of energy [%]")
    axes[0].legend()
    axes[3].legend()
    return figure, xr.Dataset(data)


if __name__ == "__main__":
    paper.main("fig6")
