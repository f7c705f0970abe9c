"""Gluons and the mixture in Bjorken flow forget how they began: P_L/e against scaled time."""

import relboltz as rb

grid = rb.PhaseSpace([12, 12, 33], [3.0, 3.0, 4.0], expansion="bjorken")
for name, model in (("gluons", rb.gluons(0.3)), ("mixture", rb.qcd(0.3, alike=True))):
    eta = float(rb.transport_coefficients(model, 0.3).shear_viscosity_over_entropy)
    for xi in (0.0, 10.0):
        groups = ["g"] if name == "gluons" else ["g", "q"]
        start = {group: rb.initial.romatschke_strickland(0.5, xi=xi) for group in groups}
        run = rb.solve(model, grid, start, start=0.3, end=6.0, every=0.1, samples=8)
        late = float(run.rb.first_order(eta).driven[-1])
        print(
            f"{name}, xi = {xi:g}: P_L/P_T = {float(run.pressure_ratio[-1]):.3f} at 6 fm,", end=""
        )
        print(f" (P_T - P_L) tau/(2 eta) = {late:.2f}")
        run.rb.plot_attractor(eta).savefig(f"attractor_{name}_{xi:g}.png")
