"""What physicists make of a result: spectra, flow, times, comparisons; and ``result.rb``."""

from .accessor import Result
from .comparison import compare
from .exports import export
from .spectra import dN_dp, dN_dpT, flow, mean_pT
from .times import relaxation_time, thermalisation_time

__all__ = [
    "Result", "compare", "dN_dp", "dN_dpT", "export", "flow", "mean_pT", "relaxation_time",
    "thermalisation_time",
]  # fmt: skip
