"""Runs that are stopped and continued: what tests of that begin with."""

import os
import signal
import tomllib

import h5py
import numpy as np
import pytest

import relboltz as rb
from relboltz.cli import app as cli

SIGNALS = {name: getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGUSR1", "SIGHUP")}
OWN_WORDS = ("run", "wall_seconds", "configuration")
"""Attributes that tell one run from another."""


def hot(x, y, z, px, py, pz):
    """A hot spot."""
    return 0.1 + 0.7 * np.exp(-((x - 0.3) ** 2)) * np.exp(-(px**2) - py**2 - 2 * pz**2)


SYSTEMS = {
    "mixture": (rb.qcd(0.3, flavors=1), rb.PhaseSpace(6, 2.0), {"g": rb.initial.step(0.5, 1.5)}),
    "gluons": (rb.gluons(0.3), rb.PhaseSpace(5, 2.0), {"g": rb.initial.step(0.5, 1.5)}),
    "open": (rb.gluons(0.3), rb.PhaseSpace(5, 2.0, [4, 1, 1], 1.0, "open"), {"g": hot}),
}


def solve(name, file=None, **options):
    given = {"samples": 1, "progress": False, "file": file, **options}
    return rb.solve(*SYSTEMS[name], **given)


def go_on(file, **options):
    return rb.resume(file, **{"progress": False, **options})


def same_bits(found, expected):
    """All variables of a result, bit by bit."""
    assert set(found.variables) == set(expected.variables)
    for name, values in expected.variables.items():
        other = found.variables[name]
        assert other.dims == values.dims and other.shape == values.shape, name
        assert other.dtype == values.dtype, name
        if values.dtype.kind in "OUT":
            assert other.values.tolist() == values.values.tolist(), name
        else:
            assert other.values.tobytes() == values.values.tobytes(), name


def same(found, expected):
    """Everything of a result but its own words, bit by bit."""
    same_bits(found, expected)
    words = [
        {k: np.asarray(v).tolist() for k, v in ds.attrs.items() if k not in OWN_WORDS}
        for ds in (found, expected)
    ]
    assert words[0] == words[1]
    texts = [tomllib.loads(ds.attrs["configuration"]) for ds in (found, expected)]
    for text in texts:
        text["output"]["file"] = ""
    assert texts[0] == texts[1]


def stopping(number, after):
    """Progress that sends a signal after so many steps."""
    steps = []

    def progress(_):
        steps.append(1)
        if len(steps) == after:
            os.kill(os.getpid(), number)

    return progress


def interrupted(name, file, after, number=signal.SIGTERM, **options):
    with pytest.raises(rb.Interrupted) as caught:
        solve(name, file, progress=stopping(number, after), **options)
    return caught.value.dataset


def in_file(file):
    """Status and last time of a result; ``load`` takes longer."""
    with h5py.File(file, "r") as found:
        return str(found.attrs["status"]), float(found["time"][-1])


def left(folder):
    return sorted(p.name for p in folder.iterdir())


TOML = """
[model]
name = "gluons"
alpha_s = 0.3
[grid]
momentum_cells = 5
momentum_max = 2.0
[initial.g]
shape = "step"
height = 0.5
edge = 1.5
[time]
end = {end}
[collisions]
samples = 1
"""


def command(*words):
    """Exit code of a command, in this process."""
    try:
        code = cli.app([str(word) for word in words], standalone_mode=False)
    except rb.InputError as error:
        return 2, str(error)
    return code or 0, ""


def configured(folder, end=0.2):
    (folder / "run.toml").write_text(TOML.format(end=end))
    return folder / "run.toml", folder / "run.nc"
