"""The physics functions, callees before callers, and compiled for the CPU under their own names."""

from __future__ import annotations

from collections.abc import Callable

from .. import collisions, drawing, elementary, kinematics, philox, projection
from ..compiling import build, scalar

FUNCTIONS: list[Callable] = [
    philox.philox_round,
    philox.philox,
    philox.uniform,
    elementary.reciprocal,
    elementary.root,
    elementary.inverse_root,
    elementary.floor,
    elementary.expm1_reduced,
    elementary.split,
    elementary.exp,
    elementary.expm1,
    elementary.circle,
    kinematics.dot,
    kinematics.energy,
    kinematics.invariant_mass2,
    kinematics.kallen,
    kinematics.breakup_momentum2,
    kinematics.two_body_phase_space,
    kinematics.to_rest_frame,
    kinematics.from_rest_frame,
    kinematics.unit_vector,
    kinematics.turn,
    kinematics.peaked_angle,
    kinematics.inverse_energy,
    kinematics.scatter,
    kinematics.momentum_transfer2,
    kinematics.invariant_t,
    kinematics.screened,
    kinematics.root_through_k2,
    kinematics.root_through_k3,
    kinematics.root_event,
    projection.node_momentum,
    projection.node_position,
    projection.candidate,
    projection.consider,
    projection.corner_node,
    projection.bracket,
    projection.walk,
    projection.walk_down,
    projection.nearest_node,
    projection.energy_split,
    projection.landing,
    drawing.level,
    drawing.node_weight,
    drawing.whole_weight,
    drawing.cumulated,
    drawing.even_word,
    drawing.node_indices,
    drawing.packed_index,
    collisions.element_flaw,
    collisions.nearest_integer,
    collisions.logarithms,
    collisions.exponents,
    collisions.flow,
    collisions.shares,
]

compiled = build(FUNCTIONS, scalar)
