"""Pictures and tables of a result in space show its numbers, averaged as they say."""

import sys

import matplotlib as mpl
import numpy as np
import pytest
from PIL import Image

import relboltz as rb
from relboltz.analysis import tables
from relboltz.cli import app as cli
from relboltz.io import output, result
from relboltz.util.errors import InputError
from relboltz.visualization import plots
from relboltz.visualization.plots import films, pages


def solve(cells, boundary, **options):
    grid = rb.PhaseSpace(5, 2.0, cells, 3.0, boundary)
    shared = {"samples": 1, "end": 0.2, "every": 0.1, "backend": "cpu", "progress": False}

    def hill(x, y, z, px, py, pz):
        return 0.4 * np.exp(-(px**2) - py**2 - pz**2) * (0.2 + np.exp(-((x - 1) ** 2)))

    return rb.solve(rb.gluons(0.3), grid, {"g": hill}, **shared, **options)


@pytest.fixture(scope="module")
def plane():
    """4 x 3 cells, nothing leaves."""
    return solve([4, 3, 1], "periodic", marginals=["x", "x px"])


@pytest.fixture(scope="module")
def line():
    """4 cells along x between open walls."""
    return solve([4, 1, 1], "open")


@pytest.fixture
def mixture(plane):
    """Gluons, and quarks that are parts of them, and lighter."""
    ds = plane.isel(species=[0, 0, 0]).assign_coords(species=["g", "u", "d"])
    part = np.array([1, 0.1, 0.3])
    for name in ("number", "total_number", "spectrum", "mass_squared", "total_mass_squared"):
        ds[name] = ds[name] * part.reshape(-1, *(1,) * (ds[name].ndim - 2))
    ds["statistics"] = ("species", [1, -1, -1])
    return ds


def title(ax):
    return ax.get_title(loc="left")


def ydata(ax):
    return np.array([curve.get_ydata() for curve in ax.lines])


def middle(values, axis):
    """A cut along an axis through the middle of 4 x 3 x 1 cells."""
    cells = {"x": [1, 2], "y": [1], "z": [0]}
    over = [d for d in cells if d != axis]
    return values.isel({d: cells[d] for d in over}).mean(over)


# --- box ----------------------------------------------------------------------------------------


def test_results_in_space_are_recognised(plane, line):
    assert result.is_in_space(plane)
    assert not result.is_in_space(result.box(plane))
    assert plots.directions(plane) == ["x", "y"]
    assert plots.directions(line) == ["x"]


def test_box_holds_the_averages_and_feeds_the_other_pictures(plane):
    box = result.box(plane)
    np.testing.assert_allclose(box.number, plane.number.mean(["x", "y", "z"]))
    np.testing.assert_array_equal(box.energy_total, plane.total_energy_total)
    assert not {"x", "y", "z"} & set(box.dims)
    assert not [name for name in box if name.startswith("total_")]
    assert box.entropy.attrs["long_name"] == "entropy density"
    assert "average over the box" in plots.overview(box).get_suptitle()


def test_what_left_counts_as_energy_on_request(line):
    gone = line.left_energy.sum("wall")
    assert float(gone[-1]) > 0
    inside, both = result.box(line), result.box(line, left=True)
    np.testing.assert_allclose(both.energy_total - inside.energy_total, gone, rtol=1e-9, atol=1e-12)
    moved = line.left_momentum.sum("wall")
    np.testing.assert_allclose(both.momentum - inside.momentum, moved, atol=1e-12)
    assert both.energy_total.attrs["units"] == "GeV fm^-3"


def test_a_homogeneous_result_is_its_own_box(plane):
    box = result.box(plane)
    assert result.box(box) is box


@pytest.mark.parametrize("name", ["numbers", "energies", "entropy", "conservation", "spectra"])
def test_pictures_of_matter_take_a_result_in_space(line, name):
    """They show the averages over the box, what left included."""
    draw = getattr(plots, name)
    in_space, of_box = (draw(ds).lines for ds in (line, result.box(line, left=True)))
    assert len(in_space) == len(of_box) > 0
    for one, other in zip(in_space, of_box, strict=True):
        np.testing.assert_array_equal(one.get_xydata(), other.get_xydata())


# --- profiles -----------------------------------------------------------------------------------


@pytest.mark.parametrize("axis", ["x", "y"])
@pytest.mark.parametrize("name", ["number", "mass_squared", "energy_total", "temperature"])
def test_profiles_are_cuts_through_the_middle_of_the_other_directions(plane, name, axis):
    """The middle is the two inner of four cells along x and the second of three along y."""
    ax = plots.profile(plane, name, axis=axis)
    values = plane[name].isel(species=0) if "species" in plane[name].dims else plane[name]
    np.testing.assert_allclose(ydata(ax), middle(values, axis).values, rtol=1e-12)
    assert f"{'y' if axis == 'x' else 'x'} = 0" in ax.get_ylabel()
    np.testing.assert_array_equal(ax.lines[0].get_xdata(), plane[axis])
    assert [curve.get_label() for curve in ax.lines] == ["0 fm", "0.1 fm", "0.2 fm"]
    assert ax.get_xlabel() == f"${axis}$ [fm]"
    assert "[" in ax.get_ylabel()


def test_profiles_reach_from_wall_to_wall_and_hold_all_values(plane):
    ax = plots.profile(plane)
    np.testing.assert_allclose(ax.get_xlim(), (-3, 3))
    low, high = ax.get_ylim()
    assert low < ydata(ax).min() and ydata(ax).max() < high


def test_rounding_does_not_fill_a_profile(plane):
    flat = plane.assign(entropy=plane.entropy * 0 + 5.0 + 1e-15 * plane.x)
    low, high = plots.profile(flat, "entropy").get_ylim()
    assert high - low > 0.05


def test_profiles_of_vectors_show_the_component_along_the_axis_or_a_far_larger_one(plane):
    """Along y nothing flows: the flow along x is what is to be seen there, as in a shear."""
    for name in ("velocity", "momentum"):
        for axis in ("x", "y"):
            ax = plots.profile(plane, name, axis=axis, times=0.2)
            wanted = middle(plane[name].sel(time=0.2, axis="x"), axis)
            np.testing.assert_allclose(ydata(ax)[0], wanted, rtol=1e-12)
            assert "along x" in ax.get_ylabel()


def test_profiles_of_marginals_average_over_momenta(plane):
    one = ydata(plots.profile(plane, "f_x"))
    np.testing.assert_allclose(one, plane.f_x.sel(species="g"), rtol=1e-12)
    np.testing.assert_allclose(ydata(plots.profile(plane, "f_x_px")), one, rtol=1e-9)
    with pytest.raises(InputError, match="'f_x' does not depend on y"):
        plots.profile(plane, "f_x", axis="y")


def test_profiles_take_species_and_means_of_several(mixture):
    ax = plots.profile(mixture, species=["u", "d"], times=[0])
    g = ydata(plots.profile(mixture, species="g", times=[0]))
    np.testing.assert_allclose(ydata(ax), 0.2 * g)
    assert ax.get_legend().get_title().get_text() == "u, d (each)"
    np.testing.assert_allclose(ydata(plots.profile(mixture, times=[0])), g)
    with pytest.raises(InputError, match="no species 'q'"):
        plots.profile(mixture, species="q")


def test_times_are_the_nearest_records(plane):
    ax = plots.profile(plane, times=[0.04, 0.17])
    assert [curve.get_label() for curve in ax.lines] == ["0 fm", "0.2 fm"]


def test_wrong_quantities_and_axes_are_named(plane):
    with pytest.raises(InputError, match="no quantity 'nomber'.*did you mean 'number'"):
        plots.profile(plane, "nomber")
    for name in ("total_number", "left_number"):
        with pytest.raises(InputError, match=f"no quantity '{name}'"):
            plots.profile(plane, name)
    with pytest.raises(InputError, match="one space cell along z; axes with more: x, y"):
        plots.profile(plane, axis="z")
    with pytest.raises(InputError, match="'velocity' has no value anywhere"):
        plots.profile(plane.assign(velocity=plane.velocity * np.nan), "velocity")
    with pytest.raises(InputError, match="use x, y or z"):
        plots.profile(plane, axis="px")


# --- maps ---------------------------------------------------------------------------------------


def colours(ax):
    return np.asarray(ax.collections[0].get_array())


def test_maps_show_averages_over_the_third_direction(plane):
    deep = plane.isel(z=[0, 0]).assign_coords(z=[-1.0, 1.0])
    deep["number"] = deep.number * (1 + 0.5 * deep.z)
    ax = plots.field_map(deep, "number", 0.1)
    wanted = deep.number.sel(time=0.1, species="g").mean("z").values
    np.testing.assert_allclose(colours(ax), wanted.T, rtol=1e-12)
    assert title(ax) == "g, $t$ = 0.1 fm"
    assert ax.get_aspect() == 1
    side = plots.field_map(deep, "number", 0.1, plane="xz")
    assert colours(side).shape == (2, 4)


def test_colours_mean_the_same_at_all_times(plane):
    first, last = (plots.field_map(plane, time=t).collections[0] for t in (0, 0.2))
    assert first.get_clim() == last.get_clim()
    np.testing.assert_allclose(first.get_clim(), (plane.number.min(), plane.number.max()))


def test_maps_carry_units(plane):
    ax = plots.field_map(plane, "energy_total")
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("$x$ [fm]", "$y$ [fm]")
    assert ax.child_axes[0].get_ylabel() == "total energy density [GeV fm$^{-3}$]"
    assert title(ax) == "$t$ = 0.2 fm"


def test_maps_of_vectors_show_lengths(plane):
    wanted = np.sqrt((plane.momentum.isel(time=-1).mean("z") ** 2).sum("axis"))
    np.testing.assert_allclose(colours(plots.field_map(plane, "momentum")), wanted.T)


def test_arrows_show_the_landau_velocity_where_there_is_matter(plane):
    ds = plane.copy()
    ds["landau_velocity"] = 0 * plane.landau_velocity
    assert len(plots.field_map(ds).collections) == 1
    ds["landau_velocity"] = 0 * plane.landau_velocity + np.reshape([0.3, 0.1, 0.2], (3, 1, 1, 1))
    ax = plots.field_map(ds)
    arrows = ax.collections[1]
    np.testing.assert_allclose(arrows.U, 0.3)
    np.testing.assert_allclose(arrows.V, 0.1)
    assert arrows.N == 12
    assert ax.texts[0].get_text() == "arrows: Landau velocity, longest 0.32"
    ds["energy_kinetic"] = plane.energy_kinetic.where(plane.x > 0, 1e-9)
    assert plots.field_map(ds).collections[1].Umask.sum() == 6


def test_temperatures_are_shown_where_there_is_matter(plane):
    ds = plane.assign(energy_kinetic=plane.energy_kinetic.where(plane.x > 0, 1e-9))
    shown = colours(plots.field_map(ds, "landau_temperature"))
    assert np.isnan(np.ma.filled(shown, np.nan)[:, :2]).all()
    np.testing.assert_allclose(shown[:, 2:], plane.landau_temperature[-1, 2:, :, 0].T)
    dense = colours(plots.field_map(ds, "number"))
    np.testing.assert_allclose(dense, plane.number[-1, 0, :, :, 0].T)


def test_components_of_vectors_and_tensors_are_chosen_by_letters(plane, tmp_path):
    for quantity, values in (
        ("velocity y", plane.velocity.sel(axis="y")),
        ("shear_stress xy", plane.shear_stress.sel(mu="x", nu="y")),
        ("energy_momentum tt", plane.energy_momentum.sel(mu="t", nu="t")),
    ):
        shown = colours(plots.field_map(plane, quantity))
        np.testing.assert_allclose(shown, values[-1, :, :, 0].T, rtol=1e-12)
        profile = ydata(plots.profile(plane, quantity, times=0.2))[0]
        np.testing.assert_allclose(profile, middle(values.sel(time=0.2), "x"), rtol=1e-12)
    mesh = plots.field_map(plane, "shear_stress xy").collections[0]
    np.testing.assert_allclose(mesh.norm(0.0), 0.5)  # white
    assert plots.animation(plane, tmp_path / "pi.gif", "shear_stress xy").exists()
    for quantity, message in (
        ("shear_stress", "give its component, 2 of the letters txyz, such as 'shear_stress xy'"),
        ("shear_stress xq", "2 of the letters txyz"),
        ("velocity t", "1 of the letters xyz"),
        ("number x", "number has no components"),
    ):
        with pytest.raises(InputError, match=message):
            plots.field_map(plane, quantity)


def test_what_is_diluted_has_logarithmic_colours_and_ratios_are_centred(plane):
    thin = plane.assign(number=plane.number * np.exp(-20 * plane.time))
    norms = [plots.field_map(ds).collections[0].norm for ds in (plane, thin)]
    assert [type(norm).__name__ for norm in norms] == ["Normalize", "LogNorm"]
    assert norms[1].vmin >= norms[1].vmax / 1001
    np.testing.assert_allclose(plots.field_map(plane, "pressure_ratio").collections[0].norm(1), 0.5)


def test_maps_need_a_plane(line, plane):
    with pytest.raises(InputError, match="two directions"):
        plots.field_map(line)
    with pytest.raises(InputError, match="use two axes"):
        plots.field_map(plane, plane="xx")
    with pytest.raises(InputError, match="one space cell along z"):
        plots.field_map(plane, plane="xz")


def test_phase_space_shows_the_marginal(plane, line):
    ax = plots.phase_space(plane, time=0)
    np.testing.assert_array_equal(colours(ax), plane.f_x_px.isel(time=0, species=0).T)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("$x$ [fm]", "$p_x$ [GeV]")
    np.testing.assert_allclose(ax.get_ylim(), (-2, 2))
    with pytest.raises(InputError, match="did you mean 'f_x_px'"):
        plots.phase_space(plane, "f_x_py")
    with pytest.raises(InputError, match="keeps no f of two directions"):
        plots.phase_space(line)


# --- the walls ----------------------------------------------------------------------------------


def test_the_ledger_shows_what_is_not_zero(line):
    refused = line.refused_number * 0
    refused[-1, 0] = 0.5
    ax = plots.ledger(line.assign(refused_number=refused))
    drawn = {curve.get_label(): curve.get_ydata() for curve in ax.lines}
    assert list(drawn) == ["left through x-", "left through x+", r"refused at $\pm p_x$"]
    np.testing.assert_array_equal(drawn["left through x+"], line.left_number.sel(wall="x+")[:, 0])
    np.testing.assert_array_equal(drawn[r"refused at $\pm p_x$"], [0, 0, 0.5])
    assert ax.get_ylabel() == "particles per volume [fm$^{-3}$]"
    ax = plots.ledger(line, "energy")
    np.testing.assert_array_equal(ydata(ax)[0], line.left_energy.sel(wall="x-"))
    assert ax.get_ylabel() == "energy per volume [GeV fm$^{-3}$]"


def test_a_closed_box_says_that_nothing_left(plane):
    ax = plots.ledger(plane.assign(refused_number=0 * plane.refused_number))
    assert ax.texts[0].get_text() == "nothing left"
    with pytest.raises(InputError, match="use 'number' or 'energy'"):
        plots.ledger(plane, "charge")


# --- films --------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", ["line", "plane"])
def test_a_film_has_a_frame_for_every_record(request, case, tmp_path):
    ds = request.getfixturevalue(case)
    path = plots.animation(ds, tmp_path / "film.gif", "energy_total", fps=10)
    with Image.open(path) as film:
        assert film.n_frames == ds.time.size == 3
        assert film.info["duration"] == 100


def test_films_need_a_suffix_that_can_be_written(plane, tmp_path, monkeypatch):
    with pytest.raises(InputError, match="films end in .gif or .mp4"):
        plots.animation(plane, tmp_path / "film.avi")
    monkeypatch.setattr(films.FFMpegWriter, "isAvailable", lambda: False)
    with pytest.raises(InputError, match="ffmpeg, which is not installed; use .gif"):
        plots.animation(plane, tmp_path / "film.mp4")
    with pytest.raises(InputError, match="cannot be written"):
        plots.animation(plane, tmp_path / "none" / "film.gif")
    with pytest.raises(InputError, match="more than one space cell"):
        plots.animation(result.box(plane), tmp_path / "film.gif")


# --- pages --------------------------------------------------------------------------------------


def axes(figure):
    """Axes that are in use, colour bars apart."""
    return [ax for ax in figure.axes if ax.axison and ax.get_label() != "<colorbar>"]


def test_the_overview_of_a_line_shows_profiles(line):
    labels = [ax.get_ylabel() for ax in axes(plots.overview(line))]
    wanted = ("density", "$m^2$", "total energy", "Landau temp", "Landau velocity", "entropy")
    assert len(labels) == 6
    assert all(text.startswith(word) for text, word in zip(labels, wanted, strict=True))


def test_the_overview_of_a_plane_shows_profiles_and_maps(plane, mixture):
    drawn = axes(plots.overview(plane))
    lines, maps = [ax for ax in drawn if ax.lines], [ax for ax in drawn if ax.collections]
    assert [ax.get_xlabel()[1] for ax in lines] == ["x", "y"] * 2
    assert len(maps) == 4 * plane.time.size
    assert sum(ax.get_title(loc="left").startswith("$t$") for ax in maps) == plane.time.size
    bars = [ax for ax in plots.overview(plane).axes if ax.get_label() == "<colorbar>"]
    assert len(bars) == 4  # one for each row
    assert len([ax for ax in axes(plots.overview(mixture)) if ax.lines]) == 8


@pytest.mark.filterwarnings("error")
def test_odd_results_are_drawn(plane, line):
    unknown = {k: line[k] * np.nan for k in ("temperature", "velocity", "chemical_potential")}
    still = {k: line[k] * 0 for k in ("mass_squared", "total_mass_squared")}
    for ds in (plane.isel(time=[0]), line.assign(unknown), line.assign(still)):
        plots.overview(ds).draw_without_rendering()
    assert "temperature" not in [
        ax.get_ylabel()[:11] for ax in axes(plots.overview(line.assign(unknown)))
    ]


def test_all_pictures_are_written_and_settings_kept(line, tmp_path, monkeypatch):
    draw, small = pages.page, mpl.figure.Figure((1, 1))
    monkeypatch.setattr(
        pages, "page", lambda ds, *rows: draw(ds, *rows) if result.is_in_space(ds) else small
    )
    before = dict(mpl.rcParams)
    paths = plots.save_all(line, tmp_path / "here", kinds=["png"])
    assert dict(mpl.rcParams) == before
    assert sorted(paths) == sorted((tmp_path / "here").iterdir())
    assert {"overview", "profiles_x", "masses", "ledger", "box_overview", "box_conservation"} <= {
        path.stem for path in paths
    }
    assert all(path.stat().st_size > 10000 for path in paths if path.stem[:4] != "box_")


def test_pictures_fit_the_result(plane, tmp_path, monkeypatch):
    small = mpl.figure.Figure(figsize=(1, 1))
    monkeypatch.setattr(pages, "page", lambda *_: small)
    names = {path.name for path in plots.save_all(plane, tmp_path)}
    assert names == {path.name for path in tmp_path.iterdir()}
    pictures = ("overview", "profiles_x", "profiles_y", "masses", "maps", "phase_space_x_px")
    assert {f"{name}.{kind}" for name in pictures for kind in ("png", "pdf")} <= names
    assert "profiles_z.png" not in names


# --- the command line ---------------------------------------------------------------------------


@pytest.fixture
def call(tmp_path, monkeypatch, capsys, plane, line):
    """Calls relboltz in a folder with plane.nc and line.nc: (exit code, output, errors)."""
    monkeypatch.chdir(tmp_path)
    output.write(plane, tmp_path / "plane.nc")
    output.write(line, tmp_path / "line.nc")

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["relboltz", *arguments])
        monkeypatch.setenv("COLUMNS", "300")
        code = 0
        try:
            cli.main()
        except SystemExit as leaving:
            code = leaving.code or 0
        return code, *capsys.readouterr()

    return call


def test_plot_draws_results_in_space(call, tmp_path, monkeypatch):
    monkeypatch.setattr(pages, "page", lambda *_: mpl.figure.Figure((1, 1)))
    code, out, _ = call("plot", "plane.nc", "--out", "here")
    assert code == 0
    assert "written: here/maps.png" in out and "written: here/box_overview.pdf" in out


def test_plot_writes_films(call, tmp_path):
    film = ("--animate", "film.gif", "--quantity", "mass_squared", "--species", "g")
    code, out, _ = call("plot", "plane.nc", *film)
    assert (code, out) == (0, "written: film.gif\n")
    with Image.open(tmp_path / "film.gif") as pictures:
        assert pictures.n_frames == 3
    for arguments, message in (
        (("--animate", "film.avi"), "films end in .gif or .mp4"),
        (("--animate", "film.gif", "--quantity", "mass"), "no quantity 'mass'"),
        (("--animate", "none/film.gif"), "the folder 'none' does not exist"),
        (("--quantity", "number"), "add --animate"),
    ):
        code, _, err = call("plot", "plane.nc", *arguments)
        assert code == 2 and message in err


def test_plot_compares_several_results(call, tmp_path):
    code, out, err = call("plot", "plane.nc", "line.nc", "--out", "both")
    assert code == 0 and "line against plane" in out
    assert (tmp_path / "both" / "comparison.png").stat().st_size > 10000
    code, out, _ = call("plot", "plane.nc", "plane.nc")
    assert code == 0 and "no difference but rounding" in out
    assert (tmp_path / "comparison" / "comparison.pdf").exists()
    code, _, err = call("plot", "plane.nc", "line.nc", "--animate", "film.gif")
    assert code == 2 and "a film is of one result, not of 2" in err


def rows(out):
    """The table of a printed summary: name -> values."""
    cells = [line.split("│")[1:-1] for line in out.splitlines() if line.startswith("│")]
    return {name.strip(): [value.strip() for value in values] for name, *values in cells}


def test_info_tells_of_a_closed_box(call, plane):
    code, out, _ = call("info", "plane.nc")
    table = rows(out)
    assert code == 0
    assert table["change of number"] == ["0 (exact)", "0"]
    assert "change of momentum" not in table and "particles that left the box" not in table
    density = plane.number.sum("species")
    for i, when, final in (0, "start", ""), (-1, "end", "0"):
        spread = float(density[i].std() / density[i].mean())
        name = f"spread of the density over the box, relative, {when}"
        assert table[name] == [f"{spread:.2g}", final]
    known = (float(plane.total_temperature[-1]), float(plane.equilibrium_temperature))
    assert table["mean temperature [GeV]"] == [f"{value:.4f}" for value in known]


def test_info_tells_what_left_an_open_box(call, line):
    table = rows(call("info", "line.nc")[1])
    left = float(line.left_number[-1].sum() / line.total_number[0].sum())
    assert table["particles that left the box"][0] == f"{100 * left:.2g} %"
    energy = line.total_energy_total + line.left_energy.sum("wall")
    change = float(energy[-1] / energy[0]) - 1
    assert table["change of total energy, relative"] == [f"{change:.1e}", "0"]
    assert table["change of number"] == ["0 (exact)", "0"]


def test_momentum_is_told_of_where_it_is_conserved(plane):
    steady = plane.assign(mass_squared=0 * plane.mass_squared)
    assert "change of momentum" in tables.summary(steady).columns[0]._cells
    assert "change of momentum" not in tables.summary(plane).columns[0]._cells


def test_a_run_under_way_has_a_table(plane):
    running = plane.copy()
    running.attrs = {k: v for k, v in plane.attrs.items() if k not in ("steps", "wall_seconds")}
    assert tables.summary(running).title == "t = 0.2 fm"


def test_a_run_announces_its_space_cells():
    grid = rb.PhaseSpace(5, 2.0, [4, 3, 1], [3.0, 3.0, 1.0], ["open", "periodic", "periodic"])
    words = "x: 4 cells of 1.5 fm, open; y: 3 cells of 2 fm, periodic; z: homogeneous"
    assert tables.space(grid) == words
