"""Deliberate mistakes, one at a time, in a copy of the package: ``relboltz validate`` finds each.

    python benchmarks/mutations.py [NAME ...] [--list] [--json F] [--all-problems]

A mistake is a piece of source that is there exactly once, and another one in its place. Every copy
is asked the few problems that should notice (with --all-problems all of them) and must fail; the
package as it is must pass the same problems. The exit code is 1 if a mistake goes unnoticed.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

PACKAGE = Path(__file__).parent.parent / "relboltz"


@dataclass(frozen=True)
class Mutation:
    """A mistake, and the problems that should notice it."""

    name: str
    file: str
    right: str
    wrong: str
    problems: tuple[str, ...]


TABLE, RATES, MIXTURES = ("cross-sections",), ("rates",), ("mixtures",)
WEAK = ("leading-log",)
MUTATIONS = (
    # --- the seven rows of the table
    Mutation(
        "q1 q2: sign of u^2",
        "qcd.py",
        "C_F**2 / D_A * (s * s + u * u) / (t_regulated",
        "C_F**2 / D_A * (s * s - u * u) / (t_regulated",
        TABLE,
    ),
    Mutation(
        "q1 q1: u channel missing",
        "qcd.py",
        "squares = (s * s + u * u) / t2 + (s * s + t * t) / u2\n",
        "squares = (s * s + u * u) / t2\n",
        TABLE,
    ),
    Mutation(
        "q1 q1: interference halved",
        "qcd.py",
        "interference = s * s / (t_regulated * u_regulated)",
        "interference = 0.5 * s * s / (t_regulated * u_regulated)",
        TABLE,
    ),
    Mutation(
        "q1 q1bar: u and s exchanged in the interference",
        "qcd.py",
        "interference = u * u / (t_regulated * s)",
        "interference = s * s / (t_regulated * u)",
        TABLE,
    ),
    Mutation(
        "q1 q1bar -> q2 q2bar: factor 2",
        "qcd.py",
        "return 8 * g4 * D_F**2 * C_F**2 / D_A * (t * t + u * u) / (s * s)",
        "return 16 * g4 * D_F**2 * C_F**2 / D_A * (t * t + u * u) / (s * s)",
        TABLE,
    ),
    Mutation(
        "q1 q1bar -> g g: t and u exchanged",
        "qcd.py",
        "exchange = u / t_regulated + t / u_regulated",
        "exchange = t / t_regulated + u / u_regulated",
        TABLE,
    ),
    Mutation(
        "q1 g: sign of quark exchange",
        "qcd.py",
        "return -8 * g4 * D_F * C_F**2 * exchange + 8 * g4 * D_F * C_F * C_A * (s * s",
        "return 8 * g4 * D_F * C_F**2 * exchange + 8 * g4 * D_F * C_F * C_A * (s * s",
        TABLE,
    ),
    Mutation(
        "g g: t and u exchanged in the denominators",
        "qcd.py",
        "3 - s * u / t2 - s * t / u2 - t * u / (s * s)",
        "3 - s * t / t2 - s * u / u2 - t * u / (s * s)",
        TABLE,
    ),
    Mutation("colour factor C_A", "qcd.py", "C_A = 3.0", "C_A = 8.0 / 3.0", TABLE),
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
        "process.py",
        "return 0.5 ** (equal + self.elastic)",
        "return 0.5**equal",
        RATES,
    ),
    Mutation(
        "multiplicity: equal particles twice",
        "process.py",
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
    Mutation("hbar c", "units.py", "0.1973269804", "0.1937269804", RATES),
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
        "backends/cpu/events.py",
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
    Mutation("gluon states", "qcd.py", "N_G = 16", "N_G = 8", ("masses",)),
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
        "qcd.py",
        "return g2 * C_A / D_A",
        "return g2 * C_F / D_A",
        ("masses",),
    ),
    Mutation(
        "thermal mass of quarks",
        "qcd.py",
        "return g2 * C_F / N_Q if",
        "return g2 * C_F / D_A if",
        ("masses",),
    ),
    Mutation(
        "energy of the field", "masses.py", "np.asarray(-0.25 *", "np.asarray(-0.5 *", ("masses",)
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
        "masses.py",
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
    # --- transport coefficients
    Mutation(
        "cross section of equal particles: their factor 2",
        "process.py",
        "(2 if c == d else 1)",
        "1",
        ("coefficients",),
    ),
    Mutation(
        "fluctuations without 1 + eta f",
        "linear/state.py",
        "* self.points.weight * self.f * full)",
        "* self.points.weight * self.f)",
        ("coefficients",),
    ),
    Mutation(
        "one component of a current for three",
        "linear/state.py",
        '"vector": 3.0, "scalar": 1.0}',
        '"vector": 1.0, "scalar": 1.0}',
        ("coefficients",),
    ),
    Mutation(
        "bulk source: sign of d m^2/dT",
        "linear/basis.py",
        "-1.0: -by_t / 2}",
        "-1.0: by_t / 2}",
        ("coefficients",),
    ),
    Mutation(
        "bulk source: sign of d m^2/d(mu/T)",
        "linear/basis.py",
        "-1.0: -slope / (2 * t**2)}",
        "-1.0: slope / (2 * t**2)}",
        MIXTURES,
    ),
    Mutation(
        "slopes of m^2 by the species alone, not by the others",
        "linear/state.py",
        "coupling @ sources.T).T",
        "np.diag(np.diag(coupling)) @ sources.T).T",
        MIXTURES,
    ),
    Mutation(
        "squared charge without its 4 pi",
        "linear/report.py",
        "E2 = 4 * np.pi / 137.036",
        "E2 = 1 / 137.036",
        MIXTURES,
    ),
    Mutation(
        "tagged particles distributed as f (1 + eta f)",
        "linear/coefficients.py",
        'whole = basis.Basis(state, "vector", powers, (species,), state.density)',
        'whole = basis.Basis(state, "vector", powers, (species,), state.fluctuation)',
        MIXTURES,
    ),
    Mutation(
        "tagged particles counted as f (1 + eta f)",
        "linear/report.py",
        "n = state.numbers[species]",
        "n = state.fluctuation.sum(axis=1)[species]",
        MIXTURES,
    ),
    Mutation(
        "a tag that is lost where two of its species meet",
        "linear/brackets.py",
        "elif j == i + 2:",
        "elif j == i + 4:",
        ("coefficients",),
    ),
    Mutation(
        "shear on nodes: weights of axes and planes exchanged",
        "linear/report.py",
        "(0.4 * a + 0.6 * b, 0.4 * da + 0.6 * db)",
        "(0.6 * a + 0.4 * b, 0.6 * da + 0.4 * db)",
        MIXTURES,
    ),
    Mutation(
        "shear on nodes: numbers of axes and planes exchanged",
        "linear/state.py",
        '"axes": 4.0, "planes": 6.0,',
        '"axes": 6.0, "planes": 4.0,',
        MIXTURES,
    ),
    # --- QCD at weak coupling
    Mutation(
        "q1 g, ekt: colour factor of gluon exchange",
        "qcd.py",
        "exchange + 8 * g4 * D_F * C_F * C_A * 0.5 * (1 + x_t * x_t)",
        "exchange + 8 * g4 * D_F * C_F * C_F * 0.5 * (1 + x_t * x_t)",
        WEAK,
    ),
    Mutation(
        "q1 g, ekt: quark exchange missing",
        "qcd.py",
        "exchange = u / s + s / u_exchanged",
        "exchange = u / s",
        WEAK,
    ),
    Mutation(
        "q1 q1bar -> g g, ekt: t and u exchanged",
        "qcd.py",
        "exchange = u / t_exchanged + t / u_exchanged",
        "exchange = t / t_exchanged + u / u_exchanged",
        WEAK,
    ),
    Mutation(
        "g g, ekt: pole in t doubled",
        "qcd.py",
        "C_A**2 * (2.5 + 0.25 * (x_t * x_t + x_u * x_u)",
        "C_A**2 * (2.5 + 0.5 * (x_t * x_t + x_u * x_u)",
        WEAK,
    ),
    Mutation(
        "q1 q2, ekt: colour factor",
        "qcd.py",
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
        "linear/brackets.py",
        'else found["u"], share',
        "else 0.0, share",
        WEAK,
    ),
    Mutation(
        "mirror images of events that are drawn one way alone",
        "linear/brackets.py",
        "1.0 if process.elastic or not process.constant else 0.0",
        "1.0",
        MIXTURES,
    ),
    Mutation(
        "multiplicity of equal particles missing in brackets",
        "linear/brackets.py",
        "Member(legs, channel.factor, channel.process)",
        "Member(legs, 1.0, channel.process)",
        WEAK,
    ),
    Mutation(
        "currents of antiquarks with the sign of quarks",
        "linear/basis.py",
        "{-1.0: charge}, momentum, momentum)",
        "{-1.0: abs(charge)}, momentum, momentum)",
        WEAK,
    ),
    Mutation("xi of gluons", "qcd_settings.py", "math.exp(5 / 6) / 2", "math.exp(5 / 6)", WEAK),
    Mutation("xi of quarks", "qcd_settings.py", "XI_QUARK = math.e / 2", "XI_QUARK = math.e", WEAK),
)


def copied(folder: Path, mutation: Mutation | None) -> None:
    """The package, with a mistake."""
    target = folder / "relboltz"
    shutil.copytree(PACKAGE, target, ignore=shutil.ignore_patterns("__pycache__"))
    if mutation is None:
        return
    path = target / mutation.file
    text = path.read_text()
    if text.count(mutation.right) != 1:
        raise SystemExit(
            f"{mutation.name}: {mutation.right!r} is {text.count(mutation.right)} times in "
            f"{mutation.file}; name a piece of source that is there once"
        )
    path.write_text(text.replace(mutation.right, mutation.wrong))


def asked(mutation: Mutation | None, problems: tuple[str, ...]) -> dict:
    """What ``relboltz validate --quick`` says of a copy."""
    with tempfile.TemporaryDirectory(prefix="relboltz-") as name:
        folder = Path(name)
        copied(folder, mutation)
        # compiled code of a mistake is of no use to anybody
        cache = {"XDG_CACHE_HOME": name} if mutation is not None else {}
        result = folder / "result.json"
        command = [sys.executable, "-m", "relboltz", "validate", "--quick", "--backend", "cpu"]
        done = subprocess.run(
            [*command, "--json", str(result), *problems], cwd=folder, capture_output=True,
            text=True, env={**os.environ, **cache, "PYTHONPATH": name},
        )  # fmt: skip
        if not result.exists():
            words = done.stderr.strip().splitlines() or ["no message"]
            return {"passed": False, "problems": [], "crashed": words[-1]}
        return json.loads(result.read_text())


def noticed(found: dict) -> list[str]:
    """Problems that failed, with the row that is farthest beyond its tolerance."""
    lines = [found["crashed"]] if "crashed" in found else []
    for part in found["problems"]:
        wrong = [row for row in part["rows"] if not row["passed"]]
        if wrong:
            worst = max(wrong, key=lambda row: float("inf") if row["error"] is None
                        else row["error"] / max(row["tolerance"], 1e-300))  # fmt: skip
            error = "raised" if worst["error"] is None else f"{worst['error']:.3g}"
            lines.append(
                f"{part['name']}: {len(wrong)} of {len(part['rows'])} rows, e.g. "
                f"{worst['quantity']}: {error}, allowed {worst['tolerance']:.2g}"
            )
    return lines


def main() -> int:
    """Make all mistakes, or those named."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="parts of names")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--json")
    parser.add_argument("--all-problems", action="store_true")
    given = parser.parse_args()
    chosen = [m for m in MUTATIONS if not given.names or any(n in m.name for n in given.names)]
    if given.list:
        for m in MUTATIONS:
            print(f"{m.name:56s} {m.file:28s} {', '.join(m.problems)}")
        return 0
    figures, missed = [], []
    problems = (
        () if given.all_problems else tuple(dict.fromkeys(p for m in chosen for p in m.problems))
    )
    untouched = asked(None, problems)
    print(f"as it is: {'all hold' if untouched['passed'] else noticed(untouched)}", flush=True)
    for number, m in enumerate(chosen, 1):
        began = time.perf_counter()
        found = asked(m, () if given.all_problems else m.problems)
        lines = noticed(found)
        seconds = time.perf_counter() - began
        figures.append({"name": m.name, "file": m.file, "caught": bool(lines), "by": lines})
        print(f"{number}/{len(chosen)} {m.name} ({seconds:.0f} s): {'; '.join(lines) or 'MISSED'}",
              flush=True)  # fmt: skip
        if not lines:
            missed.append(m.name)
    if given.json:
        Path(given.json).write_text(json.dumps(figures, indent=1) + "\n")
    print(
        f"{len(chosen) - len(missed)} of {len(chosen)} caught"
        + (f"; missed: {missed}" if missed else "")
    )
    return int(bool(missed) or not untouched["passed"])


if __name__ == "__main__":
    sys.exit(main())
