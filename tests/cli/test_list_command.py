"""relboltz list, and what a shell completes: all that there is, and nothing else."""

import inspect
from typing import get_args

import pytest
from typer.testing import CliRunner

from relboltz.cli import app as cli
from relboltz.cli import listing as known
from relboltz.cli import options
from relboltz.config import settings
from relboltz.initial import SHAPES
from relboltz.run import input_file as config


@pytest.fixture(scope="module")
def lines():
    told = CliRunner().invoke(cli.app, ["list"], env={"COLUMNS": "300"})
    assert told.exit_code == 0
    return told.output.splitlines()


def line_of(lines, name):
    (line,) = [line for line in lines if line.split("  ")[0] == name]
    return line


@pytest.mark.parametrize("name", config.MODELS)
def test_a_model_has_a_line_with_its_words_and_arguments(lines, name):
    line, model = line_of(lines, name), config.MODELS[name]
    assert inspect.getdoc(model).splitlines()[0].replace("``", "") in line
    assert line.rstrip().endswith(", ".join(inspect.signature(model).parameters))


@pytest.mark.parametrize("name", SHAPES)
def test_a_shape_has_a_line_with_its_keys(lines, name):
    line = line_of(lines, name)
    asked = {"step": "height, edge", "file": "path", "random": "low, high, seed"}
    assert asked.get(name, "") in line and len(line.split()) > 4


def literals(key):
    """The words that a key takes, as the settings say."""
    table, _, name = key.partition(".")
    field = {
        "grid": settings.GridSettings,
        "collisions": settings.Sampling,
        "run": settings.RunSettings,
    }[table]
    kinds = [field.model_fields[name].annotation]
    found = []
    while kinds:
        kind = kinds.pop()
        found += [kind] if isinstance(kind, str) else []
        kinds += get_args(kind)
    return set(found)


@pytest.mark.parametrize("key", known.SAMPLINGS)
def test_ways_to_sample_are_those_that_the_settings_take(lines, key):
    assert set(known.SAMPLINGS[key]) == literals(f"collisions.{key}")
    for name, words in known.SAMPLINGS[key].items():
        assert words in line_of(lines, name)


# --- completion ---------------------------------------------------------------------------------


def test_all_keys_are_completed_and_no_others():
    keys = set(options.keys())
    for table, fields in {
        "grid": settings.GridSettings,
        "collisions": settings.Sampling,
        "time": settings.TimeSettings,
        "run": settings.RunSettings,
        "output": settings.OutputSettings,
        "coefficients": config.CoefficientSettings,
    }.items():
        assert {key for key in keys if key.startswith(f"{table}.")} == {
            f"{table}.{name}" for name in fields.model_fields
        }
    arguments = {
        name for model in config.MODELS.values() for name in inspect.signature(model).parameters
    }
    of_model = {key.removeprefix("model.") for key in keys if key.startswith("model.")}
    assert of_model == {"name", *arguments}
    assert {"title", "initial.g.shape", "initial.g.sampling"} <= keys


def test_words_that_are_completed_are_legal():
    for key, words in options.WORDS.items():
        if not key.startswith("model."):
            assert set(words) == literals(key), key
    assert set(options.WORDS["model.name"]) == set(config.MODELS)
    assert set(options.SHAPES) == set(SHAPES)


def test_a_key_is_completed_then_its_value():
    assert options.completed_key("model.fl") == ["model.flavors=", "model.flavor_symmetric="]
    assert options.completed_key("run.backend=c") == ["run.backend=cpu", "run.backend=cuda"]
    assert options.completed_key("initial.ubar.shape=t") == ["initial.ubar.shape=thermal"]
    assert options.completed_key("time.end=") == []
    assert options.completed_backend("cu") == ["cuda"]


def test_a_shell_is_told(monkeypatch):
    words = {"COMP_WORDS": "relboltz run a.toml --backend c", "COMP_CWORD": "4"}
    environment = {"_RELBOLTZ_COMPLETE": "complete_bash", **words}
    told = CliRunner().invoke(cli.app, [], env=environment, prog_name="relboltz")
    assert told.output.split() == ["cpu", "cuda"]
