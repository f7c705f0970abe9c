"""Taking a run up again: its model and sources, what is missing, one process at a time."""

import os
import shutil
import signal
import time
from pathlib import Path

import h5py
import pytest
from continued import command, configured, go_on, in_file, same, solve, stopping

import relboltz as rb
from relboltz.run import solve as solving
from relboltz.util.errors import CheckpointWarning


@pytest.fixture(autouse=True)
def _quick_disk(monkeypatch):
    """Waiting for the disk changes nothing but the time."""
    monkeypatch.setattr(os, "fsync", lambda _: None)


# --- the model ----------------------------------------------------------------------------------


def contact(s, t, u, ma2, mb2, mc2, md2, coupling, screening2):
    return coupling


def twice(s, t, u, ma2, mb2, mc2, md2, coupling, screening2):
    return 2 * coupling


def own_model(element=contact, coupling=3000.0):
    process = rb.Process("a a -> a a", element, coupling=coupling)
    return rb.Model([rb.Species("a", 2, 0)], [process], masses={"a": 0.3})


def test_a_model_made_in_python_is_asked_for_again(tmp_path):
    file, grid, start = tmp_path / "run.nc", rb.PhaseSpace(5, 2.0), {"a": rb.initial.step(0.3, 1.5)}
    options = {"end": 0.2, "samples": 1}
    expected = rb.solve(own_model(), grid, start, progress=False, **options)
    with pytest.raises(rb.Interrupted):
        stop = stopping(signal.SIGTERM, 2)
        rb.solve(own_model(), grid, start, file=file, progress=stop, **options)
    with pytest.raises(rb.InputError, match=r"made in Python; use relboltz.resume\(.*model=...\)"):
        go_on(file)
    for other in (own_model(coupling=1.0), own_model(twice), rb.gluons(0.3)):
        with pytest.raises(rb.InputError, match="not that of the model that began the run; use"):
            go_on(file, model=other)
    same(go_on(file, model=own_model()), expected)


def test_an_element_of_the_same_numbers_but_another_source_is_named(tmp_path):
    file, grid, start = tmp_path / "run.nc", rb.PhaseSpace(5, 2.0), {"a": rb.initial.step(0.3, 1.5)}
    rb.solve(own_model(), grid, start, file=file, progress=False, end=0.1, samples=1)
    with pytest.raises(rb.InputError, match="the matrix element of a a -> a a is not that"):
        go_on(file, until=0.2, model=own_model(_renamed(twice)))


def _renamed(function):
    function.__name__ = function.__qualname__ = "contact"
    return function


@pytest.mark.parametrize(
    "model", [rb.qcd(0.3, flavors=1), rb.gluons(0.3, masses={"g": 0.5}), rb.quarks(alpha_s=0.2)]
)
def test_built_in_models_need_not_be_given_again(tmp_path, model):
    start = {model.names[0]: rb.initial.step(0.5, 1.5)}
    given = {"samples": 1, "progress": False}
    expected = rb.solve(model, rb.PhaseSpace(5, 2.0), start, end=0.2, **given)
    rb.solve(model, rb.PhaseSpace(5, 2.0), start, end=0.1, file=tmp_path / "run.nc", **given)
    same(go_on(tmp_path / "run.nc", until=0.2), expected)


# --- what is missing ----------------------------------------------------------------------------


@pytest.fixture
def killed(tmp_path):
    """Return copies of the files of a run, as if it were killed after some records."""
    file, copies = tmp_path / "run" / "run.nc", tmp_path / "killed"
    file.parent.mkdir()

    def progress(moment):
        if moment.time > 0.12 and not copies.exists():
            time.sleep(0.1)
            shutil.copytree(file.parent, copies)

    solve("gluons", file, end=0.2, every=0.02, checkpoint_every=1e-9, progress=progress)
    return copies / "run.nc"


def parts(file):
    (found,) = file.parent.glob("run.parts-*")
    return found


def test_a_file_that_is_gone_is_made_again_from_its_parts(killed):
    killed.unlink(missing_ok=True)
    same(go_on(killed), solve("gluons", end=0.2, every=0.02, checkpoint_every=1e-9))


def test_records_that_are_gone_are_asked_for(killed):
    kept = shutil.copytree(parts(killed), killed.with_name("kept"))
    shutil.rmtree(folder := parts(killed))
    killed.unlink(missing_ok=True)
    with pytest.raises(rb.InputError, match=r"run.nc: the records .* bring back the file, or"):
        go_on(killed)
    kept.rename(folder)
    assert go_on(killed).attrs["status"] == "done"


def test_parts_that_are_cut_short_are_asked_for_and_taken_when_they_are_back(killed):
    records = parts(killed) / "records"
    good = records.read_bytes()
    for bad in (good[:100], b""):
        records.write_bytes(bad)
        with pytest.raises(rb.InputError, match=r"run.parts-.*: \d of \d+ records\); bring"):
            go_on(killed)
    records.unlink()
    with pytest.raises(rb.InputError, match=r"run.parts-.*: \d of \d+ records\); bring"):
        go_on(killed)
    records.write_bytes(good)
    assert go_on(killed).attrs["status"] == "done"


@pytest.mark.parametrize("other", ["gone", "of another run", "no result"])
def test_a_finished_run_without_its_own_file_is_refused(tmp_path, other):
    file = tmp_path / "run.nc"
    solve("gluons", file, end=0.1)
    good = file.read_bytes()
    file.unlink()
    if other == "of another run":
        solve("gluons", tmp_path / "other.nc", end=0.1)
        (tmp_path / "other.nc").rename(file)
    elif other == "no result":
        h5py.File(file, "w").close()
    with pytest.raises(rb.InputError, match=r"run.nc: the records .* bring back the file, or"):
        go_on(file, until=0.2)
    file.write_bytes(good)
    assert go_on(file, until=0.2).attrs["status"] == "done"


@pytest.mark.parametrize("harm", ["cut", "zeros", "inside", "empty"])
def test_a_finished_run_with_a_damaged_file_goes_on_without_its_records(tmp_path, harm):
    """A run resumed from the checkpoint ends with the same bits; the damaged file is kept."""
    file = tmp_path / "run.nc"
    before = solve("gluons", file, end=0.1, every=0.02)
    good = file.read_bytes()
    file.write_bytes({"cut": good[:5000], "zeros": bytes(5000), "empty": b""}.get(harm, good))
    if harm == "inside":
        with h5py.File(file, "r+") as found:
            del found["energy_total"]
    bad = file.read_bytes()
    with pytest.raises(rb.InputError, match=r"done, at t = 0.1 fm, but its file cannot be read|"
                       r"done, at t = 0.1 fm; go on until"):  # fmt: skip
        go_on(file)
    words = r"run.nc is damaged and kept as run.damaged-1.nc .*its 5 records and 2 snapshots up to "
    with pytest.warns(CheckpointWarning, match=words + r"t = 0.1 fm are lost.*run.checkpoint-"):
        found = go_on(file, until=0.2)
    assert "run.nc is damaged" in found.attrs["warnings"]
    assert (tmp_path / "run.damaged-1.nc").read_bytes() == bad
    whole = solve("gluons", end=0.2, every=0.02)
    late = whole.sel(time=slice(before.time[-1] - 1e-9, None))
    for name in ("number", "energy_total", "spectrum", "rate", "momentum_drift"):
        assert found[name].values.tobytes() == late[name].values.tobytes(), name
    assert found.f[-1].values.tobytes() == whole.f[-1].values.tobytes()
    assert go_on(file, until=0.3).sizes["time"] == found.sizes["time"] + 5


def test_a_file_that_is_lost_can_be_replaced_by_an_empty_one(killed):
    """As the message says; the parts must be away too."""
    shutil.rmtree(parts(killed))
    killed.unlink(missing_ok=True)
    with pytest.raises(rb.InputError, match=r"without its \d+ records so far, .*touch run.nc"):
        go_on(killed)
    killed.touch()
    with pytest.warns(CheckpointWarning, match="run.nc is damaged and kept as run.damaged-1.nc"):
        assert go_on(killed).attrs["status"] == "done"


def test_a_damaged_file_beside_damaged_parts_is_refused_and_both_stay(killed):
    records = parts(killed) / "records"
    records.write_bytes(good := records.read_bytes()[:100])
    killed.write_bytes(b"damaged")
    with pytest.raises(rb.InputError, match=r"it is damaged; .*move away what is left"):
        go_on(killed)
    assert records.read_bytes() == good and killed.read_bytes() == b"damaged"


def test_nothing_to_go_on_from_is_said(tmp_path):
    with pytest.raises(rb.InputError, match="no such file, and no checkpoint"):
        go_on(tmp_path / "run.nc")
    (tmp_path / "old.nc").touch()
    with pytest.raises(rb.InputError, match=r"no checkpoint old.checkpoint-\*.*start the run"):
        go_on(tmp_path / "old.nc")
    assert command("resume", tmp_path / "run.nc")[0] == 2


def test_other_software_is_told_of(tmp_path, monkeypatch):
    from relboltz.io import output

    solve("gluons", tmp_path / "run.nc", end=0.1)
    now = output.versions()
    monkeypatch.setattr(output, "versions", lambda: now | {"numba_version": "1.2.3"})
    with pytest.warns(CheckpointWarning, match=r"numba_version .* \(now 1.2.3\): the last bits"):
        go_on(tmp_path / "run.nc", until=0.2)


# --- one at a time, and nothing is replaced -----------------------------------------------------


def test_a_second_process_is_refused(tmp_path):
    file, refused = tmp_path / "run.nc", []

    def another(_):
        if len(refused) < 2:
            with pytest.raises(rb.InputError, match="another process is at this run .*; wait"):
                go_on(file, until=0.4)
            refused.append(1)

    solve("gluons", file, end=0.1, progress=another)
    assert refused == [1, 1]
    refused.clear()
    same(go_on(file, until=0.4, progress=another), solve("gluons", end=0.4))
    assert refused == [1, 1]


def test_a_result_is_not_replaced_unless_asked(tmp_path):
    settings, file = configured(tmp_path)
    solve("gluons", file, end=0.1)
    before = {p.name: p.read_bytes() for p in tmp_path.iterdir()}
    with pytest.raises(rb.InputError) as caught:
        solve("gluons", file, end=0.1)
    for word in ("run.nc' exists already", "another name", "force=True", "relboltz resume"):
        assert word in str(caught.value)
    code, told = command("run", settings, "--out", file, "--quiet")
    assert code == 2
    for word in ("run.nc' exists already", "--out", "--force", "relboltz resume"):
        assert word in told
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == before
    assert command("run", settings, "--out", file, "--quiet", "--force") == (0, "")
    assert in_file(file) == ("done", 0.2)
    solve("gluons", file, end=0.3, force=True)
    assert in_file(file) == ("done", 0.3)


def test_a_run_that_was_not_finished_is_not_replaced(killed):
    killed.unlink(missing_ok=True)
    with pytest.raises(rb.InputError, match=r"was not finished \(run.checkpoint-\d+\); .*resume"):
        solve("gluons", killed, end=0.1)
    solve("gluons", killed, end=0.1, force=True)
    with pytest.raises(rb.InputError, match="the run is done, at t = 0.1 fm"):
        go_on(killed)


@pytest.mark.parametrize("force", [False, True])
def test_a_device_is_no_place_for_a_result(force):
    with pytest.raises(rb.InputError, match="'/dev/null' is no file but a device; use another"):
        solve("gluons", "/dev/null", end=0.1, force=force)
    assert Path("/dev/null").is_char_device()


# --- names and ends -----------------------------------------------------------------------------

IN_SPACE = """
[model]
name = "gluons"
alpha_s = 0.3
[grid]
momentum_cells = 4
momentum_max = 2.0
space_cells = [3, 1, 1]
[initial.g]
shape = "gradient"
minimum = 0.1
maximum = 0.2
[collisions]
samples = 1
[time]
end = 0.04
[output]
every = 0.02
[run]
backend = "cpu"
"""


def test_a_configuration_in_space_keeps_its_choice_of_snapshots(tmp_path, monkeypatch):
    """None, as in one run: f is large."""
    monkeypatch.chdir(tmp_path)
    Path("run.toml").write_text(IN_SPACE)
    for arguments in (
        ("run", "run.toml", "--out", "whole.nc", "--quiet", "--set", "time.end=0.08"),
        ("run", "run.toml", "--out", "run.nc", "--quiet"),
        ("resume", "run.nc", "--until", "0.08", "--quiet"),
    ):
        assert command(*arguments)[0] == 0
    whole, found = rb.load("whole.nc"), rb.load("run.nc")
    assert found.sizes["snapshot"] == whole.sizes["snapshot"] == 0
    same(found, whole)


def test_files_of_an_output_are_told_apart_by_its_name(tmp_path):
    """A configuration, or an output with another ending, is not the run."""
    solve("gluons", tmp_path / "run.nc", end=0.1)
    (tmp_path / "run.toml").touch()
    with pytest.raises(rb.InputError, match="is a configuration; name the result"):
        go_on(tmp_path / "run.toml", until=0.2)
    (tmp_path / "run.v2").touch()
    with pytest.raises(rb.InputError, match=r"no checkpoint run.v2.checkpoint-\*"):
        go_on(tmp_path / "run.v2", until=0.2)
    with pytest.raises(rb.InputError, match=r"is a checkpoint; name the result .* run.nc"):
        go_on(tmp_path / "run.checkpoint-000002", until=0.2)
    solve("gluons", tmp_path / "run.v1", end=0.1)
    assert (tmp_path / "run.v1.checkpoint-000002").exists()
    assert go_on(tmp_path / "run.nc", until=0.2).attrs["status"] == "done"


@pytest.mark.parametrize("end", [3 * 0.7, 1 - 0.9, 2 / 3])
def test_ends_that_are_records_but_for_rounding(tmp_path, end):
    """Whatever side of the record they are on."""
    ds = solve("gluons", tmp_path / "run.nc", end=end, every=end / 4, step=end / 8)
    assert ds.attrs["status"] == "done" and ds.sizes["time"] == 5
    assert ds.time[-1] == pytest.approx(end, rel=1e-14) and ds.snapshot[-1] == ds.time[-1]


def test_a_result_is_not_replaced_by_one_that_began_at_the_same_time(tmp_path):
    """The first to end has the name."""
    file = tmp_path / "run.nc"

    def meanwhile(_):
        for force, words in ((False, "was not finished"), (True, "another process is at this run")):
            with pytest.raises(rb.InputError, match=words):
                solve("gluons", file, end=0.1, seed=2, force=force)

    first = solve("gluons", file, end=0.02, every=0.02, step=0.02, progress=meanwhile)
    assert rb.load(file).attrs["run"] == first.attrs["run"]
    assert not file.with_name("run.lock").exists()


def test_a_model_file_may_be_written_in_other_letters(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = "# -*- coding: latin-1 -*-\n# \xe9\nimport relboltz as rb\n"
    text += "def model(): return rb.gluons(0.3)\n"
    Path("own.py").write_bytes(text.encode("latin-1"))
    words = IN_SPACE.replace('"gluons"\nalpha_s = 0.3', '"own.py:model"')
    Path("run.toml").write_text(words.replace("space_cells = [3, 1, 1]\n", ""))
    start = ("--set", 'initial.g={shape="step", height=0.5, edge=1.5}', "--quiet")
    assert command("run", "run.toml", "--out", "run.nc", *start)[0] == 0
    Path("own.py").unlink()
    assert command("resume", "run.nc", "--until", "0.08", "--quiet", "--trust")[0] == 0


def test_a_result_that_came_meanwhile_is_not_replaced(tmp_path, monkeypatch):
    """Between the first look at a name and the first step."""
    file, prepare = tmp_path / "run.nc", solving.prepare

    def slowly(*given):
        run = prepare(*given)
        file.write_text("another result")
        return run

    monkeypatch.setattr(solving, "prepare", slowly)
    with pytest.raises(rb.InputError, match="exists already"):
        solve("gluons", file, end=0.1)
    assert file.read_text() == "another result"
    assert [p.name for p in tmp_path.iterdir()] == ["run.nc"]


def test_info_tells_of_the_last_checkpoint(tmp_path, capsys):
    file, last = tmp_path / "run.nc", tmp_path / "run.checkpoint-000002"
    solve("gluons", file, end=0.1)
    for words in ("t = 0.1 fm", "damaged"):
        assert command("info", file)[0] == 0
        assert f"last checkpoint: {last.name}, {words}" in capsys.readouterr().out
        last.write_bytes(b"?" + last.read_bytes()[1:])
    file.unlink()
    assert command("info", file)[0] == 2
