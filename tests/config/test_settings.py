"""How to solve: tables that are the objects they configure, and words for what is wrong."""

import numpy as np
import pytest

import relboltz as rb
from relboltz.config.settings import GridSettings, Sampling, Settings, plain, refuse
from relboltz.events.collisions import SETS, channels
from relboltz.grid.phase_space import PhaseSpace
from relboltz.model.qcd import qcd
from relboltz.util.errors import InputError
from relboltz.util.renamed import RENAMED


def test_options_find_their_tables():
    options = dict(end=2.0, samples=4, seed=3, step=0.1, backend="cpu", threads=2, every=0.5)
    settings = Settings.from_options(**options)
    found = settings.to_dict()
    assert found["collisions"]["samples"] == 4 and found["collisions"]["seed"] == 3
    time = {"end": 2.0, "step": 0.1, "tolerance": 1e-3, "start": 0.0, "regrid_times": "auto"}
    assert found["time"] == time
    assert found["run"]["backend"] == "cpu" and found["output"]["every"] == 0.5
    assert settings.output.snapshots == (0.0, 2.0)  # the start and the end


def test_every_problem_is_told_at_once():
    with pytest.raises(rb.InputError) as caught:
        Settings.from_options(end=-1.0, samples=0, pair_sampling="many")
    assert str(caught.value).splitlines() == [
        "collisions.pair_sampling = 'many': use 'importance' or 'uniform'",
        "collisions.samples = 0: use a whole number, 1 or more",
        "time.end = -1.0: use a number of fm above 0, from 1e-09 to 1e+09",
    ]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kinematics": "k2"}, "collisions.kinematics = 'k2': only with projection = 'nearest'"),
        ({"symmetrical": False}, "collisions.symmetrical = False: only with projection"),
        ({"every": 1e-9}, "output.every = 1e-09: would give 1.0e[+]09 records"),
        ({"gpus_per_worker": 1.0}, "run.gpus_per_worker = 1.0: is for workers; set run.workers"),
        ({"momentum_cells": 9}, "option momentum_cells belongs to the grid: give solve"),
        ({"marginals": ["q"]}, r"output.marginals = \['q'\]: use a list of directions to keep"),
    ],
)
def test_keys_that_do_not_go_together_or_not_there_are_refused(options, message):
    with pytest.raises(rb.InputError, match=message):
        Settings.from_options(end=1.0, **options)


def test_the_papers_samplings_draw_uniform_pairs_of_their_own():
    assert Sampling(kinematics="k3", projection="nearest").pair_sampling == "uniform"
    assert Sampling().pair_sampling == "importance"


def test_samples_are_shared_out_among_sets_and_channels():
    """At least one each; elastic processes have one channel, the others two halves."""
    model = rb.qcd(0.3, flavors=1)
    for channel in channels(model):
        assert Sampling(samples=16).samples_of(channel, 100) == 1600 * channel.share / SETS
    assert Sampling(samples=1).samples_of(channels(model)[0], 1) == 1


def test_a_grid_is_described_by_the_keys_that_make_it():
    for grid in (
        PhaseSpace([5, 6, 7], [1.0, 2.0, 3.0]),
        PhaseSpace(5, 2.0, [3, 1, 2], [1.0, 2.0, 3.0], ["open", "periodic", "reflecting"]),
    ):
        keys = GridSettings.describe(grid)
        assert ("space_cells" in keys) == (grid.sites > 1)
        assert GridSettings.model_validate(keys).phase_space() == grid


def test_marginals_keep_their_directions_in_order_and_once():
    settings = Settings.from_options(end=1.0, marginals=["px x", "x px", "pz y pz"])
    assert settings.output.marginals == ("x px", "y pz")


def test_numbers_of_numpy_are_numbers():
    settings = Settings.from_options(
        end=np.float64(0.5), samples=np.int64(3), snapshots=np.array([0.0, 0.5])
    )
    assert settings.time.end == 0.5 and settings.collisions.samples == 3
    assert settings.output.snapshots == (0.0, 0.5)


def test_plain_values_are_those_of_toml_and_nothing_wrong_is_nothing_said():
    assert plain({"a": (1, (2.0, "b")), 3: []}) == {"a": [1, [2.0, "b"]], "3": []}
    assert refuse([]) is None
    with pytest.raises(rb.InputError, match="^one\ntwo$"):
        refuse(["one", "two", "one"])


def test_a_key_where_none_is_asked_for_is_named():
    """Such as of a user's function of a model without arguments."""
    text = Settings.unknown("model", "alpha_s", [])
    assert text == "unknown key model.alpha_s: nothing is asked for there; leave it out"


@pytest.mark.parametrize(
    ("old", "new", "ask"),
    [
        ("pairs", "pair_sampling", lambda: Settings.from_options(end=1.0, pairs="uniform")),
        ("sampling", "kinematics", lambda: Settings.from_options(end=1.0, sampling="k2")),
        ("doublings", "regrid_times", lambda: Settings.from_options(end=1.0, doublings=[])),
        ("alike", "flavor_symmetric", lambda: qcd(0.3, alike=True)),
    ],
)
def test_former_options_name_the_present_one(old, new, ask):
    with pytest.raises(InputError, match=f"unknown option {old}: it is called {new} now"):
        ask()


@pytest.mark.parametrize(("former", "present"), RENAMED.items())
def test_former_keys_name_the_present_one(former, present):
    table, key = former.split(".")
    assert Settings.unknown(table, key, []) == f"unknown key {former}: it is called {present} now"
