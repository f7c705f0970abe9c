"""Shared parts of the figures: set-ups, runs that several share, sheets of numbers, pictures.

Zhang, Wu, Pu, Qin and Wang, *Towards a full solution of relativistic Boltzmann equation for
quark-gluon matter on GPUs*, is "the paper" here. A script makes one of its figures:

    python examples/paper/fig5.py [--full] [--backend cuda] [--out reproduction]
"""

import argparse
import json
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from PIL import Image

import relboltz as rb
from relboltz.visualization.plots import style

ALPHA_S, BOX = 0.3, 2.0
"""Coupling, and half width of the momentum box [GeV]."""
VOLUME = 6.0**3
"""Of the paper's space box [fm^3]: numbers are densities times this."""
STEP = rb.initial.step(height=0.5, edge=1.5, sampling="node")
"""The start of most figures: f = 0.5 up to 1.5 GeV, at the nodes."""
PAPERS: dict[str, Any] = {"projection": "nearest", "kinematics": "k2"}
"""As in the paper: through the delta function by k2, into the nearest cells."""
GLUONS, QUARKS = style.COLORS[:2]
WIDTH = 9.6


# --- numbers beside the paper's -----------------------------------------------------------------


@dataclass
class Sheet:
    """Results of a figure: numbers beside the paper's, times, sentences; kept as JSON."""

    figure: str
    words: str
    setup: str
    full: bool
    machine: str = ""
    seconds: float = 0.0
    lines: list[dict[str, Any]] = field(default_factory=list)
    runs: list[dict[str, Any]] = field(default_factory=list)
    findings: list[str] = field(default_factory=list)

    def compare(
        self, what: str, ours: float, paper: str = "", unit: str = "", remark: str = "",
        *, between: tuple[float, float] | None = None, same: bool | None = None,
    ) -> None:  # fmt: skip
        """A number of ours, and what the paper says of it.

        between : a check that fails the reproduction; same : whether it is as the paper says
        """
        ours = float(ours)
        passed = None if between is None else bool(between[0] <= ours <= between[1])
        same = None if same is None else bool(same)
        number = ours if np.isfinite(ours) else None
        self.lines.append(
            {"what": what, "paper": paper, "ours": number, "unit": unit, "remark": remark,
             "between": between, "passed": passed, "same": same}
        )  # fmt: skip

    def ran(self, what: str, result: xr.Dataset, paper: str = "") -> None:
        """A run that took its time; ``paper`` says how long on the V100 there."""
        took, steps = result.attrs["wall_seconds"], int(result.attrs["steps"])
        self.runs.append({"what": what, "seconds": float(took), "steps": steps, "paper": paper})
        self.machine = str(result.attrs["device"])

    def find(self, text: str) -> None:
        """A sentence about what was found, its numbers filled in by the script."""
        self.findings.append(text)


# --- how figures are made -----------------------------------------------------------------------


@dataclass
class Job:
    """At which size, where, into which folder; results are kept for the next figure."""

    full: bool = False
    backend: str = "auto"
    out: Path = Path("reproduction")
    threads: int = 0
    say: Callable[[str], None] = print
    watch: bool = True
    kept: dict[Any, xr.Dataset] = field(default_factory=dict)

    def pick(self, small: Any, full: Any) -> Any:
        """A size: for a laptop, or the paper's."""
        return full if self.full else small

    @property
    def machine(self) -> dict[str, Any]:
        """Where the work is done, as options of solve() and collision_term()."""
        return {"backend": self.backend, "threads": self.threads}

    def solve(self, name: str, model: rb.Model, grid: Any, start: Any, **options: Any):
        """rb.solve, once for all figures that ask for this name; says how long it took."""
        if name not in self.kept:
            began = time.perf_counter()
            with _known_warnings():
                ds = rb.solve(model, grid, start, progress=self.watch, **self.machine, **options)
            took = time.perf_counter() - began
            self.kept[name] = ds
            self.say(f"  {name}: {ds.attrs['steps']} steps to {options['end']:g} fm, {took:.1f} s")
        return self.kept[name]

    def repeat(self, name: str, count: int, once: Callable[[int], Any]) -> list[Any]:
        """Independent evaluations with the seeds 0, 1, ...; says how long they took."""
        began = time.perf_counter()
        found = [once(seed) for seed in range(count)]
        self.say(f"  {name}: {count} evaluations, {time.perf_counter() - began:.1f} s")
        return found

    def collision_term(self, *given: Any, **options: Any) -> xr.Dataset:
        """rb.collision_term on the machine of this job."""
        with _known_warnings():
            return rb.collision_term(*given, **self.machine, **options)

    def save(self, sheet: Sheet, picture: Figure, data: xr.Dataset) -> None:
        """Picture, data and numbers of a figure."""
        self.out.mkdir(parents=True, exist_ok=True)
        path = self.out / sheet.figure
        drawn = BytesIO()
        picture.savefig(drawn, dpi=110)
        colors = Image.open(drawn).convert("RGB").quantize(128)  # a third of the bytes
        colors.save(path.with_suffix(".png"), optimize=True)
        data.attrs = {"title": sheet.words, "set_up": sheet.setup, "machine": sheet.machine}
        packed = {name: {"zlib": True} for name in data.data_vars}
        data.to_netcdf(path.with_suffix(".nc"), engine="h5netcdf", encoding=packed)
        path.with_suffix(".json").write_text(json.dumps(asdict(sheet), indent=1) + "\n")


class _known_warnings(warnings.catch_warnings):
    """Small boxes and the nearest cell are what these figures are about: no warnings of them."""

    def __enter__(self) -> None:
        super().__enter__()
        warnings.simplefilter("ignore", rb.AccuracyWarning)
        warnings.simplefilter("ignore", rb.BackendNotice)


def make(job: Job, figure: str, module: Any) -> Sheet:
    """One figure from its script, which has ``setup(job)`` and ``draw(job, sheet)``."""
    sheet = Sheet(figure, " ".join(module.__doc__.split()), module.setup(job), job.full)
    began = time.perf_counter()
    with mpl.rc_context(style.STYLE):
        picture, data = module.draw(job, sheet)
        sheet.seconds = time.perf_counter() - began
        job.save(sheet, picture, data)
    return sheet


def main(figure: str) -> None:
    """A script by itself."""
    import importlib

    parser = argparse.ArgumentParser(description=f"The paper's {figure}.")
    parser.add_argument("--full", action="store_true", help="the paper's own grid and time")
    parser.add_argument("--backend", default="auto", choices=("auto", "cpu", "cuda"))
    parser.add_argument("--out", type=Path, default=Path("reproduction"))
    given = parser.parse_args()
    job = Job(given.full, given.backend, given.out)
    sheet = make(job, figure, importlib.import_module(figure))
    for line in sheet.lines:
        paper = f"   (paper: {line['paper']})" if line["paper"] else ""
        print(f"{line['what']}: {line['ours']} {line['unit']}{paper}")
    print(f"written: {job.out / figure}.png, .nc, .json")


# --- one step of Euler's method -----------------------------------------------------------------


def number(model: rb.Model, grid: rb.PhaseSpace, f: Any) -> dict[str, float]:
    """Particles of each species in the space box; f by species, then nodes."""
    held = (
        VOLUME
        * grid.measure
        * model.degeneracy
        * np.reshape(f, (len(model.species), -1)).sum(axis=1)
    )
    return dict(zip(model.names, held, strict=True))


def random_gluons(model: rb.Model, grid: rb.PhaseSpace) -> Any:
    """f on the nodes: gluons random in [0, 1], always the same, and no quarks."""
    start = rb.initial.starting_states({"g": rb.initial.random(0.0, 1.0, seed=1)}, model)
    f = rb.initial.evaluate(start, grid, model)
    return f.reshape(len(model.species), *grid.momentum_cells)


def stepped(
    job: Job, model: rb.Model, grid: rb.PhaseSpace, f: Any, dt: float, samples: int, **options: Any
) -> dict[str, float]:
    """Numbers after f + dt C[f], with the paper's sampling; two batches make the samples."""
    options = {**PAPERS, "symmetrical": False, **options}
    term = job.collision_term(model, grid, f, samples=samples // 2, batches=2, **options)
    return number(model, grid, f + dt * term.collision_term.values)


# --- matter in space ----------------------------------------------------------------------------


def space_size(job: Job) -> tuple[list[int], int, float]:
    """Space cells, samples, last time [fm]."""
    return job.pick(([10, 4, 1], 8, 10.0), ([10, 10, 1], 16, 20.0))


def relax_in_space(job: Job, end: float = 0.0, **options: Any) -> xr.Dataset:
    """Fig. 7 and 8: gluons with a gradient in x turn into quarks and level out.

    end, options : of a shorter run with other steps
    """
    cells, samples, last = space_size(job)
    grid = rb.PhaseSpace([10, 10, 1], BOX, space_cells=cells, space_max=3.0)
    start = {"g": rb.initial.gradient(minimum=0.1, maximum=0.2)}
    words = "".join(f", {key} {value:g}" for key, value in options.items())
    options = {"samples": samples, "tolerance": 1e-2} | options
    return job.solve(
        f"gradient in space, nearest{words}", rb.qcd(ALPHA_S), grid, start, projection="nearest",
        end=end or last, every=end or 0.5, marginals=["x", "y"], **options,
    )  # fmt: skip


def profiles(ds: xr.Dataset, of: Callable[[str, str], xr.DataArray], words: str) -> Figure:
    """Something of gluons and of u quarks along x and along y at several times, dark to light."""
    figure, axes = panels(2, 2, 3.0)
    times = [t for t in (0, 0.5, 1, 2, 5, 10, 20) if t <= ds.time[-1]]
    for ax, (species, axis) in zip(axes, ("gx", "gy", "ux", "uy"), strict=True):
        for t, look in style.shades(style.recorded(ds, times)):
            ax.plot(ds[axis], of(species, axis).sel(time=t), **look)
        top = 1.1 * float(of(species, "x").max())
        ax.set(xlabel=f"${axis}$ [fm]", ylabel=words.format(species), ylim=(0, top))
    legend(figure, axes[0])
    return figure


def levels(sheet: Sheet, ds: xr.Dataset, of: str, along: Callable[[str], xr.DataArray]) -> None:
    """How even something is along x, early and late: (largest - smallest) / mean."""
    for species in ("g", "u"):
        values = along(species)
        spread = (values.max("x") - values.min("x")) / values.mean("x")
        first = 0 if species == "g" or of == "m²" else 1
        early, late = float(spread[first]), float(spread[-1])
        words = f"variation of {of} of {species} along x"
        paper = "linear in x" if first == 0 else ""
        sheet.compare(f"{words}, {float(ds.time[first]):g} fm", 100 * early, paper, "%")
        sheet.compare(
            f"{words}, {float(ds.time[-1]):g} fm", 100 * late, "approximately uniform", "%",
            "check: less than half of the first", between=(0, 50 * early), same=late < 0.5 * early,
        )  # fmt: skip


# --- pictures -----------------------------------------------------------------------------------


def panels(rows: int, columns: int, height: float = 3.3) -> tuple[Figure, list[Axes]]:
    """A page of panels, lettered as in the paper."""
    figure = Figure((WIDTH, 0.2 + height * rows), layout="constrained")
    axes = list(figure.subplots(rows, columns, squeeze=False).ravel())
    for letter, ax in zip("abcdefgh" if len(axes) > 1 else "", axes, strict=False):
        ax.set_title(f"({letter})", loc="left", fontsize=10.5)
    return figure, axes


def evaluations(ax: Axes, numbers: dict[str, Sequence[float]], unit: str) -> None:
    """Numbers of independent evaluations, the paper's way: triangles and circles."""
    looks = [("^", QUARKS), ("o", style.COLORS[2])]
    for (words, values), (marker, color) in zip(numbers.items(), looks, strict=False):
        place = np.arange(1, len(values) + 1)
        ax.plot(place, values, marker, color=color, markersize=4, label=words, alpha=0.85)
    ax.set(xlabel="evaluation", ylabel=unit)


def legend(figure: Figure, ax: Axes) -> None:
    """One legend for all panels, above them."""
    lines, words = ax.get_legend_handles_labels()
    figure.legend(
        lines, words, loc="outside upper center", ncols=min(len(words), 8), columnspacing=1.2
    )
