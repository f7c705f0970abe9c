"""A program for mpirun: runs of several processes, compared with results of one.

python tests/mpi_runs.py FOLDER
"""

import sys
import warnings

import numpy as np
from continued import same_bits

import relboltz as rb


def waves(x, y, z, px, py, pz):
    """Different everywhere."""
    return 0.3 * np.exp(-(px**2) - py**2 - pz**2) * (1 + 0.4 * np.cos(np.pi * x / 3) + 0.1 * y)


def contact(s, t, u, ma2, strength):
    return strength * (1.0 + 0.01 * s)


def negative(s, t, u):
    return 9.0 - s


def model(function=contact, **parameters):
    kinds = [rb.Species("a", 2, -1), rb.Species("b", 3, 1)]
    given = parameters or ({"strength": 500.0} if function is contact else {})
    return rb.Model(kinds, [rb.Process("a b -> a b", function, **given)],
                    masses={"a": 0.3, "b": 0.4})  # fmt: skip


WAVES = {"a": rb.initial.from_function(waves), "b": rb.initial.from_function(waves)}
SYSTEMS = {
    "open": (model(), rb.PhaseSpace(5, 2.0, [4, 2, 1], 3.0, "open"), WAVES),
    "rows": (rb.gluons(0.3), rb.PhaseSpace(4, 2.0, [2, 3, 1], 3.0), {"g": waves}),
    "box": (rb.qcd(0.3, flavors=1), rb.PhaseSpace(8, 2.0), {"g": rb.initial.step(0.5, 1.5)}),
}
OPTIONS = {
    "end": 0.1, "every": 0.02, "samples": 2, "backend": "cpu", "progress": False, "threads": 1,
}  # fmt: skip


def converged(folder):
    """Error bars of a tiny run: nine runs, one after the other."""
    given = rb.gluons(0.3), rb.PhaseSpace(5, 2.0), SYSTEMS["box"][2]
    options = OPTIONS | {"end": 0.02, "seeds": 3}
    return rb.converge(*given, **options, folder=folder)


def main(folder):
    """All processes come by here, and all get the results."""
    warnings.simplefilter("ignore")
    for name, system in SYSTEMS.items():
        found = rb.solve(*system, **OPTIONS, file=f"{folder}/{name}.many.nc")
        same_bits(found, rb.load(f"{folder}/{name}.nc"))
        assert "(MPI)" in found.attrs["device"]
        print(name, "same bits", flush=True)
    same_bits(converged(f"{folder}/many.converge"), rb.load(f"{folder}/one.converge/converge.nc"))
    print("converge same bits", flush=True)
    try:
        rb.solve(model(negative), *SYSTEMS["open"][1:], **OPTIONS)
    except rb.InputError as error:
        print("told:", error, flush=True)
    try:
        rb.solve(*SYSTEMS["box"], **OPTIONS, workers=7)
    except rb.InputError as error:
        print("told:", error, flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
