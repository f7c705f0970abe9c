"""Matrix elements that are refused before a run: poles, negative and undefined values."""

import math
import re

import numpy as np
import pytest
from test_accuracy import GLUONS, GRID, STEP, said

import relboltz as rb
from relboltz.backends.cpu.collider import Collider
from relboltz.backends.cpu.threads import Threads
from relboltz.backends.elements import Elements
from relboltz.checks import poles
from relboltz.config.settings import Sampling
from relboltz.events.collisions import DrawInput
from relboltz.run import runner as run


@pytest.fixture
def lazy(monkeypatch):
    """Fails if the first step is taken."""

    def too_late(*args, **keys):
        raise AssertionError("work began")

    monkeypatch.setattr(run.Run, "go", too_late)


def test_masses_that_give_a_pole_are_refused():
    for mass in (0.9, 1.0):  # with 2 m_g the pole lies at the edge of phase space
        ds, _ = said(rb.qcd(0.3, flavors=1, masses={"g": 0.5, "u": mass}))
        assert np.isfinite(ds.rate).all() and not ds.negative_weight.any()
    with pytest.raises(rb.InputError) as caught:
        rb.qcd(0.3, flavors=1, masses={"g": 0.5, "u": 1.01})
    message = str(caught.value)
    assert "u = 1.01 GeV exceeds 2 m_g = 1 GeV" in message
    assert "pole" in message and "q g -> q g" in message


def test_masses_and_screening_that_give_a_pole_are_refused_before_the_run(lazy):
    message = r"screening = 0.3: \|m_q - m_g\| = 0.4 GeV exceeds it: .* pole of its regulator"
    with pytest.raises(rb.InputError, match=message):
        rb.qcd(0.3, flavors=1, masses={"g": 0.3, "u": 0.7}, screening=0.3)
    legs = [rb.Species("g", 1, 0), rb.Species("u", 1, 0)]
    process = rb.Process("g u -> u g", lambda t_screened: 1 / t_screened**2)
    model = rb.Model(legs, [process], masses={"g": 0.3, "u": 0.7}, screening=0.3)
    with pytest.raises(rb.InputError) as caught:
        said(model, start={"g": STEP, "u": STEP})
    message = str(caught.value)
    assert re.search(r"process g u -> u g has a pole", message)
    assert "screening mass squared of 0.09 GeV^2" in message
    reached = float(re.search(r"[tu] reaches (\S+) GeV\^2", message).group(1))
    assert reached == pytest.approx((0.7 - 0.3) ** 2, rel=1e-3)


def test_masses_below_the_pole_are_accepted():
    said(rb.qcd(0.3, flavors=1, masses={"g": 0.5, "u": 0.5}, screening=0.5))


@pytest.mark.parametrize("screening", ["thermal", 1.2])
def test_rows_of_the_table_that_are_mostly_negative_are_refused(lazy, screening):
    """Massless quarks: what would count as 0 in u ubar -> g g outweighs half of the rest."""
    model = rb.qcd(0.3, flavors=1, masses="massless", screening=screening)
    with pytest.raises(rb.InputError) as caught:
        said(model)
    message = str(caught.value)
    pattern = r"process u ubar -> g g: screening makes \|M\|\^2 negative where it weighs (\d+) %"
    assert int(re.search(pattern, message).group(1)) > 50
    assert "use thermal masses" in message


def test_massless_quarks_run_at_weak_coupling():
    """The weight that counts as 0 is recorded: none of it matters, or all of it is said."""
    grid = rb.PhaseSpace(12, 2.0)
    ds, texts = said(rb.qcd(0.02, flavors=1, masses="massless", screening="ekt"), grid)
    weight = ds.negative_weight.sel(process="u ubar -> g g")
    assert not [text for text in texts if "negative" in text]
    assert 0 < float(weight.max()) < 0.01
    assert not ds.negative_weight.drop_sel(process="u ubar -> g g").any()
    ds, texts = said(rb.qcd(0.2, flavors=1, masses="massless", screening="ekt"), grid)
    weight = ds.negative_weight.sel(process="u ubar -> g g")
    assert 0.01 < float(weight.max()) < 0.5
    told = [text for text in texts if "screening makes |M|^2 negative, which counts as 0" in text]
    percent = [float(re.search(r"counts as 0: ([\d.]+) % of the", text).group(1)) for text in told]
    assert percent[0] == pytest.approx(100 * float(weight[0]), rel=0.3)  # both from few events
    assert len(told) == 2 and percent[1] > 2 * percent[0]  # more of it in the final state


def test_negative_weight_is_that_of_the_collision_integral():
    """u ubar -> g g of f = exp(-p/T): events on nodes against an integral without a grid.

    Soft pairs are where it is negative, and nodes have few: 0.187 and 0.219 with spacings of 0.69
    and 0.5 T. Extrapolated in their squares it is 0.255 (seeds: 0.0034), against 0.265.
    """
    temperature, mass2 = 0.4, 0.16
    model = rb.qcd(0.1, flavors=1, masses="massless", screening=0.4)
    (process,) = [p for p in model.processes if p.name == "u ubar -> g g"]
    part = rb.Model(model.species, [process], screening=0.4)
    found = []
    for cells in (32, 44):
        grid = rb.PhaseSpace(cells, 4.4)
        f = np.exp(-np.sqrt(grid.momentum_squared) / temperature)
        collider = Collider(grid, Elements(part), Sampling(samples=64), Threads(2))
        draw = DrawInput(0, np.zeros(3), np.array([mass2]))
        found.append(collider.negative_weight(draw, np.tile(f, 3))[0])
    fine = (found[1] * 44**2 - found[0] * 32**2) / (44**2 - 32**2)
    rng, n = np.random.default_rng(3), 400_000
    k = rng.gamma(2.0, temperature, (2, n))  # f d^3k/E of massless particles
    s = 2 * k[0] * k[1] * (1 - rng.uniform(-1, 1, n))
    t = -s * rng.random(n)
    u = -s - t
    values = process.matrix_element(s, t, u, t - mass2, u - mass2, 1.0)
    share = -values[values < 0].sum() / values[values > 0].sum()
    assert fine == pytest.approx(share, rel=0.08)


def test_poles_are_judged_by_the_mass_that_screens_them():
    """t of a b -> b a reaches (m_a - m_b)^2 = 0.25: legal with 0.5 in its exchange only."""

    def element(t_exchanged):
        return 1 / t_exchanged**2

    species = [rb.Species("a"), rb.Species("b")]
    process = rb.Process("a b -> b a", element)
    for main, other, legal in ((0.01, 0.5, True), (0.5, 0.01, False)):
        screening = rb.Screening(main, exchange={"a": rb.Screening(other)})
        model = rb.Model(species, [process], masses={"a": 0.7, "b": 0.2}, screening=screening)
        squares = model.constant_mass_squared, model.screening_squared(np.zeros(2))
        if legal:
            assert poles.check_model(Elements(model), GRID, *squares) == []
        else:
            with pytest.raises(rb.InputError, match="has a pole"):
                poles.check_model(Elements(model), GRID, *squares)


def test_negative_rows_are_told_of_again_when_they_grow():
    """A weight known from the start is reported again once it has grown by half."""
    model, texts = rb.qcd(0.3, flavors=1), []
    weights = np.zeros(len(model.processes))
    for weight, known, count in ((0.1, 0.0, 1), (0.12, 0.1, 1), (0.6, 0.1, 2)):
        weights[2] = weight
        texts += poles.of_negative(model, weights, known)
        assert len(texts) == count
    assert "in the course of the run (a start like that would be refused)" in texts[1]


def test_massless_gluons_need_a_screening_mass():
    with pytest.raises(rb.InputError, match="model.screening is required with massless gluons"):
        rb.gluons(0.3, masses="massless")


@pytest.mark.parametrize("screening", [0.15, 0.2, 0.234])
def test_a_screening_mass_beyond_the_pole_is_refused_before_the_run(screening):
    """Thermal masses with m_g - m_q = 0.2345 GeV: u of u g -> u g reaches 0.055 GeV^2."""
    with pytest.raises(rb.InputError, match="process u g -> u g has a pole: .* u reaches 0.05"):
        said(rb.qcd(0.3, flavors=1, screening=screening))
    said(rb.qcd(0.3, flavors=1, screening=0.24))


# --- species that never appear ------------------------------------------------------------------


def final_state(names, **keys):
    """A tiny run of QCD that starts with these species."""
    start = {name: rb.initial.step(0.5, 0.5) for name in names}
    return said(rb.qcd(1.0, **keys), rb.PhaseSpace(8, 2.0), start, end=0.05, backend="cpu")[0]


@pytest.mark.parametrize("names", [["u"], ["u", "d"], ["ubar"], ["u", "ubar"]])
def test_some_flavours_alone_are_a_start(names):
    """m_d = 0 beside m_g > 0: without antiquarks nothing makes a d or a gluon that could scatter.

    The predicted masses and the screening mass differ by 2e-6 here, which would be a pole.
    """
    ds = final_state(names)
    kept = [name for name in ds.data_vars if name.startswith(("number", "mass", "rate", "energy"))]
    assert all(np.isfinite(ds[name]).all() for name in kept)
    assert not ds.charge_drift.any() and not ds.momentum_drift.any()
    assert float(abs(ds.energy_total[-1] / ds.energy_total[0] - 1)) < 1e-3
    others = ds.number.drop_sel(species=names)
    assert others[-1].any() == ("ubar" in names and "u" in names) and not others[0].any()


def test_a_pole_counts_where_its_species_can_appear():
    """With u and ubar gluons and d appear while m_g - m_d exceeds the screening mass of 0.1."""
    final_state(["u"], screening=0.1)
    with pytest.raises(rb.InputError, match="process [uds]b?a?r? g -> [uds]b?a?r? g has a pole"):
        final_state(["u", "ubar"], screening=0.1)


# --- a user's matrix element --------------------------------------------------------------------


def own(function, **keys):
    a = rb.Species("a", degeneracy=2, statistics=0)
    return rb.Model([a], [rb.Process("a a -> a a", function)], masses={"a": 0.3}, **keys)


def not_compiling(s, t, u, ma2, mb2, mc2, md2):
    return undefined_name * s  # noqa: F821


def text(s):
    return "large"


def always_nan(s, t):
    return s * math.nan


def negative(s, t, u):
    return t


def negative_at_large_s(s):
    return 3.0 - s


def divides_by_zero(s, t, u, ma2):
    return 1.0 / (s - s)


@pytest.mark.parametrize(
    ("function", "value"),
    [
        (always_nan, "nan"),
        (negative, r"-[\d.]+"),
        (negative_at_large_s, r"-[\d.]+"),
        (divides_by_zero, "inf"),
    ],
)
def test_an_illegal_matrix_element_names_process_and_s_t_u(lazy, function, value):
    with pytest.raises(rb.InputError) as caught:
        said(own(function), start={"a": STEP})
    pattern = (
        rf"process a a -> a a: the matrix element is {value} at s = (\S+), t = (\S+), "
        r"u = (\S+) GeV\^2"
    )
    s, t, u = (float(v) for v in re.search(pattern, str(caught.value)).groups())
    assert s + t + u == pytest.approx(4 * 0.09, abs=1e-4 * s) and s >= 4 * 0.09


@pytest.mark.parametrize("function", [not_compiling, text])
def test_a_matrix_element_that_does_not_compile_names_the_process(lazy, function):
    with pytest.raises(rb.InputError) as caught:
        said(own(function), start={"a": STEP})
    message = str(caught.value)
    assert "process a a -> a a" in message
    assert "Traceback" not in message and len(message.splitlines()) < 12
    if function is not_compiling:
        assert "undefined_name" in message


def test_a_matrix_element_that_asks_for_the_unknown_is_refused():
    with pytest.raises(rb.InputError, match="asks for 'screening', .* did you mean 'screening2'"):
        own(lambda s, screening: s)


def test_an_element_negative_only_while_running_stops_with_s_t_u():
    def window(s, t, u):  # between the s that are tried before the run
        return -1.0 if 3.0 < s < 3.02 else 100.0

    with pytest.raises(rb.RunError, match=r"process a a -> a a: .* is -1 at s = 3\.0\S+, t ="):
        said(own(window), rb.PhaseSpace(8, 2.0), {"a": STEP}, end=1.0, samples=8)


def test_collision_term_checks_like_a_run():
    f = np.full((1, 7, 7, 7), 0.1)
    with pytest.raises(rb.InputError, match="process a a -> a a: the matrix element is nan"):
        rb.collision_term(own(always_nan), GRID, f)
    with pytest.raises(rb.InputError, match="f = -?[0-9.]+ of g .* negative"):
        rb.collision_term(GLUONS, GRID, -f)
    with pytest.raises(rb.InputError, match="f = 1.1 of u .* above 1"):
        rb.collision_term(rb.quarks(0.3), GRID, f + 1)
    with pytest.raises(rb.InputError, match=r"array of shape \(3,\) does not fit"):
        rb.collision_term(GLUONS, GRID, np.ones(3))
    with pytest.raises(rb.InputError, match="batches = 1"):
        rb.collision_term(GLUONS, GRID, f, batches=1)
    with pytest.raises(rb.InputError, match="unknown option sample"):
        rb.collision_term(GLUONS, GRID, f, sample=1)
    with pytest.raises(rb.InputError, match="g"):
        rb.collision_term(GLUONS, GRID, {"g": np.ones(3)})


# --- equal particles ----------------------------------------------------------------------------


def in_t(s, t, coupling):
    return coupling * (1.0 - 0.3 * t / s)


def in_q(q2, coupling):
    return coupling / (1.0 + q2)


def in_screened(t_screened, screening2, coupling):
    return coupling * screening2 / (screening2 - t_screened)


def in_both(s, t, u, q2, qu2, coupling):
    return coupling * (t * t * q2 + u * u * qu2) / s**3


KINDS = [rb.Species("a", 2, 0), rb.Species("b", 2, 0), rb.Species("c", 2, 0)]


def of_equal(reaction, element):
    masses = {"a": 0.3, "b": 0.4, "c": 0.2}
    process = rb.Process(reaction, element, coupling=3000.0)
    model = rb.Model(KINDS, [process], masses=masses, screening=0.5)
    squares = np.array([masses[name] ** 2 for name in "abc"]), np.array([0.25])
    return poles.check_model(Elements(model), GRID, *squares)


@pytest.mark.parametrize("element", [in_t, in_q, in_screened])
@pytest.mark.parametrize("reaction", ["a a -> a a", "a a -> b c", "b c -> a a", "a a -> b b"])
def test_equal_particles_need_an_element_symmetric_in_t_and_u(reaction, element):
    with pytest.raises(rb.InputError) as caught:
        of_equal(reaction, element)
    words = str(caught.value)
    assert words.startswith(f"process {reaction} has equal particles") and "symmetrise" in words
    number = r"([-+.\de]+)"
    found = re.search(rf"it is {number} at s = {number}, t = {number}, u = {number} GeV\^2, and "
                      rf"{number} with t and u exchanged", words)  # fmt: skip
    one, s, t, u, other = map(float, found.groups())
    if element is in_t:
        assert one == pytest.approx(in_t(s, t, 3000.0), rel=1e-4)
        assert other == pytest.approx(in_t(s, u, 3000.0), rel=1e-4)


@pytest.mark.parametrize("reaction", ["a b -> a b", "a b -> c b", "a b -> b a"])
def test_different_particles_may_have_any_element(reaction):
    assert not of_equal(reaction, in_t) and not of_equal(reaction, in_q)


@pytest.mark.parametrize("reaction", ["a a -> a a", "a a -> b c", "b c -> a a"])
def test_a_symmetric_element_of_equal_particles_is_accepted(reaction):
    """Also one that vanishes at t = u, and one of many powers of unscreened propagators."""
    assert not of_equal(reaction, in_both)
    assert not of_equal(reaction, lambda s, t, u, coupling: coupling * (t - u) ** 2 / s**2)
    assert not of_equal(reaction, lambda s, t, u, coupling: coupling * s**4 / (t * u - 1.0) ** 2)


EKT = {"masses": "massless", "screening": "ekt"}


@pytest.mark.parametrize(
    ("model", "thermal"),
    [
        (rb.qcd(0.3, flavors=2), 0.3),
        (rb.qcd(0.3, flavors=3, flavor_symmetric=True), 0.3),
        (rb.qcd(0.3, flavors=2, **EKT), 0.0),
        (rb.qcd(0.3, flavors=3, flavor_symmetric=True, **EKT), 0.0),
        (rb.qcd(0.3, flavors=1, masses={"g": 0.5, "u": 0.4}, screening=0.6), 0.0),
        (rb.quarks(0.2, flavors=2), 0.3),
    ],
)
def test_rows_of_the_table_are_symmetric_where_particles_are_equal(model, thermal, monkeypatch):
    checked, check = [], poles._check_symmetry
    monkeypatch.setattr(
        poles, "_check_symmetry", lambda *given: (checked.append(given[0].name), check(*given))
    )
    m2 = model.constant_mass_squared + thermal
    poles.check_model(Elements(model), GRID, m2, np.full(len(model.screenings), 0.36))
    assert checked == [p.name for p in model.processes if p.identical] and checked
