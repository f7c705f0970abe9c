"""relboltz: the relativistic Boltzmann equation of quark-gluon matter.

>>> import relboltz as rb
>>> result = rb.solve(rb.gluons(0.3), 41, {"g": rb.initial.step(0.5, 1.5)}, end=1.0)

Names are imported on first use, so that ``import relboltz`` itself takes no time.
"""

from typing import TYPE_CHECKING, Any

from .util.accessor_hook import attach
from .util.errors import (
    AccuracyWarning,
    BackendNotice,
    CacheWarning,
    CheckpointWarning,
    InputError,
    Interrupted,
    RelboltzError,
    RunError,
)
from .util.gc_pause import resting

if TYPE_CHECKING:
    from . import analysis, initial
    from . import thermodynamics as equilibrium
    from .grid.phase_space import PhaseSpace
    from .io.output import load
    from .linear_response import transport_coefficients
    from .model.model import Model, Process, Screening, Species
    from .model.qcd import gluons, qcd, quarks
    from .run.collision_term import collision_term
    from .run.resume import resume
    from .run.solve import solve
    from .studies.convergence.driver import converge
    from .studies.scan import scan

__version__ = "0.1.0"
__all__ = [
    "AccuracyWarning", "BackendNotice", "CacheWarning", "CheckpointWarning", "InputError",
    "Interrupted", "Model", "PhaseSpace", "Process", "RelboltzError", "RunError", "Screening",
    "Species", "__version__", "analysis", "collision_term", "converge", "equilibrium", "gluons",
    "initial", "load", "qcd", "quarks", "resume", "scan", "solve", "transport_coefficients",
]  # fmt: skip
MODULES = {"analysis": "analysis", "equilibrium": "thermodynamics", "initial": "initial"}
"""Public names of modules, and where these modules are."""
HOMES = {
    "PhaseSpace": "grid.phase_space", "Model": "model.model", "Process": "model.process",
    "Screening": "model.model", "Species": "model.model", "collision_term": "run.collision_term",
    "converge": "studies.convergence.driver", "gluons": "model.qcd", "load": "io.output",
    "qcd": "model.qcd", "quarks": "model.qcd", "resume": "run.resume", "scan": "studies.scan",
    "solve": "run.solve", "transport_coefficients": "linear_response.coefficients",
}  # fmt: skip
"""Modules that define the other public names."""


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name not in HOMES and name not in MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    with resting():
        home = import_module(f".{HOMES.get(name) or MODULES[name]}", __name__)
    found = getattr(home, name) if name in HOMES else home
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


attach()  # adds result.rb to every Dataset opened with xarray
