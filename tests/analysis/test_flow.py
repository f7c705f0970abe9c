"""Analysis of expanding matter and of the transverse plane, against sums and closed forms."""

import numpy as np
import pytest
import xarray as xr

import relboltz as rb
from relboltz import analysis
from relboltz.grid.units import HBARC
from relboltz.util.errors import InputError
from relboltz.visualization.plots import save_all
from relboltz.visualization.plots.pages import _of_space

GAS = rb.Model([rb.Species("a", 1, 0)], [rb.Process("a a -> a a", sigma=0.5)])
USUAL = dict(samples=1, backend="cpu", progress=False)
EXPANDING = rb.PhaseSpace([8, 8, 12], 3.0, expansion="bjorken")


@pytest.fixture(scope="module")
def plane():
    """An almond in Bjorken flow, which leaves through open walls."""
    grid = rb.PhaseSpace([6, 6, 6], 2.0, [8, 6, 1], [4.0, 3.0, 1.0], "open", expansion="bjorken")
    profile = {"radius": 1.2, "eccentricity": 0.4, "angle": 0.4}
    start = {"a": rb.initial.gaussian(0.6, 0.6, profile=profile)}
    times = dict(start=0.5, end=2.0, every=0.5, snapshots=[0.5, 2.0], regrid_times=[])
    with pytest.warns(rb.AccuracyWarning):
        return rb.solve(GAS, grid, start, **USUAL | times)


@pytest.fixture(scope="module")
def matter():
    """Homogeneous matter in Bjorken flow."""
    start = {"a": rb.initial.thermal(0.4)}
    return rb.solve(GAS, EXPANDING, start, start=0.5, end=2.0, every=0.5, **USUAL)


# --- the plane ----------------------------------------------------------------------------------


def made(density, x, y, **others):
    """A result with a given energy density (time, x, y)."""
    dims = ("time", "x", "y", "z")
    variables = {
        "number": (("time", "species", *dims[1:]), density[:, None, :, :, None]),
        "energy_total": (dims, density[..., None]),
        "landau_energy": (dims, density[..., None] * 0.5),
    }
    coords = {"time": np.arange(len(density)) + 0.0, "species": ["a"], "x": x, "y": y, "z": [0.0]}
    return xr.Dataset(variables | others, coords)


@pytest.mark.parametrize(("n", "wanted", "angle"), [(2, 0.3, 0.6), (3, 0.2, -0.3), (4, 0.15, 0.2)])
def test_eccentricities_are_those_of_a_known_profile_wherever_it_lies(n, wanted, angle):
    """Moved away from the middle, and at half the size later."""
    x, y = np.linspace(-12, 12, 80), np.linspace(-11, 11, 70)
    profile = rb.initial.gaussian_profile(2.0, wanted, angle, n)
    px, py = np.meshgrid(x - 0.7, y + 0.4, indexing="ij")
    ds = made(np.array([profile.at(px, py), profile.at(2 * px, 2 * py)]), x, y)
    found = ds.rb.eccentricity(n)
    assert found.eccentricity.values == pytest.approx(wanted, rel=2e-3)
    assert found.angle.values == pytest.approx(angle, abs=1e-3)
    assert found.radius.values == pytest.approx([2.0, 1.0], rel=1e-3)
    other = ds.rb.eccentricity(n, weight="landau")
    assert other.eccentricity.values == pytest.approx(found.eccentricity.values, rel=1e-12)


def test_a_round_profile_has_no_eccentricity_and_no_direction():
    x = np.linspace(-5, 5, 20)
    ds = made(np.exp(-(x[:, None] ** 2) - x**2)[None], x, x)
    found = ds.rb.eccentricity(2)
    assert abs(found.eccentricity.values[0]) < 1e-12 and np.isnan(found.angle.values[0])


def test_the_almond_becomes_rounder_and_flows_along_its_short_axis(plane):
    """Less eccentric, and momenta, from none at first, point along Phi_2 to half a radian."""
    shape, flow = plane.rb.eccentricity(2), plane.rb.momentum_anisotropy()
    assert (np.diff(shape.eccentricity) < 0).all()
    assert shape.angle.values[0] == pytest.approx(0.4, abs=0.1)
    assert flow["size"].values[0] < 1e-9 < 0.002 < flow["size"].values[-1]
    assert flow.angle.values[-1] == pytest.approx(0.4, abs=0.5)
    assert flow.epsilon_p.values[-1] == pytest.approx(
        float(flow["size"][-1] * np.cos(2 * flow.angle[-1])), rel=1e-12
    )
    xx, yy = (plane.energy_momentum.sel(mu=i, nu=i).isel(time=-1).sum() for i in "xy")
    assert flow.epsilon_p.values[-1] == pytest.approx(float((xx - yy) / (xx + yy)), rel=1e-12)


def test_flow_of_records_includes_what_left(plane):
    """dN/dy is all of it, at all times the same; v_2 begins at nothing."""
    flow, spectrum = plane.rb.flow(2), plane.rb.dN_dpT()
    assert flow.v.dims == ("time", "species", "pT")
    total = (spectrum * spectrum.width).sum("pT").values
    assert total == pytest.approx(plane.dN_dy.values, rel=1e-12)
    assert total[:, 0] == pytest.approx(total[0, 0], rel=1e-12)
    assert float(plane.left_number.isel(time=-1).sum()) > 0
    assert abs(flow.v_integrated.values[0]) < 1e-9
    assert plane.rb.dN_dpT().attrs["units"] == "GeV^-1"
    harder = plane.rb.flow(2, weight="pT").v_integrated.values[-1]
    assert harder > flow.v_integrated.values[-1] > 0
    f = plane.f.isel(snapshot=0)
    weight = np.hypot(plane.px, plane.py)
    mean = float((f * weight).sum() / f.sum())
    assert plane.rb.mean_pT().values[0] == pytest.approx(mean, rel=1e-9)


def test_corners_of_the_box_do_not_flow(matter):
    """v_4 of all is the mean over rings that lie in the box; there are others."""
    found = matter.rb.flow(4)
    rings, inside = matter.rb.dN_dpT(), np.isfinite(found.v[-1, 0].values)
    number = (rings * rings.width).values[-1, 0][inside]
    together = (number * found.v.values[-1, 0][inside]).sum() / number.sum()
    assert found.v_integrated.values[-1, 0] == pytest.approx(together, rel=1e-12)
    assert not inside.all()


def test_what_is_there_per_rapidity(plane, matter):
    """tau times the sum over cells and their area; of homogeneous matter per area."""
    found = plane.rb.per_rapidity()
    area = 1.0 * 1.0
    energy = plane.energy_total.sum(("x", "y", "z")) * area * plane.time
    assert found.dE_deta.values == pytest.approx(energy.values, rel=1e-12)
    assert found.dE_deta.attrs["units"] == "GeV" and found.dS_deta.attrs["units"] == "1"
    still = matter.rb.per_rapidity()
    assert still.dS_deta.values == pytest.approx((matter.entropy * matter.time).values, rel=1e-12)
    assert still.dN_dy.values[:, 0] == pytest.approx(
        (matter.number[:, 0] * matter.time).values, rel=1e-12
    )
    assert (np.diff(still.dE_deta) < 0).all()  # the work of P_L
    assert still.dS_deta.attrs["units"] == "fm^-2"
    assert still.dE_deta.attrs["units"] == "GeV fm^-2"


def test_rings_of_transverse_momentum_hold_all_particles(matter):
    """dN/dp of Bjorken flow: spectra are averages over rings; their sum is the density."""
    density = matter.rb.dN_dp()
    total = (density * density.width).sum("p").values
    assert total == pytest.approx(matter.number.values, rel=1e-12)


def test_momenta_of_hubble_flow_are_physical():
    """Comoving ones over a: mean p_T falls as 1/a, numbers as 1/a^3; rings are of one snapshot."""
    grid = rb.PhaseSpace(6, 2.0, expansion="hubble", hubble_rate=0.5)
    free = rb.Model([rb.Species("a", 1, 0)], [])
    start = {"a": rb.initial.gaussian(0.5, 0.5)}
    times = dict(start=0.0, end=1.0, every=1.0, snapshots=[0.0, 1.0])
    ds = rb.solve(free, grid, start, **USUAL | times)
    pt = ds.rb.mean_pT().values[:, 0]
    assert pt[1] / pt[0] == pytest.approx(np.exp(-0.5), rel=1e-12)
    with pytest.raises(InputError, match=r"take one, such as result.isel\(snapshot=\[-1\]\)"):
        ds.rb.dN_dpT()
    late = ds.isel(snapshot=[-1]).rb.dN_dpT()
    number = float((late * late.width).sum())
    assert number == pytest.approx(float(ds.number[-1, 0]), rel=1e-12)
    spectrum = ds.rb.dN_dp()
    total = (spectrum * spectrum.width).sum("p").values
    assert total == pytest.approx(ds.number.values, rel=1e-12)


# --- hydrodynamics ------------------------------------------------------------------------------


def fluid(eta_over_s=0.2, t0=0.5):
    """Made-up matter that obeys first-order hydrodynamics, e = 3 P ~ T^4 at mu = 0."""
    tau = np.array([1.0, 2.0, 4.0, 8.0])
    t = t0 * tau ** (-1 / 3)
    e = 3 * 16 * t**4 / (np.pi**2 * HBARC**3)
    eta = eta_over_s * (4 / 3) * e / t * HBARC
    along, across = e / 3 - 4 * eta / (3 * tau), e / 3 + 2 * eta / (3 * tau)
    tensor, stress = np.zeros((4, 4, 4)), np.zeros((4, 4, 4))
    for i, value in enumerate((e, across, across, along)):
        tensor[:, i, i] = value
        stress[:, i, i] = value - e / 3 if i else 0.0
    zeros = np.zeros((4, 1))
    ds = xr.Dataset(
        {
            "number": (("time", "species"), e[:, None] / 3 / t[:, None]),
            "dN_dy": (("time", "species"), zeros + 1, {"units": "fm^-2"}),
            "dET_dy": ("time", e),
            "energy_momentum": (("time", "mu", "nu"), tensor),
            "energy_kinetic": ("time", e), "energy_total": ("time", e),
            "landau_energy": ("time", e), "pressure": ("time", e / 3),
            "bulk_pressure": ("time", 0 * e), "landau_temperature": ("time", t),
            "landau_chemical_potential": (("time", "species"), zeros),
            "landau_velocity": (("time", "axis"), np.zeros((4, 3))),
            "number_current": (("time", "species", "axis"), np.zeros((4, 1, 3))),
            "shear_stress": (("time", "mu", "nu"), stress),
        },
        {"time": tau, "species": ["a"], "mu": list("txyz"), "nu": list("txyz"),
         "axis": list("xyz")},
    )  # fmt: skip
    return ds, eta, t


def test_first_order_matter_is_recognised_as_such():
    """(P_T - P_L) tau/(2 eta) = 1, and tau T/(4 pi eta/s) is the scaled time without mu."""
    ds, eta, t = fluid()
    for given in (0.2, eta, lambda t, mu: 0.2 * 64 * t**3 / (np.pi**2 * HBARC**2) + mu["a"]):
        found = ds.rb.first_order(given)
        assert found.driven.values == pytest.approx(1.0, rel=1e-12)
        scaled = ds.time.values * t / (4 * np.pi * 0.2 * HBARC)
        assert found.scaled_time.values == pytest.approx(scaled, rel=1e-12)
        assert found.first_order.values == pytest.approx(
            found.longitudinal_over_energy.values, rel=1e-12
        )
    assert ds.rb.scaled_time(0.4).values == pytest.approx(0.5 * scaled, rel=1e-12)


def test_matter_that_flows_is_looked_at_in_its_own_frame():
    """A boost along x with v = 0.6 leaves the hydrodynamic quantities of a fluid unchanged."""
    ds, _, _ = fluid()
    ds["landau_chemical_potential"] = ds.landau_chemical_potential - 0.1
    v, gamma = 0.6, 1.25
    boost = np.eye(4)
    boost[:2, :2] = gamma * np.array([[1, v], [v, 1]])
    moving = ds.copy(deep=True)
    for name in ("energy_momentum", "shear_stress"):
        moving[name][:] = boost @ ds[name].values @ boost.T
    moving["number"] = gamma * ds.number
    moving["number_current"][:, :, 0] = gamma * v * ds.number
    moving["landau_velocity"][:, 0] = v
    moving["energy_total"] = moving["energy_kinetic"] = moving.energy_momentum[:, 0, 0]
    for name in ("driven", "scaled_time", "longitudinal_over_energy", "first_order"):
        still, flowing = (one.rb.first_order(0.2)[name].values for one in (ds, moving))
        assert flowing == pytest.approx(still, rel=1e-12)


def test_first_order_agrees_with_pressures_of_matter_at_rest(matter):
    """The Landau frame of this run is that of the grid, but for rounding."""
    with pytest.warns(rb.AccuracyWarning, match="eta/s = 0.3, a constant"):
        found, plain = matter.rb.first_order(0.3), matter.rb.pressures()
    assert found.longitudinal_over_energy.values == pytest.approx(
        plain.longitudinal_over_energy.values, rel=1e-9
    )
    eta = analysis.viscosity(matter, 0.3).values
    apart = (plain.transverse - plain.longitudinal).values
    assert found.driven.values == pytest.approx(apart * matter.time.values / (2 * eta), abs=1e-9)


def test_the_viscosity_of_a_model_is_that_of_transport_coefficients():
    """At records that are computed; eta ~ T of a constant cross section, 1.2 T/sigma, between."""
    ds, _, t = fluid(t0=0.4)
    many = dict(events=20_000, backend="cpu")
    found = analysis.viscosity(ds, GAS, **many)
    direct = rb.transport_coefficients(GAS, float(t[0]), 0.0, **many)
    assert found.values[0] == pytest.approx(float(direct.shear_viscosity), rel=1e-12)
    assert found.values == pytest.approx(1.2676 * t / 0.5, rel=0.03)
    assert found.attrs["units"] == "GeV fm^-2"


def with_charges(mu, states, charges=("number",)):
    """The made-up fluid with several species, their mu/T at the last record, and charges."""
    ds, _, t = fluid()
    ds = ds.isel(species=[0] * len(mu)).assign_coords(species=list("abcd"[: len(mu)]))
    ds["landau_chemical_potential"][-1] = np.array(mu) * t[-1]
    ds["degeneracy"] = ("species", states)
    return ds.assign_coords(charge=list(charges))


@pytest.mark.parametrize(
    ("mu", "states", "charges", "told"),
    [
        ([-1.67], [16], ["number"], "mu is -1.7 T at tau = 8 fm"),
        ([0.5, 0.5], [16, 36], ["number"], "mu is 0.5 T"),
        ([-0.2, 0.8, -1.2], [16, 6, 6], ["number", "net u"], "mu is -1.2 T"),
        ([0.0], [16], ["number"], None),
        ([0.05], [16], ["number"], None),
        ([0.0, 0.8, -0.8], [16, 6, 6], ["net u"], "mu is 0.8 T"),  # a net charge alone
    ],
)
def test_a_constant_eta_over_s_for_matter_with_a_chemical_potential_is_told(
    recwarn, mu, states, charges, told
):
    ds = with_charges(mu, states, charges)
    ds.rb.first_order(0.2)
    words = [str(w.message) for w in recwarn if w.category is rb.AccuracyWarning]
    assert len(words) == (told is not None)  # said once, though eta is asked for twice
    if told:
        assert told in words[0] and "Give the model in place of eta/s" in words[0]
    ds.rb.first_order(ds.pressure.values)
    ds.rb.first_order(lambda t, mu: t)
    assert len(recwarn) == len(words)  # eta that may know mu is left alone


def test_pressures_include_the_field(matter):
    """Their ratio is the recorded one; and 2 P_T + P_L = e of massless particles."""
    found = matter.rb.pressures()
    ratio = found.longitudinal / found.transverse
    assert ratio.values == pytest.approx(matter.pressure_ratio.values, rel=1e-12)
    trace = found.longitudinal + 2 * found.transverse
    assert trace.values == pytest.approx(matter.energy_total.values, rel=1e-12)


def test_what_has_no_meaning_is_refused(plane, matter):
    still = rb.solve(GAS, rb.PhaseSpace(6, 2.0), {"a": rb.initial.step(0.5, 1.0)}, end=0.1, **USUAL)
    for call, words in (
        (lambda: still.rb.per_rapidity(), "grid.expansion = 'bjorken'"),
        (lambda: still.rb.scaled_time(0.2), "grid.expansion = 'bjorken'"),
        (lambda: still.rb.eccentricity(), "need space cells along x and y"),
        (lambda: plane.rb.eccentricity(1), "n is a whole number, 2 or more"),
        (lambda: plane.rb.eccentricity(2, "mass"), "use 'energy' or 'landau'"),
        (lambda: plane.rb.flow(2, weight="mass"), "use 'number' or 'pT'"),
        (lambda: plane.rb.scaled_time(0.2), r"take a cell, such as result.isel\(x=4, y=4, z=0\)"),
        (lambda: plane.rb.pressures(), "take a cell"),
        (lambda: matter.rb.scaled_time(-1.0), "eta/s is a number above 0"),
        (lambda: matter.rb.scaled_time(np.ones(2)), "one value for each of 4 records"),
    ):
        with pytest.raises(InputError, match=words):
            call()
    cell = plane.isel(x=4, y=3, z=0)
    assert np.isfinite(cell.rb.scaled_time(0.2)).all()
    assert abs(still.rb.momentum_anisotropy()["size"].values[0]) < 1e-12


# --- pictures -----------------------------------------------------------------------------------


def test_pictures_draw_what_was_found(plane, tmp_path):
    ds, _, _ = fluid()
    ax = ds.rb.plot_attractor(0.2).axes[0]
    found = ds.rb.first_order(0.2)
    line = {one.get_label(): one for one in ax.lines}["$P_L/e$"]
    assert line.get_xdata() == pytest.approx(found.scaled_time.values)
    assert line.get_ydata() == pytest.approx(found.longitudinal_over_energy.values)
    assert ax.get_xscale() == "log" and "scaled time" in ax.get_xlabel()
    ax = plane.rb.plot_eccentricities([2, 4]).axes[0]
    assert ax.lines[1].get_ydata() == pytest.approx(plane.rb.eccentricity(4).eccentricity.values)
    assert ax.get_xlabel() == "proper time [fm]"
    ax = plane.rb.plot_flow([2]).axes[0]
    labels = {one.get_label(): one for one in ax.lines}
    assert labels["$v_2$ of a"].get_ydata() == pytest.approx(
        plane.rb.flow(2).v_integrated.values[:, 0]
    )
    assert labels[r"$\varepsilon_p$"].get_ydata() == pytest.approx(
        plane.rb.momentum_anisotropy()["size"].values
    )
    ax = plane.rb.plot_flow_spectra(2, times=[0.5, 2.0]).axes[0]
    found = plane.rb.flow(2).v.sel(time=2.0, species="a").values
    assert ax.lines[1].get_ydata() == pytest.approx(found, nan_ok=True)
    assert "p_T" in ax.get_xlabel() and ax.get_ylabel() == "$v_2$ of a"
    lines = {one.get_label(): one for one in plane.rb.plot_per_rapidity().axes[0].lines}
    assert lines[r"$dN/dy$"].get_ydata() == pytest.approx(1.0)
    assert lines[r"$dS/d\eta$"].get_ydata()[0] == 1.0
    names = {path.stem for path in save_all(plane, tmp_path, ("png",))}
    assert "flow" in names and "box_rapidity" in names


# --- directions and harmonics -------------------------------------------------------------------


def test_flow_about_a_given_direction_has_a_sign(plane):
    """v_2 is positive about the initial short axis and equally negative about the long one."""
    own, given = plane.rb.flow(2), plane.rb.flow(2, angle=0.4)
    last = float(own.v_integrated[-1, 0])
    turn = np.cos(2 * (float(own.angle[-1]) - 0.4))
    assert float(given.v_integrated[-1, 0]) == pytest.approx(last * turn, rel=1e-12)
    assert given.angle.values == pytest.approx(0.4)
    away = plane.rb.flow(2, angle=0.4 + np.pi / 2)
    assert away.v_integrated.values == pytest.approx(-given.v_integrated.values, rel=1e-12)
    with pytest.raises(InputError, match="angle = 'x': use an angle in rad"):
        plane.rb.flow(2, angle="x")


def test_what_does_not_flow_has_no_direction(matter):
    """A square lattice has no v_2 of its own; NumPy's whole numbers are whole numbers."""
    found = matter.isel(time=[0]).rb.flow(np.int64(2))
    assert np.isnan(found.angle.values).all() and abs(found.v_integrated.values).max() < 1e-12


def test_few_nodes_tell_no_directions(matter):
    thin = matter.isel(px=slice(0, 2))
    for call in (lambda: thin.rb.flow(2), lambda: thin.rb.dN_dpT()):
        with pytest.raises(InputError, match="directions of p_T need 3 nodes or more"):
            call()
    with pytest.raises(InputError, match=r"flow\(9\): use an n not above the nodes along p_x"):
        matter.rb.flow(9)


def test_pages_of_few_nodes_have_no_directions(plane):
    """Nor does a square of which three nodes could not tell the harmonic ask for it."""
    assert "flow" in _of_space(plane)
    assert "flow" not in _of_space(plane.isel(px=slice(0, 2)))
    x, y = np.meshgrid(plane.x, plane.y, indexing="ij")
    square = rb.initial.gaussian_profile(1.5, 0.3, harmonic=4).at(x, y)[None, :, :, None]
    few = plane.isel(px=slice(0, 3))
    few["energy_total"] = (plane.energy_total.dims, square * np.ones((4, 1, 1, 1)))
    assert "v_4" not in few.rb.plot_flow_spectra().axes[0].get_ylabel()


def test_rings_of_hubble_flow_have_the_spacing_of_the_moment():
    """Spacings and the face of the box shrink as 1/a."""
    grid = rb.PhaseSpace(6, 2.0, expansion="hubble", hubble_rate=0.5)
    free = rb.Model([rb.Species("a", 1, 0)], [])
    times = dict(start=0.0, end=1.0, every=1.0, snapshots=[1.0])
    late = rb.solve(free, grid, {"a": rb.initial.gaussian(0.5, 0.5)}, **USUAL | times).rb.dN_dpT()
    assert late.width.values == pytest.approx(2 / 3 * np.exp(-0.5), rel=1e-12)
    assert int(late.inside.sum()) == 3


def test_a_triangle_is_shown_with_its_own_harmonic(plane):
    """Pictures without a word about n take that of the largest eccentricity of the start."""
    x = np.linspace(-6, 6, plane.sizes["x"]), np.linspace(-6, 6, plane.sizes["y"])
    profile = rb.initial.gaussian_profile(1.5, 0.3, harmonic=3)
    triangle = plane.assign_coords(x=x[0], y=x[1])
    density = profile.at(*np.meshgrid(*x, indexing="ij"))[None, :, :, None]
    triangle["energy_total"] = (plane.energy_total.dims, density * np.ones((4, 1, 1, 1)))
    for ds, n in ((plane, 2), (triangle, 3)):
        assert f"v_{n}" in ds.rb.plot_flow_spectra().axes[0].get_ylabel()
        labels = [line.get_label() for line in ds.rb.plot_flow().axes[0].lines]
        assert f"$v_{n}$ of a" in labels and (r"$\varepsilon_p$" in labels) == (n == 2)
    assert len(plane.rb.plot_eccentricities(4).axes[0].lines) == 2  # and the axis
    assert "$v_3$ of a" in [line.get_label() for line in plane.rb.plot_flow(3).axes[0].lines]


def test_pictures_say_that_nothing_is_there_and_which_snapshots_are():
    gas = [rb.Species("a", 1, 0), rb.Species("b", 1, 0)]
    model = rb.Model(gas, [rb.Process("a a -> a a", sigma=0.5)])
    times = dict(end=0.2, every=0.1, snapshots=[0.0, 0.2])
    start = {"a": rb.initial.gaussian(0.5, [0.9, 0.6, 0.7])}
    ds = rb.solve(model, rb.PhaseSpace(8, 2.0), start, **USUAL | times)
    words = [text.get_text() for text in ds.rb.plot_flow_spectra(species="b").axes[0].texts]
    assert words == ["no particles"]
    labels = [line.get_label() for line in ds.rb.plot_flow().axes[0].lines]
    assert "$v_2$ of a" in labels and "$v_2$ of b" not in labels
    assert len(ds.rb.plot_flow_spectra(times=[0.2]).axes[0].lines) == 2
    with pytest.raises(InputError, match=r"time = 7 fm: snapshots are from 0 to 0.2 fm"):
        ds.rb.plot_flow_spectra(times=[7.0])
