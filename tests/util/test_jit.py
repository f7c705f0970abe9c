"""Compiled code is kept between runs, and made anew when what it is made of changes."""

from pathlib import Path

import relboltz
from relboltz.util.jit import UNCOMPILED

PROGRAM = """
import hashlib
import relboltz as rb
ds = rb.solve(rb.gluons(0.3), rb.PhaseSpace(12, 2.0), {"g": rb.initial.step(0.5, 1.5)}, end=0.05,
              every=0.05, projection="nearest", kinematics="k3", symmetrical=False, backend="cpu",
              progress=False)
print(hashlib.sha256(ds.f.values.tobytes()).hexdigest())
"""
TWICE = """
import os, subprocess, sys, tempfile
with tempfile.TemporaryDirectory() as folder:
    os.environ["XDG_CACHE_HOME"] = folder
    for _ in range(2):
        subprocess.run([sys.executable, "-W", "ignore", "-c", sys.argv[1]], check=True)
"""
PROGRAMS = {"twice": (["-c", TWICE, PROGRAM], {})}
"""Two runs that share a cache, empty at first."""


def test_modules_that_do_not_count_for_the_cache_compile_nothing():
    """Else an edited kernel would run as it was before."""
    package = Path(relboltz.__file__).parent
    for name in UNCOMPILED:
        sources = [package / f"{name}.py"]
        if not sources[0].exists():
            sources = list((package / name).glob("*.py"))
        assert sources, name
        for source in sources:
            text = source.read_text()
            assert "@kernel" not in text and "import kernel\n" not in text and "njit" not in text


def test_what_was_just_compiled_gives_the_same_bits_as_what_is_in_the_cache(programs):
    """Kernels inside kernels are compiled twice: the process that does so must not run another."""
    code, out, complaints = programs.told("twice")
    assert code == 0, complaints[-3000:]
    first, second = out.split()
    assert len(first) == 64 and first == second
