"""Equilibrium: thermal states on the nodes, predicted final states, and fits at many sites."""

from ..backends.cpu.masses import coupling_integrals, masses, total_energy
from ..model.gap_equation import kinetic_energy
from .states import Equilibrium, edge_loss, local, predict, temperature_without_number, thermal

__all__ = [
    "Equilibrium", "coupling_integrals", "edge_loss", "kinetic_energy", "local", "masses",
    "predict", "temperature_without_number", "thermal", "total_energy",
]  # fmt: skip
