"""Quantities of a record: the only definition of their names, dimensions, units and long names.

Local quantities have a value in every space cell; for homogeneous matter files omit that axis, and
in space ``total_*`` are their averages over the box. Losses through open walls are included in
conserved charges: charges in the box plus the ledger do not change.
"""

from collections.abc import Sequence

from ..grid.phase_space import PhaseSpace

Quantities = dict[str, tuple[tuple[str, ...], str, str]]
"""Name: (dimensions besides time, unit, long name)."""

QUANTITIES: Quantities = {
    "number": (("species",), "fm^-3", "particle density"),
    "charge_density": (("charge",), "fm^-3", "density of a conserved charge"),
    "charge_drift": (("charge",), "1", "change of a conserved charge, in quanta: an exact integer"),
    "momentum_drift": (("axis",), "1", "change of momentum, in quanta: an exact integer"),
    "energy_kinetic": ((), "GeV fm^-3", "kinetic energy density"),
    "energy_by_species": (("species",), "GeV fm^-3", "kinetic energy density of a species"),
    "energy_total": ((), "GeV fm^-3", "kinetic plus field energy density, conserved"),
    "energy_momentum": (("mu", "nu"), "GeV fm^-3",
        "kinetic energy-momentum tensor, symmetric, velocities p/E"),
    "energy_momentum_by_species": (("species", "mu", "nu"), "GeV fm^-3",
        "kinetic energy-momentum tensor of a species"),
    "number_current": (("species", "axis"), "fm^-3", "flux of particles, velocities p/E"),
    "momentum_flux": (("axis", "axis2"), "GeV fm^-3",
        "flux of momentum p_axis along axis2, with the velocities of the transport on the grid"),
    "source": ((), "GeV fm^-4", "energy source by changing masses, S_ex^0"),
    "momentum": (("axis",), "GeV fm^-3", "momentum density"),
    "momentum_by_species": (("species", "axis"), "GeV fm^-3", "momentum density of a species"),
    "entropy": ((), "fm^-3", "entropy density"),
    "mass_squared": (("species",), "GeV^2", "squared mass"),
    "screening_mass_squared": ((), "GeV^2", "squared screening mass of t and u"),
    "temperature": ((), "GeV",
        "temperature of the equilibrium state on the nodes with these N_a, P and E_kin"),
    "chemical_potential": (("species",), "GeV", "chemical potential of that state on the nodes"),
    "velocity": (("axis",), "1", "flow velocity of that state on the nodes"),
    "landau_energy": ((), "GeV fm^-3",
        "energy density, field included, in the Landau frame, where no energy flows"),
    "landau_velocity": (("axis",), "1", "velocity of the Landau frame"),
    "landau_temperature": ((), "GeV",
        "temperature of the equilibrium with the charges and total energy of the Landau frame, its "
        "own masses, and no box"),
    "landau_chemical_potential": (("species",), "GeV", "chemical potential of that equilibrium"),
    "pressure": ((), "GeV fm^-3", "mean pressure in the Landau frame, field included"),
    "bulk_pressure": ((), "GeV fm^-3", "pressure minus that of the equilibrium with landau_*"),
    "shear_stress": (("mu", "nu"), "GeV fm^-3",
        "pi^{mu nu}: traceless, without components along the Landau velocity"),
    "spectrum": (("species", "p"), "1",
        "f averaged over shells of |p|; beyond momentum_max only corners of the box"),
    "pressure_ratio": ((), "1", "T^zz over the mean of T^xx and T^yy, in the frame of the grid"),
    "equilibrium_distance": ((), "1", "part of the particles not yet where equilibrium has them"),
    "rate": (("process",), "fm^-4", "collisions per volume and time, in the direction written"),
    "rate_reverse": (("process",), "fm^-4", "collisions per volume and time, in the reverse one"),
    "null_weight": ((), "1",
        "part of the collisions between particles in the box that finds no place in it, without "
        "final-state factors"),
    "negative_weight": (("process",), "1",
        "weight of collisions where screening makes |M|^2 negative and that count as 0, relative "
        "to all others of the process"),
    "limited_weight": ((), "1", "part of the moved number that a limiter refused"),
    "noise": ((), "1",
        "root of the squared standard error of C[f] in the last step over C[f]^2, both summed over "
        "the cells; C[f] as measured, so that it stays below about 1"),
    "step": ((), "fm", "time step"),
}  # fmt: skip

LOCAL = (
    "number", "energy_kinetic", "energy_by_species", "energy_total", "energy_momentum",
    "energy_momentum_by_species", "number_current", "momentum_flux", "source", "momentum",
    "momentum_by_species", "entropy", "mass_squared", "screening_mass_squared", "temperature",
    "chemical_potential", "velocity", "landau_energy", "landau_velocity", "landau_temperature",
    "landau_chemical_potential", "pressure", "bulk_pressure", "shear_stress", "pressure_ratio",
    "field_pressure",
)  # fmt: skip
"""Quantities with a value in every space cell; ``total_*`` is the average over the box."""
WEIGHTED = {
    "temperature": "energy", "chemical_potential": "energy", "velocity": "energy",
    "landau_velocity": "energy", "landau_temperature": "energy",
    "landau_chemical_potential": "energy", "pressure_ratio": "pressure",
}  # fmt: skip
"""Quantities that are undefined in vacuum; their averages are weighted."""
OF_THE_BOX = {
    "charge_density": "density of a conserved charge, what left included, average over the box",
    "charge_drift": "change of a conserved charge, what left included, in quanta: exact",
    "momentum_drift": "change of momentum, what left included, in quanta: forces and walls make it",
    "spectrum": "f averaged over the box and over shells of |p|",
    "rate": "collisions per volume and time, as written, average over the box",
    "rate_reverse": "collisions per volume and time, in reverse, average over the box",
}
LEDGER: Quantities = {
    "left_number": (("wall", "species"), "fm^-3", "particles that left, per volume of the box"),
    "left_momentum": (("wall", "axis"), "GeV fm^-3", "momentum that left, per volume of the box"),
    "left_energy": (("wall",), "GeV fm^-3", "energy that left, per volume of the box"),
    "refused_number": (("wall", "species"), "fm^-3",
        "particles that a force would have pushed beyond the closed edges of momentum space"),
}  # fmt: skip
"""Losses through the walls since the start; x- is the low side of the x axis."""


EXPANDING: Quantities = {
    "scale": (("axis",), "1", "scale factors a: momenta are comoving ones over them; 1 at first"),
    "doublings": (("axis",), "1", "how often the spacing of comoving momenta doubled"),
    "energy_total": ((), "GeV fm^-3", "kinetic plus field energy density"),
    "field_pressure": ((), "GeV fm^-3", "pressure of the mean field"),
    "energy_work": ((), "GeV fm^-3",
        "work of the total pressure since the start, by quadrature over steps, per volume of the "
        "start: this plus energy_total, and what left, times the volume is conserved"),
    "spectrum": (("species", "p"), "1",
        "f averaged over shells of comoving |k|, those of the nodes at the start"),
    "pressure_ratio": ((), "1",
        "total pressure along z, field included, over the mean of those along x and y"),
}  # fmt: skip
"""Quantities that exist only, or have another meaning, on an expanding grid."""
BJORKEN: Quantities = {
    "dN_dy": (("species",), "fm^-2", "particles per rapidity and transverse area"),
    "dET_dy": ((), "GeV fm^-2", "sum of sqrt(p_T^2 + m^2) per rapidity and transverse area"),
    "dN_d2pT": (("species", "px", "py"), "GeV^-2 fm^-2",
        "particles per rapidity, transverse momentum and area"),
    "spectrum": (("species", "p"), "1", "f averaged over all p_z and over rings of p_T"),
}  # fmt: skip
"""Quantities for boost-invariant expansion along z; in space of the whole plane, with losses."""
OF_THE_PLANE = {"fm^-2": "1", "GeV fm^-2": "GeV", "GeV^-2 fm^-2": "GeV^-2"}


def quantities(grid: PhaseSpace, marginals: Sequence[str] = ()) -> Quantities:
    """Return the quantities in a file of this grid; directions with a single cell are omitted."""
    found = dict(QUANTITIES)
    if grid.expansion is not None:
        found |= EXPANDING
        if grid.expansion.law == "bjorken":
            found |= BJORKEN
    if grid.sites == 1:
        return found
    result: Quantities = {}
    for name, (dims, unit, description) in found.items():
        if name in BJORKEN and name != "spectrum":
            description = description.replace(" and transverse area", "").replace(" and area", "")
            result[name] = (dims, OF_THE_PLANE[unit], f"{description}, what left included")
        elif name in LOCAL:
            result[name] = ((*dims, "x", "y", "z"), unit, description)
            how = f", weighted with {WEIGHTED[name]}" if name in WEIGHTED else ""
            result[f"total_{name}"] = (dims, unit, f"{description}, average over the box{how}")
        else:
            result[name] = (dims, unit, OF_THE_BOX.get(name, description))
    kept = {
        marginal_name(m): (("species", *m.split()), "1", f"f averaged over all but {m}")
        for m in marginals
    }
    return {**result, **LEDGER, **kept}


def marginal_name(text: str) -> str:
    """Return the name of a marginal, such as f_x_px for "x px"."""
    return "f_" + "_".join(text.split())
