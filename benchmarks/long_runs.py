"""The two long runs of the README: pure gluons and the full mixture, 0 to 50 fm.

    python benchmarks/long_runs.py gluons|mixture [--threads N]

Prints the conservation errors, the deviation of the final state from Bose-Einstein and Fermi-Dirac
and from the state predicted by conserved quantities alone, and the time taken. Run the program
twice to measure the time without compilation.
"""

import argparse
import time
import warnings
from pathlib import Path

import numpy as np
import xarray as xr

import relboltz as rb
from relboltz import thermodynamics as equilibrium
from relboltz.run import input_file as config
from relboltz.run import solve as simulation

EXAMPLES = Path(__file__).parent.parent / "examples"
CASES = {"gluons": "gluons_50fm.toml", "mixture": "mixture.toml"}


def largest_deviation(ds: xr.Dataset, model: rb.Model, grid: rb.PhaseSpace) -> float:
    """Return the largest relative deviation of a cell from the final thermal state.

    The thermal state has the run's own final T, mu and masses.
    """
    thermal = equilibrium.thermal(
        grid, model, float(ds.temperature[-1]), ds.chemical_potential.values[-1],
        ds.velocity.values[-1], ds.mass_squared.values[-1],
    )  # fmt: skip
    return float(np.abs(ds.f.values[-1].reshape(thermal.shape) / thermal - 1).max())


def report(ds: xr.Dataset, model: rb.Model, grid: rb.PhaseSpace) -> None:
    """Print one line per figure."""
    energy, entropy = ds.energy_total.values, ds.entropy.values
    quarks = 1 - ds.number.sel(species="g") / ds.number.sum("species")
    expected = ds.equilibrium_number
    share = 1 - float(expected.sel(species="g") / expected.sum())
    rows = {
        "steps": ds.attrs["steps"],
        "largest change of a charge, quanta": int(np.abs(ds.charge_drift).max()),
        "largest change of momentum, quanta": int(np.abs(ds.momentum_drift).max()),
        "largest change of total energy, relative": np.abs(energy / energy[0] - 1).max(),
        "largest fall of entropy, relative": max(
            0.0, float((-np.diff(entropy) / entropy[0]).max())
        ),
        "largest deviation of a cell from its thermal state": largest_deviation(ds, model, grid),
        "T [GeV], predicted": (float(ds.temperature[-1]), float(ds.equilibrium_temperature)),
        "quark fraction, predicted": (float(quarks[-1]), share),
    }
    for i, name in enumerate(model.names):
        rows[f"mu of {name} [GeV], predicted"] = (
            float(ds.chemical_potential[-1, i]), float(ds.equilibrium_chemical_potential[i]),
        )  # fmt: skip
        rows[f"m^2 of {name} [GeV^2], predicted"] = (
            float(ds.mass_squared[-1, i]), float(ds.equilibrium_mass_squared[i]),
        )  # fmt: skip
    for name, value in rows.items():
        numbers = value if isinstance(value, tuple) else (value,)
        print(f"{name:52s}", *(f"{v:.6g}" for v in numbers))


def main() -> None:
    """Run one case from its example file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("case", choices=CASES)
    parser.add_argument("--threads", type=int, default=0)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", rb.AccuracyWarning)
    path = EXAMPLES / CASES[arguments.case]
    settings = config.load(path, [f"run.threads={arguments.threads}"])
    began = time.perf_counter()
    ds = simulation.run_config(settings, Path(f"{arguments.case}.nc"))
    print(f"{'seconds, start to file':52s} {time.perf_counter() - began:.1f}")
    report(ds, settings.build_model(), settings.grid.phase_space())


if __name__ == "__main__":
    main()
