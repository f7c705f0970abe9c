"""A hot spot in two dimensions: its Landau frame and its shear stress."""

import numpy as np

import relboltz as rb


def spot(x, y, z, px, py, pz):
    return np.exp(-(x**2) - y**2) * np.exp(-np.sqrt(px**2 + py**2 + pz**2) / 0.4)


grid = rb.PhaseSpace(8, 2.5, space_cells=[8, 8, 1], space_max=3.0, boundary="open")

if __name__ == "__main__":
    result = rb.solve(rb.gluons(0.3), grid, {"g": spot}, end=1.0, every=0.5, samples=2)
    middle = result.isel(x=5, y=4, z=0)
    print(middle[["landau_energy", "landau_temperature", "pressure"]].to_dataframe())
    print((middle.shear_stress.sel(mu="x", nu="x") / middle.pressure).values)
    result.rb.plot_map("landau_temperature").savefig("landau_temperature.png")
