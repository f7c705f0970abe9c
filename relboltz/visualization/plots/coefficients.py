"""Transport coefficients against temperature."""

from typing import Any

import numpy as np
from matplotlib.figure import Figure
from xarray import Dataset

from ...util.errors import InputError
from .style import COLORS, styled

PANELS = {
    "shear_viscosity_over_entropy": r"$\eta/s$",
    "bulk_viscosity_over_entropy": r"$\zeta/s$",
    "conductivity_over_temperature": r"$\sigma_\mathrm{el}/T$",
}


@styled
def coefficients(ds: Dataset) -> Figure:
    """Plot eta/s, zeta/s and sigma_el/T against T, with one standard error.

    Vanishing coefficients are left out; a thin line marks eta/s = 1/(4 pi).
    """
    if "shear_viscosity_over_entropy" not in ds:
        raise InputError("this is not a result of transport_coefficients: nothing to draw")
    t = np.atleast_1d(ds.temperature.values)
    shown = [name for name in PANELS if np.any(np.nan_to_num(np.asarray(ds[name])) != 0)]
    figure = Figure(figsize=(4.2 * len(shown), 3.6), layout="constrained")
    axes: Any = figure.subplots(1, len(shown), squeeze=False)[0]
    for ax, name, color in zip(axes, shown, COLORS[: len(shown)], strict=True):
        value, error = (np.atleast_1d(ds[key].values) for key in (name, f"{name}_error"))
        ax.errorbar(t, value, error, marker="o", markersize=4, capsize=2, color=color)
        ax.set(xlabel="temperature [GeV]", title=PANELS[name])
        ax.set_ylim(bottom=0, top=1.15 * float((value + error).max()))
        if name.startswith("shear"):
            ax.axhline(1 / (4 * np.pi), color="0.6", linewidth=0.8)
            ax.annotate(
                r"$1/4\pi$", (0, 1 / (4 * np.pi)), (2, 2), xycoords=("axes fraction", "data"),
                textcoords="offset points", fontsize=8, color="0.4",
            )  # fmt: skip
    return figure
