"""Processes: sides and multiplicities, arguments of matrix elements, refusals."""

import numpy as np
import pytest
from numpy.polynomial.legendre import leggauss
from test_model import one

from relboltz.backends.elements import Elements
from relboltz.checks import equilibrium_collisions
from relboltz.events.collisions import channels
from relboltz.grid.phase_space import PhaseSpace
from relboltz.grid.units import HBARC
from relboltz.model.model import Model, Species
from relboltz.model.process import KINEMATIC, Process
from relboltz.model.qcd import gluons
from relboltz.run.collision_term import collision_term
from relboltz.thermodynamics.unlimited import FreeState
from relboltz.util.errors import InputError


def test_a_process_has_sides_and_legs():
    process = Process("a b <-> c d", one)
    assert process.sides == (("a", "b"), ("c", "d")) and process.legs == ("a", "b", "c", "d")
    assert process.name == "a b -> c d"


@pytest.mark.parametrize(
    ("reaction", "w", "elastic", "identical"),
    [
        ("a a -> a a", 1 / 8, True, True),
        ("a b -> a b", 1 / 2, True, False),
        ("a b -> b a", 1 / 2, True, False),
        ("a a -> b b", 1 / 4, False, True),
        ("a a -> b c", 1 / 2, False, True),
        ("b c <-> a a", 1 / 2, False, True),
        ("a b -> a c", 1.0, False, False),
    ],
)
def test_multiplicity_follows_from_the_species(reaction, w, elastic, identical):
    """1/2 for equal partners in, for equal partners out, and for an elastic process."""
    process = Process(reaction, one)
    assert (process.multiplicity, process.elastic, process.identical) == (w, elastic, identical)


def test_the_usual_seven_arguments_go_by_position_whatever_their_names():
    """f(x, y, z, m1, m2, m3, m4) gets s, t, u and the masses."""
    assert Process("a a -> a a", lambda x, y, z, m1, m2, m3, m4: x).arguments == KINEMATIC
    assert KINEMATIC == ("s", "t", "u", "ma2", "mb2", "mc2", "md2")


def test_arguments_go_by_name_in_any_order():
    """A function may ask for what it needs only."""
    process = Process("a a -> a a", lambda u_screened, s, qu2, screening2, t: s)
    assert process.arguments == ("u_screened", "s", "qu2", "screening2", "t")


def test_named_parameters_follow_the_seven():
    """Own parameters by name, defaults where none is given, an explicit value where one is."""

    def f(x, y, z, m1, m2, m3, m4, coupling, width=0.25):
        return coupling

    process = Process("a a -> a a", f, coupling=3)
    assert process.arguments == (*KINEMATIC, "coupling", "width")
    assert process.parameters == {"coupling": 3.0, "width": 0.25}
    assert Process("a a -> a a", f, coupling=3, width=1).parameters["width"] == 1.0


def test_an_argument_nobody_provides_is_named():
    """With the nearest known name."""
    with pytest.raises(InputError, match="asks for 't_screen'.*did you mean 't_screened'"):
        Process("a a -> a a", lambda s, t_screen: s)
    with pytest.raises(InputError, match="asks for 'lamda'.*did you mean 'lambda_'"):
        Process("a a -> a a", lambda s, lamda: s, lambda_=1.0)


def test_a_parameter_nobody_asks_for_is_named():
    """A misspelt keyword is an error."""
    with pytest.raises(InputError, match="parameter 'copling' is not an argument"):
        Process("a a -> a a", lambda s, coupling=1.0: s, copling=2.0)


def test_variable_arguments_are_refused():
    """*args, **kwargs and keyword-only arguments cannot be compiled into a loop."""
    for function in (lambda *values: 1.0, lambda s, **more: 1.0, lambda s, *, t: 1.0):
        with pytest.raises(InputError, match="must be an ordinary one"):
            Process("a a -> a a", function)


def test_only_rows_of_the_package_are_built_in():
    """They count as 0 where screening makes them negative; a user's function must not be."""
    assert all(process.built_in for process in gluons(0.3).processes)
    assert not Process("a a -> a a", one).built_in


def test_a_number_is_no_matrix_element():
    """The matrix element must be a function."""
    with pytest.raises(InputError, match="must be a function"):
        Process("a a -> a a", 1.0)


@pytest.mark.parametrize("text", ["a a", "a a -> b", "a -> b c", "a a -> b b -> c c", "a b c -> a"])
def test_a_reaction_is_two_species_to_two_species(text):
    """Anything else shows the right spelling."""
    with pytest.raises(InputError, match="write two species, '->', two species"):
        Process(text, one)


# --- constant cross sections --------------------------------------------------------------------

T, SIGMA = 0.4, 1.5  # GeV, fm^2
GASES = {
    "a a -> a a": {"a": 0.0}, "a a -> a a ": {"a": 0.9}, "a b -> a b": {"a": 0.1, "b": 1.3},
    "a b -> b a": {"a": 0.5, "b": 0.2}, "a a -> b b": {"a": 0.3, "b": 0.8},
    "a b -> c d": {"a": 0.9, "b": 0.7, "c": 0.1, "d": 0.3}, "a b -> c c": {"a": 0.2, "c": 0.6},
    "a a -> b c": {"a": 0.6, "b": 0.1, "c": 0.2},
}  # fmt: skip
"""Reactions and masses [GeV]; those that are not given vanish. All g are different."""


def density_and_rate(masses, degeneracies):
    """Collisions per volume and time, <sigma v> n n, of a classical gas [fm^-4], by quadrature.

    masses, degeneracies : of a, b, c, d; below the threshold of c and d nothing happens
    """
    x, w = leggauss(90)
    p, wp = 24 * T * (1 + x) ** 2 / 4, 24 * T * (1 + x) * w / 2
    pa, pb, cosine = np.meshgrid(p, p, x, indexing="ij")
    ea, eb = np.hypot(pa, masses[0]), np.hypot(pb, masses[1])
    product = ea * eb - pa * pb * cosine
    flux = np.sqrt(np.maximum(product**2 - (masses[0] * masses[1]) ** 2, 0)) / (ea * eb)
    s = masses[0] ** 2 + masses[1] ** 2 + 2 * product
    flux *= s > (masses[2] + masses[3]) ** 2
    f = pa**2 * pb**2 * np.exp(-(ea + eb) / T) / (2 * np.pi**2 * HBARC**3) ** 2
    weight = wp[:, None, None] * wp[None, :, None] * w / 2
    return degeneracies[0] * degeneracies[1] * SIGMA * (weight * f * flux).sum()


@pytest.mark.parametrize("reaction", GASES)
def test_a_cross_section_gives_its_rate_of_collisions(reaction):
    """n_a n_b <sigma v>, half of it for a = b, by events and by quadrature.

    With detailed balance the reverse rate is the same. Events scatter by 1 %; quadrature, with the
    edge of a threshold inside, holds to 3e-3.
    """
    process = Process(reaction, sigma=SIGMA)
    names = sorted(set(process.legs))
    species = [Species(n, 2 + i) for i, n in enumerate(names)]
    masses = {n: GASES[reaction].get(n, 0.0) for n in names}
    model = Model(species, [process], masses=masses)
    m2 = model.constant_mass_squared
    state = FreeState(T, np.zeros(len(names)), np.zeros(3), m2, np.zeros(1))
    rate = equilibrium_collisions.of(Elements(model), state).rate
    error = rate.std() * np.sqrt(len(rate))
    legs = [model.index(leg) for leg in process.legs]
    expected = density_and_rate([np.sqrt(m2[i]) for i in legs], model.degeneracy[legs])
    expected *= 0.5 if legs[0] == legs[1] else 1.0
    expected *= 1.0 if process.elastic else 2.0  # both directions
    assert error < 0.02 * expected
    assert abs(rate.sum() - expected) < 4 * error + 3e-3 * expected


@pytest.mark.parametrize("reaction", ["a a -> b b", "a b -> c c", "a b -> c d", "a a -> a a "])
def test_a_cross_section_gives_its_rate_on_nodes(reaction):
    """Also where products are heavier and alike: two of them on one node are at threshold.

    Pairs that find no nodes of their energy are missing, and counted in null_weight. What is left
    is O(h^2), with h = 0.8 T: 2 % were measured at most.
    """
    process = Process(reaction, sigma=SIGMA)
    names = sorted(set(process.legs))
    masses = {n: GASES[reaction].get(n, 0.0) for n in names}
    model = Model([Species(n, 2 + i) for i, n in enumerate(names)], [process], masses=masses)
    grid = PhaseSpace(28, 4.5)
    e = np.sqrt(grid.momentum_squared + model.constant_mass_squared[:, None])
    found = collision_term(model, grid, np.exp(-e / T), samples=8, batches=6, backend="cpu")
    legs = [model.index(leg) for leg in process.legs]
    m = np.sqrt(model.constant_mass_squared)
    expected = density_and_rate(m[legs], model.degeneracy[legs])
    expected *= 0.5 if legs[0] == legs[1] else 1.0
    rate, error = float(found.rate[0]), float(found.rate_error[0])
    assert error < 0.01 * rate
    assert abs(rate / (1 - float(found.null_weight)) / expected - 1) < 0.02 + 4 * error / rate
    assert found.rate_reverse.values == pytest.approx(found.rate.values, rel=1e-12)
    gross = float(found.gain.max())
    assert float(abs(found.collision_term).max()) < 1e-12 * gross, "equilibrium stands still"


def test_reactions_with_a_cross_section_need_symmetrical_sampling():
    model = Model([Species("a"), Species("c")], [Process("a a -> c c", sigma=1.0)])
    with pytest.raises(InputError, match="symmetrical = False: process a a -> c c"):
        channels(model, symmetrical=False)


def test_a_massless_cross_section_is_the_closed_form():
    """32 pi g^2 sigma s for equal particles, 16 pi g_a g_b sigma s for others."""
    for reaction, factor in (("a a -> a a", 32 * 9), ("a b -> a b", 16 * 15)):
        model = Model([Species("a", 3), Species("b", 5)], [Process(reaction, sigma=2.0)])
        process = model.processes[0]
        found = process.matrix_element(7.0, 0.0, 0.0, 0.0, 0.0, **process.parameters)
        assert found == pytest.approx(factor * np.pi * 2.0 / HBARC**2 * 7.0, rel=1e-14)


def with_sigma(s, sigma):
    return sigma * s


def test_a_function_may_have_a_parameter_called_sigma():
    process = Process("a a -> a a", with_sigma, sigma=3.0)
    assert process.parameters == {"sigma": 3.0} and process.row == "with_sigma"


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, "give a matrix element, or sigma"),
        ({"sigma": -1.0}, "sigma = -1.0: a cross section in fm\\^2 is a positive number"),
        ({"sigma": "large"}, "sigma = 'large'"),
        ({"sigma": 1.0, "width": 2.0}, "'width' says nothing about a constant cross section"),
    ],
)
def test_cross_sections_that_are_none_are_refused(given, words):
    with pytest.raises(InputError, match=words):
        Process("a a -> a a", **given)
