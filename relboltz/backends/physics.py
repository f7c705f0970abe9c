"""The physics functions, compiled for the CPU, under their own names."""

from __future__ import annotations

from .. import collisions, elementary, kinematics, philox, projection
from ..compiling import build, scalar

compiled = build(
    [
        philox.philox_round,
        philox.philox,
        philox.uniform,
        elementary.expm1_reduced,
        elementary.split,
        elementary.exp,
        elementary.expm1,
        elementary.circle,
        kinematics.dot,
        kinematics.energy,
        kinematics.invariant_mass2,
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
        projection.node_momentum,
        projection.node_position,
        projection.candidate,
        projection.consider,
        projection.bracket,
        projection.walk,
        projection.corner_node,
        projection.energy_split,
        collisions.nearest_integer,
        collisions.flow,
        collisions.shares,
    ],
    scalar,
)
