"""Deliberate mistakes in transport coefficients, for ``mutations.py``."""

from mistakes import Mutation

MIXTURES, WEAK = ("mixtures",), ("leading-log",)
IN_COEFFICIENTS = (
    # --- transport coefficients
    Mutation(
        "cross section of equal particles: their factor 2",
        "model/process.py",
        "(2 if c == d else 1)",
        "1",
        ("coefficients",),
    ),
    Mutation(
        "fluctuations without 1 + eta f",
        "linear_response/reference_state.py",
        "* self.points.weight * self.f * full)",
        "* self.points.weight * self.f)",
        ("coefficients",),
    ),
    Mutation(
        "one component of a current for three",
        "linear_response/reference_state.py",
        '"vector": 3.0, "scalar": 1.0}',
        '"vector": 1.0, "scalar": 1.0}',
        ("coefficients",),
    ),
    Mutation(
        "bulk source: sign of d m^2/dT",
        "linear_response/basis.py",
        "-1.0: -by_t / 2}",
        "-1.0: by_t / 2}",
        ("coefficients",),
    ),
    Mutation(
        "bulk source: sign of d m^2/d(mu/T)",
        "linear_response/basis.py",
        "-1.0: -slope / (2 * t**2)}",
        "-1.0: slope / (2 * t**2)}",
        MIXTURES,
    ),
    Mutation(
        "slopes of m^2 by the species alone, not by the others",
        "linear_response/reference_state.py",
        "coupling @ sources.T).T",
        "np.diag(np.diag(coupling)) @ sources.T).T",
        MIXTURES,
    ),
    Mutation(
        "squared charge without its 4 pi",
        "linear_response/dataset.py",
        "E2 = 4 * np.pi / 137.036",
        "E2 = 1 / 137.036",
        MIXTURES,
    ),
    Mutation(
        "tagged particles distributed as f (1 + eta f)",
        "linear_response/coefficients.py",
        'whole = basis.Basis(state, "vector", powers, (species,), state.density)',
        'whole = basis.Basis(state, "vector", powers, (species,), state.fluctuation)',
        MIXTURES,
    ),
    Mutation(
        "tagged particles counted as f (1 + eta f)",
        "linear_response/dataset.py",
        "n = state.numbers[species]",
        "n = state.fluctuation.sum(axis=1)[species]",
        MIXTURES,
    ),
    Mutation(
        "a tag that is lost where two of its species meet",
        "linear_response/brackets.py",
        "elif j == i + 2:",
        "elif j == i + 4:",
        ("coefficients",),
    ),
    Mutation(
        "shear on nodes: weights of axes and planes exchanged",
        "linear_response/dataset.py",
        "(0.4 * a + 0.6 * b, 0.4 * da + 0.6 * db)",
        "(0.6 * a + 0.4 * b, 0.6 * da + 0.4 * db)",
        MIXTURES,
    ),
    Mutation(
        "shear on nodes: numbers of axes and planes exchanged",
        "linear_response/reference_state.py",
        '"axes": 4.0, "planes": 6.0,',
        '"axes": 6.0, "planes": 4.0,',
        MIXTURES,
    ),
    # --- QCD at weak coupling
    Mutation(
        "q1 g, ekt: colour factor of gluon exchange",
        "model/qcd.py",
        "exchange + 8 * g4 * D_F * C_F * C_A * 0.5 * (1 + x_t * x_t)",
        "exchange + 8 * g4 * D_F * C_F * C_F * 0.5 * (1 + x_t * x_t)",
        WEAK,
    ),
    Mutation(
        "q1 g, ekt: quark exchange missing",
        "model/qcd.py",
        "exchange = u / s + s / u_exchanged",
        "exchange = u / s",
        WEAK,
    ),
    Mutation(
        "q1 q1bar -> g g, ekt: t and u exchanged",
        "model/qcd.py",
        "exchange = u / t_exchanged + t / u_exchanged",
        "exchange = t / t_exchanged + u / u_exchanged",
        WEAK,
    ),
    Mutation(
        "g g, ekt: pole in t doubled",
        "model/qcd.py",
        "C_A**2 * (2.5 + 0.25 * (x_t * x_t + x_u * x_u)",
        "C_A**2 * (2.5 + 0.5 * (x_t * x_t + x_u * x_u)",
        WEAK,
    ),
    Mutation(
        "q1 q2, ekt: colour factor",
        "model/qcd.py",
        "x_t = (s - u) / t_screened\n    return 8 * g4 * D_F**2 * C_F**2 / D_A * 0.5",
        "x_t = (s - u) / t_screened\n    return 8 * g4 * D_F**2 * C_F**2 / D_F * 0.5",
        WEAK,
    ),
    Mutation(
        "density of the draw in u missing",
        "events/brackets.py",
        "return part, in_t * in_u / (share * in_u + (1.0 - share) * in_t)",
        "return part, in_t",
        WEAK,
    ),
    Mutation(
        "draw in u forwards",
        "events/brackets.py",
        "        part = 1.0 - part\n        in_t = soft_undo(part, ahead, width)",
        "        in_t = soft_undo(part, ahead, width)",
        WEAK,
    ),
    Mutation(
        "poles in u are drawn at none",
        "linear_response/brackets.py",
        'else found["u"], share',
        "else 0.0, share",
        WEAK,
    ),
    Mutation(
        "mirror images of events that are drawn one way alone",
        "linear_response/brackets.py",
        "1.0 if process.elastic or not process.constant else 0.0",
        "1.0",
        MIXTURES,
    ),
    Mutation(
        "multiplicity of equal particles missing in brackets",
        "linear_response/brackets.py",
        "EquivalentChannel(legs, channel.factor, channel.process)",
        "EquivalentChannel(legs, 1.0, channel.process)",
        WEAK,
    ),
    Mutation(
        "currents of antiquarks with the sign of quarks",
        "linear_response/basis.py",
        "{-1.0: charge}, momentum, momentum)",
        "{-1.0: abs(charge)}, momentum, momentum)",
        WEAK,
    ),
    Mutation(
        "xi of gluons", "model/qcd_settings.py", "math.exp(5 / 6) / 2", "math.exp(5 / 6)", WEAK
    ),
    Mutation(
        "xi of quarks", "model/qcd_settings.py", "XI_QUARK = math.e / 2", "XI_QUARK = math.e", WEAK
    ),
)
