"""Analyse, continue and compare a run."""

import relboltz as rb

start = {"g": rb.initial.gaussian(0.5, [0.9, 0.9, 0.5], sampling="node")}

if __name__ == "__main__":
    rb.solve(rb.gluons(0.3), rb.PhaseSpace(36, 4.6), start, end=1.0, file="run.nc", force=True)
    longer = rb.resume("run.nc", until=3.0)
    print(f"P_z/P_T relaxes within {float(longer.rb.relaxation_time('pressure_ratio')):.2f} fm")
    print(f"thermal to 10 % after {float(longer.rb.thermalisation_time(0.1)):.2f} fm")
    print(longer.rb.dN_dpT().isel(snapshot=-1).to_series().head())
    other = rb.solve(rb.gluons(0.3), rb.PhaseSpace(30, 4.6), start, end=3.0)
    print(longer.rb.compare(other).head())
