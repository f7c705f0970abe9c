"""Pictures show the numbers of the result, with units, and nothing breaks on odd results."""

import matplotlib as mpl
import numpy as np
import pytest

import relboltz as rb
from relboltz.util.errors import InputError
from relboltz.visualization import plots
from relboltz.visualization.plots import pages

HISTORIES = [
    plots.numbers,
    plots.energies,
    plots.masses,
    plots.temperature,
    plots.chemical_potentials,
    plots.entropy,
    plots.rates,
]
NUMBERS = [plots.anisotropy, plots.isotropisation, plots.distance]


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
    whole = gluons.p <= gluons.attrs["momentum_max"][0]
    assert 3 < whole.sum() < gluons.p.size
    np.testing.assert_array_equal(x, gluons.p[whole])
    np.testing.assert_array_equal(y, gluons.spectrum.sel(time=0.4, species="g")[whole])
    np.testing.assert_allclose(ax.get_xlim(), (0, gluons.attrs["momentum_max"][0]))
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
            for draw in (plots.numbers, plots.masses, plots.chemical_potentials)
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


@pytest.mark.parametrize("draw", NUMBERS)
def test_plain_numbers_carry_none(gluons, draw):
    assert "[" not in draw(gluons).get_ylabel()


def test_the_anisotropy_has_its_reference_and_its_distance_a_logarithmic_scale(gluons):
    ratio = 1 - 0.5 * np.exp(-gluons.time / 0.2)
    ds = gluons.assign(pressure_ratio=ratio.assign_attrs(gluons.pressure_ratio.attrs))
    ax = plots.anisotropy(ds)
    assert [line for line in ax.lines if set(line.get_ydata()) == {1.0}]
    apart = plots.isotropisation(ds)
    assert apart.get_yscale() == "log"
    np.testing.assert_allclose(curve(apart, "P_z")[:, 1], 0.5 * np.exp(-gluons.time / 0.2))


def test_the_distance_from_equilibrium_is_in_the_overview(gluons):
    labels = [ax.get_ylabel() for ax in plots.overview(gluons).axes]
    assert "part of the particles" in labels
    np.testing.assert_array_equal(
        curve(plots.distance(gluons), "not yet")[:, 1], gluons.equilibrium_distance
    )


def test_what_is_constant_or_rounding_has_no_panel(gluons, tmp_path):
    """One species without conversion: its number never moves; still masses, the same."""
    assert not plots.style.moves(gluons.number)
    still = gluons.assign(
        mass_squared=0 * gluons.mass_squared + 0.25, energy_kinetic=0 * gluons.energy_kinetic + 3.0
    )
    labels = {ax.get_ylabel() for ax in plots.overview(still).axes}
    assert not labels & {"particle density [fm$^{-3}$]", "mass [GeV]"}
    assert not any(text.startswith("energy density") for text in labels)
    names = {path.stem for path in plots.save_all(still, tmp_path, kinds=["png"])}
    assert "rates" in names and not any("numbers" in n or "masses" in n for n in names)


def test_drifts_of_rounding_are_words_not_curves(gluons):
    total = gluons.energy_total * 0 + 7.0 + 1e-14 * gluons.time
    ds = gluons.assign(energy_total=total.assign_attrs(gluons.energy_total.attrs))
    ax = plots.conservation(ds)
    words = "\n".join(text.get_text() for text in ax.get_legend().get_texts())
    assert "energy: rounding" in words and "charges: exactly 0" in words
    assert not [line for line in ax.lines if len(line.get_xdata()) == ds.time.size]
    assert not plots.energies(ds).child_axes
    drifting = gluons.assign(energy_total=gluons.energy_total * (1 + 1e-6 * gluons.time))
    y = curve(plots.conservation(drifting), "energy")[:, 1]
    np.testing.assert_allclose(
        y[-1], float(drifting.energy_total[-1] / drifting.energy_total[0]) - 1
    )


def test_rare_species_are_visible(qcd):
    rare = qcd.assign(number=qcd.number * np.where(qcd.species == "g", 1.0, 1e-3))
    assert plots.numbers(qcd).get_yscale() == "linear"
    ax = plots.numbers(rare)
    low, high = ax.get_ylim()
    y = curve(ax, "u, d, s and antiquarks (each)")[:, 1]
    assert ax.get_yscale() == "log" and low < y.min() and y.max() < high


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("pi", r"$\pi$"), ("pi+", r"$\pi^{+}$"), ("Lambda", r"$\Lambda$"), ("K", "K"),
        ("K-", r"$\mathrm{K}^{-}$"), ("Lambdabar", r"$\bar{\Lambda}$"), ("x_$1", r"x_\$1"),
        ("ubar", r"$\bar{\mathrm{u}}$"), ("g", "g"), ("q2bar", r"$\bar{\mathrm{q2}}$"),
    ],
)  # fmt: skip
def test_particles_have_their_letters(name, shown):
    assert plots.style.letter(name) == shown
    mpl.figure.Figure().text(0, 0, shown).figure.draw_without_rendering()  # it is legal mathematics


def test_a_flat_box_marks_where_shells_leave_it(gluons):
    flat = gluons.assign_attrs(momentum_max=[5.0, 5.0, 2.0])
    ax = plots.spectra(flat)
    assert ax.get_xlim()[1] == 5.0
    assert 2.0 in {x for line in ax.lines for x in line.get_xdata() if line.get_linestyle() == ":"}


def test_several_results_are_compared_in_the_same_axes(gluons, qcd):
    longer = gluons.assign(temperature=1.1 * gluons.temperature).isel(time=slice(0, 8))
    figure = plots.comparison({"one": gluons, "two": longer, "three": qcd})
    by = {ax.get_ylabel(): ax for ax in figure.axes}
    drawn = [line.get_xydata() for line in by["temperature [GeV]"].lines]
    np.testing.assert_array_equal(drawn[0][:, 1], gluons.temperature)
    np.testing.assert_array_equal(drawn[1][:, 1], longer.temperature)
    assert by["occupation $f$"].get_title(loc="left").endswith(f"{float(longer.time[-1]):.3g} fm")
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["one", "two", "three"]
    with pytest.raises(InputError, match="no species in common"):
        plots.comparison({"a": gluons, "b": gluons.assign_coords(species=["x"])})


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
    assert {"overview.png", "spectra.png", "energies.png"} <= {p.name for p in paths}
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
