"""Equilibrium: thermal states on the nodes, the predicted final state, fits at many sites."""

from .states import (
    Equilibrium,
    coupling_integrals,
    edge_loss,
    kinetic_energy,
    local,
    masses,
    predict,
    temperature_without_number,
    thermal,
    total_energy,
)

__all__ = [
    "Equilibrium",
    "coupling_integrals",
    "edge_loss",
    "kinetic_energy",
    "local",
    "masses",
    "predict",
    "temperature_without_number",
    "thermal",
    "total_energy",
]
