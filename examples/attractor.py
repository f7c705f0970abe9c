"""Gluons and the mixture in Bjorken flow: how far from viscous hydrodynamics after 6 fm?

There are two initial conditions, isotropic and flat. 2 <-> 2 processes conserve the number, so that
mu falls below 0 and eta/s rises; eta is therefore computed from the model at the current T and mu.
(P_T - P_L) tau/(2 eta), which is 1 in first-order hydrodynamics, ends between 0.23 and 0.56, and
the two runs still differ. On these nodes the ratio is 2 to 3 % too large, P_L/P_T is 5 to 7 % too
small, and the initial P_L/P_T of the isotropic run is 1.008.
"""

import matplotlib.pyplot as plt

import relboltz as rb

grid = rb.PhaseSpace([20, 20, 49], [4.0, 4.0, 4.8], expansion="bjorken")
for name, model in (("gluons", rb.gluons(0.3)), ("mixture", rb.qcd(0.3, flavor_symmetric=True))):
    figure, axes = plt.subplots(figsize=(5, 4), layout="constrained")
    for xi in (0.0, 10.0):
        shape = rb.initial.romatschke_strickland(0.5, xi=xi, sampling="node")
        start = dict.fromkeys(model.names, shape)
        run = rb.solve(model, grid, start, start=0.3, end=6.0, every=0.1, samples=8)
        found, last = run.rb.first_order(model), run.isel(time=-1)
        print(f"{name}, xi = {xi:g}: P_L/P_T = {float(last.pressure_ratio):.2f} at 6 fm,", end="")
        ratio = float(last.landau_chemical_potential[0] / last.landau_temperature)
        print(f" mu = {ratio:.1f} T, (P_T - P_L) tau/(2 eta) = {float(found.driven[-1]):.2f}")
        axes.plot(found.scaled_time, found.longitudinal_over_energy, label=f"xi = {xi:g}")
    axes.set(xlabel="scaled time tau (e + P)/(4 pi eta)", ylabel="P_L/e", title=name)
    axes.legend()
    figure.savefig(f"attractor_{name}.png")
