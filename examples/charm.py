"""Drag on a charm quark in hot gluons, from a run and from linear response."""

import math

import relboltz as rb


def gluon_exchange(s, u, ma2, t_regulated, g4):
    return 192 * g4 * (s - ma2) * (ma2 - u) / t_regulated**2


g4 = (4 * math.pi * 0.3) ** 2
scattering = rb.Process("c g -> c g", gluon_exchange, peak="t", g4=g4)
model = rb.gluons(0.3).extend([rb.Species("c", 6, -1)], [scattering], masses={"c": 1.3})
start = {"g": rb.initial.thermal(0.4), "c": rb.initial.thermal(0.4, -2.0, velocity=[0.3, 0, 0])}

if __name__ == "__main__":
    result = rb.solve(model, rb.PhaseSpace(18, 4.5), start, end=12.0, every=0.5, samples=8)
    print(result.rb.relaxation_time("momentum_by_species", "c", axis="x"))
    ds = rb.transport_coefficients(model, 0.4, {"c": -2.0}, tagged="c", events=200_000)
    print(f"relaxation time of its momentum: {float(ds.tagged_momentum_relaxation_time):.1f} fm")
