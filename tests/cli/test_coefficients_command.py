"""relboltz coefficients: what it takes from a file and from options, and what it writes."""

import json

import numpy as np
import pytest
import xarray as xr
from typer.testing import CliRunner

import relboltz as rb
from relboltz.cli import app as cli
from relboltz.run import input_file as config
from relboltz.util.errors import InputError
from relboltz.util.text import with_error
from relboltz.visualization import plots

MODEL = """
[model]
name = "gluons"
alpha_s = 0.3
masses = { g = 0.5 }
"""
ASKED = """
[coefficients]
temperature = [0.3, 0.5]
chemical_potential = { number = -0.1 }
events = 2000
tagged = "g"
"""
START = """
[grid]
momentum_cells = 16
momentum_max = 3.0
[initial.g]
shape = "thermal"
temperature = 0.35
chemical_potential = -0.2
[time]
end = 1.0
"""


def called(tmp_path, text, *options):
    """The command on a file of that text: what it printed, its Dataset and its figures."""
    file, out, figures = (tmp_path / name for name in ("c.toml", "c.nc", "c.json"))
    file.write_text(text)
    given = ["coefficients", str(file), "--backend", "cpu", "--out", str(out)]
    result = CliRunner().invoke(cli.app, [*given, "--json", str(figures), *options])
    if isinstance(result.exception, InputError):
        raise result.exception
    assert result.exit_code == 0, result.output
    with xr.open_dataset(out, engine="h5netcdf") as ds:
        return result.output, ds.load(), json.loads(figures.read_text())


def test_it_tells_what_python_tells(tmp_path):
    """Table, file and figures have the same numbers; several T make a picture."""
    picture = tmp_path / "c.png"
    told, ds, figures = called(tmp_path, MODEL + ASKED, "--plot", str(picture), "--seed", "4")
    asked = rb.transport_coefficients(
        rb.gluons(0.3, masses={"g": 0.5}), [0.3, 0.5], -0.1, events=2000, seed=4, tagged="g",
        backend="cpu",
    )  # fmt: skip
    for name in ("shear_viscosity", "bulk_viscosity", "diffusion", "tagged_drag"):
        assert (ds[name].values == asked[name].values).all()
        assert figures[name]["value"] == asked[name].values.tolist()
        assert figures[name]["units"] == asked[name].units
    eta, error = asked.shear_viscosity[1], asked.shear_viscosity_error[1]
    assert with_error(float(eta), float(error)) in told and "T = 0.5 GeV" in told
    assert picture.stat().st_size > 5000
    axes = plots.coefficients(asked).axes
    assert [ax.get_title() for ax in axes] == [r"$\eta/s$", r"$\zeta/s$"]  # no electric charges


def test_options_come_before_the_file(tmp_path):
    _, ds, _ = called(
        tmp_path, MODEL + ASKED, "--temperature", "0.4", "--mu", "g=-0.3", "--events", "3000",
        "--set", "model.alpha_s=0.2",
    )  # fmt: skip
    assert ds.temperature.values.tolist() == [0.4] and ds.attrs["events"] == 3000
    assert float(ds.chemical_potential[0, 0]) == -0.3
    strong = rb.transport_coefficients(
        rb.gluons(0.3, masses={"g": 0.5}), 0.4, -0.3, events=3000, backend="cpu"
    )
    assert float(ds.shear_viscosity[0]) > 1.5 * float(strong.shear_viscosity)


def test_a_start_gives_its_equilibrium(tmp_path):
    """T and mu of a thermal start on nodes, averaged over cells: its own, up to the box."""
    _, ds, _ = called(tmp_path, MODEL + START, "--events", "1000")
    assert float(ds.temperature) == pytest.approx(0.35, rel=0.05)
    assert float(ds.chemical_potential[0]) == pytest.approx(-0.2, abs=0.05)
    more = ("--events", "1000", "--on-grid", "--force")
    _, on_nodes, _ = called(tmp_path, MODEL + START, *more)
    assert "shear_viscosity_axes" in on_nodes and "shear_viscosity_axes" not in ds


def test_a_run_leaves_the_table_alone():
    """A configuration may have both; what it says about coefficients is still checked."""
    import tomllib

    data = tomllib.loads(MODEL + START + ASKED)
    loaded = config.Config.from_dict(data)
    assert loaded.coefficients.temperature == (0.3, 0.5)
    assert "coefficients" not in loaded.to_dict()
    data["coefficients"]["tmperature"] = 0.3
    with pytest.raises(InputError, match="coefficients.tmperature: did you mean temperature"):
        config.Config.from_dict(data)


@pytest.mark.parametrize(
    "text, options, words",
    [
        (MODEL, [], "missing key coefficients.temperature"),
        (MODEL + ASKED, ["--mu", "often"], "--mu often: write a number"),
        (MODEL + ASKED, ["--mu", "0.1", "--mu", "0.2"], "several of them need names"),
        (MODEL + ASKED, ["--temperature", "-1"], "coefficients.temperature = "),
        (MODEL + ASKED, ["--events", "1"], "coefficients.events = 1"),
        (MODEL + ASKED, ["--on-grid"], "need a box"),
        (MODEL + ASKED, ["--tagged", "q"], "tagged = 'q'"),
        (MODEL + "[grid]\nmomentum_cell = 3\n", [], "did you mean momentum_cells"),
    ],
)
def test_what_is_wrong_is_named(tmp_path, text, options, words):
    with pytest.raises(InputError, match=words):
        called(tmp_path, text, *options)


def test_a_picture_needs_coefficients():
    with pytest.raises(InputError, match="not a result of transport_coefficients"):
        plots.coefficients(xr.Dataset({"a": np.float64(1.0)}))
