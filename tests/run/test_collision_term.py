"""collision_term: the public C[f]."""

import math

import numpy as np
import pytest

import relboltz as rb
from relboltz.backends.elements import Elements
from relboltz.events.collisions import channels
from relboltz.studies.validation.isotropic import ScatteringSpecies, collisions, one

GRID = rb.PhaseSpace(10, 2.0)
MODEL = rb.gluons(0.3, masses={"g": 0.7})
F = 0.5 * np.exp(-GRID.momentum_squared / 0.7)[None]


def test_gain_minus_loss_is_the_collision_term():
    """At every node, within the rounding of whole quanta; number and energy are conserved."""
    term = rb.collision_term(MODEL, GRID, F, samples=8)
    difference = (term.gain - term.loss - term.collision_term).values
    assert abs(difference).max() < 1e-12 * float(term.gain.max())
    c = term.collision_term.values.ravel()
    assert abs(c.sum()) < 1e-13 * np.abs(c).sum()
    assert abs((c * GRID.energies(0.49)).sum()) < 1e-13 * np.abs(c * GRID.energies(0.49)).sum()
    assert (term.gain.values >= 0).all() and (term.loss.values >= 0).all()


def test_the_error_is_the_scatter_of_independent_estimates():
    """|C - C'| of two seeds is of the size of the stated errors, over 1000 nodes."""
    one, two = (rb.collision_term(MODEL, GRID, F, samples=8, batches=16, seed=s) for s in (1, 2))
    pull = (one.collision_term - two.collision_term) / np.hypot(one.error, two.error)
    assert 0.8 < float(np.sqrt((pull**2).mean())) < 1.3
    rate_pull = (one.rate - two.rate) / np.hypot(one.rate_error, two.rate_error)
    assert abs(float(rate_pull[0])) < 4


def test_errors_fall_with_the_square_root_of_samples():
    """Sixteen times the samples, a quarter of the error."""
    few, many = (rb.collision_term(MODEL, GRID, F, samples=n, batches=12) for n in (4, 64))
    assert float(few.error.mean() / many.error.mean()) == pytest.approx(4.0, rel=0.2)


def test_importance_pairs_and_uniform_pairs_agree():
    """Both samplings agree within errors; importance has smaller ones where particles are."""
    one, two = (
        rb.collision_term(MODEL, GRID, F, samples=32, batches=16, pair_sampling=p)
        for p in ("importance", "uniform")
    )
    pull = (one.collision_term - two.collision_term) / np.hypot(one.error, two.error)
    assert 0.8 < float(np.sqrt((pull**2).mean())) < 1.3
    assert float((one.error**2).sum()) < 0.5 * float((two.error**2).sum())


def test_the_collision_term_is_what_a_short_run_does():
    """(f(dt) - f(0))/dt of a run equals C[f] within its errors."""
    term = rb.collision_term(MODEL, GRID, F, samples=64, batches=16)
    dt = 1e-4
    ds = rb.solve(
        MODEL, GRID, F, end=dt, step=dt, every=dt, snapshots=[0, dt], samples=1000, seed=9
    )
    change = (ds.f[1] - ds.f[0]).values / dt
    both = np.sqrt(1 + 64 * 16 / 1000) * term.error.values
    pull = (change - term.collision_term.values) / both
    assert 0.8 < np.sqrt((pull**2).mean()) < 1.3


@pytest.mark.parametrize(
    "f, message",
    [
        (np.full((1, 1000), -0.1), "f = -0.1 of g at .* is negative"),
        (np.full((1, 999), 0.1), "array of shape .* does not fit"),
        ({"q": np.zeros(1000)}, "unknown species initial.q"),
    ],
)
def test_bad_states_are_refused(f, message):
    """With the reason."""
    with pytest.raises(rb.InputError, match=message):
        rb.collision_term(MODEL, GRID, f)


def test_fermions_above_one_are_refused():
    """f <= 1."""
    with pytest.raises(rb.InputError, match="above 1: Pauli"):
        rb.collision_term(rb.quarks(0.3), GRID, np.full((1, 1000), 1.1))


@pytest.mark.parametrize("sampling", ["cm", "k2", "k3"])
def test_rates_do_not_depend_on_symmetrical_sampling(sampling):
    """With and without it the same collisions are counted, once each, also where species change.

    Medians over seeds: the weights of k2 and k3 have no finite variance.
    """
    model = rb.qcd(0.3, flavors=1, masses={"g": 0.6, "u": 0.5})
    f = np.outer([0.4, 0.3, 0.3], np.exp(-GRID.momentum_squared))
    with_, without = (
        [
            rb.collision_term(
                model, GRID, f, samples=20, batches=2, projection="nearest", kinematics=sampling,
                pair_sampling="uniform", symmetrical=symmetrical, seed=seed,
            )
            for seed in range(32)
        ]
        for symmetrical in (True, False)
    )  # fmt: skip
    for name in ("rate", "rate_reverse"):
        ratio = np.median([t[name] for t in without], axis=0) / np.median(
            [t[name] for t in with_], axis=0
        )
        assert ratio == pytest.approx(np.ones(len(ratio)), rel=0.15)
    busy = [np.median([t.gain.values.sum() for t in terms]) for terms in (with_, without)]
    assert busy[0] == pytest.approx(busy[1], rel=0.1)


@pytest.mark.parametrize("sampling", ["k2", "k3"])
def test_where_there_is_no_root_nothing_counts(sampling):
    """|M|^2 is undefined below threshold, where samples without a root may seem to lie."""

    def element(s, ma2):
        return 100 * math.sqrt(s - 4 * ma2)

    model = rb.Model([rb.Species("a")], [rb.Process("a a -> a a", element)], masses={"a": 0.8})
    f = 0.3 * np.exp(-GRID.momentum_squared)[None]
    term = rb.collision_term(
        model,
        GRID,
        f,
        samples=4,
        projection="nearest",
        kinematics=sampling,
        pair_sampling="uniform",
    )
    assert np.isfinite(term.rate).all() and float(term.rate[0]) > 0
    assert np.isfinite(term.collision_term).all() and 0 < float(term.null_weight) < 1


def test_gross_rates_never_wrap_around():
    """The weights of k2 have no finite variance: few samples, many seeds, never a negative rate."""
    grid = rb.PhaseSpace(5, 2.0)
    f = 0.5 * np.exp(-grid.momentum_squared)[None]
    for seed in range(30):
        term = rb.collision_term(
            MODEL, grid, f, samples=1, projection="nearest", kinematics="k2",
            pair_sampling="uniform", seed=seed,
        )  # fmt: skip
        assert (term.gain.values >= 0).all() and (term.loss.values >= 0).all()


def test_states_may_be_given_in_any_way_that_solve_takes():
    """An array, a dictionary, a DataArray, a shape and a function of the same f."""
    ways = [
        F,
        {"g": F[0]},
        {"g": lambda px, py, pz: 0.5 * np.exp(-(px**2 + py**2 + pz**2) / 0.7)},
    ]
    terms = [rb.collision_term(MODEL, GRID, f, samples=2, batches=2) for f in ways[:2]]
    assert terms[0].identical(terms[1])
    again = rb.collision_term(MODEL, GRID, {"g": terms[0].gain[0] * 0 + F[0].reshape(10, 10, 10)},
                              samples=2, batches=2)  # fmt: skip
    assert again.identical(terms[0])
    smooth = rb.collision_term(MODEL, GRID, ways[2], samples=2, batches=2)
    assert float(smooth.rate[0]) == pytest.approx(float(terms[0].rate[0]), rel=0.3)
    with pytest.raises(rb.InputError, match="needs a PhaseSpace"):
        rb.collision_term(MODEL, 10, F)


def test_a_state_in_which_next_to_nothing_collides():
    """One species of a process is missing: C = 0, not an overflow."""
    model = rb.Model(
        [rb.Species("a", 2, -1), rb.Species("b", 3, 1)],
        [rb.Process("a b -> a b", lambda s, t, u: 1.0)], masses={"a": 0.3, "b": 0.4},
    )  # fmt: skip
    start = {"b": rb.initial.gaussian(0.5, [0.8, 0.8, 0.5])}
    term = rb.collision_term(model, rb.PhaseSpace(4, 1.5), start, samples=1, batches=2)
    assert float(np.abs(term.collision_term).max()) < 1e-200


def test_results_that_are_kept_belong_to_the_model_as_it_is_now():
    """A mass or a coupling that is changed in place changes what is predicted."""
    model = rb.gluons(0.3, masses={"g": 0.1})
    light = rb.equilibrium.temperature_without_number(model, 10.0)
    model.constant_mass_squared[0] = 9.0
    heavy = rb.equilibrium.temperature_without_number(model, 10.0)
    fresh = rb.equilibrium.temperature_without_number(rb.gluons(0.3, masses={"g": 3.0}), 10.0)
    assert heavy == fresh > 1.3 * light
    assert rb.gluons(0.3).value == rb.gluons(0.3).value != rb.gluons(0.31).value
    grid, start = rb.PhaseSpace(6, 2.0), {"g": rb.initial.thermal(0.3)}
    options = dict(samples=1, batches=2, mass_squared=[0.25], backend="cpu")
    before = rb.collision_term(model, grid, start, **options).rate
    for name in model.processes[0].parameters:
        model.processes[0].parameters[name] *= 2.0
    after = rb.collision_term(model, grid, start, **options).rate
    assert float(after[0]) > 1.5 * float(before[0])


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (dict(batches=2.5), "batches = 2.5: use a whole number"),
        (dict(batches=1), "batches = 1: use a whole number, at least 2"),
        (dict(mass_squared=0.1), "mass_squared = 0.1: give one number"),
        (dict(mass_squared=[0.1, 0.2]), "for each of g"),
        (dict(grid=rb.PhaseSpace(4, 2.0, [2, 1, 1], 1.0)), "collision_term is of one place"),
    ],
)
def test_what_makes_no_sense_is_refused(given, words):
    """With the key, the value and the remedy."""
    start = {"g": rb.initial.thermal(0.3)}
    with pytest.raises(rb.InputError, match=words):
        rb.collision_term(**{"model": MODEL, "grid": GRID, "f": start, **given})


@pytest.mark.parametrize(("mass", "height"), [(0.0, 0.5), (0.4, 0.5), (0.0, 5.0)])
def test_a_coarse_grid_has_the_rates_of_light_particles(mass, height):
    """A Bose gas with constant |M|^2 on nodes 0.85 T apart, against a quadrature without a grid.

    d<p^2>/dt within 4 % (15 % low without weights that give back what landing averages away), and
    the rate of collisions, which these weights must not change: a collision counts once, in the
    rate as in gain and loss. Of a dense gas the weights would make the rate 18 % too large.
    """
    width, m2 = 0.7, mass**2

    def f(energy):
        return height * np.exp(-(energy**2 - m2) / (2 * width**2))

    def start(px, py, pz):
        return f(np.sqrt(px**2 + py**2 + pz**2 + m2))

    def change(e1, e2, e3, e4):
        return e3**2 + e4**2 - e1**2 - e2**2

    leg = ScatteringSpecies(m2, f, 1)
    exact = collisions(
        lambda s, t, u: np.full_like(s, 100.0), (leg,) * 4, {"rate": one, "p2": change}, 9.0, 14
    )
    model = rb.Model(
        [rb.Species("a", 1, 1)], [rb.Process("a a -> a a", constant)], masses={"a": mass}
    )
    fine = rb.PhaseSpace(60, 4.2)
    p2 = fine.momentum_squared
    values = start(*fine.momenta)
    warm = (values * p2 / np.sqrt(p2 + m2)).sum() / values.sum() / 3
    cells = 2 * round(4.2 / (0.85 * warm))
    grid = rb.PhaseSpace(cells, 0.5 * cells * 0.85 * warm)
    shape = {"a": rb.initial.from_function(start, sampling="node")}
    found = rb.collision_term(model, grid, shape, samples=256, batches=4, backend="cpu")
    moved = found.collision_term.values.reshape(-1) @ grid.momentum_squared * grid.measure
    assert moved == pytest.approx(exact["p2"] / 4, rel=0.04)
    assert float(found.rate[0]) == pytest.approx(exact["rate"] / 4, rel=0.04)


def test_gain_and_loss_of_light_particles_count_every_collision_once():
    """Thermal bosons, 1.3 T between nodes: two particles are lost in each collision, two gained."""
    model = rb.Model([rb.Species("a", 1, 1)], [rb.Process("a a -> a a", constant)])
    grid = rb.PhaseSpace(16, 3.2)
    start = {"a": rb.initial.thermal(0.3, -0.05, sampling="node")}
    found = rb.collision_term(model, grid, start, samples=16, batches=4)
    both = np.array([found.gain.values.sum(), found.loss.values.sum()]) * grid.measure
    assert both == pytest.approx([2 * float(found.rate[0])] * 2, rel=1e-9)


def test_nodes_at_rest_collide_whatever_the_ratio_of_spacings():
    """A massless particle at p = 0 is lost about as often when one spacing falls below half."""
    legs = [rb.Species(name, 1, 0) for name in "abc"]
    masses = {"a": 0.0, "b": 0.5, "c": 0.0}
    model = rb.Model(legs, [rb.Process("a b -> c c", constant)], masses=masses)
    start = dict.fromkeys("ab", rb.initial.gaussian(0.5, 0.5, sampling="node"))
    lost = []
    for ratio in (1.98, 2.11):
        grid = rb.PhaseSpace(11, [1.5, 1.5, 1.5 / ratio])
        found = rb.collision_term(model, grid, start, samples=64, batches=4)
        lost.append(float(found.loss.sel(species="a")[5, 5, 5]))
    assert 0.85 < lost[1] / lost[0] < 1.0


@pytest.mark.parametrize(("cells", "box"), [([11, 11, 20], [2.0, 2.0, 0.4]), ([12, 12, 12], 2.0)])
def test_weights_of_inner_nodes_are_never_negative(cells, box):
    """1/E with what it gains is above 0, for light and massless particles and all spacings."""
    grid = rb.PhaseSpace(cells, box)
    for m2 in (0.0, 1e-4, 0.01, 0.1):
        inner = m2 + (0.0 if all(n % 2 for n in cells) else grid.inner_momentum_squared)
        assert grid.missing_inverse_energy(m2) + (inner**-0.5 if inner > 0 else 0.0) > 0


def test_what_inner_nodes_gain_belongs_to_their_leg_and_to_open_channels():
    """k3 comes first; nothing where a particle at rest cannot react, or is no part of a sum."""
    grid = rb.PhaseSpace(12, 1.2)
    legs = [rb.Species("a", 1, 0), rb.Species("b", 1, 0)]
    scattering = rb.Process("a b -> a b", constant)
    model = rb.Model(legs, [scattering], masses={"a": 0.02, "b": 0.5})
    ((of_a, of_b, _),) = Elements(model).inner_weights(grid, channels(model))
    assert 0 < of_a < grid.missing_inverse_energy(0.02**2) and of_b == 0.0
    gas = rb.Model(legs[:1], [rb.Process("a a -> a a", constant)])
    ((first, second, _),) = Elements(gas).inner_weights(grid, channels(gas))
    assert first == second == pytest.approx(grid.missing_inverse_energy(0.0), rel=1e-12)
    making = rb.Model(legs, [rb.Process("a a -> b b", constant)], masses={"a": 0.0, "b": 0.5})
    shut = [one for one in channels(making) if one.nodes == (0, 0)]
    assert Elements(making).inner_weights(grid, shut)[0][:2] == (0.0, 0.0)
    alone = Elements(model).inner_weights(grid, channels(model, symmetrical=False))
    for channel, weights in zip(channels(model, symmetrical=False), alone, strict=True):
        assert weights[1] == 0.0 and (weights[0] > 0) == (channel.nodes[0] == 0)


def constant(s):
    """|M|^2."""
    return 100.0 + 0.0 * s
