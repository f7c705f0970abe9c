"""Transport coefficients: tables, closed forms, sums over nodes, and what is exact."""

import numpy as np
import pytest
from numpy.polynomial.legendre import leggauss

import relboltz as rb
from relboltz.backends.elements import Elements
from relboltz.events.brackets import mirrored, soft_angle
from relboltz.grid.units import HBARC
from relboltz.linear_response import brackets
from relboltz.linear_response.basis import bulk_source
from relboltz.linear_response.inverse_operator import dissipation
from relboltz.linear_response.reference_state import MomentumPoints, ReferenceState, scale_of
from relboltz.studies import viscosity_from_decay as relaxing
from relboltz.studies.viscosity_from_decay import relaxing_viscosity
from relboltz.util.errors import InputError

SIGMA = HBARC**2
"""1 GeV^-2: with T = 1 GeV the entries of the table are pure numbers."""
TABLE = {
    0.0: (1.26757, 0.0, 0.15892, 0.46562),
    1.0: (1.30641, 0.002463, 0.10810, 0.41785),
    3.0: (1.47601, 0.009398, 0.03843, 0.32354),
}
"""m/T: eta sigma/T, zeta sigma/T, kappa sigma, D n sigma of a classical gas, by quadrature."""
SOME = dict(events=2e5, backend="cpu", seed=11)
ROUNDED = 5e-4
"""Of the table's entries with four digits, relative."""


def gas(mass=0.0, degeneracy=1.0, names="x", **charges):
    """Species of one kind, all pairs with the same constant cross section."""
    species = [
        rb.Species(n, degeneracy, 0, {"electric": charges[n]} if n in charges else {})
        for n in names
    ]
    pairs = [(a, b) for i, a in enumerate(names) for b in names[i:]]
    processes = [rb.Process(f"{a} {b} -> {a} {b}", sigma=SIGMA) for a, b in pairs]
    return rb.Model(species, processes, masses={n: mass for n in names})


def close(value, error, asked):
    """Within four standard errors (one in 16 000 tests fails by chance) and the table's digits."""
    return abs(value - asked) <= 4 * error + ROUNDED * abs(asked)


def of(ds, name, unit=1.0):
    """A value and its error."""
    return float(ds[name]) * unit, float(ds[f"{name}_error"]) * unit


@pytest.mark.parametrize("mass", TABLE)
def test_a_classical_gas_has_the_coefficients_of_the_table(mass):
    eta, zeta, kappa, d = TABLE[mass]
    ds = rb.transport_coefficients(gas(mass), 1.0, tagged="x", **SOME)
    n = float(ds.number.sum()) * HBARC**3
    assert close(*of(ds, "shear_viscosity", HBARC**2), eta)
    assert close(*of(ds, "bulk_viscosity", HBARC**2), zeta)
    assert close(*of(ds, "tagged_diffusion", n / HBARC), d)
    found = float(ds.diffusion[0, 0]), float(ds.diffusion_error[0, 0])
    assert close(found[0] * HBARC**2, found[1] * HBARC**2, kappa)
    for name in ("shear_viscosity", "tagged_diffusion"):  # 2e5 events: spread of about 5 each
        assert 1e-3 < float(ds[f"{name}_error"] / ds[name]) < 0.01


def quartic(s, coupling):
    return coupling * coupling


@pytest.mark.parametrize("statistics, asked", [(0, 1536 * np.pi), (1, 3033.5)])
def test_quartic_coupling_has_the_published_viscosity(statistics, asked):
    model = rb.Model(
        [rb.Species("x", 1, statistics)], [rb.Process("x x -> x x", quartic, coupling=2.0)]
    )
    ds = rb.transport_coefficients(model, 0.5, **SOME)
    assert close(*of(ds, "shear_viscosity", HBARC**2 * 4.0 / 0.125), asked)


def test_one_trial_function_gives_six_fifths():
    """p_x p_y alone: eta = 1.2 T/sigma; a larger basis can only raise it."""
    ds = rb.transport_coefficients(gas(), 1.0, powers={"shear": [0, -1, 1]}, **SOME)
    first, *more = ds.shear_viscosity_by_basis.values * HBARC**2
    assert close(first, float(ds.shear_viscosity_error) * HBARC**2, 1.2)
    assert first < more[0] < more[1] * 1.0001


def test_names_and_degeneracies_of_equal_particles_do_not_matter():
    """A gas under two names, each of two states, with charges +1 and -1, is one gas.

    The same viscosities; and as there is no flow of number in its frame, opposite charges diffuse
    like tagged particles: sigma_el = D n e^2/T.
    """
    two = rb.transport_coefficients(gas(1.0, 2, "ab", a=1, b=-1), 1.0, **SOME)
    eta, zeta, _, d = TABLE[1.0]
    assert close(*of(two, "shear_viscosity", HBARC**2), eta)
    assert close(*of(two, "bulk_viscosity", HBARC**2), zeta)
    e2 = 4 * np.pi / 137.036
    assert close(*of(two, "conductivity", HBARC / e2), d)


def test_fugacity_of_a_classical_gas_does_not_matter():
    """eta, zeta and kappa of a constant cross section are the same at any density; n is not."""
    dense = rb.transport_coefficients(gas(1.0), 1.0, 0.7, **SOME)
    thin = rb.transport_coefficients(gas(1.0), 1.0, {"number": -0.7}, **SOME)
    for name in ("shear_viscosity", "bulk_viscosity"):
        assert float(dense[name]) == pytest.approx(float(thin[name]), rel=1e-9)
    assert float(dense.number[0] / thin.number[0]) == pytest.approx(np.exp(1.4), rel=1e-9)


def drag(mass, other):
    """Rate at which a dilute particle loses momentum to a gas of T = 1, by quadrature.

    Isotropic scattering leaves it with P (s + m^2 - M^2)/(2 s) on average; the flux factor is
    sqrt((p.k)^2 - m^2 M^2)/(E E').
    """
    x, w = leggauss(60)
    p, wp = 25 * (1 + x) / 2, 25 * w / 2
    pa, pb, c = np.meshgrid(p, p, x, indexing="ij")
    weight = wp[:, None, None] * wp[None, :, None] * w / 2
    ea, eb = np.hypot(pa, mass), np.hypot(pb, other)
    dot = pa * pb * c
    s = mass**2 + other**2 + 2 * (ea * eb - dot)
    flux = np.sqrt(np.maximum((ea * eb - dot) ** 2 - (mass * other) ** 2, 0)) / (ea * eb)
    kept = (s + mass**2 - other**2) / (2 * s)
    lost = pa**2 - kept * (pa**2 + dot)
    f = np.exp(-ea - eb) * pa**2 * pb**2 / (2 * np.pi**2)
    return (weight * f * flux * lost).sum() / (wp * p**4 * np.exp(-np.hypot(p, mass))).sum()


@pytest.mark.parametrize(
    "t_pole, u_pole, share", [(0.01, 0, 0.5), (0, 0.02, 0.5), (0.01, 0.02, 0.75)]
)
@pytest.mark.parametrize("ekt", [0.0, 1.0])
def test_angles_are_drawn_with_the_density_that_is_undone(t_pole, u_pole, share, ekt):
    """<undo g(x)> = Int g(x) dx for any g, and half of all events lie close to their poles."""
    p, k, n = (0.0, 0.3, 1.0), (0.8, 0.0, -0.7), 20000
    m2 = (0.0, 0.0, 0.0, 0.0)
    ep, ek = (float(np.linalg.norm(v)) for v in (p, k))
    angle = (t_pole, u_pole, share, ekt, 2.0)
    drawn = [soft_angle((i + 0.5) / n, p, ep, k, ek, m2, angle) for i in range(n)]
    x, undo = np.array(drawn).T
    for power in range(4):  # midpoints of a smooth function of u, but for its kink at the share
        assert (undo * x**power).mean() == pytest.approx(1 / (power + 1), abs=1e-4)
    at_u = 0.0 if not u_pole else 1.0 - share if t_pole else 1.0
    assert (x > 0.5).mean() == pytest.approx(at_u, abs=0.2)


def test_mirror_images_share_an_event():
    """Whatever the densities, an event and its mirror image together count twice."""
    for there, back in ((1.0, 3.0), (0.2, 0.2), (5.0, 0.0)):
        assert mirrored(there, back) + mirrored(back, there) * (back > 0) == pytest.approx(2.0)


def test_a_heavy_particle_has_the_drag_of_quadrature():
    """Unequal masses and degeneracies; and few heavy particles diffuse as Einstein has it."""
    model = rb.Model(
        [rb.Species("x", 3), rb.Species("Q", 6)],
        [rb.Process("x x -> x x", sigma=SIGMA), rb.Process("Q x -> Q x", sigma=SIGMA)],
        masses={"x": 0.5, "Q": 12.0},
    )
    ds = rb.transport_coefficients(model, 1.0, tagged="Q", **SOME)
    assert close(*of(ds, "tagged_drag", HBARC), 3 * drag(12.0, 0.5))
    n = np.array(ds.number) * HBARC**3
    assert n[1] < 1e-3 * n[0]
    tau = float(ds.tagged_momentum_relaxation_time) / HBARC
    mean_v2 = float(ds.tagged_diffusion / ds.tagged_velocity_relaxation_time)  # <v_x^2>
    assert mean_v2 == pytest.approx(1 / 12.0, rel=0.25)  # 1 - 5 T/(2 M) to first order
    assert tau * float(ds.tagged_drag) * HBARC == pytest.approx(1.0, abs=0.05)


def constant(s, value):
    return value


def plain_matrix(t, species, reactions, rng, count):
    """(phi, C phi') of p_x p_y of each species, by plain sampling of three-dimensional momenta.

    species: mass, degeneracy, statistics; reactions: legs, |M|^2 and w. Incoming momenta are drawn
    like p^2 e^(-p/T), outgoing ones evenly over the sphere: no kinematics of the package.
    """
    result = np.zeros((len(species), len(species)))
    for legs, value, w in reactions:
        m = [species[a][0] for a in legs]
        weight, p = np.full(count, w * value), []
        for a in (0, 1):
            length = rng.gamma(3.0, t, count)
            n = rng.normal(size=(3, count))
            p.append(length * n / np.linalg.norm(n, axis=0))
            # d^3p/((2 pi)^3 2 E) over the density of the draw, e^(-p/T)/(8 pi T^3)
            weight *= 8 * np.pi * t**3 * np.exp(length / t)
            weight /= (2 * np.pi) ** 3 * 2 * np.hypot(length, m[a])
        e = sum(np.sqrt((q * q).sum(axis=0) + mass**2) for q, mass in zip(p, m, strict=False))
        total = p[0] + p[1]
        s = e**2 - (total**2).sum(axis=0)
        open_ = s > (m[2] + m[3]) ** 2
        s = np.where(open_, s, 100.0)
        k = np.sqrt((s - (m[2] + m[3]) ** 2) * (s - (m[2] - m[3]) ** 2) / (4 * s))
        n = rng.normal(size=(3, count))
        n *= k / np.linalg.norm(n, axis=0)
        # along the total momentum by Lorentz's formula, across as it is
        v = total / e
        gamma, along = e / np.sqrt(s), (v * n).sum(axis=0)
        factor = (gamma - 1) * along / (v * v).sum(axis=0) + gamma * np.hypot(k, m[2])
        p += [n + v * factor, total - n - v * factor]
        weight *= np.where(open_, k / (4 * np.pi * np.sqrt(s)), 0.0)
        change = np.zeros((len(species), count))
        for i, (a, q) in enumerate(zip(legs, p, strict=True)):
            energy, eta = np.sqrt((q * q).sum(axis=0) + m[i] ** 2), species[a][2]
            f = 1 / (np.exp(energy / t) - eta)
            weight *= f if i < 2 else 1 + eta * f
            change[a] += (1 if i < 2 else -1) * q[0] * q[1]
        result += (weight * change) @ change.T / count
    return result


def test_a_quantum_mixture_agrees_with_plain_sampling():
    """Fermi and Bose, unequal masses, identical particles, an inelastic process: one function each.

    Plain sampling of 4e5 events scatters by some 0.5 %, told by four parts.
    """
    t, species = 0.4, [(0.3, 2, -1), (0.5, 3, 1)]
    model = rb.Model(
        [rb.Species("a", 2, -1), rb.Species("b", 3, 1)],
        [
            rb.Process("a a -> b b", constant, value=500.0),
            rb.Process("a b -> a b", constant, value=800.0),
            rb.Process("b b -> b b", constant, value=300.0),
        ],
        masses={"a": 0.3, "b": 0.5},
    )
    reactions = [((0, 0, 1, 1), 500.0, 1 / 4), ((0, 1, 0, 1), 800.0, 1 / 2)]
    reactions += [((1, 1, 1, 1), 300.0, 1 / 8)]
    x, w = leggauss(200)
    p, wp = 15 * (1 + x) / 2 * t * 2, 15 * w * t
    source = []
    for mass, g, eta in species:
        f = 1 / (np.exp(np.hypot(p, mass) / t) - eta)
        source.append(
            (wp * g * p**6 / 15 / np.hypot(p, mass) * f * (1 + eta * f)).sum() / (2 * np.pi**2)
        )
    rng = np.random.default_rng(8)
    parts = [plain_matrix(t, species, reactions, rng, 100_000) for _ in range(4)]
    values = [source @ np.linalg.solve(np.mean(rest, axis=0), source) / t for rest in
              [parts[:i] + parts[i + 1 :] for i in range(4)]]  # fmt: skip
    error = np.sqrt(3) * np.std(values)
    ds = rb.transport_coefficients(model, t, powers={"shear": [0]}, **SOME)
    value, own = of(ds, "shear_viscosity", HBARC**2)
    assert error < 0.02 * value
    assert abs(np.mean(values) - value) < 4 * np.hypot(error, own)


def test_purely_thermal_masses_have_no_bulk_viscosity():
    """Without a scale of its own matter has e = 3 P: zeta is 0, with chemical potentials too."""
    model = rb.qcd(0.3, flavors=1)
    ds = rb.transport_coefficients(
        model,
        [0.3, 0.6],
        {"net u": 0.2},
        powers={"scalar": [-1, 0, 1, 2]},
        **SOME | {"events": 2e4},
    )
    assert (abs(ds.bulk_viscosity) <= ds.bulk_viscosity_error).all()
    assert np.allclose(ds.energy_total, 3 * ds.pressure, rtol=1e-9)
    free = rb.qcd(0.3, flavors=1, masses={"g": 0.4, "quarks": 0.3})
    ds = rb.transport_coefficients(free, 0.3, **SOME | {"events": 2e4})
    assert float(ds.bulk_viscosity) > 4 * float(ds.bulk_viscosity_error) > 0


def test_entropy_and_slopes_of_masses_are_derivatives():
    """s = dP/dT at fixed mu; dm^2/dT at fixed mu/T, by central differences."""
    model, t, mu = rb.qcd(0.3, flavors=1), 0.4, 0.15 * np.array([0, 1, -1])

    def state(temperature, potentials):
        scale = scale_of(temperature, potentials, model.constant_mass_squared)
        return ReferenceState.of(model, MomentumPoints.free(scale), temperature, potentials)

    h = 1e-4
    here, up, down = state(t, mu), state(t + h, mu), state(t - h, mu)
    assert here.entropy == pytest.approx((up.pressure - down.pressure) / (2 * h), rel=1e-6)
    charges = np.array([[0.0, 1.0, -1.0]])
    by_t, by_alpha = here.mass_slopes(charges)
    up, down = state(t + h, mu * (t + h) / t), state(t - h, mu * (t - h) / t)
    assert np.allclose(by_t, (up.mass_squared - down.mass_squared) / (2 * h), rtol=1e-6)
    up, down = state(t, mu + h * t * charges[0]), state(t, mu - h * t * charges[0])
    assert np.allclose(by_alpha[0], (up.mass_squared - down.mass_squared) / (2 * h), rtol=1e-5)


def test_the_source_of_bulk_viscosity_has_the_derivatives_of_the_pressure():
    """P_e = dP/de and P_n = dP/dn of matter with constant and thermal masses, by differences.

    In the source -P_e E stands beside E/3, and -P_n with the number.
    """
    thermal = rb.gluons(0.3)
    model = rb.Model(
        thermal.species, thermal.processes, masses={"g": 0.3}, screening=0.5,
        mass_coupling=thermal.mass_coupling,
    )  # fmt: skip
    t, alpha, h = 0.4, -0.3, 1e-4

    def totals(temperature, ratio):
        mu = np.array([temperature * ratio])
        state = ReferenceState.of(model, MomentumPoints.free(1.2), temperature, mu)
        return np.array([state.pressure, state.energy_density, state.numbers[0]])

    by_t = totals(t + h, alpha) - totals(t - h, alpha)
    by_alpha = totals(t, alpha + h) - totals(t, alpha - h)
    slopes = np.array([by_t, by_alpha])
    expected = np.linalg.solve(slopes[:, 1:], slopes[:, 0])
    state = ReferenceState.of(model, MomentumPoints.free(1.2), t, np.array([t * alpha]))
    source = bulk_source(state, np.ones((1, 1)))
    found = [1 / 3 - source[1.0][0] / t, -source[0.0][0]]
    assert np.allclose(found, expected, rtol=1e-5) and abs(found[0] - 1 / 3) > 0.01


def test_the_number_of_threads_does_not_matter():
    one, two = (
        rb.transport_coefficients(rb.gluons(0.3), 0.4, events=3e4, backend="cpu", threads=n)
        for n in (1, 2)
    )
    assert one.identical(two)
    other = rb.transport_coefficients(rb.gluons(0.3), 0.4, events=3e4, backend="cpu", seed=2)
    assert float(one.shear_viscosity) != float(other.shear_viscosity)


def test_the_bias_of_a_noisy_matrix_is_taken_out():
    """C = mean of x x^T of normal x has <C^-1> = n/(n - d - 1): the jackknife removes the 1/n."""
    rng, d, n, batches = np.random.default_rng(5), 4, 8, 16
    plain, better = [], []
    for _ in range(400):
        x = rng.normal(size=(batches, n, d))
        matrices = np.einsum("bni,bnj->bij", x, x) / n
        found = dissipation(matrices, np.eye(d), np.zeros((0, d)), np.eye(d)[:1])
        plain.append(float(found.value[0, 0] + found.bias[0, 0]))
        better.append(float(found.value[0, 0]))
    expected = batches * n / (batches * n - d - 1)
    error = np.std(better) / 20
    assert abs(np.mean(plain) - expected) < 4 * error and expected > 1 + 8 * error / 2
    assert abs(np.mean(better) - 1) < 4 * error


def test_a_fine_grid_has_the_coefficients_of_unlimited_momenta():
    """A spacing of h costs some 2 % (h/T)^2, here 0.5 T; and conserved quantities stay exact."""
    ds = rb.transport_coefficients(gas(1.0), 1.0, grid=rb.PhaseSpace(48, 12.0), **SOME)
    eta = TABLE[1.0][0]
    for name in ("shear_viscosity_axes", "shear_viscosity_planes"):
        value, error = of(ds, name, HBARC**2)
        assert abs(value / eta - 1) < 0.02 + 4 * error
    assert float(ds.bulk_viscosity) * HBARC**2 == pytest.approx(TABLE[1.0][1], rel=0.05)


def massless_element(s):
    """|M|^2 of a massless gas."""
    return 2000.0 + 0.0 * s


CONSTANT = rb.Model([rb.Species("x", 1, 0)], [rb.Process("x x -> x x", massless_element)])


@pytest.mark.parametrize("model", [gas(1.0), CONSTANT], ids=["massive", "massless"])
def test_a_relaxing_run_has_the_viscosity_of_its_nodes(model):
    """Stress integrated over time: 4 samples a node scatter by about 1 % (two seeds apart).

    Without the weights of light particles the massless brackets would be 8 and 12 % off.
    """
    grid = rb.PhaseSpace(10, 7.0)
    ds = rb.transport_coefficients(model, 1.0, grid=grid, **SOME)
    run = relaxing_viscosity(
        model, 1.0, grid=grid, relaxation_time=float(ds.shear_relaxation_time), samples=8,
        backend="cpu",
    )  # fmt: skip
    for name in ("shear_viscosity_axes", "shear_viscosity_planes"):
        assert float(run[name]) == pytest.approx(float(ds[name]), rel=0.03)


@pytest.mark.parametrize(
    "given, words",
    [
        (dict(temperature=-1.0), "temperature = -1.0"),
        (dict(temperature="hot"), "temperature"),
        (dict(temperature=[]), "temperature"),
        (dict(chemical_potential={"u": 0.1}), "u ubar -> g g"),
        (dict(chemical_potential={"charm": 0.1}), "unknown key chemical_potential.charm"),
        (dict(chemical_potential={"number": 2.0}), "bosons need mu below"),
        (dict(events=10), "events = 10"),
        (dict(tagged="q"), "tagged = 'q'"),
        (dict(powers={"shear": [0.3]}), "multiples of 1/2"),
        (dict(powers={"sheer": [0]}), "did you mean 'shear'"),
        (dict(grid=31), "PhaseSpace"),
        (dict(backend="tpu"), "backend = 'tpu'"),
    ],
)
def test_what_cannot_be_is_refused(given, words):
    arguments = {"temperature": 0.4, "backend": "cpu"} | given
    with pytest.raises(rb.InputError, match=words.replace("(", r"\(").replace("[", r"\[")):
        rb.transport_coefficients(rb.qcd(0.3, flavors=1), **arguments)


def test_parts_that_never_meet_are_refused():
    model = rb.Model(
        [rb.Species("a"), rb.Species("b")],
        [rb.Process("a a -> a a", sigma=1.0), rb.Process("b b -> b b", sigma=1.0)],
    )
    with pytest.raises(rb.InputError, match="b never collide with a"):
        rb.transport_coefficients(model, 0.4, backend="cpu")
    model = rb.Model([rb.Species("a"), rb.Species("b")], [rb.Process("a a -> a a", sigma=1.0)])
    with pytest.raises(rb.InputError, match="b takes part in no process"):
        rb.transport_coefficients(model, 0.4, backend="cpu")


def negative(s):
    return -1.0


def test_an_illegal_matrix_element_is_named():
    model = rb.Model([rb.Species("x")], [rb.Process("x x -> x x", negative)])
    with pytest.raises(rb.InputError, match="x x -> x x: the matrix element is -1"):
        rb.transport_coefficients(model, 0.4, backend="cpu")


def test_poles_are_refused_and_negative_rows_are_told_of():
    """As of a run: m_q > 2 m_g has a pole; screening makes a row of massless quarks negative."""
    heavy = rb.qcd(0.3, flavors=1, masses={"g": 0.4, "quarks": 0.8})
    heavy.constant_mass_squared[1:] = 1.0
    with pytest.raises(rb.InputError, match="u g -> u g has a pole"):
        rb.transport_coefficients(heavy, 0.4, backend="cpu")
    massless = rb.qcd(0.1, flavors=1, masses="massless", screening="thermal")
    with pytest.warns(rb.AccuracyWarning, match="u ubar -> g g: screening makes"):
        rb.transport_coefficients(massless, 0.4, backend="cpu", events=2000)


def test_everything_has_a_unit_and_a_name():
    ds = rb.transport_coefficients(gas(1.0), [0.3, 0.5], tagged="x", **SOME | {"events": 2e4})
    assert all({"units", "long_name"} <= v.attrs.keys() for v in ds.data_vars.values())
    assert ds.shear_viscosity.dims == ("temperature",) and ds.shear_viscosity.units == "GeV fm^-2"
    assert ds.diffusion.dims == ("temperature", "charge", "charge2")


def test_shear_on_nodes_is_two_parts_of_five_along_axes_and_three_between():
    """Five components of a traceless tensor: E_g has two, T_2g three."""
    ds = rb.transport_coefficients(gas(1.0), 1.0, grid=rb.PhaseSpace(9, 6.0), events=20_000)
    parts = 2 * ds.shear_viscosity_axes + 3 * ds.shear_viscosity_planes
    assert float(5 * ds.shear_viscosity) == pytest.approx(float(parts), rel=1e-12)
    assert abs(float(ds.shear_viscosity_axes / ds.shear_viscosity_planes) - 1) > 0.01


def test_what_is_left_of_a_decay_is_added_to_its_area():
    """exp(-t) up to t = 2 and its tail: 1, but for Simpson's rule, h^4/180."""
    time = np.linspace(0, 2, 41)
    assert relaxing._area(time, np.exp(-time)) == pytest.approx(1.0, abs=1e-6)


def test_tags_are_shared_among_those_who_may_have_them():
    """Rows of what a tag does add up as its particles do: those that leave are found somewhere."""
    for legs, found in (((0, 1, 0, 1), 1), ((0, 0, 0, 1), 2), ((0, 1, 0, 0), 2), ((0, 0, 1, 1), 2)):
        share = brackets.tag_shares(legs, 0)
        assert (share == share.T).all() and np.diag(share).sum() == sum(a == 0 for a in legs)
        into, out = ([i for i in side if legs[i] == 0] for side in ((0, 1), (2, 3)))
        if into and out and found == 2:
            assert -share[np.ix_(into, out)].sum() == min(len(into), len(out))


def test_a_rare_tagged_particle_diffuses_whatever_its_number():
    """D of one heavy particle among others knows no mu; down to densities of e^-100."""
    heavy = rb.Species("Q", 6, -1)
    process = rb.Process("Q g -> Q g", sigma=0.5)
    model = rb.gluons(0.3, masses={"g": 0.4}).extend([heavy], [process], masses={"Q": 1.3})
    found = [
        rb.transport_coefficients(model, 0.2, {"Q": mu}, tagged="Q", events=20_000, backend="cpu")
        for mu in (-2.0, -20.0)
    ]
    one, other = (of(ds, "tagged_diffusion", 1.0) for ds in found)
    assert abs(one[0] / other[0] - 1) < 4 * (one[1] + other[1])
    assert np.isfinite(found[1].bulk_viscosity)


def test_one_species_for_all_quarks_has_no_tag_and_no_conductivity():
    model = rb.qcd(0.3, flavor_symmetric=True)
    with pytest.raises(InputError, match="tagged = 'q': stands for all quarks and antiquarks"):
        rb.transport_coefficients(model, 0.3, tagged="q", events=1000)
    assert np.isnan(rb.transport_coefficients(model, 0.3, events=1000).conductivity)


def test_a_charge_that_is_not_conserved_has_no_conductivity():
    with pytest.warns(rb.AccuracyWarning, match="a a -> b b changes the charge 'electric'"):
        model = rb.Model(
            [rb.Species("a", charges={"electric": 1.0}), rb.Species("b")],
            [rb.Process("a a -> b b", sigma=0.3), rb.Process("a b -> a b", sigma=0.3)],
        )
    assert np.isnan(rb.transport_coefficients(model, 0.3, events=2000).conductivity)


def test_most_events_of_compton_scattering_are_drawn_for_its_double_pole():
    """q g -> q g has a double pole in t and a single one in u, q qbar -> g g single ones."""
    model = rb.qcd(0.1, flavors=1, masses="massless", screening="ekt")
    elements, screening2 = Elements(model), np.array([0.04, 0.01])
    share = {}
    for i, process in enumerate(model.processes):
        t, u, share[process.name] = brackets._poles(elements, i, screening2)
        if process.name in ("u g -> u g", "u ubar -> g g"):
            assert t > 0.0
            assert (u > 0.0) == (not elements.folds[i])
    assert share["u g -> u g"] == brackets.DOUBLE_POLE > share["u ubar -> g g"] == 0.5
