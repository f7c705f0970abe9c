"""Problems with known answers, solved again by ``relboltz validate``."""

from .exact_relaxation import anisotropic_cross_section, constant_cross_section
from .expanding import bjorken_flow
from .laws import laws_of_a_step
from .mixtures import landau_frame, mixtures
from .orders import orders_of_convergence
from .quantum import quantum_gases
from .rates import absolute_rates, three_samplings
from .rows import Comparison, KnownProblem, ValidationEffort
from .states import condensation, final_states, stationarity, thermal_masses
from .step_start import collisions_of_a_step
from .streaming import free_streaming, liouville
from .table import classical_rates, cross_sections, crossing, detailed_balance
from .temperatures import two_temperatures
from .viscosity import coefficients
from .vlasov import self_consistent_wave
from .waves import waves_in_space
from .weak_coupling import leading_logarithms

__all__ = ["PROBLEMS", "Comparison", "KnownProblem", "ValidationEffort"]

PROBLEMS = {
    problem.name: problem
    for problem in (
        KnownProblem("crossing", "rows of the table cross into each other", crossing),
        KnownProblem("cross-sections", "massless, fixed regulator: closed forms", cross_sections),
        KnownProblem("classical", "massless classical gas: rates of closed forms", classical_rates),
        KnownProblem("rates", "34 rates against quadrature", absolute_rates),
        KnownProblem(
            "step", "collisions of a step start against outside numbers", collisions_of_a_step
        ),
        KnownProblem(
            "temperatures", "heat and chemistry of unequal temperatures", two_temperatures
        ),
        KnownProblem("samplings", "three ways through the delta function", three_samplings),
        KnownProblem(
            "balance", "collisions there and back, far from equilibrium", detailed_balance
        ),
        KnownProblem("stationary", "Bose and Fermi states stand still", stationarity),
        KnownProblem("laws", "what no step may break", laws_of_a_step),
        KnownProblem("masses", "thermal masses and the energy of the field", thermal_masses),
        KnownProblem("final", "runs end where number and energy say", final_states),
        KnownProblem("condensation", "critical height of a step", condensation),
        KnownProblem("exact", "exact solution, constant cross section", constant_cross_section),
        KnownProblem("anisotropic", "exact solution, anisotropic", anisotropic_cross_section),
        KnownProblem(
            "quantum", "Bose and Fermi gases against a solver in one dimension", quantum_gases
        ),
        KnownProblem("streaming", "free particles", free_streaming),
        KnownProblem("bjorken", "a gas in Bjorken flow against particles", bjorken_flow),
        KnownProblem("liouville", "uniform f, and f(E) in a field of masses", liouville),
        KnownProblem(
            "vlasov", "a large wave in its own field against markers", self_consistent_wave
        ),
        KnownProblem("waves", "sound, shear and heat in space", waves_in_space),
        KnownProblem("coefficients", "viscosities and diffusion against quadratures", coefficients),
        KnownProblem("mixtures", "coefficients of mixtures, with charges and fields", mixtures),
        KnownProblem("leading-log", "QCD at weak coupling: leading logarithms", leading_logarithms),
        KnownProblem("landau", "the frame of a boosted thermal state", landau_frame),
        KnownProblem("orders", "orders of convergence", orders_of_convergence),
    )
}
"""Problems by name, fast and elementary problems first."""
