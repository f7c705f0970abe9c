"""The page about a result: its numbers are the result's, and a file has no power over it."""

import json
import re
import sys
from html.parser import HTMLParser

import numpy as np
import pytest

import relboltz as rb
from relboltz.analysis import verdict
from relboltz.cli import app as cli
from relboltz.io import output
from relboltz.util.errors import InputError
from relboltz.visualization import plots
from relboltz.visualization.report import number_format, report, run_description

USUAL = dict(every=0.1, samples=1, backend="cpu", progress=False)
MODEL = rb.qcd(0.3, 1)
START = {"g": rb.initial.gaussian(0.5, [0.9, 0.9, 0.4])}
LIMIT = 6_000_000
"""Bytes that a page may have."""


class Page(HTMLParser):
    """Parser of a page: tags, scripts, and its data."""

    def __init__(self, page):
        super().__init__(convert_charrefs=True)
        self.tags, self.texts, self._within = [], [], ""
        self.feed(page)
        text = page.partition('id="data">')[2].partition("</script>")[0]
        self.data = json.loads(text, parse_constant=pytest.fail)
        self.text = "\n".join(self.texts)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self._within = tag

    def handle_endtag(self, tag):
        self._within = ""

    def handle_data(self, data):
        if self._within not in ("script", "style"):
            self.texts.append(data)

    def chart(self, title):
        return next(c for c in self.data["charts"].values() if c["title"] == title)

    def curve(self, title, name):
        return next(c for c in self.chart(title)["curves"] if c["words"] == name)


def page_of(**results):
    return Page(report(results))


def near(values):
    """Equal to the digits that a page keeps: four of the largest step, at least."""
    known = np.asarray(values, float)
    return pytest.approx(known, rel=1e-3, abs=1e-12, nan_ok=True)


@pytest.fixture(scope="module")
def mixture():
    return rb.solve(MODEL, rb.PhaseSpace(7, 2.5), START, end=0.4, **USUAL)


@pytest.fixture(scope="module")
def other():
    return rb.solve(rb.qcd(0.2, 1), rb.PhaseSpace(6, 2.5), START, end=0.3, **USUAL)


@pytest.fixture(scope="module")
def plane():
    def spot(x, y, z, px, py, pz):
        return np.exp(-(x**2) - y**2 - np.sqrt(px**2 + py**2 + pz**2) / 0.4)

    grid = rb.PhaseSpace(6, 2.0, [4, 3, 1], [2.0, 1.5, 0.7], "open")
    return rb.solve(rb.gluons(0.3), grid, {"g": spot}, end=0.2, marginals=["x px"], **USUAL)


# --- numbers ------------------------------------------------------------------------------------


def test_the_curves_are_those_of_the_result(mixture):
    page = page_of(run=mixture)
    temperature = page.curve("Temperature", "T")["y"]
    assert temperature == near(mixture.temperature.values)
    assert page.curve("Temperature", "predicted")["y"] == near(
        [mixture.equilibrium_temperature] * 2
    )
    assert page.chart("Temperature")["x"] == near(mixture.time.values)
    assert page.curve("Particle densities", "g")["y"] == near(mixture.number.sel(species="g"))
    both = mixture.number.sel(species=["u", "ubar"]).mean("species")
    assert page.curve("Particle densities", "u, ū (each)")["y"] == near(both)
    assert page.curve("Entropy", "entropy")["y"] == near(mixture.entropy)
    assert page.curve("Distance from equilibrium", "not yet in equilibrium")["y"] == near(
        mixture.equilibrium_distance
    )
    assert page.curve("Energy", "total, fields included")["y"] == near(mixture.energy_total)
    masses = np.sqrt(mixture.mass_squared.sel(species="g"))
    assert page.curve("Masses", "g")["y"] == near(masses)
    ratio = page.curve("Pressure anisotropy", "pressure along z over that across")
    assert ratio["y"] == near(mixture.pressure_ratio)
    mu = page.curve("Chemical potentials", "g")["y"]
    assert mu == near(mixture.chemical_potential.sel(species="g"))


def test_a_slider_runs_through_the_spectra_of_all_records(mixture):
    page = page_of(run=mixture)
    chart = page.chart("g")
    assert page.data["sliders"][chart["slider"]] == near(mixture.time.values)
    now, start = page.curve("g", "now"), page.curve("g", "at the start")
    inside = mixture.p.values <= 2.5
    f = mixture.spectrum.sel(species="g").values[:, inside]
    assert np.array(now["y"], float) == near(np.where(f > 0, f, np.nan))
    assert start["y"] == now["y"][0]
    final = page.curve("g", "equilibrium")
    assert final["y"] == near(plots.prediction(mixture, "g", np.array(final["x"])))
    (slider,) = (a for tag, a in page.tags if tag == "input")
    assert slider["type"] == "range" and slider["max"] == slider["value"] == "4"
    assert slider["aria-valuetext"] == "t = 0.4 fm"
    assert {"for": slider["id"]} in [a for tag, a in page.tags if tag == "label"]


def test_maps_hold_every_cell_of_every_record(plane):
    page = page_of(run=plane)
    density = page.chart("Particle density of g")
    assert density["kind"] == "map" and [a["cells"] for a in density["axes"]] == [4, 3]
    assert [a["ends"] for a in density["axes"]] == [[-2, 2], [-1.5, 1.5]]
    expected = plane.number.sel(species="g").isel(z=0).transpose("time", "y", "x").values
    assert np.array(density["frames"]) == near(expected.reshape(plane.time.size, -1))
    assert density["low"] <= expected.max() == near(density["high"])
    flow = density["flow"]
    last = plane.landau_velocity.isel(time=-1, z=0).transpose("axis", "y", "x").values[:2]
    fast = np.sqrt((last**2).sum(0)) > 0.01
    assert np.array(flow["frames"][-1][0], float) == near(np.where(fast, last[0], np.nan).ravel())
    kinds = {"Total energy density", "Flow velocity", "Temperature of the Landau frame"}
    assert kinds <= {c["title"] for c in page.data["charts"].values()}
    phase = page.chart("Mean of f of g")
    assert np.array(phase["frames"][0]) == near(plane.f_x_px[0, 0].values.T.ravel())


def test_profiles_are_cuts_through_the_middle(plane):
    page = page_of(run=plane)
    lines = [c for c in page.data["charts"].values() if c["kind"] == "lines"]
    profile = next(c for c in lines if c["xlabel"] == "x [fm]" and "density of g" in c["title"])
    now = next(c for c in profile["curves"] if c["words"] == "now")
    assert np.array(now["y"]) == near(plane.number[:, 0, :, 1, 0].values)
    assert "Along x at y = 0 fm" in page.text


def test_the_verdict_is_that_of_the_terminal(mixture, plane):
    for ds in mixture, plane:
        page = page_of(run=ds)
        for row in verdict.rows(ds):
            assert number_format.number(row.value) in page.text or not row.value
            assert number_format.unit(row.description).replace("mu ", "μ ") in page.text
    assert "conserved exactly" in page.text and "have left the box" in page.text


def test_the_set_up_is_told_in_words(mixture, plane):
    told = dict(run_description.setup(mixture))
    assert told["model"] == "qcd: 3 species, 7 processes"
    assert told["momentum box"] == "7 × 7 × 7 nodes to (2.5, 2.5, 2.5) GeV, spacing 0.714 GeV"
    assert told["space"] == "homogeneous" and told["time"].startswith("0 to 0.4 fm, automatic")
    assert told["start of g"] == "gaussian, sampling = cell, height = 0.5, widths = (0.9, 0.9, 0.4)"
    assert told["sampling"].startswith("1 sample per node")
    told = dict(run_description.setup(plane))
    assert told["space"].startswith("x: 4 cells of 1 fm, open; y: 3 cells of 1 fm, open; z: homog")
    assert told["start of g"] == "function spot, sampling = cell"
    made = dict(run_description.origin(mixture))
    assert made["seed"] == "1" and made["relboltz"] == rb.__version__
    assert made["steps"] == str(mixture.attrs["steps"])
    table = {"shape": "step", "height": 0.5, "edge": 1.5}
    assert run_description.start(table) == "step, height = 0.5, edge = 1.5"
    assert run_description.start("no object at all") == "no object at all"
    assert (
        run_description.start("Thermal(temperature=0.16999999999999998)")
        == "thermal, temperature = 0.17"
    )


def test_a_configuration_that_runs_is_told_from_a_description(mixture):
    described = page_of(run=mixture)
    assert "This run was started from Python" in described.text
    assert mixture.attrs["configuration"].splitlines()[-1] in described.text
    text = '[model]\nname = "qcd"\nalpha_s = 0.3\n\n[initial.g]\nshape = "step"\nedge = 1.5\n'
    page = page_of(run=mixture.assign_attrs(configuration=text))
    assert "start it with relboltz run" in page.text and text in page.text
    assert "qcd, alpha_s = 0.3: 3 species" in page.text


def test_means_of_replicas_have_bands():
    start = {"g": rb.initial.step(0.4, 1.2)}
    ds = rb.solve(rb.gluons(0.3), rb.PhaseSpace(6, 2.0), start, end=0.2, replicas=2, **USUAL)
    page = page_of(run=ds)
    assert page.curve("Temperature", "T")["error"] == near(ds.temperature_error)
    error = ds.spectrum_error.sel(species="g").values[:, ds.p.values <= 2.0]
    assert np.array(page.curve("g", "now")["error"]) == near(error)
    assert "standard error of the mean over replicas" in page.text
    assert "2 replicas" in page.text


# --- several ------------------------------------------------------------------------------------


def test_several_runs_share_axes_and_a_table_of_differences(mixture, other):
    page = page_of(one=mixture, two=other)
    first = next(c for c in page.data["charts"].values() if c["title"] == "Temperature")
    assert [c["words"] for c in first["curves"]] == ["one", "two"]
    assert len({(c["color"], c["dash"]) for c in first["curves"]}) == 2
    assert first["curves"][1]["y"] == near(other.temperature)
    assert first["curves"][1]["x"] == near(other.time)
    largest = mixture.rb.compare(other).iloc[0]
    assert number_format.percent(largest.largest) in page.text
    assert largest.name in page.text and "two against one" in page.text
    assert page.data["sliders"]["compared-time"] == near(mixture.time.values[:4])
    names = [a["id"] for _, a in page.tags if "id" in a]
    assert len(names) == len(set(names))


def test_what_cannot_be_compared_is_said(mixture, plane):
    late = mixture.assign_coords(time=mixture.time + 10)
    for pair in {"one": mixture, "two": late}, {"one": late, "two": mixture}:
        page = page_of(**pair)
        assert "Not compared: no times in common" in page.text
        assert "compared-time" not in page.data["sliders"]
    alike = page_of(one=mixture, two=mixture)
    assert "No difference but rounding." in alike.text
    mixed = page_of(one=mixture, two=plane)
    assert "Relative differences, two against one" in mixed.text
    renamed = mixture.assign_coords(species=["a", "b", "c"])
    with pytest.raises(InputError, match="no species in common"):
        report({"one": mixture, "two": renamed})


# --- what others wrote --------------------------------------------------------------------------

EVIL = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\"'&\u202e\x07"


def test_nothing_in_a_file_has_power_over_the_page(plane):
    """Titles, names, warnings, configurations are text; control characters are spelt out."""
    name = "<b>g</b>&'\""
    evil = plane.assign_coords(
        species=[name], process=[f"{name} {name} -> {name} {name}"], charge=[EVIL]
    ).assign_attrs(
        title=EVIL, warnings=f"{EVIL}\n{EVIL}", configuration=f'title = "{EVIL}"', model=EVIL,
        device=EVIL, seed=EVIL, run=EVIL, status=EVIL, relboltz_version=EVIL,
    )  # fmt: skip
    for results in ({EVIL: evil}, {EVIL: evil, "<i>two": evil}):
        text = report(results)
        page, plain = Page(text), Page(report(dict.fromkeys(map(str, range(len(results))), plane)))

        def scripts(page):
            return [tag for tag, _ in page.tags if tag in ("script", "img", "b", "i", "iframe")]

        assert scripts(page) == scripts(plain) == ["script", "script"]
        assert not [a for _, attrs in page.tags for a in attrs if a.startswith("on")]
        assert EVIL[:60] in page.text and name in page.text
        assert "\u202e" not in text and "\x07" not in text
        assert [c["title"] for c in page.data["charts"].values() if name in c["title"]]


def test_the_policy_lets_only_its_own_script_run(mixture):
    text = report({"run": mixture})
    policy = next(a["content"] for _, a in Page(text).tags if "http-equiv" in a)
    assert policy.startswith("default-src 'none'") and "script-src 'sha256-" in policy
    assert not re.findall(r"(?:src|href)=[\"']?(?:https?:)?//", text)


def test_what_is_not_finite_is_null(mixture):
    ds = mixture.copy(deep=True)
    ds.temperature[:2], ds.entropy[1] = np.nan, np.inf
    ds["equilibrium_temperature"] = ds.equilibrium_temperature * np.nan
    page = page_of(run=ds)
    assert page.curve("Temperature", "T")["y"][:2] == [None, None]
    assert page.curve("Entropy", "entropy")["y"][1] is None
    assert [c["words"] for c in page.chart("Temperature")["curves"]] == ["T"]


def test_a_run_under_way_and_one_with_a_single_record_have_pages(mixture):
    short = mixture.isel(time=[0]).assign_attrs(status="running")
    short.attrs.pop("steps")
    page = page_of(run=short)
    assert "It has not reached its end: running." in page.text
    assert not [a for tag, a in page.tags if tag == "input"]
    assert page.curve("g", "now")["y"] == [page.curve("g", "at the start")["y"]]
    with pytest.raises(InputError, match="run: has no record yet"):
        report({"run": mixture.isel(time=[])})


# --- how large ----------------------------------------------------------------------------------


def test_a_page_stays_small(mixture, plane):
    """Many records and many cells: fewer times, means of blocks, and far below the limit."""
    assert len(report({"run": mixture})) < 150_000
    many = mixture.isel(time=np.arange(3000) % 5).assign_coords(time=0.01 * np.arange(3000))
    page = page_of(run=many)
    assert len(page.data["sliders"]["run0-spectra-time"]) <= 60
    assert len(page.chart("Temperature")["x"]) <= 400
    assert page.chart("Temperature")["x"][-1] == 29.99
    names = ["energy_momentum", "energy_momentum_by_species", "shear_stress", "momentum_flux",
             "number_current", "momentum_by_species", "f"]  # fmt: skip
    large = plane.drop_vars(names).isel(
        time=np.arange(40) % 3, x=np.arange(100) % 4, y=np.arange(100) % 3
    )
    places = np.linspace(-9.9, 9.9, 100)
    attrs = {"space_max": [10.0, 10.0, 0.7]}
    large = large.assign_coords(time=0.1 * np.arange(40), x=("x", places, plane.x.attrs),
                                y=("y", places, plane.y.attrs)).assign_attrs(attrs)  # fmt: skip
    text = report({"run": large})
    assert len(text) < LIMIT / 2
    density = Page(text).chart("Particle density of g")
    assert [a["cells"] for a in density["axes"]] == [50, 50]
    assert "Means of blocks of 2 × 2 cells." in text


# --- the command --------------------------------------------------------------------------------


def call(monkeypatch, capsys, *arguments):
    monkeypatch.setattr(sys, "argv", ["relboltz", "report", *map(str, arguments)])
    with pytest.raises(SystemExit) as leaving:
        cli.main()
    return leaving.value.code or 0, capsys.readouterr()


def test_the_command_writes_beside_the_result(mixture, other, tmp_path, monkeypatch, capsys):
    first, second = tmp_path / "a.nc", tmp_path / "b.nc"
    output.write(mixture, first)
    output.write(other, second)
    code, told = call(monkeypatch, capsys, first)
    assert code == 0 and "a.html" in told.out
    assert "<title>qcd: relativistic Boltzmann equation" in (tmp_path / "a.html").read_text("utf-8")
    monkeypatch.chdir(tmp_path)
    assert call(monkeypatch, capsys, first, second)[0] == 0
    assert "<title>a and b, compared" in (tmp_path / "report.html").read_text("utf-8")
    assert call(monkeypatch, capsys, first, "--out", tmp_path / "c.html")[0] == 0
    assert (tmp_path / "c.html").read_text("utf-8") == (tmp_path / "a.html").read_text("utf-8")
    assert mixture.rb.report(tmp_path / "a.html") == tmp_path / "a.html"
    assert (tmp_path / "c.html").read_text("utf-8") == (tmp_path / "a.html").read_text("utf-8")


def test_what_is_no_result_is_refused_with_a_remedy(mixture, tmp_path, monkeypatch, capsys):
    good, bad = tmp_path / "a.nc", tmp_path / "bad.nc"
    output.write(mixture, good)

    def refused(*arguments):
        code, told = call(monkeypatch, capsys, *arguments)
        assert code == 2 and "Traceback" not in told.err
        return " ".join(told.err.split())

    assert "there is no such file" in refused(tmp_path / "none.nc")
    bad.write_text("no NetCDF")
    assert "is not a NetCDF file written by relboltz" in refused(bad)
    assert "use a name that ends in .html" in refused(good, "--out", tmp_path / "a.pdf")
    assert "use a name that ends in .html" in refused(good, "--out", good)
    assert "does not exist" in refused(good, "--out", tmp_path / "no" / "a.html")
    output.write(mixture.drop_vars("spectrum"), bad)
    assert "is damaged, or not a result of this version" in refused(bad)
    output.write(mixture.expand_dims(knob=["step"]), bad)
    assert "is what relboltz converge found" in refused(bad)
    assert not (tmp_path / "bad.html").exists()
    with pytest.raises(InputError, match="nothing to report"):
        report({})
