"""A gas of pions and kaons with constant cross sections: kaon production and shear viscosity."""

import relboltz as rb

species = [rb.Species("pi", 3, +1), rb.Species("K", 4, +1)]
sigma = {"pi pi -> pi pi": 2.0, "pi K -> pi K": 1.0, "K K -> K K": 1.0, "pi pi -> K K": 0.5}  # fm^2
processes = [rb.Process(reaction, sigma=value) for reaction, value in sigma.items()]
gas = rb.Model(species, processes, masses={"pi": 0.138, "K": 0.496}, name="pions and kaons")

if __name__ == "__main__":
    start = {"pi": rb.initial.thermal(0.18)}
    result = rb.solve(gas, rb.PhaseSpace(26, 2.1), start, end=20.0, every=1.0, samples=4)
    tau = result.rb.relaxation_time("number", "K", start=10.0, end=20.0)
    print(f"kaons near their number as exp(-t/tau) with tau = {float(tau):.1f} fm")
    eta = rb.transport_coefficients(gas, 0.16, events=200_000).shear_viscosity_over_entropy
    print(f"eta/s at T = 160 MeV: {float(eta):.2f}")
