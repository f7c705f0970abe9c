"""Scalar functions for one collision event: random numbers, kinematics, landing, flow of quanta."""
