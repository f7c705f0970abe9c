"""Your own particles and matrix element: a hot gas b thermalises a cold gas a."""

import relboltz as rb


def exchange(s, t, u, ma2, mb2, mc2, md2, coupling, screening2):
    """Exchange of a scalar of mass sqrt(screening2) [GeV]."""
    return coupling * (t - 4 * ma2) * (t - 4 * mb2) / (t - screening2) ** 2


a = rb.Species("a", degeneracy=2, statistics=-1)
b = rb.Species("b", degeneracy=3, statistics=+1)
process = rb.Process("a b -> a b", exchange, peak="t", coupling=20000.0)
model = rb.Model([a, b], [process], masses={"a": 0.3, "b": 0.4}, screening=0.5)
start = {"a": rb.initial.thermal(0.15), "b": rb.initial.thermal(0.35)}

if __name__ == "__main__":
    result = rb.solve(model, 33, start, end=5.0, file="own_model.nc")
    print("GeV per particle:", (result.energy_by_species / result.number).values[[0, -1]])
