"""Analysis of results: spectra, flow, relaxation times, comparisons; and ``result.rb``."""

from .accessor import Result
from .comparison import compare
from .expansion import first_order, per_rapidity, pressures, scaled_time, viscosity
from .exports import export
from .plane import eccentricity, momentum_anisotropy
from .spectra import dN_dp, dN_dpT, flow, mean_pT
from .times import relaxation_time, thermalisation_time

__all__ = [
    "Result", "compare", "dN_dp", "dN_dpT", "eccentricity", "export", "first_order", "flow",
    "mean_pT", "momentum_anisotropy", "per_rapidity", "pressures", "relaxation_time",
    "scaled_time", "thermalisation_time", "viscosity",
]  # fmt: skip
