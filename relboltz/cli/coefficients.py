"""relboltz coefficients: compute viscosities, diffusion and conductivity of a model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..util.errors import InputError
from .console import console, delivered, plain_warnings, tell
from .options import Backend, Force, Json, Set, Threads, overridden

if TYPE_CHECKING:
    import xarray as xr


PICTURES = ("png", "pdf", "svg")


def coefficients(
    file: Annotated[
        Path, typer.Argument(metavar="FILE.toml", help="Configuration; [model] is enough.")
    ],
    temperature: Annotated[
        list[float] | None,
        typer.Option(metavar="T", help="GeV; repeatable. Default: predicted final temperature."),
    ] = None,
    mu: Annotated[
        list[str] | None,
        typer.Option(
            metavar="MU", help="Chemical potential, GeV: a number, or NAME=NUMBER; repeatable."
        ),
    ] = None,
    events: Annotated[
        int | None, typer.Option(metavar="N", help="Per temperature; default: a million.")
    ] = None,
    tagged: Annotated[
        str | None, typer.Option(metavar="NAME", help="Species whose diffusion and drag to add.")
    ] = None,
    on_grid: Annotated[
        bool | None,
        typer.Option("--on-grid/--unlimited", help="Momenta on the nodes of [grid], or unlimited."),
    ] = None,
    nodes: Annotated[bool, typer.Option("--nodes", hidden=True)] = False,
    seed: Annotated[int | None, typer.Option(metavar="N", help="Random seed.")] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="F.nc", help="Write the result to this NetCDF file.")
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(metavar="F.png", help="Plot the coefficients against T here.")
    ] = None,
    json_: Json = None,
    force: Force = False,
    set_: Set = None,
    threads: Threads = None,
    backend: Backend = None,
) -> None:
    """Compute viscosities, diffusion and conductivity of a model in equilibrium.

    They are sampled from events of the model's processes, with standard errors.
    """
    from ..analysis.tables import coefficients as table
    from ..io import output
    from ..run import input_file as config

    if nodes:
        raise InputError("unknown option --nodes: it is called --on-grid now")
    for key, path in (("--out", out), ("--plot", plot), ("--json", json_)):
        if path is not None:
            output.check_writable(path, key)
            if output.same_file(path, file):
                raise InputError(f"{key} {path}: is the configuration itself; use another name")
    if out is not None and out.exists() and not force:
        raise InputError(f"--out {out}: exists already; use another name, or --force")
    if plot is not None and plot.suffix[1:] not in PICTURES:
        raise InputError(f"--plot {plot}: pictures end in .{', .'.join(PICTURES)}")
    overrides = overridden(set_, threads, backend)
    given = {"events": events, "seed": seed, "on_grid": on_grid, "tagged": tagged}
    overrides += [f"coefficients.{k}={json.dumps(v)}" for k, v in given.items() if v is not None]
    overrides += [f"coefficients.temperature={list(temperature)}"] if temperature else []
    settings = config.load(file, overrides, config.ModelConfig)
    with plain_warnings():
        ds = _found(settings, _potentials(mu))
    for part in table(ds):
        console.print(part)
    if out is not None:
        output.write(ds, out)
        tell(f"written: {out}")
    if plot is not None:
        from ..visualization.plots import coefficients as draw

        draw(ds).savefig(plot, dpi=150)
        tell(f"written: {plot}")
    if json_ is not None:
        json_.write_text(json.dumps(_plain(ds), indent=2, allow_nan=False) + "\n")
        tell(f"written: {json_}")
    else:
        delivered()


def _potentials(given: list[str] | None) -> Any:
    """Return the chemical potentials given on the command line; None if there are none."""
    if not given:
        return None
    found: dict[str, float] = {}
    for text in given:
        name, equals, number = text.rpartition("=")
        try:
            value = float(number)
        except ValueError:
            raise InputError(f"--mu {text}: write a number of GeV, or NAME=NUMBER") from None
        if not equals and len(given) == 1:
            return value
        if not equals:
            raise InputError(f"--mu {text}: several of them need names, such as u={number}")
        found[name.strip()] = value
    return found


def _found(settings: Any, mu: Any) -> xr.Dataset:
    """Return the requested coefficients; without a given T, at the predicted final state."""
    from ..linear_response import transport_coefficients
    from ..run.solve import grid_of

    asked, model = settings.coefficients, settings.build_model()
    temperature: Any = asked.temperature
    potential = asked.chemical_potential if mu is None else mu
    if temperature == ():
        if mu is not None or "chemical_potential" in asked.model_fields_set:
            raise InputError(
                "chemical_potential (--mu) is given without a temperature: add --temperature, or "
                "leave it out for T and mu of the equilibrium that the start tends to"
            )
        temperature, potential = _predicted(settings, model)
    grid = None
    if asked.on_grid:
        states = settings.build_initial()
        if not states and settings.grid.momentum_max == "auto":
            raise InputError(
                "grid.momentum_max = 'auto': coefficients on nodes need a box; give its half width "
                "in GeV, or a start, [initial]"
            )
        grid = grid_of(settings.grid, model, states).without_space
    return transport_coefficients(
        model, list(temperature) if isinstance(temperature, tuple) else temperature, potential,
        grid=grid, events=asked.events, seed=asked.seed, powers=asked.powers,
        tagged=asked.tagged or None, backend=settings.run.backend, threads=settings.run.threads,
    )  # fmt: skip


def _predicted(settings: Any, model: Any) -> tuple[float, dict[str, float]]:
    """Return T and mu of the final state predicted for the initial conditions."""
    from ..checks.matter import totals
    from ..initial import evaluate
    from ..run.solve import grid_of
    from ..thermodynamics import unlimited

    states = settings.build_initial()
    if not states:
        raise InputError(
            "missing key coefficients.temperature: add temperature = 0.4 (GeV) to [coefficients], "
            "use --temperature, or give a start, [initial], whose equilibrium is then taken"
        )
    grid = grid_of(settings.grid, model, states).without_space
    found = unlimited.predict(model, *totals(grid, model, evaluate(states, grid, model)))
    if found is None:
        raise InputError("[initial]: its equilibrium is not found; use --temperature and --mu")
    mu = {n: float(v) for n, v in zip(model.names, found.chemical_potential, strict=True)}
    if any(v != v for v in mu.values()):
        empty = ", ".join(n for n, v in mu.items() if v != v)
        raise InputError(f"[initial]: {empty} never appear; use --temperature and --mu")
    tell(f"equilibrium of the start: T = {found.temperature:.5g} GeV")
    return found.temperature, mu


def _plain(ds: xr.Dataset) -> dict[str, Any]:
    """Return value, unit and description of every quantity."""
    from ..util.arrays import listed

    found: dict[str, Any] = {"title": ds.attrs["title"], "events": int(ds.attrs["events"])}
    for name, values in ds.variables.items():
        found[str(name)] = {
            "value": listed(values.values), "dims": list(values.dims),
            "units": values.attrs.get("units", "1"), "words": values.attrs.get("long_name", ""),
        }  # fmt: skip
    return found
