"""Analysis of results: integrals of spectra, flow, times, comparisons, notebooks."""

import numpy as np
import pytest
import xarray as xr

import relboltz as rb
from relboltz.util.errors import InputError

GRID = rb.PhaseSpace([12, 11, 10], [2.4, 2.2, 2.0])


def solved(start=None, grid=GRID, **options):
    usual = dict(end=0.2, every=0.1, samples=2, backend="cpu", progress=False)
    model = rb.qcd(0.3, 1, masses={"g": 0.5, "quarks": 0.4})
    start = start or {"g": rb.initial.gaussian(0.4, [0.9, 0.6, 0.7])}
    return rb.solve(model, grid, start, **usual | options)


@pytest.fixture(scope="module")
def result():
    return solved()


@pytest.mark.parametrize("cells", [11, 12])
def test_integrals_of_spectra_are_numbers(cells):
    """Sums over shells and rings times their widths: to rounding, with a node at rest or without.

    And they are smooth: of a Gaussian dN/dp ~ p^2 exp(-p^2/2w^2) follows within what the mean of f
    over a shell of one spacing h differs from f in its middle, (h/w)^2/24 p^2/w^2: 7.4 % up to 2 w.
    """
    w = 0.6
    shape = rb.initial.gaussian(0.4, [w, w, w], sampling="node")
    grid = rb.PhaseSpace(cells, 0.2 * cells)
    ds = solved({"g": shape}, grid, end=1e-6, every=1e-6, snapshots=[0.0])
    p, pt = ds.rb.dN_dp(), ds.rb.dN_dpT()
    assert (p * p.width).sum("p").values == pytest.approx(ds.number.values, rel=1e-12)
    first = ds.number.isel(time=0).values
    assert (pt * pt.width).sum("pT").values[0] == pytest.approx(first, rel=1e-12)
    assert p.attrs["units"] == pt.attrs["units"] == "fm^-3 GeV^-1"
    near = p.isel(time=0).sel(species="g").where((p.p > 0.1) & (p.p < 2 * w), drop=True)
    exact = 16 * 0.4 * 4 * np.pi * near.p**2 * np.exp(-((near.p / w) ** 2) / 2)
    exact = exact / (2 * np.pi * 0.1973269804) ** 3
    assert near.values == pytest.approx(exact.values, rel=0.074)


def test_mean_pt_is_that_of_the_nodes(result):
    """Against a sum over f itself; none of species that are absent."""
    f = result.f.isel(snapshot=-1)
    weight = np.hypot(result.px, result.py)
    expected = (f * weight).sum(("px", "py", "pz")) / f.sum(("px", "py", "pz"))
    assert result.rb.mean_pT().values[-1] == pytest.approx(expected.values, rel=1e-12)
    assert np.isnan(result.rb.mean_pT().values[0, 1:]).all()


def test_flow_of_an_ellipse_is_known():
    """f ~ exp(-(a px^2 + b py^2)): v_2 = <cos 2 phi> of a Gaussian, turned as far as it is.

    <cos 2phi> = (sx - sy)/(sx + sy) for widths sx and sy; nodes miss 1e-4 of such integrals.
    """
    sx, sy = 0.55, 0.40
    for angle in (0.0, 0.5):

        def start(px, py, pz, angle=angle):
            x = px * np.cos(angle) + py * np.sin(angle)
            y = py * np.cos(angle) - px * np.sin(angle)
            return 0.3 * np.exp(-0.5 * ((x / sx) ** 2 + (y / sy) ** 2 + (pz / 0.5) ** 2))

        shape = rb.initial.from_function(start, sampling="node")
        ds = solved({"g": shape}, rb.PhaseSpace(28, 3.0), end=1e-6, every=1e-6)
        flow = ds.rb.flow(2).isel(snapshot=0)
        assert float(flow.v_integrated[0]) == pytest.approx((sx - sy) / (sx + sy), abs=1e-3)
        assert float(flow.angle) == pytest.approx(angle, abs=2e-3)
        assert (flow.v.sel(species="g").values[1:8] > 0).all()


def test_an_isotropic_state_has_no_elliptic_flow():
    ds = solved({"g": rb.initial.step(0.4, 1.2)}, rb.PhaseSpace(12, 2.4), end=1e-6, every=1e-6)
    assert abs(ds.rb.flow(2).v_integrated.values[0, 0]) < 1e-12


def thermal(px, py, pz, sharp=0.0):
    """exp(-E/T) with T = 0.3 GeV, narrower along y than along x."""
    e = np.sqrt((1 - sharp) * px**2 + (1 + sharp) * py**2 + pz**2 + 0.09)
    return np.exp(-e / 0.3)


@pytest.mark.parametrize("cells", [(16, 16, 16), (17, 17, 17), (24, 16, 16)])
def test_the_lattice_has_little_flow_of_its_own(cells):
    """f is smooth between nodes: v_2 and v_4 of a round state, v_2 of an oblong one (0.10101).

    Nodes alone, each with its own direction, have 0.042 and 0.24, and 0.055 in place of 0.101;
    what is left of these at h/T = 1.25: 6e-5, 9e-5, 2.5 % of v_2, 0.6 % of it beyond the rings.
    """
    grid = rb.PhaseSpace(cells, 3.0)
    round_, oblong = (
        solved({"g": rb.initial.from_function(f, sampling="node")}, grid, end=1e-6, every=1e-6)
        for f in (thermal, lambda px, py, pz: thermal(px, py, pz, sharp=0.2))
    )
    assert abs(float(round_.rb.flow(2).v_integrated[0, 0])) < 1.2e-4
    assert abs(float(round_.rb.flow(4).v_integrated[0, 0])) < 2e-4
    assert float(oblong.rb.flow(2).v_integrated[0, 0]) == pytest.approx(0.10101, rel=0.03)


def test_flow_ends_with_the_box_and_spectra_say_where():
    ds = solved(grid=rb.PhaseSpace([10, 8, 6], [2.0, 1.6, 1.2]), end=1e-6, every=1e-6)
    flow, pt, p = ds.rb.flow(2).isel(snapshot=0), ds.rb.dN_dpT(), ds.rb.dN_dp()
    assert (np.isnan(flow.v.sel(species="g")) == (pt.pT > 1.6)).all()
    assert (pt.inside == (pt.pT < 1.6)).all() and (p.inside == (p.p <= 1.2)).all()
    assert float(pt.width[0]) == pytest.approx(0.4)


def test_densities_at_rest_are_those_of_the_shape():
    """dN/dp over p^2 at the node at rest, on unequal spacings: the volume of its cell counts."""
    grid = rb.PhaseSpace([5, 7, 9], [1.0, 2.1, 1.8])
    shape = rb.initial.from_function(thermal, sampling="node")
    ds = solved({"g": shape}, grid, end=1e-6, every=1e-6)
    first = ds.rb.dN_dp().isel(time=0, p=0).sel(species="g")
    volume = np.prod([2 * w / n for w, n in zip((1.0, 2.1, 1.8), (5, 7, 9), strict=True)])
    expected = 16 * np.exp(-1.0) * volume / (2 * np.pi * 0.1973269804) ** 3
    assert float(first * first.width) == pytest.approx(expected, rel=1e-12)
    assert float(first.width) == pytest.approx((3 * volume / (4 * np.pi)) ** (1 / 3), rel=1e-12)


def decaying(tau=1.7, end=6.0, floor=0.0):
    """A made-up result: P_z/P_T and the distance decay, T tends to 0.4."""
    time = np.linspace(0, end, 61)
    decay = np.exp(-time / tau) + floor
    species = ["g", "u"]
    ones = np.ones((len(time), 2))
    return xr.Dataset(
        {
            "pressure_ratio": ("time", 1 - 0.6 * decay),
            "equilibrium_distance": ("time", 0.5 * decay),
            "temperature": ("time", 0.4 + 0.05 * decay),
            "number": (("time", "species"), ones * (1 + decay[:, None])),
            "entropy": ("time", 1 - decay),
            "equilibrium_temperature": ((), 0.4),
            "equilibrium_pressure_ratio": ((), 1.0),
            "equilibrium_number": ("species", [1.0, 1.0]),
        },
        {"time": time, "species": species},
    )


@pytest.mark.parametrize(
    ("quantity", "species"),
    [("pressure_ratio", None), ("equilibrium_distance", None), ("temperature", None),
     ("number", "u")],
)  # fmt: skip
def test_rates_of_exponentials_are_found(quantity, species):
    found = decaying().rb.relaxation_time(quantity, species)
    assert float(found) == pytest.approx(1.7, rel=1e-9)
    assert found.attrs["standard_error"] < 1e-8 and found.attrs["units"] == "fm"


def test_what_relaxes_ends_where_its_nodes_have_it():
    """Flows, stresses and ratios of the predicted state on the nodes, in a box that is no cube and
    moves: a run that begins there stays there."""
    grid = rb.PhaseSpace([10, 10, 8], [3.0, 3.0, 1.8])
    model = rb.Model(
        [rb.Species("a", 4, 1), rb.Species("b", 8, -1)],
        [rb.Process("a b -> a b", sigma=0.5)], masses={"a": 0.5, "b": 0.3},
    )  # fmt: skip
    start = {"a": rb.initial.thermal(0.4, velocity=[0.3, 0, 0.2], sampling="node")}
    start["b"] = start["a"]
    ds = rb.solve(model, grid, start, end=0.2, every=0.1, samples=1, backend="cpu", progress=False)
    for name in ("momentum_by_species", "number_current", "pressure_ratio", "shear_stress"):
        found = ds[name].isel(time=-1).values
        expected = ds[f"equilibrium_{name}"].values
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-7)
    assert abs(float(ds.equilibrium_pressure_ratio) - 1) > 0.01
    made = float(ds.equilibrium_bulk_pressure)
    assert float(ds.bulk_pressure[-1]) == pytest.approx(made, rel=1e-4)


def test_a_quantity_that_crosses_its_end_is_not_fitted():
    time = np.linspace(0, 5, 51)
    values = np.exp(-time) * np.cos(time)
    ds = xr.Dataset(
        {"pressure_ratio": ("time", 1 + values), "equilibrium_pressure_ratio": 1.0},
        {"time": time, "species": ["g"]},
    )
    ds["number"] = (("time", "species"), np.ones((51, 1)))
    with pytest.raises(InputError, match="crosses its final value"):
        ds.rb.relaxation_time("pressure_ratio", start=1.0, end=3.0)


def test_a_floor_is_not_fitted():
    """Deviations below a thousandth of the largest are noise; a window can be given."""
    ds = decaying(tau=0.4, end=12.0, floor=1e-5)
    assert float(ds.rb.relaxation_time("pressure_ratio")) == pytest.approx(0.4, rel=0.01)
    late = ds.rb.relaxation_time("pressure_ratio", start=0.5, end=1.5)
    assert float(late) == pytest.approx(0.4, rel=1e-3)
    assert late.attrs["start"] >= 0.5 and late.attrs["end"] <= 1.5


def test_the_standard_error_of_a_rate_is_that_of_a_line():
    """Noise of 1 % on the logarithm: the scatter of 200 fits, within its own error of 5 %."""
    rng, found = np.random.default_rng(2), []
    for _ in range(200):
        ds = decaying()
        ds["pressure_ratio"] = 1 - (1 - ds.pressure_ratio) * np.exp(0.01 * rng.normal(size=61))
        found.append(ds.rb.relaxation_time("pressure_ratio", start=0.0, end=6.0))
    scatter = np.std([float(x) for x in found])
    assert np.mean([x.attrs["standard_error"] for x in found]) == pytest.approx(scatter, rel=0.2)


def test_thermalisation_is_when_the_distance_has_fallen():
    """0.5 exp(-t/tau) = x; logarithms are interpolated, so that it is exact."""
    ds = decaying()
    for part in (0.1, 0.25):
        when = 1.7 * np.log(0.5 / part)
        assert float(ds.rb.thermalisation_time(part)) == pytest.approx(when, rel=1e-12)
    assert float(ds.rb.thermalisation_time(0.6)) == 0.0
    assert np.isnan(ds.rb.thermalisation_time(1e-3))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda rb: rb.relaxation_time("presure_ratio"), "did you mean 'pressure_ratio'"),
        (
            lambda rb: rb.relaxation_time("number"),
            "several species: give species, one of g, u",
        ),
        (lambda rb: rb.relaxation_time("entropy"), "give final="),
        (lambda rb: rb.relaxation_time("entropy", axis="x"), "axis = 'x': entropy has none"),
        (lambda rb: rb.relaxation_time("number", "d"), "species 'd': known: g, u"),
        (lambda rb: rb.relaxation_time("temperature", start=5.9), "2 of 61 records lie where"),
        (lambda rb: rb.thermalisation_time(2.0), "between 0 and 1"),
        (lambda rb: rb.flow(0), "n is a whole number"),
        (lambda rb: rb.dN_dpT(), "no snapshot of f"),
    ],
)
def test_what_cannot_be_told_is_said(call, words):
    with pytest.raises(InputError, match=words):
        ds = decaying().assign_attrs(momentum_max=[1.0] * 3)
        call(ds.assign_coords(px=[0.0], py=[0.0], pz=[0.0]).rb)


def test_a_dataset_of_others_is_no_result():
    with pytest.raises(InputError, match="results of solve"):
        _ = xr.Dataset({"a": ("x", [1.0])}).rb


def test_two_results_are_compared(result):
    """A run equals itself; another seed differs by noise, a scaled run by its factor."""
    assert (abs(result.rb.compare(result).largest) < 1e-14).all()  # ln f and back
    other = result.assign(entropy=1.02 * result.entropy)
    table = result.rb.compare(other)
    assert table.index[0] == "entropy"
    assert table.loc["entropy", "last"] == pytest.approx(0.02, rel=1e-9)
    seeds = result.rb.compare(solved(seed=2))
    assert 0 < abs(seeds.loc["number", "largest"]) < 0.05
    assert abs(seeds.loc["momentum_by_species", "largest"]) < 0.05
    later = result.assign_coords(time=result.time + 10)
    with pytest.raises(InputError, match="no times in common"):
        result.rb.compare(later)


def test_notebooks_show_tables(result):
    """Names of others are text: nothing of them is a tag."""
    strange = rb.Model([rb.Species("<b>x"), rb.Species("y", 3, 1)], [], masses={"y": 0.5})
    page = strange._repr_html_()
    assert "&lt;b&gt;x" in page and "<b>x" not in page
    for word in ("Bose", "0.5 GeV", "conserved: "):
        assert word in page
    assert "34 processes" in rb.qcd(0.3)._repr_html_() and "thermal" in rb.qcd(0.3)._repr_html_()
    grid = rb.PhaseSpace(9, 2.0, [4, 1, 1], 3.0, "open")._repr_html_()
    assert "9 nodes to 2 GeV" in grid and "4 cells to 3 fm, open" in grid
    page = result.rb._repr_html_()
    assert "change of number" in page and "(done)" in page and "change of number" in repr(result.rb)


def test_pictures_come_as_figures(result):
    for name in ("spectra", "numbers", "temperature", "anisotropy", "rates", "masses"):
        figure = getattr(result.rb, f"plot_{name}")()
        assert any(ax.lines for ax in figure.axes), name
    assert result.rb.configuration["model"]["name"] == "qcd"


def test_results_are_compared_by_name_and_what_one_lacks_is_told(result):
    """Not by place; species, processes and charges that both have."""
    other = result.isel(species=[2, 0, 1])
    assert (result.rb.compare(other).largest.abs() < 1e-12).all()
    lost = result.assign(temperature=result.temperature * np.nan)
    assert np.isinf(result.rb.compare(lost).largest["temperature"])
    strangers = result.assign_coords(species=["x", "y", "z"])
    with pytest.raises(InputError, match="no species in common"):
        result.rb.compare(strangers)
    with pytest.raises(InputError, match="give a result"):
        result.rb.compare("b.nc")
    part = result.isel(species=[0])
    assert set(part.rb.compare(result).index) <= set(result.rb.compare(part).index) | {"number"}
