"""Check that ``same_numbers.py`` detects changes of single bits throughout the package.

    python benchmarks/changed_bits.py [PART OF A NAME ...]

Each change alters the last bits of one number in a copy of the package; ``same_numbers.py`` must
fail and name the affected set-up. The exit code is 1 if a change is not detected.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from mistakes import Mutation
from mutations import PACKAGE, copied
from versions import environment

UP = " * 1.0000000000000002"
"""Factor of one plus one rounding unit."""
CHANGES = (
    Mutation("phase space", "events/kinematics.py", "inverse_root(s) * (0.25 / pi)",
             f"inverse_root(s) * (0.25 / pi){UP}", ("gluons",)),
    Mutation("bracket of an event", "events/collisions.py", "return low + r * (high - low) + full",
             f"return low{UP} + r * (high - low) + full", ("own model",)),
    Mutation("gap equation", "model/gap_equation.py", "x[i] /= a[i * n + i]",
             f"x[i] /= a[i * n + i]{UP}", ("mixture",)),
    Mutation("effective kinetic theory", "model/qcd.py", "C_A**2 * (2.5 + 0.25 * (x_t",
             "C_A**2 * (2.5000000000000004 + 0.25 * (x_t", ("ekt",)),
    Mutation("root through k3", "events/kinematics.py", "(1.0 / (4.0 * jacobian + TINY)",
             f"(1.0 / (4.0 * jacobian + TINY){UP}", ("k3 without symmetry",)),
    Mutation("velocity of the transport", "transport/plane.py",
             "return quotient(2.0 * p, energy + next_energy)",
             f"return quotient(2.0 * p, energy + next_energy){UP}", ("1-D",)),
    Mutation("regridding", "stepping/regridding.py", "x = guess[j] + tilt[0] + tilt[1] * p[j]",
             f"x = guess[j]{UP} + tilt[0] + tilt[1] * p[j]", ("bjorken",)),
    Mutation("weights of brackets", "events/brackets.py",
             "return along - dot(a, a) * dot(b, b) / 3.0",
             f"return along - dot(a, a) * dot(b, b) / 3.0{UP}", ("coefficients on nodes",)),
    Mutation("flow harmonics", "analysis/rings.py", "(2 - u) ** 3 / 6",
             f"(2 - u) ** 3 / 6{UP}", ("plane",)),
    Mutation("one recorded sum", "transport/moments.py", "s[7] += f * py * pz * inverse",
             f"s[7] += f * py * pz * inverse{UP}", ("hubble",)),
    Mutation("state of a checkpoint", "stepping/state.py",
             'arrays = {"squares": self.squares,', f'arrays = {{"squares": self.squares{UP},',
             ("resumed",)),
    Mutation("sums on a GPU", "backends/cuda/moments.py", "halves = (0.5 * geometry[3],",
             "halves = (0.50000000000001 * geometry[3],", ("tiny gluons",)),
)  # fmt: skip


def output(tree: Path, *description: str) -> tuple[int, str]:
    """Run ``same_numbers.py`` with the relboltz of a tree; return exit code and output."""
    script = Path(__file__).with_name("same_numbers.py")
    done = subprocess.run(
        [sys.executable, str(script), *description],
        env=environment(tree),
        cwd=tree,
        capture_output=True,
        text=True,
    )
    return done.returncode, done.stdout + done.stderr


def main() -> int:
    """Make all changes, or those named."""
    asked = sys.argv[1:]
    chosen = [c for c in CHANGES if not asked or any(part in c.name for part in asked)]
    missed = 0
    with tempfile.TemporaryDirectory(prefix="relboltz-") as name:
        before = f"{name}/before.npz"
        set_ups = dict.fromkeys(set_up for change in chosen for set_up in change.problems)
        for set_up in set_ups:  # one at a time: some run in the simulator
            code, told = output(PACKAGE.parent, set_up, "--keep", f"{name}/{set_up}.npz")
            if code:
                raise SystemExit(told)
        for number, change in enumerate(chosen, 1):
            (set_up,) = change.problems
            before = f"{name}/{set_up}.npz"
            with tempfile.TemporaryDirectory(prefix="relboltz-") as folder:
                copied(Path(folder), change)
                (Path(folder) / "tests").symlink_to(PACKAGE.parent / "tests")
                code, told = output(Path(folder), set_up, "--against", before)
            lines = [line for line in told.splitlines() if line.startswith(f"OTHER BITS  {set_up}")]
            noticed = code == 1 and bool(lines)
            missed += not noticed
            description = lines[0] if noticed else f"MISSED (exit code {code}): {told[-300:]}"
            print(f"{number}/{len(chosen)} {change.name}: {description}", flush=True)
    print(f"{len(chosen) - missed} of {len(chosen)} noticed")
    return int(bool(missed))


if __name__ == "__main__":
    sys.exit(main())
