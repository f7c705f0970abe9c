"""relboltz: the relativistic Boltzmann equation of quark-gluon matter.

>>> import relboltz as rb
>>> result = rb.solve(rb.gluons(0.3), 31, {"g": rb.initial.step(0.5, 1.5)}, end=1.0)
"""

__version__ = "0.1.0"

from .resting import resting

with resting():
    from . import analysis, equilibrium, initial
    from .converging import converge
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
    from .grid import PhaseSpace
    from .linear import transport_coefficients
    from .model import Model, Process, Screening, Species
    from .qcd import gluons, qcd, quarks
    from .records.output import load
    from .resuming import resume
    from .simulation import solve
    from .terms import collision_term

__all__ = [
    "AccuracyWarning", "BackendNotice", "CacheWarning", "CheckpointWarning", "InputError",
    "Interrupted", "Model", "PhaseSpace", "Process", "RelboltzError", "RunError", "Screening",
    "Species", "__version__", "analysis", "collision_term", "converge", "equilibrium", "gluons",
    "initial", "load", "qcd", "quarks", "resume", "solve", "transport_coefficients",
]  # fmt: skip
