"""Quarks made by gluons while matter expands: their part of all particles against proper time."""

import relboltz as rb

grid = rb.PhaseSpace([20, 20, 49], [4.0, 4.0, 4.8], expansion="bjorken")
start = {"g": rb.initial.glasma(amplitude=2.0, scale=1.0, xi=2.0)}
run = rb.solve(rb.qcd(0.3, alike=True), grid, start, start=0.3, end=6.0, every=0.3, samples=8)
part = run.dN_deta.sel(species="q") / run.dN_deta.sum("species")
for tau in (0.6, 1.5, 3.0, 6.0):
    now = part.sel(time=tau, method="nearest")
    print(f"tau = {float(now.time):.1f} fm: {100 * float(now):.1f} % of all particles are quarks")
