"""Code that checkpoints carry: it runs only if it is the user's own file, or trusted."""

import importlib.util
import json
import os
import py_compile
import shutil
import signal
from contextlib import chdir
from pathlib import Path

import pytest
from continued import TOML, command, go_on, same, stopping

import relboltz as rb
from relboltz.io import checkpoint
from relboltz.run import input_file as config
from relboltz.run import setup
from relboltz.run import solve as simulation
from relboltz.studies import replicas
from relboltz.util.errors import CheckpointWarning

OWN = """
import relboltz as rb
from pathlib import Path

Path(__file__).with_name("{name}.ran").touch()

def contact(s, t, u, ma2, mb2, mc2, md2, coupling, screening2):
    return coupling

def model(strength):
    kind = rb.Species("a", 2, 0)
    process = rb.Process("a a -> a a", contact, coupling=strength)
    return rb.Model([kind], [process], masses={{"a": 0.3}})

def start(px, py, pz):
    return 0.2 + 0.1 * (px > 0)

def grows(t):
    return 1.0 + 0.1 * t
"""
OWN_TOML = (
    TOML.replace('"gluons"', '"own.py:model"')
    .replace("alpha_s = 0.3", "strength = 3000.0")
    .replace("initial.g", "initial.a")
    .replace('shape = "step"\nheight = 0.5\nedge = 1.5', 'shape = "shape.py:start"')
    .replace("[initial", 'expansion = "law.py:grows"\n[initial')
)
FILES = ("own.py", "shape.py", "law.py")
KEPT = "runs code of {} kept in the checkpoint"


@pytest.fixture(scope="module")
def begun(tmp_path_factory):
    """A run with model, start and expansion of files of one's own, interrupted; what it gives."""
    folder = tmp_path_factory.mktemp("begun")
    for name in FILES:
        (folder / name).write_text(OWN.format(name=name))
    (folder / "run.toml").write_text(OWN_TOML.format(end=0.2))
    settings = config.load(folder / "run.toml")
    expected = simulation.run_config(settings, folder / "whole.nc")
    with pytest.raises(rb.Interrupted):
        simulation.run_config(settings, folder / "run.nc", stopping(signal.SIGHUP, 2))
    return folder, expected


@pytest.fixture
def own(begun, tmp_path, monkeypatch):
    """A copy of the run, the folder of its files, the whole result; no code has run yet."""
    monkeypatch.setattr(os, "fsync", lambda _: None)
    folder, expected = begun
    for name in FILES:
        (folder / name).write_text(OWN.format(name=name))
        (folder / f"{name}.ran").unlink(missing_ok=True)
    for path in folder.glob("run.*"):
        shutil.copy(path, tmp_path)
    return tmp_path / "run.nc", folder, expected


def ran(folder):
    return [name for name in FILES if (folder / f"{name}.ran").exists()]


def forged(file, change):
    """Change the facts of the last checkpoint; its checksums agree."""
    saved = checkpoint.latest(file)
    change(saved.facts)
    checkpoint.write(saved.path, saved.facts, saved.arrays)


def test_files_that_are_as_they_were_need_no_trust(own, recwarn):
    file, folder, expected = own
    same(go_on(file), expected)
    assert ran(folder) == ["own.py", "law.py"]  # the start is past
    assert not [w for w in recwarn if "runs code" in str(w.message)]


@pytest.mark.parametrize("name", ["own.py", "law.py"])
@pytest.mark.parametrize("harm", ["absent", "changed"])
def test_a_source_that_is_absent_or_differs_needs_trust(own, name, harm):
    file, folder, expected = own
    path = folder / name
    path.unlink()
    if harm == "changed":
        path.write_text(OWN.format(name=name).replace("return", "return 2 *"))
    with pytest.raises(rb.InputError) as caught:
        go_on(file)
    for word in (str(path), harm, "bring back", "new run", "--trust", "trust=True", "a program"):
        assert word in str(caught.value)
    assert name not in ran(folder)
    with pytest.warns(CheckpointWarning, match=KEPT.format(name)):
        same(go_on(file, trust=True), expected)
    assert name not in ran(folder)  # what ran was the copy
    with pytest.warns(CheckpointWarning, match=KEPT.format(name)):  # and it is still kept
        assert go_on(file, until=0.3, trust=True).attrs["status"] == "done"


def test_a_start_that_was_changed_is_refused_and_one_that_is_absent_is_not_needed(own):
    file, folder, expected = own
    (folder / "shape.py").write_text("changed = True")
    with pytest.raises(rb.InputError, match=r"shape\.py was changed since .*--trust"):
        go_on(file)
    (folder / "shape.py").unlink()
    same(go_on(file), expected)


def test_the_command_asks_for_trust_and_says_what_it_runs(own, capsys):
    file, folder, _ = own
    (folder / "own.py").unlink()
    code, words = command("resume", file, "--quiet")
    assert code == 2 and "own.py, which is absent" in words and "--trust" in words
    assert command("resume", file, "--quiet", "--trust") == (0, "")
    assert KEPT.format("own.py") in capsys.readouterr().err


def test_code_that_was_put_into_a_checkpoint_does_not_run(own, tmp_path):
    file, _, _ = own
    harm = f"open({str(tmp_path / 'harm')!r}, 'w')"

    def change(facts):
        recipe = facts["about"]["recipe"]
        recipe["sources"] = {"/nowhere/mine.py": harm}
        recipe["model"], recipe["folder"] = {"name": "mine.py:model"}, "/nowhere"

    forged(file, change)
    with pytest.raises(rb.InputError, match=r"/nowhere/mine\.py, which is absent"):
        go_on(file)
    assert not (tmp_path / "harm").exists()


@pytest.mark.parametrize("kept", [True, False])
def test_a_checkpoint_cannot_call_functions_of_installed_packages(own, tmp_path, kept):
    """Their sources are known to all, and a recipe says what they are given."""
    file, _, _ = own
    victim, place = tmp_path / "victim", Path(shutil.__file__).resolve()
    victim.mkdir()

    def change(facts):
        recipe = facts["about"]["recipe"]
        recipe["sources"] = {str(place): place.read_bytes().decode("latin-1")} if kept else {}
        recipe["model"] = {"name": f"{place}:rmtree", "path": str(victim)}

    forged(file, change)
    words = "belongs to an installed package" if kept else "has no copy in the checkpoint"
    with pytest.raises(rb.InputError, match=rf"shutil\.py, which {words}"):
        go_on(file)
    assert victim.exists()


@pytest.mark.parametrize("folder", ["python3.12", "site-packages"])
def test_libraries_of_another_python_are_not_the_users_own(own, tmp_path, folder):
    file, _, _ = own
    place = tmp_path / "lib" / folder / "tool.py"
    place.parent.mkdir(parents=True)
    place.write_text("def call(path):\n    open(path, 'w')\n")

    def change(facts):
        recipe = facts["about"]["recipe"]
        recipe["sources"] = {str(place): place.read_text()}
        recipe["model"] = {"name": f"{place}:call", "path": str(tmp_path / "harm")}

    forged(file, change)
    with pytest.raises(rb.InputError, match=r"tool\.py, which belongs to an installed package"):
        go_on(file)
    assert not (tmp_path / "harm").exists()


def test_what_python_compiled_before_is_not_run_in_place_of_the_file(own):
    """A .pyc beside the file that claims to be up to date may hold another program."""
    file, folder, expected = own
    other = folder / "other.py"
    other.write_text("open('harm', 'w')\n" + (folder / "own.py").read_text())
    cached = importlib.util.cache_from_source(str(folder / "own.py"))
    py_compile.compile(
        str(other), cached, invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH
    )
    with chdir(folder):
        same(go_on(file), expected)
    assert not (folder / "harm").exists()


def test_a_link_in_place_of_parts_is_refused_and_what_it_leads_to_stays(own, tmp_path):
    file, _, _ = own
    kept = tmp_path / "mine"
    kept.mkdir()
    (kept / "records").write_text("the user's own")
    parts = next(file.parent.glob("run.parts-*"), file.parent / "run.parts-1-abcdefgh")
    shutil.rmtree(parts, ignore_errors=True)
    parts.symlink_to(kept)
    forged(file, lambda facts: facts["place"].update(parts=parts.name))
    with pytest.raises(rb.InputError, match="is not a folder of parts that a run made"):
        go_on(file)
    assert (kept / "records").read_text() == "the user's own"


def test_a_pickle_in_a_recipe_is_not_read(own):
    file, _, expected = own
    forged(file, lambda facts: facts["about"]["recipe"].update(pickled="cos\nabort\n(tR."))
    same(go_on(file), expected)


def test_a_plan_of_replicas_runs_only_files_that_are_as_they_were(begun, tmp_path):
    folder, _ = begun
    for name in FILES:
        (folder / name).write_text(OWN.format(name=name))
    file, plan = tmp_path / "r.nc", tmp_path / "r.replicas" / "plan.json"
    plan.parent.mkdir()
    case = setup.Case.of_config(config.load(folder / "run.toml"))
    replicas._keep_plan(plan.parent, case, 2)
    with chdir(tmp_path):
        assert replicas.planned_again(file, {})[1] == 2
        told = json.loads(plan.read_text())
        assert sorted(Path(name).name for name in told["sources"]) == sorted(FILES)
        for name in list(told["sources"]):
            plan.write_text(json.dumps(told | {"sources": told["sources"] | {name: "other"}}))
            with pytest.raises(rb.InputError, match=rf"{name}, which was changed since.*--trust"):
                replicas.planned_again(file, {})
        assert replicas.planned_again(file, {}, trust=True)[1] == 2
