"""One collision event: random numbers, kinematics, landing, what it moves. Scalar functions."""
