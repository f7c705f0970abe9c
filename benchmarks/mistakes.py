"""Deliberate mistakes in collisions, steps, masses and transport, for ``mutations.py``."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Mutation:
    """A mistake, and the problems that should detect it."""

    name: str
    file: str
    right: str
    wrong: str
    problems: tuple[str, ...]


TABLE, RATES = ("cross-sections",), ("rates",)
IN_RUNS = (
    # --- the seven rows of the table
    Mutation(
        "q1 q2: sign of u^2",
        "model/qcd.py",
        "C_F**2 / D_A * (s * s + u * u) / (t_regulated",
        "C_F**2 / D_A * (s * s - u * u) / (t_regulated",
        TABLE,
    ),
    Mutation(
        "q1 q1: u channel missing",
        "model/qcd.py",
        "squares = (s * s + u * u) / t2 + (s * s + t * t) / u2\n",
        "squares = (s * s + u * u) / t2\n",
        TABLE,
    ),
    Mutation(
        "q1 q1: interference halved",
        "model/qcd.py",
        "interference = s * s / (t_regulated * u_regulated)",
        "interference = 0.5 * s * s / (t_regulated * u_regulated)",
        TABLE,
    ),
    Mutation(
        "q1 q1bar: u and s exchanged in the interference",
        "model/qcd.py",
        "interference = u * u / (t_regulated * s)",
        "interference = s * s / (t_regulated * u)",
        TABLE,
    ),
    Mutation(
        "q1 q1bar -> q2 q2bar: factor 2",
        "model/qcd.py",
        "return 8 * g4 * D_F**2 * C_F**2 / D_A * (t * t + u * u) / (s * s)",
        "return 16 * g4 * D_F**2 * C_F**2 / D_A * (t * t + u * u) / (s * s)",
        TABLE,
    ),
    Mutation(
        "q1 q1bar -> g g: t and u exchanged",
        "model/qcd.py",
        "exchange = u / t_regulated + t / u_regulated",
        "exchange = t / t_regulated + u / u_regulated",
        TABLE,
    ),
    Mutation(
        "q1 g: sign of quark exchange",
        "model/qcd.py",
        "return -8 * g4 * D_F * C_F**2 * exchange + 8 * g4 * D_F * C_F * C_A * (s * s",
        "return 8 * g4 * D_F * C_F**2 * exchange + 8 * g4 * D_F * C_F * C_A * (s * s",
        TABLE,
    ),
    Mutation(
        "g g: t and u exchanged in the denominators",
        "model/qcd.py",
        "3 - s * u / t2 - s * t / u2 - t * u / (s * s)",
        "3 - s * t / t2 - s * u / u2 - t * u / (s * s)",
        TABLE,
    ),
    Mutation("colour factor C_A", "model/qcd.py", "C_A = 3.0", "C_A = 8.0 / 3.0", TABLE),
    Mutation(
        "regulator of t missing",
        "backends/elements.py",
        '"t_regulated": "t - screening2"',
        '"t_regulated": "t"',
        TABLE,
    ),
    # --- multiplicity, phase space, kinematics
    Mutation(
        "multiplicity: elastic processes twice",
        "model/process.py",
        "return 0.5 ** (equal + self.elastic)",
        "return 0.5**equal",
        RATES,
    ),
    Mutation(
        "multiplicity: equal particles twice",
        "model/process.py",
        "equal = sum(a == b for a, b in self.sides)",
        "equal = 0",
        RATES,
    ),
    Mutation(
        "both sides of a reaction at full weight",
        "events/collisions.py",
        "result.append(Channel(index, (a, b), (c, d), 0.5, w / 2, False))",
        "result.append(Channel(index, (a, b), (c, d), 0.5, w, False))",
        RATES,
    ),
    Mutation(
        "two-body phase space doubled",
        "events/kinematics.py",
        "return k_out * inverse_root(s) * (0.25 / pi)",
        "return k_out * inverse_root(s) * (0.5 / pi)",
        ("classical",),
    ),
    Mutation(
        "phase space with the momentum of the wrong pair",
        "events/kinematics.py",
        "weight = two_body_phase_space(s, k_out)",
        "weight = two_body_phase_space(s, k_in)",
        RATES,
    ),
    Mutation(
        "measure (2 pi)^3",
        "events/collisions.py",
        "((2 * np.pi) ** 3 * 4 * samples",
        "((2 * np.pi) ** 2 * 4 * samples",
        ("classical",),
    ),
    Mutation("hbar c", "grid/units.py", "0.1973269804", "0.1937269804", RATES),
    Mutation(
        "boost backwards",
        "events/kinematics.py",
        "c = dot(total, k) * boost + ek * over_root",
        "c = dot(total, k) * boost - ek * over_root",
        ("classical",),
    ),
    Mutation(
        "invariant mass with the wrong sign",
        "events/kinematics.py",
        "return sum_m2 + 2.0 * (ep * ek - dot(p, k))",
        "return sum_m2 + 2.0 * (ep * ek + dot(p, k))",
        ("classical",),
    ),
    Mutation(
        "energies of unequal masses exchanged",
        "events/kinematics.py",
        "e1 = (s + ma2 - mb2) * half_over_root",
        "e1 = (s + mb2 - ma2) * half_over_root",
        RATES,
    ),
    Mutation(
        "importance of t not undone",
        "events/kinematics.py",
        "return span * u * ratio, ratio * tau_max * inverse",
        "return span * u * ratio, 1.0",
        RATES,
    ),
    Mutation(
        "importance of pairs not undone",
        "backends/cpu/collision_events.py",
        "w[WEIGHT + i] *= factor * w[M2 + i] * w[INVERSE_Q + i]",
        "w[WEIGHT + i] *= factor * w[M2 + i] * float(cells[0] * cells[1] * cells[2]) ** 2",
        RATES,
    ),
    # --- landing, statistics
    Mutation(
        "share of the high pair turned round",
        "events/projection.py",
        "return min(max((e - e_low)",
        "return min(max((e_high - e)",
        ("stationary",),
    ),
    Mutation(
        "interpolation in the middle",
        "events/collisions.py",
        "return low + r * (high - low) + full, nodes + full",
        "return low + 0.5 * (high - low) + full, nodes + full",
        ("stationary",),
    ),
    Mutation(
        "Pauli blocking and Bose enhancement exchanged",
        "events/collisions.py",
        "full = 1.0 + eta * f\n    ln_f",
        "eta = -eta\n    full = 1.0 + eta * f\n    ln_f",
        ("stationary",),
    ),
    Mutation("gluon states", "model/qcd.py", "N_G = 16", "N_G = 8", ("masses",)),
    # --- the step
    Mutation(
        "the same events in both stages",
        "backends/cpu/stages.py",
        "for part in reversed(first))",
        "for part in first)",
        ("exact",),
    ),
    Mutation(
        "Euler's method",
        "backends/cpu/stages.py",
        "number = n0 + d1 + d2",
        "number = n0 + 2 * d1",
        ("orders",),
    ),
    Mutation(
        "prediction of half a step",
        "events/collisions.py",
        "AHEAD = 2 * SETS",
        "AHEAD = SETS",
        ("orders",),
    ),
    Mutation(
        "limits off",
        "backends/cpu/stages.py",
        "return bool((number >= 0).all() and (number <= self._capacity).all())",
        "return True",
        ("laws",),
    ),
    # --- masses and fields
    Mutation(
        "thermal mass of gluons",
        "model/qcd.py",
        "return g2 * C_A / D_A",
        "return g2 * C_F / D_A",
        ("masses",),
    ),
    Mutation(
        "thermal mass of quarks",
        "model/qcd.py",
        "return g2 * C_F / N_Q if",
        "return g2 * C_F / D_A if",
        ("masses",),
    ),
    Mutation(
        "energy of the field",
        "model/gap_equation.py",
        "np.asarray(-0.25 *",
        "np.asarray(-0.5 *",
        ("masses",),
    ),
    Mutation(
        "velocity",
        "transport/plane.py",
        "return quotient(2.0 * p, energy + next_energy)",
        "return quotient(1.98 * p, energy + next_energy)",
        ("streaming",),
    ),
    Mutation(
        "force backwards",
        "transport/plane.py",
        "return pull(m2 - next_m2,",
        "return pull(next_m2 - m2,",
        ("liouville",),
    ),
    # --- collisions far from equilibrium, quantum statistics in time
    Mutation(
        "F of the low pair alone, not interpolated",
        "events/collisions.py",
        "full = full_low + r * (full_high - full_low) + full_nodes",
        "full = full_low + full_nodes",
        ("quantum",),
    ),
    Mutation(
        "Bose and Fermi factors at half their strength",
        "events/collisions.py",
        "full = full_low + r * (full_high - full_low) + full_nodes",
        "full = 0.5 * (full_low + r * (full_high - full_low) + full_nodes)",
        ("quantum",),
    ),
    Mutation(
        "Pauli blocking dropped, Bose enhancement kept",
        "events/collisions.py",
        "full = full_low + r * (full_high - full_low) + full_nodes",
        "full = max(full_low + r * (full_high - full_low) + full_nodes, 0.0)",
        ("quantum",),
    ),
    Mutation(
        "capacity of one fermion, not of one for each state",
        "stepping/quanta.py",
        "full = np.minimum(np.rint(model.degeneracy * 2.0**bits), 2.0**62)",
        "full = np.minimum(np.rint(model.degeneracy**0 * 2.0**bits), 2.0**62)",
        ("quantum",),
    ),
    Mutation(
        "net flow linear in the deviation from equilibrium",
        "events/collisions.py",
        "change = larger * expm1(-abs(d))",
        "change = -larger * min(abs(d), 1.0)",
        ("temperatures",),
    ),
    Mutation(
        "empty nodes hold e^-5 of a particle",
        "events/collisions.py",
        "FLOOR = -690.0",
        "FLOOR = -5.0",
        ("step",),
    ),
    Mutation(
        "C[f] of all states of a node together",
        "backends/cpu/backend.py",
        "per_state = np.repeat(1.0 / self.model.degeneracy, self.grid.size)",
        "per_state = np.repeat(1.0 / self.model.degeneracy**0, self.grid.size)",
        ("step",),
    ),
    Mutation(
        "thermal screening mass: half of its square",
        "model/gap_equation.py",
        "screening += model[rows + row * s + a] * work[width + a]",
        "screening += 0.5 * model[rows + row * s + a] * work[width + a]",
        ("step",),
    ),
    Mutation(
        "a reaction and its reverse exchanged in half of the events",
        "events/collisions.py",
        "result.append(Channel(index, (a, b), (c, d), 0.5, w / 2, False))",
        "result.append(Channel(index, (a, b), (c, d), 0.5, w / 2, True))",
        ("temperatures",),
    ),
    # --- masses that change in space and time
    Mutation(
        "masses not solved again after streaming",
        "stepping/step.py",
        "            if moving:\n                self.squares = backend.masses(now)",
        "            if moving and part.axis is None:\n"
        "                self.squares = backend.masses(now)",
        ("vlasov",),
    ),
    Mutation(
        "streaming with the masses of its start",
        "stepping/step.py",
        "used = mean_squares(now, lasts, self.length, before) if moving else now",
        "used = mean_squares(now, lasts, self.length, before) "
        "if moving and part.axis is None else now",
        ("vlasov",),
    ),
    Mutation(
        "masses of all places from matter at the first",
        "backends/cpu/masses.py",
        "held[b, i] += number[site, a, i] * unit",
        "held[b, i] += number[first, a, i] * unit",
        ("vlasov",),
    ),
)
