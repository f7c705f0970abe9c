"""Programs that tests wait for run beside the other tests, in processes of their own.

A module lists them as PROGRAMS, name -> (arguments, environment), and its tests ask for the fixture
``programs``. They start with the session, one after the other; those who wait come last. The
last one is pytest with the tests of APART, if there are many tests: both cores work to the end.
"""

import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest

HERE = Path(__file__).parent
sys.path[:0] = [str(folder) for folder in sorted(HERE.iterdir()) if folder.is_dir()]
for name, usual in (("SIGINT", signal.default_int_handler), ("SIGHUP", signal.SIG_DFL)):
    number = getattr(signal, name, None)
    if number and signal.getsignal(number) is signal.SIG_IGN:  # as nohup and ``&`` leave them
        signal.signal(number, usual)
FEW = 200
"""With fewer tests than that there is nothing to run beside: two at once."""
APART = (
    "test_accuracy", "test_flavor_symmetric", "test_box", "test_checkpoint", "test_coefficients",
    "test_coefficients_extremes", "test_contract", "test_equilibrium", "test_exact",
    "test_expansion", "test_flow", "test_kinematics", "test_laws", "test_observables", "test_plots",
    "test_plots_space", "test_poles", "test_rates", "test_replicas", "test_resuming", "test_space",
    "test_stages", "test_step", "test_team", "test_collision_term", "test_transport",
)  # fmt: skip
"""Modules whose tests run in another process: half of what is left, and none that start others."""


class Aside:
    """Programs on their way: ``told(name)`` waits for one, its exit code and what it printed."""

    def __init__(self, programs, workers):
        self._pool = ThreadPoolExecutor(workers)
        self._running = set()
        self._told = {name: self._pool.submit(self._run, *one) for name, one in programs.items()}

    def _run(self, arguments, environment):
        paths = [str(HERE.parent), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
        known = {"PYTHONPATH": os.pathsep.join(path for path in paths if path)}
        process = subprocess.Popen(
            [sys.executable, "-W", "ignore", *map(str, arguments)], text=True, cwd=HERE.parent,
            env=os.environ | known | environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        self._running.add(process)
        out, complaints = process.communicate()
        self._running.discard(process)
        return process.returncode, out, complaints

    def told(self, name):
        """Exit code, standard output, standard error."""
        return self._told[name].result()

    def stop(self):
        """End what nobody waits for any more."""
        self._pool.shutdown(wait=False, cancel_futures=True)
        for process in list(self._running):
            process.kill()


def _waits(item):
    return "programs" in item.fixturenames


def _is_apart(item):
    return item.module.__name__ in APART


def pytest_collection_modifyitems(items):
    """Sort the tests so that those waiting for a program come last."""
    items.sort(key=lambda item: _is_apart(item) + 2 * _waits(item))


def pytest_collection_finish(session):
    waiting = dict.fromkeys(item.module for item in session.items if _waits(item))
    many = len(session.items) >= FEW
    session.aside = None
    if waiting and not session.config.option.collectonly:
        programs = {name: one for module in waiting for name, one in module.PROGRAMS.items()}
        if many:
            programs["apart"] = _moved([item for item in session.items if _is_apart(item)])
        session.aside = Aside(programs, 1 if many else 2)


def _moved(items):
    """The program that runs these tests; here they only wait for what it tells of them."""
    names = [f"{item.path}{item.nodeid[item.nodeid.index('::') :]}" for item in items]
    for item in items:
        item.setup, item.runtest = (lambda: None), partial(_ask, item)
    return ["-m", "pytest", "-rA", "-vv", "-p", "no:cacheprovider", *names], {}


def _ask(item):
    _, out, complaints = item.session.aside.told("apart")
    if f"{item.nodeid} SKIPPED" in out:
        pytest.skip("in a process of its own")
    if f"PASSED {item.nodeid}" not in out.splitlines():
        pytest.fail(f"in a process of its own:\n{out[-9000:]}{complaints[-1000:]}", pytrace=False)


def pytest_sessionfinish(session):
    if getattr(session, "aside", None) is not None:
        session.aside.stop()


@pytest.fixture(scope="session")
def programs(request):
    """Return the programs that run beside the tests."""
    return request.session.aside
