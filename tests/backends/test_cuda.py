"""The CUDA backend: on a GPU if there is one, else in the simulator and as PTX."""

import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import cuda_agreement
import cuda_brackets
import cuda_teams
import pytest
from begun import EVERYWHERE, GPU, begun, f_of, observer_of

import relboltz as rb
from relboltz.backends import resolve
from relboltz.backends.cuda import driver as cuda_engine
from relboltz.util.errors import BackendNotice

HERE = Path(__file__).parent
HELPERS = HERE.parent / "helpers"
PARTS = importlib.util.find_spec("numba_cuda") is not None
KINDS = ("RUNS", "SPACES", "TERMS", "FAULTS", "FINE", "SITES", "PUSHES", "RESUMED")
SYSTEMS = [name for kind in KINDS for name in getattr(cuda_agreement, kind)]
SYSTEMS += [*cuda_teams.TEAMS, *cuda_brackets.BRACKETS]
NEEDS_PARTS = pytest.mark.skipif(not PARTS, reason="numba-cuda is not installed (Linux only)")
SIMULATOR = {"NUMBA_ENABLE_CUDASIM": "1", "CORE": "1"}
CONTRACT = ["-m", "pytest", "-v", "-k", "cuda", "-p", "no:cacheprovider", HERE / "test_contract.py"]
CAPABILITIES = ("7.5", "9.0")
PROGRAMS = {"compiler": ([HELPERS / "cuda_without_gpu.py", *CAPABILITIES], {})} if PARTS else {}
"""The compiler, for the oldest and the newest cards; without a GPU, the simulator on one core."""
if PARTS and not GPU:
    PROGRAMS |= {
        "systems": ([HELPERS / "cuda_agreement.py", *SYSTEMS], SIMULATOR),
        "contract": (CONTRACT, SIMULATOR),
    }


def printed(told):
    """Return the JSON that a test program printed."""
    code, out, complaints = told
    assert code == 0, complaints[-3000:]
    return json.loads(out[out.index("{") :])


@pytest.fixture(scope="module")
def agreements(programs):
    """Differences between CPU and CUDA backend of all systems; in the simulator without a GPU."""
    if GPU:
        return {name: cuda_agreement.measure(name) for name in SYSTEMS}
    return printed(programs.told("systems"))


@NEEDS_PARTS
@pytest.mark.skipif(GPU, reason="a GPU is there: test_contract runs on it")
def test_the_contract_of_backends_holds_in_the_simulator(programs):
    """Conservation, equilibrium, bounds, steps, sums and bits: ``test_contract`` once more."""
    code, told, _ = programs.told("contract")
    assert code == 0, told[-3000:]
    assert "skipped" not in told and int(re.search(r"(\d+) passed", told).group(1)) >= 20


@NEEDS_PARTS
@pytest.mark.parametrize("name", cuda_agreement.RUNS)
def test_a_run_is_the_same_on_both(name, agreements):
    """CPU and GPU have the same events, masses, limits, steps and records, to rounding."""
    found = agreements[name]
    assert found["steps"][0] == found["steps"][1] > 0
    assert found["f"] < 1e-11 and found["same bits"]
    assert found["moved"] > 1e-5 and found["drift"] == 0 and found["lowest"] >= 0
    assert (found["limited"] > 0) == (
        name in ("long steps are limited", "a snapshot between records")
    )
    assert (found["negative"] > 0) == (name == "massless quarks")
    single = ("null_weight", "negative_weight")  # weighed in single precision on a GPU
    for key, apart in found["apart"].items():
        assert apart < (1e-6 if key in single else 1e-9), key


@NEEDS_PARTS
@pytest.mark.parametrize("name", cuda_agreement.SPACES)
def test_a_run_in_space_is_the_same_on_both(name, agreements):
    """Streaming, walls, masses of every site, collisions in batches, records and ledger."""
    found = agreements[name]
    assert found["steps"][0] == found["steps"][1] > 0 and found["drift"] == 0
    assert (found["left"] > 0) == (name == "in space")
    assert (found["limited"] > 0) == (name == "in space, limited")
    for key, apart in found["apart"].items():
        assert apart < (1e-6 if key in ("null_weight", "negative_weight") else 1e-9), key


@NEEDS_PARTS
@pytest.mark.parametrize("name", cuda_agreement.SITES)
def test_sites_that_collide_at_once_do_not_know_of_each_other(name, agreements):
    """Limits of one site are none of the others': the batch, and so the memory, does not matter."""
    found = agreements[name]
    assert max(found["apart"]) < 1e-11
    assert found["limited"][0] == pytest.approx(found["limited"][1], rel=1e-9)
    assert found["limited"][0] > 0


@NEEDS_PARTS
@pytest.mark.parametrize("name", cuda_agreement.PUSHES)
def test_forces_from_outside_are_the_same_on_both(name, agreements):
    """Sweeps with a push: the state, what left and what was refused."""
    found = agreements[name]
    assert max(found["apart"].values()) < 1e-11 and found["moved"] > 0.1


@NEEDS_PARTS
@pytest.mark.parametrize("name", cuda_agreement.RESUMED)
def test_runs_on_a_gpu_go_on_to_the_same_bits(name, agreements):
    """Beyond the end, and after a signal between records or when the next steps are on the way."""
    assert agreements[name] == {"until": [], "step": [], "record": []}


@NEEDS_PARTS
@pytest.mark.parametrize("name", cuda_teams.TEAMS)
def test_workers_have_the_bits_of_a_single_gpu(name, agreements):
    """Slabs of sites, or shares of the events of one: state, masses, ledger, watch and rates."""
    found = agreements[name]
    assert found["differ"] == [] and found["steps"] > 0 and found["moved"] > 1e-4
    assert (found["limited"] > 0) == ("limited" in name)
    assert (found["left"] > 0) == ("space" in name)
    assert (min(found["lengths"]) < found["lengths"][0]) == ("rejected" in name)


@NEEDS_PARTS
@pytest.mark.parametrize("name", cuda_agreement.TERMS)
def test_collision_terms_are_the_same_on_both(name, agreements):
    """Every projection and sampling: net, gain, loss and rates from the same events."""
    for key, apart in agreements[name].items():
        assert apart < (1e-6 if key == "null_weight" else 1e-11), key


@NEEDS_PARTS
@pytest.mark.parametrize("name", cuda_brackets.BRACKETS)
def test_brackets_are_the_same_on_both(name, agreements):
    """Sums over the same events, in unlimited momentum space and on nodes, to rounding."""
    found = agreements[name]
    assert found["apart"] < 1e-11 and found["same bits"]
    assert found["reached"] > 0.7 * found["batches"]


@NEEDS_PARTS
@pytest.mark.parametrize("name", cuda_agreement.FAULTS)
def test_illegal_matrix_elements_are_named(name, agreements):
    """With the process, the value and where: the CPU draws the same events again."""
    value = "inf" if name == "infinite" else "-"
    message = agreements[name]["message"]
    assert message.startswith(f"process a a -> a a: the matrix element is {value}")
    assert "at s = " in message


@NEEDS_PARTS
@pytest.mark.parametrize("name", cuda_agreement.FINE)
def test_what_is_rounding_is_no_fault(name, agreements):
    """By the same rule as on the CPU."""
    assert agreements[name]["message"] == ""


@NEEDS_PARTS
def test_every_kernel_compiles_without_a_gpu(programs):
    """PTX for the oldest and the newest cards, with the arguments that the backend gives."""
    compiled = printed(programs.told("compiler"))
    kernels = {label.split(",")[0] for label in compiled}
    assert {label.split(", ")[-1] for label in compiled} == set(CAPABILITIES)
    assert {"prepare", "cumulate", "draw", "predict", "apply", "update", "conclude", "measure",
            "demands", "limits", "check", "average", "add_up_channels", "set_step_plan", "sweep",
            "far_sweep", "site_masses", "peaks", "add_up", "fit_sums", "judge", "tell_sites",
            "next_part", "ask", "apply_limited", "begin_stage", "mass_sums", "expanded_masses",
            "clear_sites", "add_passage", "enter", "find_faults", "turn"} <= kernels  # fmt: skip
    for label, result in compiled.items():
        assert "error" not in result, f"{label}: {result['error'][:2000]}"
        assert result["ptx"] > 1000


# --- what is said -------------------------------------------------------------------------------


@pytest.fixture
def no_driver(monkeypatch):
    """A machine without an NVIDIA driver."""
    cuda_engine.trouble.cache_clear()
    monkeypatch.setattr(cuda_engine, "driver", lambda: "no NVIDIA driver is installed")
    monkeypatch.setattr("relboltz.backends._said", set())
    yield
    cuda_engine.trouble.cache_clear()


def test_cuda_without_a_gpu_says_what_to_do(no_driver):
    with pytest.raises(rb.InputError, match="run.backend = 'cuda': no NVIDIA driver .* 'cpu'"):
        resolve("cuda")


def test_auto_falls_back_to_the_cpu_and_says_so_once(no_driver, recwarn):
    assert resolve("auto") == ("cpu", "float64")
    for _ in range(2):
        rb.solve(rb.gluons(0.3), 5, cuda_agreement.STEP, end=0.001, samples=1, progress=False)
    said = [w for w in recwarn if issubclass(w.category, BackendNotice)]
    assert len(said) == 1 and "running on the CPU: no NVIDIA GPU was found" in str(said[0].message)


@pytest.mark.parametrize(
    ("version", "spec", "parts", "message"),
    [
        ((11, 8), object(), "13.0.1", "driver is too old .CUDA 11.8.* update it"),
        (
            (12, 4),
            None,
            "missing",
            r"is not installed; pip install 'relboltz\[cuda12\]'",
        ),
        ((13, 0), None, "missing", r"is not installed; pip install 'relboltz\[cuda\]'"),
        ((12, 4), object(), "13.0.1", r"too new for the driver .*'relboltz\[cuda12\]'"),
    ],
)
def test_missing_and_unfitting_parts_are_named(monkeypatch, version, spec, parts, message):
    monkeypatch.setattr(cuda_engine, "SIMULATED", False)
    monkeypatch.setattr(cuda_engine, "driver", lambda: version)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: spec)
    monkeypatch.setattr(cuda_engine, "parts", lambda: {"nvidia-nvvm": parts})
    with pytest.raises(AssertionError, match=message):
        raise AssertionError(cuda_engine.trouble.__wrapped__())


def test_the_cpu_refuses_single_precision():
    with pytest.raises(rb.InputError, match="run.precision = 'float32': run.backend is 'cpu'"):
        resolve("cpu", "float32")


@NEEDS_PARTS
def test_a_grid_too_large_for_the_gpu_is_refused_with_one_that_fits():
    """In a process of its own: importing the backend needs the simulator or a GPU."""
    code = """
import relboltz as rb
from relboltz.backends.cuda.memory import MemoryPlan, check_memory
from relboltz.config.settings import Sampling

def check(cells):
    grid = rb.PhaseSpace(cells, 2.0)
    check_memory(MemoryPlan(grid, rb.qcd(0.3), Sampling(), "float32"), 2**30)

text = ""
try:
    check(200)
except rb.InputError as error:
    text = str(error)
n = int(text.split("; [")[1].split(",")[0])
check(n)
print(n, text)
"""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=True,
        env=os.environ | {"PYTHONPATH": str(HERE.parents[1]), "NUMBA_ENABLE_CUDASIM": "1"},
    )  # fmt: skip
    n, text = done.stdout.split(" ", 1)
    assert 30 < int(n) < 200
    assert "grid.momentum_cells = [200, 200, 200]: 7 species need" in text
    assert "the GPU has 1.0 GiB free" in text and "would fit" in text


@EVERYWHERE
def test_records_need_no_state_on_the_host(where):
    """Moments are all that a record sees: the observer never asks for the numbers."""
    grid, model = rb.PhaseSpace(6, 2.0), rb.gluons(0.3)
    backend, state = begun(grid, model, cuda_agreement.STEP, where, samples=1)
    f = f_of(backend, state)
    backend.get = None  # any call would be a TypeError
    record = observer_of(backend, "px").record(state)
    assert record["number"].item() == pytest.approx(16 * f.sum() * grid.measure, rel=1e-12)
