"""Collisions of a step of gluons without a grid: rates and moments that runs should reproduce.

The state is homogeneous and isotropic: f_g = 0.5 for |p| < 1.5 GeV and nothing else, alpha_s = 0.3,
thermal masses solved self-consistently (m_g^2 = g^2 (3/8) Y_g, m_q^2 = g^2 (1/6) Y_g with Y_g =
16 Int d^3p/(2 pi)^3 f_g/E), and m_g as the screening mass. Quarks are empty.
"""

REFERENCES: dict[str, tuple[float, float]] = {
    "rate g g -> g g": (266.57, 0.09),
    "d<p^2>/dt": (0.2767, 0.0002),
    "d<p^4>/dt": (3.363, 0.002),
    "rate g g -> u ubar": (1.4419, 0.0003),
    "dN_quarks/dt": (8.652, 0.002),
}
"""Value and its error, from a program that shares nothing with this package.

rate g g -> g g : collisions per volume and time, with the Bose factors (1 + f) [fm^-4]
d<p^2>/dt, d<p^4>/dt : Int p^n C[f_g] / Int f_g with g g -> g g alone [GeV^2/fm, GeV^4/fm]
rate g g -> u ubar : ``rate_reverse`` of the process "u ubar -> g g" [fm^-4]
dN_quarks/dt : of quarks and antiquarks of three flavours together [fm^-4]
"""
