"""converge(): repeat a set-up with each setting varied alone; values with reliable error bars."""

import math
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from ...grid.phase_space import PhaseSpace
from ...io import kinds, output
from ...io.comparable import comparable, names_of
from ...model.model import Model
from ...parallel.mpi import together
from ...run import input_file as config
from ...run.progress import Report, RunProgress, bar, duration
from ...run.setup import Case, is_finished, made
from ...util.arrays import Array
from ...util.errors import AccuracyWarning, InputError, Interrupted, RunError
from ..replicas import mean_and_error
from .extrapolation import (
    LEVEL,
    ConvergedValue,
    KnobEffect,
    NoisyValue,
    exponential,
    holding,
    limit,
    power_law,
    students_t,
    tail,
    unbiased,
)
from .plan import ConvergenceEffort, ConvergencePlan, PlannedRun, VariedSetting, efforts, plan_of

RESULT = "converge.nc"
Tell = Callable[[str], None]


@together(lambda model, *_, **__: lambda recipe: _model_again(model, recipe))
def converge(
    model: Model | config.Config | str | Path,
    grid: PhaseSpace | int | Sequence[int] | None = None,
    initial: Any = None,
    *,
    end: float | None = None,
    folder: str | Path | None = None,
    seeds: int = ConvergenceEffort.seeds,
    budget: float | None = None,
    progress: bool | Report = True,
    tell: Tell | None = None,
    **options: Any,
) -> xr.Dataset:
    """Solve with finer spacing, a larger box, shorter steps, more samples and other seeds.

    Parameters
    ----------
    model, grid, initial, end, **options : as for ``solve``; or a configuration alone, as an object
        or the name of its file
    folder : folder for all runs; runs already finished there are not repeated
    seeds : number of runs of the set-up itself, 3 or more; they measure the noise
    budget : minutes for the whole study; the study is reduced if necessary
    progress : as in ``solve``
    tell : called with a line of text before every run

    Returns
    -------
    xarray.Dataset : every recorded quantity extrapolated in all varied settings ("knobs"), and
        ``*_error``, its error bar; ``*_run`` is the mean of the set-up itself, ``*_noise`` the
        standard deviation of a single run; by knob: ``*_change``, the change due to the knob,
        ``*_bar``, its part of the error bar, ``*_order``, the order of the error in the spacing,
        step or space cell (NaN without a power law), ``*_shown``, whether three runs measure that
        order (otherwise it may be 1 or 2, and the bar covers both), and ``*_order_uncertainty`` of
        a measured order

    Raises
    ------
    InputError : before any long run starts, or if the first run shows that the budget is too small
    Interrupted, RunError : finished runs are kept in ``folder``
    """
    case = _case(model, grid, initial, end, options)
    effort = ConvergenceEffort(seeds=_checked(seeds, budget))
    place = None if folder is None else Path(folder)
    if not isinstance(progress, bool):
        report: Any = nullcontext(progress)
    else:
        report = bar() if progress else nullcontext()
    with report as told:
        return converged(case, place, effort, budget, told, tell or (lambda text: None))


def _model_again(model: Any, recipe: Mapping[str, Any]) -> Model:
    """Return the model, rebuilt if this is another process."""
    from ...run.resume import made_again

    return model if isinstance(model, Model) else made_again(recipe)


def _checked(seeds: Any, budget: Any) -> int:
    whole = isinstance(seeds, int) and not isinstance(seeds, bool)
    if not whole or not 3 <= seeds <= 1000:
        raise InputError(f"seeds = {seeds!r}: use a whole number from 3 to 1000")
    if budget is not None and not (isinstance(budget, int | float) and budget > 0):
        raise InputError(f"budget = {budget!r}: use a number of minutes above 0")
    return int(seeds)


def _case(model: Any, grid: Any, initial: Any, end: Any, options: dict[str, Any]) -> Case:
    """Return the arguments as a case."""
    if isinstance(model, Model):
        if grid is None or initial is None or end is None:
            raise InputError("converge(model, ...) needs grid, initial and end, as solve() does")
        return Case.of_options(model, grid, initial, {"end": end, **options})
    given = {"grid": grid, "initial": initial, "end": end, **options}
    extra = [name for name, value in given.items() if value is not None]
    if extra:
        raise InputError(f"option {extra[0]}: a configuration says it itself; change it there")
    made = model if isinstance(model, config.Config) else config.load(model)
    return Case.of_config(made)


# --- the runs -----------------------------------------------------------------------------------


def converged(
    case: Case,
    folder: Path | None,
    effort: ConvergenceEffort,
    budget: float | None,
    progress: Report | None,
    tell: Tell,
) -> xr.Dataset:
    """Run all jobs of a case and evaluate them; write the result to RESULT in the folder."""
    if folder is not None:
        made(folder)
    runs = RunFolder(folder, progress, tell)
    plan = plan_of(case, effort)
    first = runs.done(plan.seeds[0], "the set-up itself")
    plan = _affordable(case, effort, budget, runs)
    tell(_estimate(plan, runs))
    for name, reason in plan.left_out.items():
        tell(f"{name} is not varied: {reason}")
    description = {job.name: knob.description for knob in plan.knobs for job in knob.jobs}
    results: dict[str, xr.Dataset] = {}
    for number, job in enumerate(plan.jobs, start=1):
        label = f"{number} of {len(plan.jobs)}, {job.name}"
        label += (
            f": {description[job.name]}"
            if job.name in description and "coarser" not in job.name
            else ""
        )
        try:
            results[job.name] = first if number == 1 else runs.done(job, label)
        except Interrupted as error:
            kept = f"; {number - 1} of {len(plan.jobs)} runs are done"
            raise Interrupted(f"{error}{kept}", error.dataset, error.signal) from None
        except (InputError, RunError) as error:
            if job in plan.seeds:
                raise
            tell(f"{job.name} failed, and is left out: {error}")
    ds = evaluated(case, plan, results)
    if folder is not None:
        output.write(ds, folder / RESULT)
    return ds


class RunFolder:
    """Runs in a folder, each executed once."""

    def __init__(self, folder: Path | None, progress: Report | None, tell: Tell):
        self._folder, self._progress, self._tell = folder, progress, tell
        self._names: dict[Any, str] = {}
        self.seconds = math.inf

    def path(self, job: PlannedRun) -> Path | None:
        """Return the file of a job."""
        if self._folder is None:
            return None
        settings = job.case.settings
        key = job.name, job.case.grid, settings.collisions, settings.time
        if key not in self._names:
            self._names[key] = f"{job.name}-{job.case.digest()}"
        return self._folder / f"{self._names[key]}.nc"

    def known(self, job: PlannedRun) -> bool:
        """Return whether the job was finished before."""
        path = self.path(job)
        return path is not None and is_finished(path)

    def done(self, job: PlannedRun, description: str) -> xr.Dataset:
        """Return the result of a job; only warnings of the set-up itself are shown."""
        path = self.path(job)
        self._tell(description + (" (done before)" if self.known(job) else ""))
        with warnings.catch_warnings():
            if job.name != "seed-1":
                warnings.simplefilter("ignore", AccuracyWarning)
            clock = StepClock(self._progress)
            ds = job.case.done(path, clock)
        if job.name.startswith("seed-"):
            self.seconds = min(self.seconds, clock.seconds, float(ds.attrs["wall_seconds"]))
        return ds


class StepClock:
    """Timer for the steps of a run, excluding the first, which may wait for compilation."""

    def __init__(self, report: Report | None):
        self._report, self._marks = report, list[float]()

    def __call__(self, now: RunProgress) -> None:
        self._marks.append(time.perf_counter())
        if self._report is not None:
            self._report(now)

    @property
    def seconds(self) -> float:
        """Time of all steps; infinite if there are few."""
        steps = len(self._marks)
        if steps < 5:
            return math.inf
        return (self._marks[-1] - self._marks[0]) * steps / (steps - 1)


def _affordable(
    case: Case, effort: ConvergenceEffort, budget: float | None, runs: RunFolder
) -> ConvergencePlan:
    """Return the largest plan within the budget [minutes]."""
    least, seconds = 0.0, runs.seconds
    for tried in efforts(effort):
        plan = plan_of(case, tried)
        least = _cost(plan, runs) * seconds / 60
        if budget is None or least <= budget:
            return plan
    raise InputError(
        f"budget = {budget:g}: a run takes {duration(seconds)}, and the least that tells something "
        f"about {least:.2g} minutes; allow them, or use fewer nodes, samples or a shorter run"
    )


def _cost(plan: ConvergencePlan, runs: RunFolder) -> float:
    """Return the remaining work in units of one run of the set-up."""
    return sum(job.cost for job in plan.jobs[1:] if not runs.known(job))


def _estimate(plan: ConvergencePlan, runs: RunFolder) -> str:
    left = [job for job in plan.jobs[1:] if not runs.known(job)]
    cost = sum(job.cost for job in left)
    return (
        f"{len(left)} more runs, {cost:.0f} times the work of the first: about "
        f"{duration(cost * runs.seconds)}"
    )


# --- what they say ------------------------------------------------------------------------------


def evaluated(case: Case, plan: ConvergencePlan, results: Mapping[str, xr.Dataset]) -> xr.Dataset:
    """Return limits, error bars and changes of all quantities that the runs share."""
    began = time.perf_counter()
    first = results[plan.seeds[0].name]
    seeds = [comparable(results[job.name], first) for job in plan.seeds]
    t = students_t(len(seeds) - 1)
    knobs = [knob for knob in plan.knobs if knob.fine.name in results]
    others = {
        job.name: comparable(results[job.name], first, further=knob.name == "walls")
        for knob in knobs for job in knob.jobs if job.name in results
    }  # fmt: skip
    traits = _traits(case, plan, first)
    found: dict[str, Any] = {}
    for name in names_of(first):
        values = np.stack([one[name] for one in seeds])
        mean, error = mean_and_error(values)
        base, single = NoisyValue(mean, error**2), error**2 * len(values)
        turned = [_turned(knob, name, base, single, others, t, traits) for knob in knobs]
        found |= _variables(first[name], base, single, turned, limit(base, turned, t))
    coords = {str(k): v for k, v in first.coords.items() if set(v.dims) <= _dims(found)}
    ds = xr.Dataset(found, coords=coords | {"knob": [knob.name for knob in knobs]})
    return ds.assign_attrs(_attributes(first, plan, knobs, results, time.perf_counter() - began))


def _traits(case: Case, plan: ConvergencePlan, first: xr.Dataset) -> dict[str, float]:
    """Return parameters of the laws: decay of the tail beyond a box, noise of automatic steps."""
    known = [first[n].values for n in ("temperature", "total_temperature") if n in first]
    known.append(first.equilibrium_temperature.values)
    temperatures = np.concatenate([np.ravel(v) for v in known])
    hottest = float(temperatures[np.isfinite(temperatures)].max(initial=0.0))
    noise = first.noise.values[np.isfinite(first.noise.values)]
    widths = [
        zip(case.grid.momentum_max, knob.fine.case.grid.momentum_max, strict=True)
        for knob in plan.knobs if knob.name == "box"
    ]  # fmt: skip
    return {
        "decay": max((tail(a, b, hottest) for pairs in widths for a, b in pairs), default=0.5),
        "noise": float(np.median(noise)) if len(noise) else 0.0,
    }


def _turned(
    knob: VariedSetting,
    name: str,
    base: NoisyValue,
    single: Array,
    others: Mapping[str, Mapping[str, Array]],
    t: float,
    traits: Mapping[str, float],
) -> KnobEffect:
    """Return the effect of a knob on a quantity."""

    def measured(job: PlannedRun | None) -> NoisyValue | None:
        if job is None or job.name not in others:
            return None
        values = others[job.name].get(name)
        if values is None or values.shape != base.value.shape:
            values = np.full_like(base.value, np.nan)
        return NoisyValue(values, single * job.variance)

    fine, coarse = measured(knob.fine), measured(knob.coarse)
    assert fine is not None
    if knob.law == "samples":
        return unbiased(base, fine, 1 / knob.ratios[0], t)
    if knob.law == "box":
        # All that is known of walls in space is that their effect decreases.
        return exponential(base, fine, traits["decay"] if knob.name == "box" else 0.5)
    usual = 2.0 if knob.name == "step" else 1.0  # the scheme is second order in time
    shift = power_law(base, fine, coarse, knob.ratios, t, usual)
    if knob.fine.case.settings.time.step == "auto" and knob.name == "step":
        # With less noise, automatic steps are longer by 1/(1 - noise): a run with more samples or
        # nodes and the same tolerance has a larger error of the step than this run, and the bar
        # covers it too.
        return holding(shift, (1 - min(traits["noise"], 0.9)) ** -2)
    return shift


def _variables(
    like: xr.DataArray,
    base: NoisyValue,
    single: Array,
    turned: Sequence[KnobEffect],
    found: ConvergedValue,
) -> dict[str, Any]:
    """Return the variables of one quantity."""
    name, dims, unit = str(like.name), like.dims, like.attrs.get("units", "1")
    description = like.attrs.get("long_name", name)
    empty = np.zeros((0, *base.value.shape))

    def by_knob(values: list[Array]) -> Array:
        return np.stack(values) if values else empty

    return {
        name: output.variable(dims, found.value, unit, f"{description}, extrapolated"),
        f"{name}_error": output.variable(dims, found.error, unit, f"error bar: {description}"),
        f"{name}_run": output.variable(dims, base.value, unit, f"{description}, set-up as it is"),
        f"{name}_noise": output.variable(
            dims, np.sqrt(single), unit, f"standard deviation of one run: {description}"
        ),
        f"{name}_change": output.variable(
            ("knob", *dims), by_knob([s.change for s in turned]), unit, f"change of {description}"
        ),
        f"{name}_bar": output.variable(
            ("knob", *dims), by_knob([s.bar for s in turned]), unit,
            f"part of the error bar, noise apart: {description}",
        ),
        f"{name}_shown": output.variable(
            ("knob", *dims), by_knob([s.shown.astype(float) for s in turned]), "1",
            f"1 where the runs measure the law of the change: {description}",
        ),
        f"{name}_order": output.variable(
            ("knob", *dims), by_knob([s.order + 0 * s.change for s in turned]), "1",
            f"order of the error, measured where shown: {description}",
        ),
        f"{name}_order_uncertainty": output.variable(
            ("knob", *dims), by_knob([s.order_error + 0 * s.change for s in turned]), "1",
            f"error of the measured order: {description}",
        ),
    }  # fmt: skip


def _dims(found: Mapping[str, Any]) -> set[str]:
    return {str(dim) for dims, *_ in found.values() for dim in dims}


def _attributes(
    first: xr.Dataset,
    plan: ConvergencePlan,
    knobs: Sequence[VariedSetting],
    results: Mapping[str, xr.Dataset],
    seconds: float,
) -> dict[str, Any]:
    seeds = [job.case.seed for job in plan.seeds]
    spent = sum(float(ds.attrs["wall_seconds"]) for ds in results.values())
    left = [f"{name}: {reason}" for name, reason in plan.left_out.items()]
    left += [f"{k.name}: its run failed" for k in plan.knobs if k not in knobs]
    return {
        "kind": kinds.CONVERGENCE,
        **output.versions(),
        **{key: first.attrs[key] for key in ("model", "configuration", "device", "warnings")},
        "title": f"{first.attrs['title']}: converged",
        "status": "done",
        "level": LEVEL,
        "seeds": np.array(seeds, dtype=np.int64),
        "knobs": [knob.description for knob in knobs],
        "not_varied": "\n".join(left),
        "wall_seconds": spent + seconds,
    }
