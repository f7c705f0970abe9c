"""Case: a completely specified run. The runs of many cases are kept in a folder and done once.

The file name of a case contains a digest of everything that determines its bits, so that a
finished run is found again, a killed run is continued, and results of different set-ups are never
confused.
"""

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from .. import __version__
from ..config.settings import GridSettings, Settings
from ..grid.phase_space import PhaseSpace
from ..initial import Shape, Start, evaluate, starting_states
from ..io import checkpoint, output
from ..io.reservation import base
from ..model.model import Model
from ..parallel.ray import resolve
from ..util.errors import AccuracyWarning, CheckpointWarning, InputError, say
from ..util.gc_pause import resting
from .input_file import Config
from .preflight import described
from .progress import Report
from .resume import fingerprints, recipe_of_config, recipe_of_model, taken_up
from .runner import Run, RunInfo
from .solve import Request, planned, prepare, settings_of

BESIDES = ("file", "checkpoint_every")
"""Keys of [output] that do not affect the computation."""
LETTERS = 12
"""Length of a digest: accidental collisions between cases are not to be expected."""


@dataclass(frozen=True)
class Case:
    """Completely specified run: model, initial state, grid and settings."""

    model: Model
    states: Mapping[str, Shape]
    grid: PhaseSpace
    settings: Settings
    about: RunInfo = field(default_factory=RunInfo)

    @classmethod
    def of_config(cls, config: Config) -> "Case":
        """Build the case of a configuration; a box that is "auto" is determined."""
        with resting():
            model, states = config.build_model(), config.build_initial()
            about = RunInfo(config.title, "", recipe_of_config(config))
            return cls.of(model, states, config.grid, config, about)

    @classmethod
    def of_options(cls, model: Model, grid: Request, initial: Start, options: Any) -> "Case":
        """Build the case of the arguments of ``solve``."""
        with resting():
            settings = settings_of(grid, options)
            about = RunInfo("", "", recipe_of_model(model))
            return cls.of(model, starting_states(initial, model), grid, settings, about)

    @classmethod
    def of(
        cls, model: Model, states: Mapping[str, Shape], request: Request, settings: Settings,
        about: RunInfo,
    ) -> "Case":  # fmt: skip
        """Build a case; choose grid, backend and precision where these are not given."""
        grid, backend, precision = planned(model, states, request, settings, None)
        run = settings.run.model_copy(update={"backend": backend, "precision": precision})
        return cls(model, states, grid, settings.model_copy(update={"run": run}), about)

    def on(self, grid: PhaseSpace) -> "Case":
        """Return the case on another grid."""
        return replace(self, grid=grid)

    def with_keys(self, table: str, **keys: Any) -> "Case":
        """Return the case with changed keys in a table of the settings."""
        changed = getattr(self.settings, table).model_copy(update=keys)
        return replace(self, settings=self.settings.model_copy(update={table: changed}))

    @property
    def seed(self) -> int:
        """Seed of the random numbers."""
        return self.settings.collisions.seed

    def digest(self) -> str:
        """Identifier of the case: a hash of everything that determines its bits."""
        settings = self.settings.to_dict()
        kept = {k: v for k, v in settings["output"].items() if k not in BESIDES}
        told = {
            "version": __version__, "model": described(self.model),
            "elements": fingerprints(self.model),
            "grid": GridSettings.told(self.grid),
            "collisions": settings["collisions"], "time": settings["time"], "output": kept,
            "run": resolve(self.settings.run),
        }  # fmt: skip
        digest = hashlib.sha256(json.dumps(told, sort_keys=True, default=repr).encode())
        start = evaluate(self.states, self.grid, self.model)
        digest.update(str(start.shape).encode() + np.ascontiguousarray(start).tobytes())
        return digest.hexdigest()[:LETTERS]

    def done(
        self,
        path: Path | None,
        progress: Report | None = None,
        announce: Callable[[Run], None] | None = None,
    ) -> xr.Dataset:
        """Return the result: from the file of a finished run, else by running or continuing it.

        A warning that a filter turns into an error does not stop a series of runs.
        """
        if path is not None and (found := finished(path)) is not None:
            return found
        with resting():
            run = self._taken_up(path) or prepare(
                self.model, self.states, self.grid, self.settings, path, self.about
            )
        if announce is not None:
            announce(run)
        try:
            return run.go(progress)
        except AccuracyWarning as warning:
            ds: xr.Dataset = warning.dataset
            return ds

    def _taken_up(self, path: Path | None) -> Run | None:
        """Return the unfinished run of a file; None if there is none to continue."""
        if path is None or not checkpoint.of_run(path):
            return None
        run = self.settings.run
        try:
            return taken_up(
                path, None, self.model, {"threads": run.threads, "workers": run.workers}
            )
        except InputError as error:
            say(f"{path.name} begins again, because {error}", CheckpointWarning)
            return None


def finished(path: Path) -> xr.Dataset | None:
    """Return the result of a finished run; None if it is unfinished or unreadable."""
    try:
        return output.load(path) if is_finished(path) else None
    except InputError:
        return None


def is_finished(path: Path) -> bool:
    """Whether a run is finished, without reading its result."""
    try:
        return bool(output.attributes(path).get("status") == "done")
    except InputError:
        return False


def folder_of(file: Path, kind: str) -> Path:
    """Return the folder F.kind beside F.nc; create it if absent."""
    return made(file.with_name(f"{base(file)}.{kind}"))


def made(folder: Path) -> Path:
    """Create a folder if absent; return it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"the folder {folder} cannot be made: {error.strerror}") from None
    return folder


def derived_seed(seed: int, number: int) -> int:
    """Return the seed of run ``number``: the seed itself for 0, else 63 bits of a hash of both.

    Consecutive seeds would be statistically as good, but then the second run of seed 1 would equal
    the first run of seed 2, and a mean over both sets would contain this run twice.
    """
    if number == 0:
        return seed
    digest = hashlib.sha256(f"relboltz {seed} {number}".encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 1
