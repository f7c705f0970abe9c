"""What is refused before a run, and what is warned of, with the numbers."""

import math
import re
import warnings

import numpy as np
import pytest

import relboltz as rb
from relboltz import simulation
from relboltz.backends.cpu.collider import CpuBackend
from relboltz.backends.elements import Elements
from relboltz.checks import accuracy as checks
from relboltz.checks import box
from relboltz.equilibrium import states as equilibrium
from relboltz.events.collisions import Draw
from relboltz.settings import Sampling
from relboltz.stepping.watch import Seen

GRID = rb.PhaseSpace(7, 2.0)
GLUONS = rb.gluons(0.3)
STEP = rb.initial.step(height=0.5, edge=1.5)


def said(model=GLUONS, grid=GRID, start=None, **keys):
    """The dataset of a tiny run and its warnings."""
    options = {"end": 0.01, "samples": 2} | keys
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        ds = rb.solve(model, grid, start or {"g": STEP}, **options)
    texts = [str(w.message) for w in caught if issubclass(w.category, rb.AccuracyWarning)]
    assert "\n".join(texts) == ds.attrs["warnings"]
    return ds, texts


def one(texts, words):
    """The only text that contains the words."""
    (text,) = [text for text in texts if words in text]
    return text


# --- warnings -----------------------------------------------------------------------------------


def test_massless_particles_at_rest_warn_of_even_grids():
    """Constant cross section: the rate of 9^3 nodes is far below that of 10^3, per n^2."""
    model = rb.Model(
        [rb.Species("a", 1, 0)],
        [rb.Process("a a -> a a", lambda s: 1000.0 * s)],
        masses={"a": 0.0},
    )
    start = {"a": rb.initial.thermal(0.3, sampling="node")}
    rates = []
    for cells in (9, 10):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            ds = rb.solve(
                model, rb.PhaseSpace(cells, 2.4), start, end=1e-3, samples=64, backend="cpu",
                progress=False,
            )  # fmt: skip
        said = any("a massless a at rest" in str(w.message) for w in caught)
        assert said == (cells % 2 == 1)
        rates.append(float(ds.rate[0, 0] / ds.number[0, 0] ** 2))
    assert rates[0] < 0.9 * rates[1]


def test_a_coarse_grid_warns_with_both_numbers():
    ds, texts = said()
    text = one(texts, "the grid is coarse")
    h, limit = (
        float(v) for v in re.search(r"spacing (\S+) GeV > m_g/2 = (\S+) GeV", text).groups()
    )
    assert h == pytest.approx(4 / 7, rel=2e-3)
    assert limit == pytest.approx(0.5 * math.sqrt(ds.mass_squared[0, 0]), rel=2e-3)
    cells = math.ceil(4 / limit) | 1  # odd stays odd
    assert f"momentum_cells = [{cells}, {cells}, {cells}]" in text


def test_the_advice_against_a_coarse_grid_helps():
    _, texts = said(grid=rb.PhaseSpace(12, 2.0))
    assert not [text for text in texts if "coarse" in text]


@pytest.mark.parametrize(
    ("mass", "screening", "words"),
    [
        (1.2, 1.2, None),
        (0.7, 1.2, "> m_g/2 = 0.35 GeV"),
        (1.2, 0.8, "> screening mass/2 = 0.4 GeV"),
    ],
)
def test_the_smaller_of_gluon_and_screening_mass_must_be_resolved(mass, screening, words):
    """Spacing 0.571 GeV against the halves of both; the text names the one that is too small."""
    _, texts = said(rb.gluons(0.3, masses={"g": mass}, screening=screening))
    coarse = [text for text in texts if "soft scattering" in text]
    assert len(coarse) == (words is not None) and all(words in text for text in coarse)


def test_a_box_that_collisions_leave_warns_with_numbers_and_a_remedy():
    """Both losses, a half width that loses less than 2 %, and cells for it: odd stays odd."""
    ds, texts = said(grid=rb.PhaseSpace(15, 2.0))
    text = one(texts, "the box is small")
    rate, relaxation = (float(v) for v in re.findall(r"([\d.]+) % of", text))
    assert rate == pytest.approx(100 * float(ds.box_loss), abs=0.051) and rate > 5
    assert relaxation == pytest.approx(100 * float(ds.box_loss_relaxation), abs=0.51)
    assert "momentum_max = [2.0, 2.0, 2.0] GeV" in text
    width, cells = re.search(
        r"Use momentum_max = \[([\d.]+), .*; momentum_cells = \[(\d+), .* keep the spacing", text
    ).groups()
    assert int(cells) % 2 == 1 and 2 * float(width) / int(cells) <= 4 / 15
    ds, texts = said(grid=rb.PhaseSpace(int(cells), float(width)), samples=1)
    assert not [text for text in texts if "the box" in text]
    assert float(ds.box_loss_relaxation) == pytest.approx(0.02, abs=0.003)


def test_the_remedy_for_a_small_coarse_box_is_fine_enough():
    _, texts = said()
    text = one(texts, "the box is small")
    width, cells = re.search(
        r"Use momentum_max = \[([\d.]+), .*_cells = \[(\d+), .* are", text
    ).groups()
    _, texts = said(grid=rb.PhaseSpace(int(cells), float(width)), samples=1)
    assert not [text for text in texts if "the box" in text or "coarse" in text]


def test_only_the_narrow_axes_of_a_box_are_widened():
    _, texts = said(grid=rb.PhaseSpace(9, [2.0, 6.0, 6.0]), samples=1)
    text = one(texts, "the box is small")
    assert re.search(r"Use momentum_max = \[[45]\.\d+, 6\.0, 6\.0\]", text)


def test_a_box_that_cuts_off_a_state_without_collisions_warns_with_the_number():
    """Free streaming has no collision rate: the state itself must fit."""
    free = rb.Model([rb.Species("a", 1, 0)], [], masses={"a": 0.5})
    start = {"a": rb.initial.thermal(0.4, sampling="node")}
    ds, texts = said(free, rb.PhaseSpace(12, 2.0), start)
    text = one(texts, "the box cuts off")
    percent = float(re.search(r"cuts off ([\d.]+) % of the predicted", text).group(1))
    grid = rb.PhaseSpace(12, 2.0)
    f = rb.initial.evaluate(start, grid, free)
    loss = equilibrium.edge_loss(grid, free, checks.predict_from(grid, free, f))
    assert percent == pytest.approx(100 * loss, abs=0.051) and percent > 1
    assert np.isnan(ds.box_loss) and np.isnan(ds.box_loss_relaxation)
    _, texts = said(free, rb.PhaseSpace(12, 4.5), start)
    assert not [text for text in texts if "the box" in text]


def test_a_box_that_leaks_has_no_equilibrium_to_judge_by():
    grid = rb.PhaseSpace(8, 2.0, [2, 1, 1], 3.0, "open")
    ds, texts = said(grid=grid, samples=1, backend="cpu")
    assert np.isnan(ds.box_loss) and not [text for text in texts if "the box" in text]


def test_an_over_populated_start_warns_and_stores_the_condensate():
    grid = rb.PhaseSpace(11, 5.0)
    ds, texts = said(rb.gluons(0.1), grid, {"g": rb.initial.step(height=1.0, edge=1.5)})
    fraction = float(ds.condensate_fraction)
    assert 0 < fraction < 1
    text = one(texts, "over-populated")
    assert f"{100 * fraction:.1f} % of them must condense" in text
    assert "depends on the grid" in text


def test_a_dilute_start_has_no_condensate():
    ds, texts = said(grid=rb.PhaseSpace(11, 3.0), start={"g": rb.initial.step(0.1, 1.5)})
    assert float(ds.condensate_fraction) == 0.0
    assert not [text for text in texts if "over-populated" in text]


def test_too_few_samples_warn():
    _, texts = said(grid=rb.PhaseSpace(9, 2.0), samples=1, end=0.05)
    assert "raise collisions.samples" in one(texts, "the standard error of C[f]")


def test_a_fixed_step_too_long_for_its_samples_warns():
    """4 samples at 0.2 fm do not relax as they should; with 16, at 0.05 fm or "auto" they do."""
    grid = rb.PhaseSpace(12, 2.5)
    for samples, step, long in (
        (4, 0.2, True),
        (16, 0.1, False),
        (4, 0.05, False),
        (4, "auto", False),
    ):
        _, texts = said(grid=grid, samples=samples, step=step, end=2.0, every=1.0)
        assert bool([text for text in texts if "time.step = " in text]) == long, (samples, step)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (dict(noise=0.6), "the standard error of C[f] in a step is 75 % of C[f]"),
        (dict(limited=0.02), "limits refused 2.0 %"),
        (dict(null=0.05), "5.0 % of the collisions between particles in the box found no place"),
        (dict(change=1.2), "time.step = 0.2: too long: C[f] changes by 120 %"),
        (dict(change=0.7, noise=0.3), "time.step = 0.2: too long for its samples: C[f] changes by"),
    ],
)
def test_what_a_run_suffers_from_is_told_once(arguments, words):
    texts = []
    with pytest.warns(rb.AccuracyWarning, match=re.escape(words)):
        checks.warn_of_run(Seen(**arguments), 0.2, texts)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        checks.warn_of_run(Seen(**arguments), 0.2, texts)
        checks.warn_of_run(Seen(change=0.7), 0.2, [])
        checks.warn_of_run(Seen(change=1.2), "auto", [])
    assert len(texts) == 1


def test_a_start_without_equilibrium_warns_and_runs():
    full = {"u": rb.initial.step(height=1.0, edge=10.0)}  # every node is full
    ds, texts = said(rb.quarks(0.3), GRID, full)
    assert one(texts, "no final equilibrium was found")
    assert np.isnan(ds.equilibrium_temperature)


# --- poles and negative matrix elements ---------------------------------------------------------


@pytest.fixture
def lazy(monkeypatch):
    """Fails if the first step is taken."""

    def too_late(*args, **keys):
        raise AssertionError("work began")

    monkeypatch.setattr(simulation.Run, "go", too_late)


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
        said(model)
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
        backend = CpuBackend(grid, part, Sampling(samples=64))
        draw = Draw(0, np.zeros(3), np.array([mass2]))
        found.append(backend.negative_weight(draw, np.tile(f, 3))[0])
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
        screening = rb.model.Screening(main, exchange={"a": rb.model.Screening(other)})
        model = rb.Model(species, [process], masses={"a": 0.7, "b": 0.2}, screening=screening)
        squares = model.constant_mass_squared, model.screening_squared(np.zeros(2))
        if legal:
            assert checks.check_model(Elements(model), GRID, *squares) == []
        else:
            with pytest.raises(rb.InputError, match="has a pole"):
                checks.check_model(Elements(model), GRID, *squares)


def test_negative_rows_are_told_of_again_when_they_grow():
    """What the start showed is known; half as much again later is worth another word."""
    model, texts = rb.qcd(0.3, flavors=1), []
    weights = np.zeros(len(model.processes))
    for weight, known, count in ((0.1, 0.0, 1), (0.12, 0.1, 1), (0.6, 0.1, 2)):
        weights[2] = weight
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            checks.warn_of_negative(model, weights, known, texts)
        assert len(texts) == count
    assert "in the course of the run (a start like that would be refused)" in texts[1]


def test_screening_in_the_frame_of_the_grid_warns_of_flow():
    """q of "ekt" is that of the grid: matter that flows relaxes too fast."""
    start = {"g": rb.initial.thermal(0.4, velocity=[0.5, 0.0, 0.0])}
    for screening, told in (("ekt", 1), ("thermal", 0)):
        _, texts = said(rb.gluons(0.1, screening=screening), rb.PhaseSpace(9, 3.0), start)
        assert len([text for text in texts if "in the frame of the grid" in text]) == told


def test_massless_particles_get_even_grids():
    """A node at p = 0 relaxes too slowly for them: the default avoids it, and a choice warns."""
    assert box.default_cells(rb.gluons(0.3)) == 31
    assert box.default_cells(rb.gluons(0.3, masses="massless", screening=0.5)) == 32
    assert box.default_cells(rb.qcd(0.3, flavors=1, masses={"g": 0.5, "u": 0})) == 32
    light = rb.gluons(0.3, masses="massless", screening=1.0)
    for cells, told in ((15, 1), ([15, 15, 14], 0), (16, 0)):
        _, texts = said(light, rb.PhaseSpace(cells, 2.0))
        assert len([text for text in texts if "relaxes too slowly" in text]) == told


def test_massless_gluons_need_a_screening_mass():
    with pytest.raises(rb.InputError, match="model.screening is required with massless gluons"):
        rb.gluons(0.3, masses="massless")


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


@pytest.mark.parametrize("screening", [0.15, 0.2, 0.234])
def test_a_screening_mass_beyond_the_pole_is_refused_before_the_run(screening):
    """Thermal masses with m_g - m_q = 0.2345 GeV: u of u g -> u g reaches 0.055 GeV^2."""
    with pytest.raises(rb.InputError, match="process u g -> u g has a pole: .* u reaches 0.05"):
        said(rb.qcd(0.3, flavors=1, screening=screening))
    said(rb.qcd(0.3, flavors=1, screening=0.24))


def test_a_light_particle_on_odd_nodes_warns():
    """1/E = 1/m of the node at rest would stand for its whole cell."""
    light = rb.Model(
        [rb.Species("g", 1, 1)], [rb.Process("g g -> g g", lambda s: 1.0)], masses={"g": 0.01}
    )
    assert one(said(light, start={"g": STEP})[1], "the node at p = 0 stands for a whole cell")
    even = said(light, grid=rb.PhaseSpace(8, 2.0), start={"g": STEP})[1]
    assert not [text for text in even if "node at p = 0" in text]


def test_units_in_doubt_are_mentioned():
    """An edge of 1500 is a temperature in MeV, not in GeV."""
    _, texts = said(start={"g": rb.initial.step(0.5, 1500.0)}, grid=rb.PhaseSpace(7, 2000.0))
    assert one(texts, "were some given in MeV?")


def test_what_is_not_conserved_is_said():
    """Sampling without symmetry loses number, nearest cells gain energy: with the percentages."""
    options = {"projection": "nearest", "end": 0.05, "step": 0.01, "samples": 8}
    _, texts = said(symmetrical=False, **options)
    assert one(texts, "particle number changed by")
    _, texts = said(**options)
    assert one(texts, "total energy changed by")
    assert not [text for text in texts if "particle number changed" in text]


def test_warnings_point_to_the_users_line():
    """Not to the inside of the package."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        rb.solve(GLUONS, GRID, {"g": STEP}, end=0.01, samples=2)
    assert {w.filename for w in caught if w.category is rb.AccuracyWarning} == {__file__}
