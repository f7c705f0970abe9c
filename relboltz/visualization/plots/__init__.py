"""Plots of a result, homogeneous or in space: functions from Dataset to Axes.

>>> from relboltz import plots
>>> plots.overview(relboltz.load("run.nc")).savefig("run.png")

Species with the same curves share one line, their mean; a species has the same colour in all
plots; dashed lines show the predicted equilibrium. Matplotlib's global state is not changed.
"""

from .changes import changes
from .coefficients import coefficients
from .films import FILMS, animation
from .flow import attractor, eccentricities, flow_spectra, flows, rapidity
from .histories import (
    anisotropy,
    chemical_potentials,
    conservation,
    distance,
    energies,
    entropy,
    isotropisation,
    ledger,
    masses,
    numbers,
    predicted_densities,
    rates,
    temperature,
)
from .momenta import prediction, spectra, thermalisation
from .pages import overview, save, save_all
from .several import comparison
from .space import directions, field_map, phase_space, profile
from .style import chosen_times, groups, label

__all__ = [
    "FILMS", "animation", "anisotropy", "attractor", "changes", "chemical_potentials",
    "chosen_times", "coefficients", "comparison", "conservation", "directions", "distance",
    "eccentricities", "energies", "entropy", "field_map", "flow_spectra", "flows", "groups",
    "isotropisation", "label", "ledger", "masses", "numbers", "overview", "phase_space",
    "predicted_densities", "prediction", "profile", "rapidity", "rates", "save", "save_all",
    "spectra", "temperature", "thermalisation",
]  # fmt: skip
