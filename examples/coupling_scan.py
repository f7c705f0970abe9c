"""Relaxation against the coupling: several runs in one Dataset."""

import xarray as xr

import relboltz as rb

start = {"g": rb.initial.gaussian(0.5, [0.9, 0.9, 0.5], sampling="node")}
grid = rb.PhaseSpace(36, 4.6)

if __name__ == "__main__":
    couplings = [0.1, 0.2, 0.3]
    runs = [rb.solve(rb.gluons(a), grid, start, end=2.0, every=0.1) for a in couplings]
    scan = xr.concat(runs, xr.Variable("alpha_s", couplings), data_vars="all", join="override")
    scan.to_netcdf("scan.nc", engine="h5netcdf")
    for alpha_s, run in zip(couplings, runs, strict=True):
        print(alpha_s, f"{float(run.rb.relaxation_time('pressure_ratio')):.2f} fm")
