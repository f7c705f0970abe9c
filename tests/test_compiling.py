"""Compiled code is kept between runs, and made anew when what it is made of changes."""

import os
import subprocess
import sys
from pathlib import Path

import relboltz
from relboltz.compiling import UNCOMPILED


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


def test_what_was_just_compiled_gives_the_same_bits_as_what_is_in_the_cache(tmp_path):
    """Kernels inside kernels are compiled twice: the process that does so must not run another."""
    program = """
import hashlib
import relboltz as rb
ds = rb.solve(rb.gluons(0.3), rb.PhaseSpace(12, 2.0), {"g": rb.initial.step(0.5, 1.5)}, end=0.05,
              every=0.05, projection="nearest", sampling="k3", symmetrical=False, backend="cpu",
              progress=False)
print(hashlib.sha256(ds.f.values.tobytes()).hexdigest())
"""
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}
    first, second = (
        subprocess.run(
            [sys.executable, "-W", "ignore", "-c", program], env=environment, text=True,
            capture_output=True, check=True,
        ).stdout
        for _ in range(2)
    )  # fmt: skip
    assert len(first.split()[-1]) == 64 and first == second
