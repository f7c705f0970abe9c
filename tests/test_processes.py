"""Runs of several processes that mpirun started: the bits of one."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import mpi_runs
import pytest
from continued import same_bits

import relboltz as rb
from relboltz.launched import started

HERE = Path(__file__).parent
MPIRUN = shutil.which("mpirun", path=str(Path(sys.executable).parent)) or shutil.which("mpirun")
pytest.importorskip("mpi4py")
if MPIRUN is None:
    pytest.skip("there is no mpirun", allow_module_level=True)


def mpirun(count, *arguments, cwd):
    """Exit code and what was printed."""
    quick = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    paths = {"PYTHONPATH": os.pathsep.join([str(HERE.parent), str(HERE)])}
    done = subprocess.run(
        [MPIRUN, "--oversubscribe", "--bind-to", "none", "-n", str(count), sys.executable,
         "-W", "ignore", *map(str, arguments)],
        cwd=cwd, text=True, capture_output=True, timeout=240, env=os.environ | quick | paths,
    )  # fmt: skip
    return done.returncode, done.stdout, done.stderr


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Results of one process."""
    folder = tmp_path_factory.mktemp("mpi")
    for name, system in mpi_runs.SYSTEMS.items():
        rb.solve(*system, **mpi_runs.OPTIONS, file=folder / f"{name}.nc")
    return folder


def test_processes_of_mpirun_have_the_bits_of_one(folder):
    """Slabs, rows, a box; all processes return the result, or raise what the first one does."""
    code, told, complaints = mpirun(3, HERE / "mpi_runs.py", folder, cwd=folder)
    assert code == 0, complaints[-3000:]
    assert all(told.count(f"{name} same bits") == 3 for name in mpi_runs.SYSTEMS)
    assert told.count("told: process a b -> a b: the matrix element is -") == 3
    assert told.count("told: run.workers = 7: mpirun started 3 processes") == 3


def test_the_command_line_goes_on_with_another_number_of_processes(folder):
    """A run of one process, continued by two; errors are said once."""
    (folder / "c.toml").write_text("""
        model = {name = "gluons", alpha_s = 0.3}
        grid = {momentum_cells = 4, momentum_max = 2.0, space_cells = [4, 1, 1]}
        initial = {g = {shape = "gradient", minimum = 0.2, maximum = 0.5}}
        time = {end = 0.1}
        collisions = {samples = 2}
        run = {backend = "cpu"}
        output = {every = 0.05, file = "c.nc"}
    """)
    command = ("-m", "relboltz")
    code, told, complaints = mpirun(2, *command, "run", "c.toml", cwd=folder)
    assert code == 0 and told.count("written: c.nc") == 1, complaints[-3000:]
    again = rb.resume(folder / "c.nc", until=0.2, progress=False, workers=0)
    code, _, complaints = mpirun(2, *command, "run", "c.toml", cwd=folder)
    assert code == 2 and complaints.count("exists already") == 1
    code, *_ = mpirun(2, *command, "run", "c.toml", "--set", "time.end=0.2", "--out", "d.nc",
                      cwd=folder)  # fmt: skip
    assert code == 0
    same_bits(again, rb.load(folder / "d.nc"))


def test_one_process_is_no_team(monkeypatch):
    assert not started()
    monkeypatch.setenv("OMPI_COMM_WORLD_RANK", "0")
    monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", "1")
    assert not started()
    monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", "2")
    assert started()
    monkeypatch.delenv("OMPI_COMM_WORLD_RANK")
    monkeypatch.setenv("SLURM_PROCID", "0")
    monkeypatch.setenv("SLURM_NTASKS", "2")
    assert not started()  # within sbatch, but not started by srun
