"""Mixtures: transport coefficients, the Landau frame, and flavour-symmetric quarks.

The references are independent sums over events and, for flavour symmetry, all seven species.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from ...grid.phase_space import PhaseSpace
from ...grid.units import HBARC
from ...initial import thermal
from ...linear_response import transport_coefficients
from ...model.model import Model, Process, Species
from ...model.qcd import qcd
from ...run.solve import solve
from .rows import Comparison, ValidationEffort, absolute, relative
from .viscosity import FULL, QUICK, SIGMA, TABLE, T, hard_spheres

SIGMAS = {
    "pi pi -> pi pi": 2.0, "pi K -> pi K": 1.0, "K K -> K K": 1.5, "pi pi -> K K": 0.7,
    "pi N -> pi N": 3.0, "K N -> K N": 0.8, "N N -> N N": 4.0,
}  # fmt: skip
HADRONS = {
    "shear viscosity": 0.10859, "bulk viscosity": 0.018562, "kappa of the first charge": 0.04496,
    "D of a nucleon": 0.34313, "D of a pion": 0.5103,
}  # fmt: skip
"""Reference at T = 0.16 GeV and mu_N = 0.4 GeV [GeV fm^-2, fm^-2, fm]: sums over events by another
program with a different basis, with errors of 0.05 to 0.1 %.
"""
HEAVIER = {"bulk viscosity": 1.0826e-3, "shear viscosity": 1.7673}
"""Reference for two species with constant and thermal masses at mu != 0, from the same program,
with errors of 0.06 and 0.14 %.
"""
CHARGE2 = 4 * np.pi / 137.036
"""e^2, with hbar = c = 1 and no 4 pi in Maxwell's equations."""


def hadrons() -> Model:
    """Return a model of pions, kaons and nucleons; two pions can turn into two kaons."""
    kinds = [Species("pi", 3, +1), Species("K", 4, +1), Species("N", 4, -1)]
    processes = [Process(reaction, sigma=sigma) for reaction, sigma in SIGMAS.items()]
    return Model(kinds, processes, masses={"pi": 0.138, "K": 0.496, "N": 0.938})


def with_fields() -> Model:
    """Return a model of bosons and fermions with partly thermal masses."""
    kinds = [Species("a", 3, +1), Species("b", 4, -1)]
    sigmas = {"a a -> a a": 0.5, "a b -> a b": 0.3, "b b -> b b": 0.2}
    processes = [Process(reaction, sigma=sigma) for reaction, sigma in sigmas.items()]
    coupling = np.array([[2.0, 0.8], [0.8, 1.5]])
    return Model(kinds, processes, masses={"a": 0.3, "b": 0.1}, mass_coupling=coupling)


def mixtures(effort: ValidationEffort) -> Iterator[Comparison]:
    """Compare mixtures with masses, statistics, potentials, inelastic processes and charges."""
    options: dict[str, Any] = {
        "events": QUICK if effort.quick else FULL, "backend": effort.backend,
        "threads": effort.threads,
    }  # fmt: skip
    aim, reason = (0.012, 0.006)[not effort.quick], "aimed at; errors of both are 0.1 to 0.3 %"
    nucleon, pion = (
        transport_coefficients(hadrons(), 0.16, {"N": 0.4}, tagged=name, **options)
        for name in ("N", "pi")
    )
    found = {
        "shear viscosity": nucleon.shear_viscosity, "bulk viscosity": nucleon.bulk_viscosity,
        "kappa of the first charge": nucleon.diffusion[0, 0],
        "D of a nucleon": nucleon.tagged_diffusion, "D of a pion": pion.tagged_diffusion,
    }  # fmt: skip
    for name, value in found.items():
        yield relative(f"hadrons: {name}", float(value), HADRONS[name], aim, reason)
    ds = transport_coefficients(with_fields(), 0.3, {"a": -0.12, "b": 0.21}, **options)
    for name, value in (
        ("bulk viscosity", ds.bulk_viscosity),
        ("shear viscosity", ds.shear_viscosity),
    ):
        limit = 2 * aim if name.startswith("bulk") else aim
        yield relative(
            f"masses in part thermal: {name}", float(value), HEAVIER[name], limit, reason
        )
    yield from _conductivity(aim, options)
    yield from _on_nodes(options)
    yield from _alike(effort, options)


def _conductivity(aim: float, options: dict[str, Any]) -> Iterator[Comparison]:
    """Compare two opposite charges with equal sigma: sigma_el = (D n sigma) (q e)^2/(T sigma)."""
    t, sigma = 0.3, 1.0
    kinds = [Species(n, 1, 0, {"electric": q}) for n, q in (("a", 1.0), ("b", -1.0))]
    names = ("a a -> a a", "a b -> a b", "b b -> b b")
    model = Model(kinds, [Process(reaction, sigma=sigma) for reaction in names])
    ds = transport_coefficients(model, t, **options)
    expected = TABLE[0.0]["D"] * CHARGE2 / (t * sigma) * HBARC
    description = "charges of either sign: conductivity [fm^-1]"
    yield relative(description, float(ds.conductivity), expected, aim, "aimed at")


def _on_nodes(options: dict[str, Any]) -> Iterator[Comparison]:
    """Compare coefficients on nodes: five components of shear, 2 along axes and 3 between them."""
    few = options | {"events": options["events"] // 5}
    ds = transport_coefficients(hard_spheres(0.0), T, grid=PhaseSpace(20, 12 * T), **few)
    for part, description in (("axes", "along axes"), ("planes", "between axes")):
        found = float(ds[f"shear_viscosity_{part}"]) * SIGMA / T
        reason = "0.02 (h/T)^2 of the nodes, and 4 standard errors"
        yield relative(
            f"on nodes, {description}: eta sigma/T", found, TABLE[0.0]["eta"], 0.05, reason
        )
    parts = float(2 * ds.shear_viscosity_axes + 3 * ds.shear_viscosity_planes)
    description = "on nodes: 5 eta against 2 along axes and 3 between them"
    yield relative(description, 5 * float(ds.shear_viscosity), parts, 1e-9, "the same sums")


def _alike(effort: ValidationEffort, options: dict[str, Any]) -> Iterator[Comparison]:
    """Compare viscosity, masses and entropy of flavour-symmetric quarks with all seven species."""
    seven, two = (
        transport_coefficients(qcd(0.3, flavor_symmetric=alike), 0.4, **options)
        for alike in (False, True)
    )
    errors = [float(ds.shear_viscosity_error / ds.shear_viscosity) for ds in (seven, two)]
    limit = 4 * float(np.hypot(errors[0], errors[1]))
    eta, other = (float(ds.shear_viscosity) for ds in (two, seven))
    yield relative("quarks alike: eta, over seven species", eta, other, limit, "4 standard errors")
    for name, value, expected in (
        ("entropy", two.entropy, seven.entropy),
        ("mass of a quark", two.mass.sel(species="q"), seven.mass.sel(species="u")),
    ):
        yield relative(f"quarks alike: {name}", float(value), float(expected), 1e-9, "the same")


def landau_frame(effort: ValidationEffort) -> Iterator[Comparison]:
    """Recover T, mu and velocity of a boosted thermal state, which has no shear."""
    t, mu, v = 0.35, 0.1, np.array([0.3, 0.0, 0.4])
    model = qcd(0.3, 1)
    state = thermal(t, mu, velocity=v.tolist(), sampling="node")
    wanted = "g", "u", "ubar"
    ds = solve(
        model, PhaseSpace(36 if effort.quick else 48, 5.4), dict.fromkeys(wanted, state),
        end=1e-6, every=1e-6, samples=1, snapshots=[], **effort.solving,
    ).isel(time=0)  # fmt: skip
    reason = "sums over nodes: (h/T)^4 of a smooth f, and the tail beyond the box"
    yield relative("T [GeV]", float(ds.landau_temperature), t, 2e-3, reason)
    for axis, value in zip("xyz", v, strict=True):
        found = float(ds.landau_velocity.sel(axis=axis))
        yield absolute(f"velocity along {axis}", found, float(value), 1e-3, reason)
    yield absolute("mu of gluons [GeV]", float(ds.landau_chemical_potential[0]), mu, 2e-3, reason)
    pressure = float(ds.pressure)
    largest = float(np.abs(ds.shear_stress).max()) / pressure
    yield absolute("largest shear stress over pressure", largest, 0.0, 3e-3, reason)
    yield absolute("bulk over pressure", float(ds.bulk_pressure) / pressure, 0.0, 1e-3, reason)
