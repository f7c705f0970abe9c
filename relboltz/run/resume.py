"""Continue a run from F.nc and the checkpoints beside it, bit-for-bit as if uninterrupted."""

import json
import os
import pickle
import tomllib
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import tomli_w
import xarray as xr

from ..config.settings import GridSettings, Settings
from ..grid.expansion import FUNCTION, Expansion
from ..grid.phase_space import PhaseSpace
from ..io import checkpoint, kinds, output
from ..io.checkpoint import CheckpointContent
from ..io.contents import check_arrays, check_facts, readable
from ..model.model import Model, check_model
from ..parallel.mpi import together
from ..util.errors import CheckpointWarning, InputError, say
from ..util.gc_pause import resting
from ..util.launcher import started
from ..util.text import is_number, shown
from ..util.trust import allow_code, as_kept, path_of, refuse_changed
from .input_file import Config, call_model
from .preflight import described
from .progress import Report, bar, stage
from .runner import Run, RunInfo


def _as_given(
    file: str | Path, *, model: Model | None = None, **_: Any
) -> Callable[[Mapping[str, Any]], Model]:
    """Return how another process of ``resume`` obtains the model."""
    return lambda recipe: model if model is not None else made_again(recipe)


@together(_as_given)
def resume(
    file: str | Path,
    *,
    until: float | None = None,
    snapshots: Sequence[float] = (),
    model: Model | None = None,
    expansion: Callable[[float], Any] | None = None,
    progress: bool | Report = True,
    threads: int | None = None,
    workers: int | None = None,
    trust: bool = False,
) -> xr.Dataset:
    """Continue the run of a file from its last checkpoint, bit-for-bit as if uninterrupted.

    Parameters
    ----------
    file : NetCDF file of the run, with its checkpoints F.checkpoint-* beside it
    until : a later end time [fm]; by default the end time of the run
    snapshots : times [fm] of snapshots of f, in addition to those of the run
    model : required only if the model was built in Python from your own processes
    expansion : required if the expansion law is a Python function
    progress : as in ``solve``
    threads : number of CPU threads, if different from before; 0 for all cores
    workers : number of Ray workers, if different from before; 0 for this process alone
    trust : run Python code saved in the checkpoint if the file on disk is absent or differs. Such a
        checkpoint is a program: trust it only if you know who wrote it

    Returns
    -------
    xarray.Dataset as returned by ``solve``, with all records since the start of the run

    Raises
    ------
    InputError : no checkpoint, nothing to do, or a source file is absent or has changed
    RunError, Interrupted : as in ``solve``
    """
    telling: Any = bar() if progress is True else nullcontext(progress or None)
    with telling as report:
        with resting():
            others = {"threads": threads, "workers": workers}
            run = taken_up(Path(file), until, model, others, snapshots, expansion, trust)
        return run.go(report)


def taken_up(
    file: Path,
    until: float | None = None,
    model: Model | None = None,
    others: Mapping[str, Any] | None = None,
    snapshots: Sequence[float] = (),
    expansion: Callable[[float], Any] | None = None,
    trust: bool = False,
) -> Run:
    """Prepare a run for continuation from its last checkpoint.

    others : changed keys of [run]; the other parameters are those of ``resume``
    """
    stage("reading the checkpoint")
    _check_kind(file)
    file = Path(os.path.realpath(file))
    saved = checkpoint.latest(file)
    facts = saved.facts
    check_facts(saved)
    with readable(saved):
        settings = _settings(file, facts, until, others or {}, snapshots)
        about = _about(facts, settings)
        grid = _grid(file, facts, expansion, trust)
        found = _model(file, facts, model, trust)
        check_arrays(saved, found, grid)
    output.check_writable(file)
    _tell_versions(saved)
    return Run(found, grid, saved, settings, file, about)


def _check_kind(file: Path) -> None:
    """Refuse files that are not single runs, such as scans, and say how to continue these."""
    kind = kinds.recorded(file)  # a damaged or absent file may belong to a run
    if kind in kinds.AGAIN:
        raise InputError(f"{file}: {kinds.AGAIN[kind]}")


def _settings(
    file: Path, facts: Mapping[str, Any], until: float | None, others: Mapping[str, Any],
    snapshots: Sequence[float] = (),
) -> Settings:  # fmt: skip
    """Return the saved settings with a later end, changed keys of [run] and more snapshots."""
    now, end, data = facts["time"], facts["end"], facts["settings"]
    last = end if until is None else until
    unwritten = until is None and file.with_name(facts["place"]["parts"] or "?").is_dir()
    later = isinstance(last, int | float) and now < last < float("inf")
    if not later and not unwritten:  # a finished run removes its parts once they are in F.nc
        if until is None:
            raise InputError(f"{file}: the run is done, at t = {end:g} fm{_advice(file)}")
        raise InputError(f"until = {until!r}: the run is at t = {now:g} fm; use a later time")
    if until is not None:
        data["time"]["end"] = float(until)
        if until < end and "snapshots" in data["output"]:
            kept = [t for t in data["output"]["snapshots"] if t <= until]
            data["output"]["snapshots"] = kept
    if isinstance(snapshots, int | float) or not all(is_number(t) for t in snapshots):
        raise InputError(f"snapshots = {shown(snapshots)}: use a list of times in fm")
    if snapshots:
        for t in snapshots:
            if not now < t <= data["time"]["end"]:
                raise InputError(
                    f"snapshots: {t:g} fm: the run is at t = {now:g} fm and goes on to "
                    f"{data['time']['end']:g} fm; use times between these"
                )
        time = data["time"]
        asked = data["output"].get("snapshots", (time.get("start", 0.0), time["end"]))
        data["output"]["snapshots"] = sorted({*asked, *map(float, snapshots)})
    data["run"] = elsewhere(data["run"], others)
    return Settings.checked(data)


def _advice(file: Path) -> str:
    """Say how to continue a finished run, even if its file is damaged."""
    try:
        output.attributes(file)
    except InputError:
        return (
            ", but its file cannot be read: bring back a copy of it; or go on from the last state, "
            "without the records so far, until T (--until T)"
        )
    return "; go on until T (--until T)"


def elsewhere(run: Mapping[str, Any], others: Mapping[str, Any]) -> dict[str, Any]:
    """Return the saved [run] with changed keys; without workers their locations are dropped."""
    found = {**run, **{key: value for key, value in others.items() if value is not None}}
    if found["workers"] == 0 or started():
        found |= {"workers": 0, "address": "", "gpus_per_worker": 0.0}
    return found


def _grid(
    file: Path, facts: Mapping[str, Any], law: Callable[[float], Any] | None, trust: bool
) -> PhaseSpace:
    """Build the grid of the run with its expansion."""
    told = str(facts["grid"].get("expansion", "none"))
    if told.startswith(FUNCTION):
        name = told.removeprefix(FUNCTION)
        if law is None:
            raise InputError(
                f"{file}: its expansion law is the Python function {name}; give it again: "
                f"resume(file, expansion={name})"
            )
    elif law is not None:
        raise InputError(f"expansion = {shown(law)}: the run has {told!r}; leave it out")
    chosen: Any = law
    if ".py:" in told:
        allow_code(told, facts.get("law"), file, trust)
        chosen = Expansion(told, source=facts.get("law"))
    still = {**facts["grid"], "expansion": "none"} if chosen is not None else facts["grid"]
    asked = GridSettings.model_validate(still, strict=False)
    grid = asked.phase_space() if chosen is None else asked.phase_space(expansion=chosen)
    known = facts.get("scales") if grid.expansion is not None else None
    for t, *scales in known or []:
        now = grid.expansion.scales(t, known[0][0])  # type: ignore[union-attr, index]
        if max(abs(a / b - 1) for a, b in zip(now, scales, strict=True)) > 1e-12:
            raise InputError(
                f"{file}: grid.expansion = {told!r} has scale factors {now} at t = {t:g} fm, and "
                f"the run had {tuple(scales)}; bring back the function that it began with"
            )
    return grid


def _about(facts: Mapping[str, Any], settings: Settings) -> RunInfo:
    """Return description and recipe of the run; the configuration contains the new end."""
    about = RunInfo(**facts["about"])
    described = tomllib.loads(about.configuration)
    described["time"]["end"] = settings.time.end
    described["output"]["snapshots"] = list(settings.output.snapshots)
    return RunInfo(about.title, tomli_w.dumps(described), about.recipe)


def _tell_versions(saved: CheckpointContent) -> None:
    """Warn if the run began with other software versions: results may differ in the last bits."""
    now = output.versions()
    before = saved.facts["versions"]
    other = [f"{k} {v} (now {now.get(k)})" for k, v in before.items() if now.get(k) != v]
    if other:
        say(
            f"{saved.path.name} was written with {', '.join(other)}: the last bits may differ",
            CheckpointWarning,
        )


# --- the model ----------------------------------------------------------------------------------


def recipe_of_config(config: Config) -> dict[str, Any]:
    """Return how to rebuild the model of a configuration, with the sources of user files."""
    table = {"name": config.model.name, **(config.model.model_extra or {})}
    return {
        "model": _plain(table), "folder": str(config.folder), "sources": config.sources(),
        "elements": fingerprints(config.build_model()),
    }  # fmt: skip


def recipe_of_model(model: Model) -> dict[str, Any]:
    """Return how to rebuild a model built in Python, if possible."""
    return {"model": _plain(model.recipe), "elements": fingerprints(model)}


def _plain(recipe: Mapping[str, Any] | None) -> Any:
    """Return a recipe as JSON values; None if that is impossible."""
    try:
        return json.loads(json.dumps(recipe))
    except (TypeError, ValueError):
        return None


def fingerprints(model: Model) -> dict[str, str]:
    """Return digests of the values of user-defined matrix elements, by process."""
    return {p.name: p.fingerprint() for p in model.processes if not p.built_in}


def _model(file: Path, facts: Mapping[str, Any], given: Model | None, trust: bool) -> Model:
    """Return the model of a run, rebuilt or passed again."""
    recipe = facts["about"]["recipe"]
    if given is not None:
        model = check_model(given)
    elif recipe.get("model"):
        model = _from_checkpoint(recipe, file, trust)
    else:
        raise InputError(
            f"{file}: its model was made in Python; use relboltz.resume({str(file)!r}, model=...) "
            "with the same model"
        )
    same = _plain(described(model)) == _plain(facts["described"])
    before, now = recipe.get("elements", {}), fingerprints(model)
    changed = [name for name in now if before.get(name, now[name]) != now[name]]
    if not same or changed:
        what = f"the matrix element of {changed[0]} is" if changed else "it is"
        raise InputError(
            f"{file}: {what} not that of the model that began the run; use the same one, or start "
            "a new run"
        )
    return model


def made_again(recipe: Mapping[str, Any]) -> Model:
    """Build the model of a recipe, with user files as they were when the recipe was written."""
    if "pickled" in recipe:
        found: Model = pickle.loads(recipe["pickled"])
        return found
    name = code_of(recipe)
    if name is not None:
        name = as_kept(name, recipe.get("sources", {}).get(str(path_of(name))))
    table = recipe["model"]
    arguments = {k: v for k, v in table.items() if k != "name"}
    return call_model(name or table["name"], arguments, Path())


def code_of(recipe: Mapping[str, Any]) -> str | None:
    """Return the "file.py:function" that builds a user's model; None for a built-in model."""
    name = str(recipe["model"]["name"])
    return str(Path(recipe.get("folder", "")) / name) if ":" in name else None


def _from_checkpoint(recipe: Mapping[str, Any], file: Path, trust: bool) -> Model:
    """Build the model of a checkpoint's recipe, if its code may run."""
    sources, name = recipe.get("sources", {}), code_of(recipe)
    if name is not None:
        allow_code(name, sources.get(str(path_of(name))), file, trust)
    if not trust:
        refuse_changed(sources, file)
    return made_again({k: v for k, v in recipe.items() if k != "pickled"})
