"""Runs of several processes that mpirun started: the bits of one."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import mpi_runs
import pytest
from continued import in_file, same_bits

import relboltz as rb
from relboltz.run import input_file as config
from relboltz.run import solve as simulation
from relboltz.util.launcher import started

ROOT = Path(__file__).parents[2]
HELPERS = ROOT / "tests" / "helpers"
MPIRUN = shutil.which("mpirun", path=str(Path(sys.executable).parent)) or shutil.which("mpirun")
pytest.importorskip("mpi4py")
if MPIRUN is None:
    pytest.skip("there is no mpirun", allow_module_level=True)


def started_by_mpirun(count, *arguments, cwd):
    """The process of mpirun."""
    quick = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    paths = {"PYTHONPATH": os.pathsep.join([str(ROOT), str(HELPERS)])}
    return subprocess.Popen(
        [MPIRUN, "--oversubscribe", "--bind-to", "none", "-n", str(count), sys.executable,
         "-W", "ignore", *map(str, arguments)],
        cwd=cwd, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env=os.environ | quick | paths,
    )  # fmt: skip


def mpirun(count, *arguments, cwd):
    """Exit code and what was printed."""
    with started_by_mpirun(count, *arguments, cwd=cwd) as process:
        try:
            told, complaints = process.communicate(timeout=240)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
    return process.returncode, told, complaints


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Results of one process."""
    folder = tmp_path_factory.mktemp("mpi")
    for name, system in mpi_runs.SYSTEMS.items():
        rb.solve(*system, **mpi_runs.OPTIONS, file=folder / f"{name}.nc")
    mpi_runs.converged(folder / "one.converge")
    return folder


def test_processes_of_mpirun_have_the_bits_of_one(folder):
    """Slabs, rows, a box, error bars, run after run of one command.

    All processes return the result, or raise what the first one does.
    """
    code, told, complaints = mpirun(3, HELPERS / "mpi_runs.py", folder, cwd=folder)
    assert code == 0, complaints[-3000:]
    assert all(told.count(f"{name} same bits") == 3 for name in (*mpi_runs.SYSTEMS, "converge"))
    assert told.count("told: process a b -> a b: the matrix element is -") == 3
    assert told.count("told: run.workers = 7: mpirun started 3 processes") == 3


CONFIGURATION = """
    model = {name = "gluons", alpha_s = 0.3}
    grid = {momentum_cells = 4, momentum_max = 2.0, space_cells = [4, 1, 1]}
    initial = {g = {shape = "gradient", minimum = 0.2, maximum = 0.5}}
    time = {end = 0.1}
    collisions = {samples = 2}
    run = {backend = "cpu"}
    output = {every = 0.05, file = "c.nc"}
"""


def configured(folder, *keys):
    """The words of a command that runs it, and how one process runs it."""
    (folder / "c.toml").write_text(CONFIGURATION)
    command = ["-m", "relboltz", "run", "c.toml", *(w for key in keys for w in ("--set", key))]
    settings = config.load(folder / "c.toml", keys)
    return command, lambda: simulation.run_config(settings, folder / "one.nc")


def test_the_command_line_goes_on_with_another_number_of_processes(tmp_path):
    """A run of two processes, continued by one; errors are said once."""
    command, _ = configured(tmp_path)
    code, told, complaints = mpirun(2, *command, cwd=tmp_path)
    assert code == 0 and told.count("written: c.nc") == 1, complaints[-3000:]
    code, _, complaints = mpirun(2, *command, cwd=tmp_path)
    assert code == 2 and complaints.count("exists already") == 1
    _, by_one = configured(tmp_path, "time.end=0.2")
    same_bits(rb.resume(tmp_path / "c.nc", until=0.2, progress=False, workers=0), by_one())


def test_a_signal_to_mpirun_leaves_a_run_that_goes_on(tmp_path):
    """SIGUSR1 is handed on: the exit code of a single process, and its bits once resumed."""
    command, by_one = configured(tmp_path, "time.step=0.005", "time.end=1.5")
    with started_by_mpirun(2, *command, cwd=tmp_path) as process:
        while process.poll() is None and not list(tmp_path.glob("c.parts-*/*")):
            time.sleep(0.01)
        process.send_signal(signal.SIGUSR1)
        _, complaints = process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGUSR1, complaints[-3000:]
    assert complaints.count("interrupted by SIGUSR1") == 1
    status, moment = in_file(tmp_path / "c.nc")
    assert status == "interrupted by SIGUSR1" and moment < 1.5
    same_bits(rb.resume(tmp_path / "c.nc", progress=False, workers=0), by_one())


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
