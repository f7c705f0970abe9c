"""Scans: every combination once, one Dataset, points that fail do not stop the others."""

import tomllib

import numpy as np
import pytest
from typer.testing import CliRunner

import relboltz as rb
from relboltz.cli import app as cli
from relboltz.run import input_file
from relboltz.run.setup import Case
from relboltz.studies import scan as scanning

SETUP = """
[model]
name = "gluons"
alpha_s = 0.3
[grid]
momentum_cells = [5, 5, 5]
momentum_max = [2.0, 2.0, 2.0]
[initial.g]
shape = "step"
height = 0.5
edge = 1.5
[time]
end = 0.02
step = 0.01
[collisions]
samples = 1
[run]
backend = "cpu"
threads = 1
[output]
file = "run.nc"
every = 0.01
"""


@pytest.fixture
def setup(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "run.toml").write_text(SETUP)
    return tmp_path / "run.toml"


def called(*arguments):
    return CliRunner().invoke(cli.app, ["scan", *map(str, arguments)], catch_exceptions=True)


def made(alpha_s, samples):
    start = {"g": rb.initial.step(0.5, 1.5)}
    return dict(
        model=rb.gluons(alpha_s), grid=rb.PhaseSpace(5, 2.0), initial=start, end=0.01, step=0.01,
        samples=samples, backend="cpu", threads=1,
    )  # fmt: skip


def test_every_combination_is_the_run_that_it_would_be_alone(setup):
    ds = rb.scan(setup, {"model.alpha_s": [0.2, 0.3], "collisions.seed": [7, 8, 9]}, progress=False)
    assert dict(ds.status.sizes) == {"alpha_s": 2, "seed": 3} and (ds.status == "done").all()
    alone = Case.of_config(input_file.load(setup, ["model.alpha_s=0.3", "collisions.seed=8"])).done(
        None
    )
    one = ds.sel(alpha_s=0.3, seed=8)
    for name in ("number", "energy_kinetic", "spectrum", "rate", "f", "equilibrium_temperature"):
        np.testing.assert_array_equal(one[name], alone[name])
    assert ds.f.dims[:2] == ("alpha_s", "seed") and (ds.steps == 2).all()
    assert ds.alpha_s.attrs["long_name"] == "model.alpha_s"
    assert "scan over model.alpha_s, collisions.seed" in ds.attrs["title"]


def test_a_function_makes_the_set_up_of_every_point():
    ds = rb.scan(made, {"alpha_s": [0.1, 0.2], "samples": np.array([1, 2])}, progress=False)
    assert dict(ds.status.sizes) == {"alpha_s": 2, "samples": 2}
    assert float(ds.mass_squared.isel(time=0).sel(alpha_s=0.2, samples=1)[0]) > float(
        ds.mass_squared.isel(time=0).sel(alpha_s=0.1, samples=1)[0]
    )
    with pytest.raises(rb.InputError, match="'initial' is missing"):
        rb.scan(lambda a: {"model": rb.gluons(a), "grid": 5}, {"a": [0.1]}, progress=False)


def test_what_is_done_is_not_done_again_and_more_values_are_added(setup, monkeypatch):
    told = called(setup, "--over", "model.alpha_s=0.2,0.3")
    assert told.exit_code == 0 and "written: run-scan.nc   (2 alpha_s)" in told.output
    first = rb.load("run-scan.nc")
    runs = []
    prepare = scanning.Case.done.__globals__["prepare"]
    monkeypatch.setitem(
        scanning.Case.done.__globals__, "prepare", lambda *a: runs.append(1) or prepare(*a)
    )
    again = called(setup, "--over", "model.alpha_s=0.2,0.3,0.4")
    assert isinstance(again.exception, rb.InputError) and "--force" in str(again.exception)
    again = called(setup, "--over", "model.alpha_s=0.2,0.3,0.4", "--force")
    assert again.exit_code == 0 and len(runs) == 1
    more = rb.load("run-scan.nc")
    np.testing.assert_array_equal(more.number.sel(alpha_s=[0.2, 0.3]), first.number)


@pytest.mark.filterwarnings("error")
def test_a_point_that_fails_is_told_of_and_the_rest_go_on(setup, monkeypatch):
    done = Case.done

    def fails(self, path, *more):
        if self.seed == 2:
            raise rb.RunError("the disk is on fire")
        return done(self, path, *more)

    monkeypatch.setattr(Case, "done", fails)
    with pytest.raises(
        rb.RunError, match=r"1 of 3 points have no result, .*seed = 2: failed: the disk"
    ) as e:
        rb.scan(setup, {"collisions.seed": [1, 2, 3]}, file="s.nc", progress=False)
    ds = rb.load("s.nc")
    assert ds.status.values.tolist() == ["done", "failed: the disk is on fire", "done"]
    assert np.isnan(ds.number.sel(seed=2)).all() and np.isfinite(ds.number.sel(seed=[1, 3])).all()
    assert e.value.dataset.sizes == ds.sizes


def test_a_point_that_is_not_legal_is_told_of_and_the_rest_run(setup):
    told = called(setup, "--over", "model.alpha_s=0.2,-1,0.3")
    assert isinstance(told.exception, rb.RunError) and "written: run-scan.nc" in told.output
    words = "1 of 3 points have no result, the first at model.alpha_s = -1: not legal: at model."
    assert words in str(told.exception)
    ds = rb.load("run-scan.nc")
    wrong = str(ds.status.sel(alpha_s=-1).values)
    assert wrong.startswith("not legal: at model.alpha_s = -1:") and "positive" in wrong
    assert (ds.status.sel(alpha_s=[0.2, 0.3]) == "done").all()
    assert np.isnan(ds.number.sel(alpha_s=-1)).all()
    assert np.isfinite(ds.number.sel(alpha_s=[0.2, 0.3])).all()
    assert "not legal" in CliRunner().invoke(cli.app, ["info", "run-scan.nc"]).output
    failed = pytest.raises(rb.RunError)
    with pytest.warns(UserWarning, match=r"left out, .*: collisions.samples = 0"), failed as e:
        rb.scan(made, {"alpha_s": [0.1], "samples": [1, 0]}, progress=False)
    assert (e.value.dataset.status == "done").values.tolist() == [[True, False]]


def test_attributes_of_a_scan_are_those_that_all_points_share(setup):
    boxes = [[2.0, 2.0, 2.0], [3.0, 3.0, 2.5]]
    ds = rb.scan(setup, {"grid.momentum_max": boxes, "model.alpha_s": [0.3]}, progress=False)
    assert "momentum_max" not in ds.attrs and "run" not in ds.attrs
    assert ds.point_momentum_max.dims == ("momentum_max", "alpha_s", "axis")
    assert ds.point_momentum_max.values[:, 0].tolist() == boxes
    shared = tomllib.loads(ds.attrs["configuration"])
    assert "momentum_max" not in shared["grid"] and shared["model"]["alpha_s"] == 0.3
    assert ds.attrs["model"] == "gluons" and ds.attrs["seed"] == 1
    for i, box in enumerate(boxes):  # a point is the run that it was
        one = ds.isel(momentum_max=i, alpha_s=0).rb
        assert one.configuration["grid"]["momentum_max"] == box
        alone = Case.of_config(input_file.load(setup, [f"grid.momentum_max={box}"])).done(None)
        np.testing.assert_array_equal(one._ds.spectrum, alone.spectrum)
        np.testing.assert_array_equal(one.pressures().transverse, alone.rb.pressures().transverse)
        assert list(one._ds.attrs["momentum_max"]) == box and one.warnings == alone.rb.warnings


def test_a_scan_that_is_interrupted_goes_on(setup, monkeypatch):
    done = Case.done

    def stops(self, path, *more):
        if self.seed == 2:
            raise rb.Interrupted("interrupted by Ctrl-C", None, 2)
        return done(self, path, *more)

    monkeypatch.setattr(Case, "done", stops)
    told = called(setup, "--over", "collisions.seed=1,2")
    assert told.exit_code == 130
    monkeypatch.setattr(Case, "done", done)
    told = called(setup, "--over", "collisions.seed=1,2")
    assert told.exit_code == 0 and rb.load("run-scan.nc").sizes["seed"] == 2


def test_boxes_that_differ_count_their_shells(setup):
    ds = rb.scan(setup, {"grid.momentum_max": [[2.0, 2.0, 2.0], [3.0, 3.0, 3.0]]}, progress=False)
    assert ds.spectrum.dims == ("momentum_max", "time", "species", "shell")
    assert not np.array_equal(ds.p[0], ds.p[1]) and "f" not in ds


@pytest.mark.parametrize(
    ("over", "message"),
    [
        (["model.alpha_s"], "write key=value,value"),
        (["model.alpha_s="], "write key=value,value"),
        (["model.alpha=0.1,0.2"], "alpha"),
        (["model.alpha_s=0,-1"], "at model.alpha_s = 0: .*coupling must be a positive"),
        (["model.alpha_s=0.1,0.1"], "a value is there twice"),
        (["model.alpha_s=0.1", "model.alpha_s=0.2"], "a key is there twice"),
        (["model.alpha_s.x=1,2"], "is a value, not a table"),
    ],
)
def test_a_scan_without_a_legal_point_is_refused_before_one_runs(setup, over, message):
    told = called(setup, *(part for text in over for part in ("--over", text)))
    assert isinstance(told.exception, rb.InputError)
    with pytest.raises(rb.InputError, match=message):
        raise told.exception
    assert not list(setup.parent.glob("*.nc"))


def test_lists_of_values_are_asked_for(setup):
    for values in ("0.1", 0.1, []):
        with pytest.raises(rb.InputError, match=r"list of values"):
            rb.scan(setup, {"model.alpha_s": values}, progress=False)
    with pytest.raises(rb.InputError, match="needs keys to go over"):
        rb.scan(setup, {}, progress=False)
