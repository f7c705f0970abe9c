"""A surface for MUSIC, read back the way that MUSIC reads it."""

import sys

import numpy as np
import pytest

import relboltz as rb
from relboltz.cli import app as cli
from relboltz.grid.units import HBARC
from relboltz.io import output
from relboltz.util.errors import InputError

GAS = rb.Model([rb.Species("a", 1, 0)], [rb.Process("a a -> a a", sigma=0.5)])
HEAVY = rb.Model([rb.Species("a", 1, 0)], [], masses={"a": 0.5})


def moving(x, y, z, px, py, pz):
    """Matter that moves, most of it along x, and a little along z."""
    p2 = (px - 0.2 * x - 0.1) ** 2 + (py - 0.1 * x) ** 2 + (pz - 0.05) ** 2
    return 0.5 * np.exp(-0.2 * x**2 - 0.3 * y**2) * np.exp(-p2)


def solved(model):
    grid = rb.PhaseSpace(6, 2.0, [5, 4, 1], [3.0, 2.0, 1.0], "open", expansion="bjorken")
    usual = dict(samples=1, backend="cpu", progress=False, start=0.4, end=0.8, every=0.2)
    return rb.solve(model, grid, {"a": moving}, **usual)


@pytest.fixture(scope="module")
def result():
    return solved(GAS)


def read(path):
    """tau, dx, dy and (x, y, e, u, W) of the first slice: tokens and lines as MUSIC takes them.

    Of pi it keeps xx, xy, x eta, yy, y eta and makes the others orthogonal to u and traceless.
    u^eta and the components along eta are multiplied with tau.
    """
    with open(path) as file:
        words = file.readline().split()
        tau, (neta, nx, ny) = float(words[2]), (int(words[i]) for i in (4, 6, 8))
        assert words[3:12:2] == ["etamax=", "xmax=", "ymax=", "deta=", "dx="]
        dx, dy = float(words[12]), float(words[14])
        rows = [[float(w) for w in file.readline().split()] for _ in range(nx * ny)]
        rest = file.read().splitlines()
    assert len(rest) == (neta - 1) * nx * ny
    cells = []
    for row in rows:
        _, x, y, e, _, ux, uy, ueta = row[:8]
        xx, xy, xn, yy, yn = (row[i] for i in (12, 13, 14, 15, 16))
        ueta, xn, yn = ueta * tau, xn * tau, yn * tau
        ut = np.sqrt(1 + ux**2 + uy**2 + ueta**2)
        nn = 2 * (ux * uy * xy + ux * ueta * xn + uy * ueta * yn)
        nn = (nn - (ut**2 - ux**2) * xx - (ut**2 - uy**2) * yy) / (ut**2 - ueta**2)
        tx, ty = (xx * ux + xy * uy + xn * ueta) / ut, (xy * ux + yy * uy + yn * ueta) / ut
        tn = (xn * ux + yn * uy + nn * ueta) / ut
        tt = (tx * ux + ty * uy + tn * ueta) / ut
        u, w = np.array([ut, ux, uy, ueta]), [[tt, tx, ty, tn], [tx, xx, xy, xn]]
        w = np.array([*w, [ty, xy, yy, yn], [tn, xn, yn, nn]])
        cells.append((x, y, e / HBARC, u, w))
        assert row[8:12] == pytest.approx([tt, tx, ty, tn / tau], rel=1e-6, abs=1e-12)
        assert row[17] == pytest.approx(nn / tau**2, rel=1e-6, abs=1e-12)
    return tau, dx, dy, cells


def tensors(cells):
    """T^{mu nu} [GeV fm^-3] in the frame of a place, with P + Pi = e/3."""
    metric = np.diag([-1.0, 1.0, 1.0, 1.0])
    return [HBARC * (4 / 3 * e * np.outer(u, u) + e / 3 * metric + w) for _, _, e, u, w in cells]


def test_places_and_totals_are_those_of_the_result(result, tmp_path):
    """Energy, momenta and stresses of all cells, to the twelve digits of the file."""
    (path,) = result.rb.export(tmp_path, "music")
    tau, dx, dy, cells = read(path)
    assert tau == 0.8 and (dx, dy) == (1.2, 1.0)
    now = result.isel(time=-1, z=0)
    x, y = np.meshgrid(result.x, result.y, indexing="ij")
    assert [c[0] for c in cells] == pytest.approx(x.ravel(), abs=1e-12)
    assert [c[1] for c in cells] == pytest.approx(y.ravel(), abs=1e-12)
    found = tensors(cells)
    exact = now.energy_momentum.transpose("x", "y", "mu", "nu").values.reshape(-1, 4, 4)
    scale = exact[:, 0, 0].max()
    assert np.array(found) == pytest.approx(exact, abs=1e-9 * scale)
    total = np.sum(found, axis=0)
    assert total[0, 0] == pytest.approx(float(now.energy_total.sum()), rel=1e-9)
    for i, axis in enumerate("xyz", start=1):
        momentum = float(now.momentum.sel(axis=axis).sum())
        assert total[0, i] == pytest.approx(momentum, abs=1e-9 * scale)
    assert abs(total[0, 1]) > 0.05 * total[0, 0]  # it does move


def test_a_time_and_slices_in_rapidity_can_be_named(result, tmp_path):
    (path,) = result.rb.export(tmp_path, "music", time=0.61, eta_max=2.0, eta_cells=4)
    assert path.name == "run_tau0.6.dat" and read(path)[0] == 0.6
    table = np.loadtxt(path)
    assert table.shape == (4 * 20, 18)
    assert np.unique(table[:, 0]).tolist() == [-1.5, -0.5, 0.5, 1.5]
    slices = table.reshape(4, 20, 18)[:, :, 1:]
    assert (slices == slices[0]).all()
    assert "deta= 1 " in path.read_text().splitlines()[0]


def test_what_music_would_misread_is_said(result, tmp_path):
    heavy = solved(HEAVY)
    with pytest.warns(rb.AccuracyWarning, match="from e/3, which MUSIC takes it to be"):
        heavy.rb.export(tmp_path, "music")
    still = rb.solve(GAS, rb.PhaseSpace(6, 2.0), {"a": rb.initial.step(0.5, 1.0)}, end=0.1,
                     samples=1, backend="cpu", progress=False)  # fmt: skip
    for ds, options, words in (
        (still, {}, "is for matter in Bjorken flow with space cells"),
        (result, {"time": 5.0}, "time = 5 fm: records are from 0.4 to 0.8 fm"),
        (result, {"eta_cells": 0}, "eta_cells = 0: use"),
        (result, {"eta_max": -1.0}, "eta_max = -1"),
    ):
        with pytest.raises(InputError, match=words):
            ds.rb.export(tmp_path, "music", **options)
    with pytest.raises(InputError, match="time: is for format 'music'"):
        result.rb.export(tmp_path, "csv", time=0.4)


def test_the_command_writes_one_record(result, tmp_path, monkeypatch, capsys):
    output.write(result, tmp_path / "r.nc")

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["relboltz", "export", str(tmp_path / "r.nc"), *arguments])
        with pytest.raises(SystemExit) as leaving:
            cli.main()
        return leaving.value.code or 0, capsys.readouterr()

    assert call("--format", "music", "--time", "0.4", "--eta-cells", "2", "--eta-max", "1")[0] == 0
    assert read(tmp_path / "r-music" / "r_tau0.4.dat")[0] == 0.4
    code, told = call("--format", "csv", "--time", "0.4")
    assert code == 2 and "--time: is for --format music" in told.err
