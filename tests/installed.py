"""``python tests/installed.py dist [--whole]``: do wheel and sdist work outside of the clone?

The wheel is installed into a new virtual environment in a temporary folder, the sdist is unpacked
beside it without its package, and a fast part of its tests, or the whole suite, runs against what
was installed.
"""

import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

FAST = (
    "test_cli", "test_config", "test_documents", "test_expansion", "test_initial", "test_model",
    "test_mutations", "test_output", "test_process", "test_projection", "test_report",
    "test_reproduction",
)  # fmt: skip
"""Of modules with these names: commands, files, package data, examples."""
REPORT = "relboltz/visualization/report"
DATA = (
    "relboltz/config/template.toml", "relboltz/py.typed", "relboltz/paper/paper_runs.py",
    *(f"{REPORT}/{name}" for name in ("page.html", "page.css", "page.js", "draw.js")),
    *(f"{REPORT}/{name}" for name in ("lines.js", "maps.js")),
)  # fmt: skip
"""What a wheel must hold besides modules."""


def main():
    dist = Path(sys.argv[1]).resolve()
    wheel, sdist = next(dist.glob("*.whl")), next(dist.glob("*.tar.gz"))
    missing = set(DATA) - set(zipfile.ZipFile(wheel).namelist())
    assert not missing, f"{wheel.name} is without {missing}"
    with tempfile.TemporaryDirectory() as folder:
        where = Path(folder)
        with tarfile.open(sdist) as archive:
            archive.extractall(where, filter="data")
        clone = where / sdist.name.removesuffix(".tar.gz")
        constraints = clone / "constraints.txt"
        run([sys.executable, "-m", "venv", where / "venv"], where)
        python = where / "venv" / "bin" / "python"
        pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        run([*pip, "-c", constraints, f"{wheel}[dev]"], where)
        shutil.rmtree(clone / "relboltz")  # what is tested is what was installed
        code = "import relboltz; print(relboltz.__version__, relboltz.__file__)"
        run([python, "-c", code], where)
        program = where / "venv" / "bin" / "relboltz"
        run([program, "new", "run.toml"], where)
        run([program, "run", "run.toml", "--set", "time.end=0.2", "--quiet"], where)
        run([program, "report", "run.nc"], where)
        tests = [next((clone / "tests").glob(f"*/{name}.py")) for name in FAST]
        if "--whole" in sys.argv:
            tests = [clone / "tests"]
        run([python, "-m", "pytest", "-p", "no:cacheprovider", *tests], clone)


def run(arguments, folder):
    """A command that must succeed, without this clone on its path."""
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    print("+", *arguments, flush=True)
    subprocess.run([str(a) for a in arguments], cwd=folder, env=environment, check=True)


if __name__ == "__main__":
    main()
