"""Workers of Ray: placed, asked, killed, replaced; the bits of one process."""

import os
import signal
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from continued import same_bits

import relboltz as rb
from relboltz.backends.team.leader import Team
from relboltz.cli import app as cli
from relboltz.config.settings import RunSettings
from relboltz.parallel import ray as distributed
from relboltz.parallel import ray_messages

ray = pytest.importorskip("ray")
PROGRAMS = {
    "a worker is killed": (
        (Path(__file__).parents[1] / "helpers" / "killed_worker.py",),
        {"PYTHONWARNINGS": ""},
    )
}


def waves(x, y, z, px, py, pz):
    """Different everywhere."""
    return 0.3 * np.exp(-(px**2) - py**2 - pz**2) * (1 + 0.4 * np.cos(np.pi * x / 3) + 0.1 * y)


def contact(s, t, u, ma2, strength):
    return strength * (1.0 + 0.01 * s)


OWN = rb.Model(
    [rb.Species("a", 2, -1), rb.Species("b", 3, 1)],
    [rb.Process("a b -> a b", contact, strength=500.0), rb.Process("b b -> b b", contact,
                                                                  strength=300.0)],
    masses={"a": 0.3, "b": 0.4},
)  # fmt: skip
SYSTEMS = {
    "space": (OWN, rb.PhaseSpace(5, 2.0, [5, 2, 1], 3.0, "open"), {"a": waves, "b": waves}),
    "box": (rb.gluons(0.3), rb.PhaseSpace(8, 2.0), {"g": rb.initial.step(0.5, 1.5)}),
}
OPTIONS = {
    "end": 0.2, "every": 0.02, "samples": 2, "backend": "cpu", "progress": False, "threads": 1,
}  # fmt: skip


@pytest.fixture(scope="module")
def cluster():
    """A cluster that is there already, with GPUs in name."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    os.environ["RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO"] = "0"
    ray.init(num_cpus=4, num_gpus=2, include_dashboard=False, log_to_driver=False,
             logging_level="error", object_store_memory=2**28)  # fmt: skip
    yield
    ray.shutdown()


@pytest.fixture(scope="module")
def alone():
    """Return the result of a single process."""
    return {name: rb.solve(*system, **OPTIONS) for name, system in SYSTEMS.items()}


@pytest.mark.parametrize("name", SYSTEMS)
def test_workers_of_ray_have_the_bits_of_one_process(name, alone, cluster, tmp_path, capsys):
    """Also of the user's own functions, on GPUs in name; info tells who was busy."""
    file = tmp_path / "run.nc"
    found = rb.solve(*SYSTEMS[name], **OPTIONS, workers=2, gpus_per_worker=1.0, file=file)
    same_bits(found, alone[name])
    assert found.attrs["device"] == "2 workers (Ray), each: cpu, 1 thread, float64"
    assert found.attrs["workers"] == 2 and (np.array(found.attrs["worker_seconds"]) > 0).all()
    cli.info(file)
    assert "worker 1 (" in (told := capsys.readouterr().out) and "waiting for others" in told


def test_a_worker_that_is_killed_is_replaced(alone, cluster, monkeypatch):
    """In the middle of a run; it ends with the same bits, and says what happened."""
    teams, hit = [], threading.Event()
    formed = Team.__init__
    monkeypatch.setattr(
        Team, "__init__", lambda self, *args: (teams.append(self), formed(self, *args))[1]
    )

    def kill(moment):
        if moment.time > 0.08 and not hit.is_set():
            hit.set()
            os.kill(teams[0].crew._places[1].process, signal.SIGKILL)

    with pytest.warns(rb.BackendNotice, match=r"worker 1 \(.*, process \d+\) is gone"):
        found = rb.solve(*SYSTEMS["space"], **OPTIONS | {"progress": kill}, workers=2)
    same_bits(found, alone["space"])
    assert hit.is_set()


RAYLET = {"pid": "raylet", "is_err": False, "lines": [
    "\x1b[33mA worker died or was killed\n by an unexpected error.\x1b[0m Lease ID: 01 Worker: 2."
]}  # fmt: skip


def test_messages_of_raylets_are_plain_lines_where_no_terminal_shows_them(monkeypatch, capsys):
    """None of them is lost; messages of others, and a user's own Ray, print as ever."""
    driver = ray._private.worker
    usual = driver.print_to_stdstream
    ray_messages.speak_plainly(ray)
    words = "^Ray: A worker died or was killed by an unexpected error; more in the logs of Ray$"
    with pytest.warns(rb.BackendNotice, match=words):
        driver.print_to_stdstream(RAYLET, ignore_prefix=False)
    assert capsys.readouterr() == ("", "")
    other = {**RAYLET, "pid": "12", "lines": ["of a worker"], "ip": "", "localhost": ""}
    driver.print_to_stdstream(other, ignore_prefix=False)
    assert "of a worker" in (told := capsys.readouterr().out) and "\x1b" not in told
    ray_messages.speak_as_usual(ray)
    assert driver.print_to_stdstream is usual
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    ray_messages.speak_plainly(ray)
    assert driver.print_to_stdstream is usual


def test_a_run_that_starts_ray_and_loses_a_worker_prints_no_raw_lines(programs):
    """In a process of its own, whose output is a pipe."""
    code, out, complaints = programs.told("a worker is killed")
    assert code == 0, complaints
    assert "(raylet)" not in out + complaints and "\x1b" not in out + complaints
    assert "Ray: A worker died or was killed" in complaints
    assert "worker 1 (" in complaints and "is gone" in complaints


def test_a_worker_that_cannot_be_placed_is_an_error(cluster, monkeypatch):
    monkeypatch.setattr(distributed, "PLACED_WITHIN", 1.5)
    began = time.monotonic()
    words = r"run\.workers = 3: there is no place .* each needs 1 CPU, 1 GPU, and the cluster has "
    with pytest.raises(rb.InputError, match=words + r"4 CPU .*2 GPU .*; use fewer"):
        rb.solve(*SYSTEMS["box"], **OPTIONS, workers=3, gpus_per_worker=1.0)
    assert time.monotonic() - began < 30


def test_more_workers_than_space_cells_are_refused(cluster):
    grid = rb.PhaseSpace(4, 2.0, [2, 1, 1])
    with pytest.raises(rb.InputError, match=r"run\.workers = 3: .* use at most 2"):
        rb.solve(OWN, grid, {"a": waves, "b": waves}, **OPTIONS, workers=3)


def test_resolving_looks_at_no_gpu(monkeypatch):
    """The driver never touches one: workers and their GPUs decide."""

    def touched(*_):
        raise AssertionError("the driver looked for a GPU")

    monkeypatch.setattr("relboltz.backends.cuda.driver.trouble", touched)
    assert distributed.resolve(RunSettings(workers=2)) == ("cpu", "float64")
    assert distributed.resolve(RunSettings(workers=2, gpus_per_worker=0.5)) == ("cuda", "float32")
    assert (
        distributed.resolve(RunSettings(workers=2, backend="cuda", precision="float64"))[1]
        == "float64"
    )
    with pytest.raises(rb.InputError, match="float32"):
        distributed.resolve(RunSettings(workers=2, precision="float32"))


@pytest.mark.parametrize("key", ["address", "gpus_per_worker"])
def test_keys_of_workers_need_workers(key):
    value = {"address": "auto", "gpus_per_worker": 1.0}[key]
    with pytest.raises(rb.InputError, match=rf"run\.{key} = .*: is for workers; set run\.workers"):
        rb.solve(*SYSTEMS["box"], **OPTIONS, **{key: value})


def test_without_ray_it_is_said_what_to_install(monkeypatch):
    import builtins

    real = builtins.__import__

    def no_ray(name, *args, **kwargs):
        if name == "ray":
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", no_ray)
    with pytest.raises(rb.InputError, match=r"pip install 'relboltz\[ray\]'.*mpirun -n 2"):
        rb.solve(*SYSTEMS["box"], **OPTIONS, workers=2)


@pytest.mark.parametrize(
    ("cores", "workers", "threads"),
    [([4, 4, 4], 3, 4), ([4, 4, 4], 2, 4), ([4, 4, 4], 5, 2), ([8], 3, 2), ([2], 4, 1), ([], 2, 1)],
)
def test_threads_of_a_worker_are_those_of_one_machine(cores, workers, threads):
    assert distributed.largest_share(cores, workers) == threads
