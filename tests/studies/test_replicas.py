"""Replicas: what single runs with the same seeds give, their mean and its standard error."""

import gc
import json
import re
import signal
import warnings
import weakref

import numpy as np
import pytest
import xarray as xr
from continued import same_bits
from typer.testing import CliRunner

import relboltz as rb
from relboltz.cli import app as cli
from relboltz.io import checkpoint, output
from relboltz.run import setup as cases
from relboltz.run.resume import elsewhere
from relboltz.studies import replicas
from relboltz.visualization import plots

MODEL = rb.gluons(0.3)
GRID = rb.PhaseSpace(5, 2.5)
START = {"g": rb.initial.step(0.5, 1.5)}
OPTIONS = {
    "end": 0.2, "every": 0.1, "samples": 4, "backend": "cpu", "threads": 1, "progress": False,
}  # fmt: skip
TOML = """
[model]
name = "gluons"
alpha_s = 0.3
[grid]
momentum_cells = 5
momentum_max = 2.5
[initial.g]
shape = "step"
height = 0.5
edge = 1.5
[collisions]
samples = 4
[time]
end = 0.2
[run]
backend = "cpu"
threads = 1
[output]
file = "{}"
every = 0.1
"""


@pytest.fixture(scope="module", autouse=True)
def _quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@pytest.fixture(scope="module")
def three():
    return rb.solve(MODEL, GRID, START, replicas=3, **OPTIONS)


@pytest.fixture(scope="module")
def singles(three):
    return [rb.solve(MODEL, GRID, START, seed=int(s), **OPTIONS) for s in three.attrs["seeds"]]


def test_mean_and_error_are_those_of_single_runs(three, singles):
    """Bit for bit, for every quantity at every record and for f."""
    for name in ("temperature", "energy_kinetic", "mass_squared", "spectrum", "rate", "f"):
        values = np.stack([one[name].values for one in singles])
        same = (values == values[0]).all(axis=0)
        mean, error = values.mean(axis=0), values.std(axis=0, ddof=1) / np.sqrt(3)
        assert np.array_equal(three[name].values[~same], mean[~same])
        assert np.array_equal(three[f"{name}_error"].values[~same], error[~same])
        assert np.array_equal(three[name].values[same], values[0][same])
        assert not three[f"{name}_error"].values[same].any()
    assert float(three.temperature_error[-1]) > 0


def test_replicas_of_files_are_not_held_together(tmp_path, three, monkeypatch):
    """The first, and the one that is at work; the mean has the same bits."""
    done, refs, alive = cases.Case.done, [], []

    def kept(self, *rest):
        ds = done(self, *rest)
        refs.append(weakref.ref(ds))
        gc.collect()
        alive.append(sum(ref() is not None for ref in refs))
        return ds

    monkeypatch.setattr(cases.Case, "done", kept)
    found = rb.solve(MODEL, GRID, START, replicas=4, file=tmp_path / "a.nc", **OPTIONS)
    assert alive[0] == 1 and max(alive[2:]) <= 3
    monkeypatch.undo()
    same_bits(found, rb.solve(MODEL, GRID, START, replicas=4, **OPTIONS))


def test_everything_that_grows_has_an_error_with_a_unit(three, singles):
    """Exact integers excepted: they stay integers, and of all replicas the largest counts."""
    for name, values in singles[0].data_vars.items():
        if {"time", "snapshot"} & set(values.dims) and name not in replicas.DRIFTS:
            error = three[f"{name}_error"]
            assert error.dims == values.dims and error.attrs["units"] == values.attrs["units"]
            assert "standard error" in error.attrs["long_name"]
    for name in replicas.DRIFTS:
        assert f"{name}_error" not in three and three[name].dtype == np.int64
    assert "equilibrium_temperature_error" not in three  # the start is the same in all


def test_the_start_is_the_same_in_all(three):
    assert not three.f_error[0].values.any() and not three.number_error.values.any()


def test_attributes_tell_of_all(three, singles):
    assert three.attrs["replicas"] == 3 and len(set(three.attrs["seeds"].tolist())) == 3
    assert three.attrs["seeds"][0] == 1 and three.attrs["status"] == "done"
    assert three.attrs["steps"] == sum(one.attrs["steps"] for one in singles)


def test_seeds_of_replicas_do_not_meet():
    """Replicas of 100 neighbouring seeds have 3000 different legal seeds; the first is its own."""
    seeds = {cases.derived_seed(seed, k) for seed in range(100) for k in range(30)}
    assert len(seeds) == 3000 and max(seeds) < 2**63
    assert cases.derived_seed(7, 0) == 7


def test_a_value_that_one_replica_lacks_has_no_mean():
    values = np.array([[1.0, np.nan, 2.0], [3.0, 1.0, 2.0]])
    mean, error = replicas.mean_and_error(values)
    assert mean[0] == 2.0 and error[0] == 1.0
    assert np.isnan(mean[1]) and np.isnan(error[1])
    assert mean[2] == 2.0 and error[2] == 0.0


def test_drifts_keep_the_largest():
    made = [
        xr.Dataset(
            {"charge_drift": (("time", "charge"), np.array([[0], [k]]), {"units": "1"})},
            coords={"time": [0.0, 1.0]},
            attrs={"title": "", "seed": k, "warnings": "", "wall_seconds": 1.0, "steps": 1},
        )
        for k in (2, -5, 1)
    ]
    assert replicas.combined(made).charge_drift.values.tolist() == [[0], [-5]]


@pytest.mark.parametrize("count", [1, 0, -3, 2.5, True, "4"])
def test_a_number_of_replicas_without_an_error_is_refused(count):
    with pytest.raises(rb.InputError, match="replicas = .*from 2"):
        rb.solve(MODEL, GRID, START, replicas=count, **OPTIONS)


def test_replicas_that_are_done_are_not_done_again(tmp_path, three, monkeypatch):
    """Stopped before the second of three: resumed, it does the second and the third."""
    path, toml = tmp_path / "r.nc", tmp_path / "r.toml"
    toml.write_text(TOML.format(path))
    done, go = [], cases.Case.done

    def killed(self, file, *rest):
        if len(done) == 1:
            raise rb.Interrupted("interrupted by SIGINT", None, 2)
        done.append(file)
        return go(self, file, *rest)

    monkeypatch.setattr(cases.Case, "done", killed)
    told = CliRunner().invoke(cli.app, ["run", str(toml), "--replicas", "3"])
    assert told.exit_code == 130 and not path.exists()
    kept = done[0].stat().st_mtime_ns
    began = []
    monkeypatch.setattr(cases.Case, "done", go)
    prepare = cases.prepare
    monkeypatch.setattr(
        cases, "prepare", lambda *given: (began.append(given[4].name), prepare(*given))[1]
    )
    told = CliRunner().invoke(cli.app, ["resume", str(path), "--quiet"])
    assert told.exit_code == 0, told.output
    assert [name.split("-")[1] for name in began] == ["2", "3"]
    assert done[0].stat().st_mtime_ns == kept
    ds = rb.load(path)
    assert np.array_equal(ds.temperature, three.temperature)
    assert np.array_equal(ds.temperature_error, three.temperature_error)


def test_an_unfinished_replica_goes_on_from_its_checkpoint(tmp_path):
    """Stopped replicas end with the same bits as uninterrupted ones."""
    case = cases.Case.of_options(MODEL, GRID, START, _without_progress())
    whole = case.done(None)
    path = tmp_path / "one.nc"

    class Stop(Exception):
        pass

    def stop(moment):
        if moment.time >= 0.1:
            raise Stop

    with pytest.raises(rb.RunError):
        case.done(path, stop)
    assert not cases.is_finished(path) and checkpoint.of_run(path)
    assert np.array_equal(case.done(path).temperature, whole.temperature)
    assert cases.is_finished(path)


def _without_progress():
    return {key: value for key, value in OPTIONS.items() if key != "progress"}


def test_the_digest_knows_all_that_decides_the_bits():
    case = cases.Case.of_options(MODEL, GRID, START, _without_progress())
    others = [
        case.with_keys("collisions", seed=2), case.with_keys("collisions", samples=8),
        case.with_keys("time", end=0.3), case.with_keys("output", every=0.05),
        case.on(rb.PhaseSpace(5, 2.6)),
        cases.Case.of_options(MODEL, GRID, {"g": rb.initial.step(0.4, 1.5)}, _without_progress()),
        cases.Case.of_options(rb.gluons(0.2), GRID, START, _without_progress()),
    ]  # fmt: skip
    digests = {case.digest(), *(other.digest() for other in others)}
    assert len(digests) == 1 + len(others)
    with pytest.MonkeyPatch.context() as patch:
        first = case.digest()
        patch.setattr(cases, "resolve", lambda run: ("cuda", "float32"))
        assert case.digest() != first
    assert case.with_keys("run", threads=2).digest() == case.digest()
    assert case.with_keys("output", checkpoint_every=1.0).digest() == case.digest()


def test_a_result_of_replicas_is_told_and_drawn(tmp_path, three):
    """info and plot know it: a band for every line that has an error."""
    path = tmp_path / "r.nc"
    output.write(three, path)
    told = CliRunner().invoke(cli.app, ["info", str(path)])
    assert told.exit_code == 0 and "3 replicas" in told.output
    value, error = re.search(r"temperature \[GeV\].*?([\d.]+) ± ([\d.]+)", told.output).groups()
    assert len(value.partition(".")[2]) == len(error.partition(".")[2])  # the same digits
    assert "standard error of the mean over seeds" in " ".join(told.output.split())
    for draw in plots.temperature, plots.chemical_potentials, plots.distance:
        assert len(draw(rb.load(path)).collections) == 1
    assert len(plots.spectra(three).collections) == three.sizes["time"]
    assert plots.overview(three) is not None


def test_until_is_not_for_replicas(tmp_path, three):
    path = tmp_path / "r.nc"
    output.write(three, path)
    told = CliRunner().invoke(cli.app, ["resume", str(path), "--until", "1.0"])
    assert isinstance(told.exception, rb.InputError) and "mean of replicas" in str(told.exception)


def test_replicas_of_python_say_how_to_go_on(tmp_path):
    folder = tmp_path / "r.replicas"
    folder.mkdir()
    (folder / replicas.PLAN).write_text(json.dumps({"replicas": 3}))
    with pytest.raises(rb.InputError, match="solve"):
        replicas.planned_again(tmp_path / "r.nc", {})


STRENGTH = 500.0


def contact(s, t, u):
    return STRENGTH


def test_the_digest_knows_what_a_matrix_element_depends_on(monkeypatch):
    """A global, a closure, a helper: all show in its values."""

    def case(element):
        a = rb.Species("a", 2, 0)
        model = rb.Model([a], [rb.Process("a a -> a a", element)], masses={"a": 0.3})
        return cases.Case.of_options(model, GRID, {"a": START["g"]}, _without_progress()).digest()

    def closed(strength):
        return lambda s, t, u: strength

    first = case(contact)
    assert case(contact) == first and case(closed(500.0)) == case(closed(500.0))
    assert case(closed(500.0)) != case(closed(510.0))
    monkeypatch.setitem(globals(), "STRENGTH", 510.0)
    assert case(contact) != first


def test_a_replica_whose_checkpoints_are_damaged_says_that_it_begins_again(tmp_path):
    case = cases.Case.of_options(MODEL, GRID, START, _without_progress())
    path = tmp_path / "one.nc"

    def stop(now):
        if now.time > 0.05:
            signal.raise_signal(signal.SIGTERM)

    with pytest.raises(rb.Interrupted):
        case.done(path, stop)
    for one in tmp_path.glob("one.checkpoint-*"):
        one.write_bytes(one.read_bytes()[:100])
    with pytest.warns(rb.CheckpointWarning, match="one.nc begins again, because"):
        ds = case.done(path)
    np.testing.assert_array_equal(ds.f, case.done(None).f)


def test_interrupted_replicas_that_replace_a_result_can_go_on(tmp_path):
    """The result that is there is of another plan, and does not stand for the new one."""
    file, path = tmp_path / "r.toml", tmp_path / "r.nc"
    file.write_text(TOML.format(path))
    assert CliRunner().invoke(cli.app, ["run", str(file), "--replicas", "2"]).exit_code == 0
    assert replicas.plan_of(path) is None
    plan = path.with_suffix(".replicas") / replicas.PLAN
    plan.write_text(json.dumps(json.loads(plan.read_text()) | {"replicas": 3}))
    told = CliRunner().invoke(cli.app, ["resume", str(path)])
    assert told.exit_code == 0, told.output
    assert rb.load(path).attrs["replicas"] == 3


def test_other_workers_take_nothing_along_of_where_the_first_were():
    run = {"workers": 4, "address": "auto", "gpus_per_worker": 1.0, "threads": 0}
    assert elsewhere(run, {"workers": 0, "threads": None}) == {
        "workers": 0, "address": "", "gpus_per_worker": 0.0, "threads": 0,
    }  # fmt: skip
    assert elsewhere(run, {"workers": 2, "threads": 3})["address"] == "auto"
