"""relboltz: the relativistic Boltzmann equation of quark-gluon matter.

>>> import relboltz as rb
>>> result = rb.solve(rb.gluons(0.3), 41, {"g": rb.initial.step(0.5, 1.5)}, end=1.0)

Names are imported when they are first asked for, so that ``import relboltz`` itself takes no time.
"""

import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

from .attaching import attach
from .errors import (
    AccuracyWarning,
    BackendNotice,
    CacheWarning,
    CheckpointWarning,
    InputError,
    Interrupted,
    RelboltzError,
    RunError,
)
from .resting import resting

if TYPE_CHECKING:
    from . import analysis, equilibrium, initial
    from .converging import converge
    from .grid import PhaseSpace
    from .linear import transport_coefficients
    from .model import Model, Process, Screening, Species
    from .qcd import gluons, qcd, quarks
    from .records.output import load
    from .resuming import resume
    from .scanning import scan
    from .simulation import solve
    from .terms import collision_term

__version__ = "0.1.0"
__all__ = [
    "AccuracyWarning", "BackendNotice", "CacheWarning", "CheckpointWarning", "InputError",
    "Interrupted", "Model", "PhaseSpace", "Process", "RelboltzError", "RunError", "Screening",
    "Species", "__version__", "analysis", "collision_term", "converge", "equilibrium", "gluons",
    "initial", "load", "qcd", "quarks", "resume", "scan", "solve", "transport_coefficients",
]  # fmt: skip
HOMES = {
    "analysis": "", "equilibrium": "", "initial": "", "converge": "converging",
    "PhaseSpace": "grid", "transport_coefficients": "linear", "Model": "model",
    "Process": "model", "Screening": "model", "Species": "model", "gluons": "qcd", "qcd": "qcd",
    "quarks": "qcd", "load": "records.output", "resume": "resuming",
    "scan": "scanning", "solve": "simulation", "collision_term": "terms",
}  # fmt: skip
"""The module of each name; '' where it is one itself."""


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name not in HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    with resting():
        home = import_module(f".{HOMES[name] or name}", __name__)
    found = getattr(home, name) if HOMES[name] else home
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


class Package(ModuleType):
    """The name qcd is the model here, not the module that has it, whoever imports that first."""

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "qcd" and isinstance(value, ModuleType):
            value = value.qcd
        super().__setattr__(name, value)


sys.modules[__name__].__class__ = Package
attach()  # result.rb, of every Dataset that is opened with xarray
