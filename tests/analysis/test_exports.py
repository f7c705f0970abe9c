"""Results for other programs, read back by readers that this project did not write."""

import json
import sys

import meshio
import numpy as np
import pandas as pd
import pytest

import relboltz as rb
from relboltz.cli import app as cli
from relboltz.io import output
from relboltz.util.errors import InputError

MODEL = rb.qcd(0.3, 1, masses={"g": 0.5, "quarks": 0.4})
USUAL = dict(end=0.2, every=0.1, samples=1, backend="cpu", progress=False)


def start(x, y, z, px, py, pz):
    p2 = px**2 + (py - 0.3 * y) ** 2 + pz**2
    return 0.3 * np.exp(-0.3 * x**2 - 0.1 * y) * np.exp(-p2)


@pytest.fixture(scope="module")
def in_space():
    grid = rb.PhaseSpace(6, 2.0, [4, 3, 1], [2.0, 1.5, 0.7], "open")
    return rb.solve(MODEL, grid, {"g": start}, **USUAL)


@pytest.fixture(scope="module")
def homogeneous():
    return rb.solve(MODEL, rb.PhaseSpace(7, 2.0), {"g": rb.initial.step(0.4, 1.2)}, **USUAL)


def test_vtk_is_read_by_another_program(in_space, tmp_path):
    """meshio finds every cell where it is, with its numbers, vectors and tensors."""
    files = in_space.rb.export(tmp_path, "vtk")
    series = json.loads(files[-1].read_text())
    assert files[-1].name.endswith(".vtk.series")
    assert [row["time"] for row in series["files"]] == in_space.time.values.tolist()
    for i, row in enumerate(series["files"]):
        mesh = meshio.read(tmp_path / row["name"])
        now = in_space.isel(time=i)
        centres = mesh.points[mesh.cells[0].data].mean(axis=1)
        assert len(centres) == 12
        widths = np.ptp(mesh.points[mesh.cells[0].data[0]], axis=0)
        assert widths == pytest.approx([1.0, 1.0, 1.4])
        for k, place in enumerate(centres):
            at = now.sel(dict(zip("xyz", place, strict=True)), method="nearest")
            assert [float(at[a]) for a in "xyz"] == pytest.approx(place, abs=1e-12)
            found = {name: np.ravel(cells[0][k]) for name, cells in mesh.cell_data.items()}
            same = dict(rel=1e-15, nan_ok=True)
            assert found["number_g"] == pytest.approx(at.number.sel(species="g").item(), **same)
            assert found["energy_total"] == pytest.approx(at.energy_total.item(), **same)
            assert found["landau_velocity"] == pytest.approx(at.landau_velocity.values, **same)
            tensor = at.shear_stress.values
            assert found["shear_stress"] == pytest.approx(tensor[1:, 1:].ravel(), **same)
            assert found["energy_momentum_t"] == pytest.approx(at.momentum.values, **same)
            assert found["energy_momentum_tt"] == pytest.approx(at.energy_kinetic.item(), **same)


def test_tables_hold_what_the_result_holds(in_space, homogeneous, tmp_path):
    """pandas reads them; ten digits."""
    files = homogeneous.rb.export(tmp_path / "box", "csv")
    assert [path.name for path in files] == ["histories.csv", "spectra.csv"]
    table, spectra = (pd.read_csv(path) for path in files)
    assert table["time [fm]"].values == pytest.approx(homogeneous.time.values)
    numbers = homogeneous.number.sel(species="u").values
    assert table["number u [fm^-3]"].values == pytest.approx(numbers, rel=1e-9)
    ratio = homogeneous.pressure_ratio.values
    assert table["pressure_ratio"].values == pytest.approx(ratio, rel=1e-9)
    assert table["energy_momentum x x [GeV fm^-3]"].values == pytest.approx(
        homogeneous.energy_momentum.sel(mu="x", nu="x").values, rel=1e-9
    )
    one = spectra[(spectra.species == "g") & (spectra["time [fm]"] == spectra["time [fm]"].max())]
    last = homogeneous.spectrum.sel(species="g").isel(time=-1)
    assert one.f.values == pytest.approx(last.values, rel=1e-9)
    cells = pd.read_csv(in_space.rb.export(tmp_path / "space", "csv")[-1])
    assert len(cells) == in_space.time.size * 12
    row = cells.iloc[-1]
    at = in_space.isel(time=-1, x=-1, y=-1, z=-1)
    assert row["number g [fm^-3]"] == pytest.approx(at.number.sel(species="g").item(), rel=1e-9)
    assert row["landau_velocity y"] == pytest.approx(at.landau_velocity.values[1], rel=1e-8)


def test_what_cannot_be_exported_is_said(homogeneous, tmp_path):
    with pytest.raises(InputError, match="'vtk' is for results in space cells; use 'csv'"):
        homogeneous.rb.export(tmp_path, "vtk")
    with pytest.raises(InputError, match="format 'xls': use vtk, csv or music"):
        homogeneous.rb.export(tmp_path, "xls")


def test_the_command_writes_beside_the_result(in_space, tmp_path, monkeypatch, capsys):
    """Into a folder of its own, which it does not write over."""
    output.write(in_space, tmp_path / "r.nc")

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["relboltz", "export", str(tmp_path / "r.nc"), *arguments])
        with pytest.raises(SystemExit) as leaving:
            cli.main()
        return leaving.value.code or 0, capsys.readouterr()

    assert call("--format", "vtk")[0] == 0
    assert (tmp_path / "r-vtk" / "r.vtk.series").exists()
    code, told = call("--format", "vtk")
    assert code == 2 and "has files in it; add --force" in told.err
    assert call("--format", "vtk", "--force")[0] == 0
    code, told = call("--format", "xls")
    assert code == 2 and "use vtk, csv or music" in told.err
