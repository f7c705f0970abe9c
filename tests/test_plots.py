"""Pictures show the numbers of the result, with units, and nothing breaks on odd results."""

import matplotlib as mpl
import numpy as np
import pytest

import relboltz as rb
from relboltz import plots
from relboltz.errors import InputError
from relboltz.plots import pages

HISTORIES = [
    plots.numbers,
    plots.energies,
    plots.masses,
    plots.temperature,
    plots.entropy,
    plots.rates,
    plots.anisotropy,
    plots.conservation,
]


@pytest.fixture(scope="module")
def gluons():
    start = {"g": rb.initial.step(0.5, 1.2)}
    return rb.solve(rb.gluons(0.3), 7, start, end=0.4, every=0.04, snapshots=[])


@pytest.fixture(scope="module")
def qcd(gluons):
    """Seven species made of the gluon result: g, and quarks that differ by a little noise."""
    species = ["g", "u", "d", "s", "ubar", "dbar", "sbar"]
    ds = gluons.isel(species=[0] * 7).assign_coords(species=species)
    part = np.array([1, 0.1, 0.101, 0.099, 0.1, 0.1, 0.1])
    ds["number"], ds["spectrum"] = ds.number * part, ds.spectrum * part[:, None]
    ds["statistics"] = ("species", [1, -1, -1, -1, -1, -1, -1])
    ds["degeneracy"] = ("species", [16.0, 6, 6, 6, 6, 6, 6])
    ds["equilibrium_chemical_potential"] = ("species", np.full(7, 0.1))
    names = ["g g -> g g", "u g -> u g", "u ubar -> g g", "u ubar -> d dbar"]
    ds = ds.isel(process=[0] * 4).assign_coords(process=names)
    return ds


def curve(ax, text):
    """The data of the line with this label."""
    return next(line for line in ax.lines if text in str(line.get_label())).get_xydata()


def test_spectra_show_the_recorded_values(gluons):
    ax = plots.spectra(gluons, times=[0, 0.4])
    x, y = curve(ax, "0.4 fm").T
    np.testing.assert_array_equal(x, gluons.p)
    np.testing.assert_array_equal(y, gluons.spectrum.sel(time=0.4, species="g"))
    assert ax.get_yscale() == "log"
    assert "GeV" in ax.get_xlabel()


def test_prediction_obeys_bose_and_einstein(gluons):
    t, mu = float(gluons.equilibrium_temperature), float(gluons.equilibrium_chemical_potential[0])
    p, f = curve(plots.spectra(gluons), "equilibrium").T
    energy = np.sqrt(p**2 + float(gluons.equilibrium_mass_squared[0]))
    np.testing.assert_allclose(f, 1 / (np.exp((energy - mu) / t) - 1), rtol=1e-9)
    assert f"$T$ = {t:.3f} GeV" in plots.spectra(gluons).get_legend().get_title().get_text()


@pytest.mark.parametrize("eta", [1, 0, -1])
def test_equilibrium_is_a_straight_line(gluons, eta):
    ds = gluons.copy()
    ds["statistics"] = ("species", [eta])
    t, mu = float(ds.equilibrium_temperature), float(ds.equilibrium_chemical_potential[0])
    energy, x = curve(plots.thermalisation(ds), "equilibrium").T
    np.testing.assert_allclose(x, (energy - mu) / t, rtol=1e-7, atol=1e-7)


def test_flow_is_averaged_over_directions(gluons):
    ds = gluons.copy()
    ds["equilibrium_velocity"] = ("axis", [0.0, 0.0, 0.1])
    ds["statistics"] = ("species", [0])
    p, t = np.array([0.0, 1.0]), float(ds.equilibrium_temperature)
    gamma = 1 / np.sqrt(1 - 0.1**2)
    x = gamma * 0.1 * p[1] / t
    energy = np.sqrt(p**2 + float(ds.equilibrium_mass_squared[0]))
    centre = np.exp((float(ds.equilibrium_chemical_potential[0]) - gamma * energy) / t)
    np.testing.assert_allclose(plots.prediction(ds, "g", p), centre * [1, np.sinh(x) / x])


def test_predicted_densities_are_those_of_the_conserved_number(gluons):
    number, entropy = plots.predicted_densities(gluons)
    np.testing.assert_allclose(number, gluons.number.isel(time=0), rtol=1e-6)
    assert entropy >= float(gluons.entropy[-1]) * (1 - 1e-6)


def test_equal_species_share_a_line(qcd):
    assert plots.groups(qcd) == [["g"], ["u", "d", "s", "ubar", "dbar", "sbar"]]
    y = curve(plots.numbers(qcd), "u, d, s and antiquarks (each)")[:, 1]
    np.testing.assert_allclose(y, qcd.number.isel(species=slice(1, 7)).mean("species"))


def test_species_with_different_predictions_do_not(qcd):
    ds = qcd.copy()
    ds["equilibrium_chemical_potential"] = ("species", [0.1, 0.2, 0.1, 0.1, 0, 0.1, 0.1])
    assert plots.groups(ds) == [["g"], ["d", "s", "dbar", "sbar"], ["u"], ["ubar"]]


def test_colours_of_species_agree_between_pictures(qcd):
    for group in plots.groups(qcd):
        name = plots.label(group)
        colors = {
            next(x for x in draw(qcd).lines if name in str(x.get_label())).get_color()
            for draw in (plots.numbers, plots.masses, plots.temperature)
        }
        assert len(colors) == 1


def test_rates_of_one_kind_are_added(qcd):
    ax = plots.rates(qcd)
    q = qcd.rate.values[:, 0] + qcd.rate_reverse.values[:, 0]
    np.testing.assert_allclose(curve(ax, "q q → q q")[:, 1], q)
    assert {"g g → q q", "q q → g g"} <= {x.get_label() for x in ax.lines}


@pytest.mark.parametrize("draw", HISTORIES)
def test_axes_carry_units(gluons, draw):
    ax = draw(gluons)
    assert ax.get_xlabel() == "time [fm]"
    assert "[" in ax.get_ylabel()


def test_energies_show_both_and_the_drift(gluons):
    ax = plots.energies(gluons)
    np.testing.assert_array_equal(curve(ax, "kinetic")[:, 1], gluons.energy_kinetic)
    np.testing.assert_array_equal(curve(ax, "total")[:, 1], gluons.energy_total)
    drift = ax.child_axes[0].lines[0].get_ydata()
    np.testing.assert_allclose(drift, gluons.energy_total / gluons.energy_total[0] - 1)


def test_chosen_times_include_first_and_last(gluons):
    times = plots.chosen_times(gluons)
    assert times[0] == 0
    assert times[-1] == 0.4
    assert 4 <= len(times) <= 6


def test_given_axes_are_used_and_global_settings_kept(gluons):
    before = dict(mpl.rcParams)
    ax = mpl.figure.Figure().subplots()
    assert plots.spectra(gluons, ax=ax) is ax
    assert dict(mpl.rcParams) == before


def test_unknown_species_is_named(gluons):
    with pytest.raises(InputError, match="no species 'q'"):
        plots.spectra(gluons, species="q")


def test_all_pictures_are_written(gluons, tmp_path):
    paths = plots.save_all(gluons, tmp_path / "pictures", kinds=["png"])
    assert {"overview.png", "spectra.png", "numbers_energies.png"} <= {p.name for p in paths}
    assert all(path.stat().st_size > 10000 for path in paths)


def test_every_picture_comes_as_png_and_pdf(gluons, tmp_path, monkeypatch):
    monkeypatch.setattr(pages, "page", lambda *_: mpl.figure.Figure(figsize=(1, 1)))
    names = {path.name for path in plots.save_all(gluons, tmp_path)}
    assert names == {path.name for path in tmp_path.iterdir()}
    assert {"overview.png", "overview.pdf", "masses_rates.png", "masses_rates.pdf"} <= names


def _odd(ds, case):
    if case == "one record":
        return ds.isel(time=[0])
    if case == "no prediction":
        nan = {k: v * np.nan for k, v in ds.items() if k.startswith("equilibrium")}
        lost = {k: ds[k] * np.nan for k in ("temperature", "chemical_potential", "rate")}
        return ds.assign(nan | lost | {"condensate_fraction": np.nan})
    if case == "massless":
        zero = {k: 0 * ds[k] for k in ("mass_squared", "equilibrium_mass_squared")}
        return ds.assign(zero | {"equilibrium_chemical_potential": 0 * ds.degeneracy})
    if case == "empty species":
        ds = ds.isel(species=[0, 0]).assign_coords(species=["g", "u"])
        empty = {k: ds[k] * (ds.species == "g") for k in ("number", "spectrum")}
        mu = ds.equilibrium_chemical_potential.where(ds.species == "g")
        return ds.assign(empty | {"equilibrium_chemical_potential": mu})
    many = ds.isel(species=[0] * 20).assign_coords(species=[f"x_${i}" for i in range(20)])
    return many.assign(degeneracy=("species", np.arange(1.0, 21)), rate=ds.rate * 0)


CASES = ["one record", "no prediction", "massless", "empty species", "twenty species"]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("case", CASES)
def test_odd_results_are_drawn(gluons, case):
    ds = _odd(gluons, case)
    if case == "twenty species":
        ds = ds.isel(process=[])
    for draw in (plots.spectra, plots.thermalisation, *HISTORIES):
        draw(ds)
    plots.overview(ds).canvas.draw()
