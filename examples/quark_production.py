"""Quarks produced by gluons in expanding matter: their share of all particles in proper time."""

import relboltz as rb

grid = rb.PhaseSpace([20, 20, 49], [4.0, 4.0, 4.8], expansion="bjorken")
start = {"g": rb.initial.glasma(amplitude=2.0, scale=1.0, xi=2.0)}
run = rb.solve(
    rb.qcd(0.3, flavor_symmetric=True), grid, start, start=0.3, end=6.0, every=0.3, samples=8
)
part = run.dN_dy.sel(species="q") / run.dN_dy.sum("species")
for tau in (0.6, 1.5, 3.0, 6.0):
    now = part.sel(time=tau, method="nearest")
    print(f"tau = {float(now.time):.1f} fm: {100 * float(now):.1f} % of all particles are quarks")
