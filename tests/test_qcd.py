"""QCD: the paper's table, the list of 34 processes, thermal masses, and input in words."""

import math
from collections import Counter
from fractions import Fraction as Fr

import numpy as np
import pytest

from relboltz.backends import cpu_kernels as kernels
from relboltz.backends.matrix_elements import evaluator
from relboltz.errors import InputError
from relboltz.kinematics import screened
from relboltz.qcd import gluons, qcd, quarks

NAMES = ("g", "u", "d", "s", "ubar", "dbar", "sbar")
ALPHA = 0.3
G2 = 4 * math.pi * ALPHA
MODEL = qcd(ALPHA)

# --- the list -----------------------------------------------------------------------------------

ROWS = {
    "gg_gg": 1, "q1g_q1g": 6, "q1q1bar_gg": 3, "q1q1_q1q1": 6, "q1q1bar_q1q1bar": 3,
    "q1q2_q1q2": 12, "q1q1bar_q2q2bar": 3,
}  # fmt: skip


def test_three_flavours_have_34_processes():
    """The number of processes in each row of the table."""
    assert len(MODEL.processes) == 34
    assert Counter(p.matrix_element.__name__ for p in MODEL.processes) == ROWS


def row_of(legs):
    """The row of the table that a reaction belongs to, from the quark content of its legs."""

    def flavour(x):
        return x.removesuffix("bar")

    a, b, c, d = legs
    count = legs.count("g")
    if count == 4:
        return "gg_gg"
    if count == 2:
        return "q1g_q1g" if "g" in (a, b) and "g" in (c, d) else "q1q1bar_gg"
    if sorted((a, b)) != sorted((c, d)):
        return "q1q1bar_q2q2bar"
    if a == b:
        return "q1q1_q1q1"
    return "q1q1bar_q1q1bar" if flavour(a) == flavour(b) else "q1q2_q1q2"


def test_every_reaction_has_the_matrix_element_of_its_row():
    """And in the order of legs in which the table defines t: a becomes c if both are equal."""
    for process in MODEL.processes:
        assert row_of(process.legs) == process.matrix_element.__name__, process
        a, b, c, d = process.legs
        if process.elastic:
            assert (a, b) == (c, d)


def test_no_process_is_listed_twice_and_none_is_missing():
    """All 2 <-> 2 reactions that conserve every net flavour, each once, up to order."""
    charge = {"g": (0, 0, 0)}
    for i, q in enumerate("uds"):
        charge[q] = tuple(int(i == j) for j in range(3))
        charge[q + "bar"] = tuple(-int(i == j) for j in range(3))
    pairs = [(a, b) for i, a in enumerate(NAMES) for b in NAMES[i:]]
    total = {p: tuple(map(sum, zip(charge[p[0]], charge[p[1]], strict=True))) for p in pairs}
    allowed = {frozenset((p, q)) for p in pairs for q in pairs if total[p] == total[q]}
    order = {name: i for i, name in enumerate(NAMES)}
    listed = []
    for a, b, c, d in (process.legs for process in MODEL.processes):
        sides = [tuple(sorted(side, key=order.get)) for side in ((a, b), (c, d))]
        listed.append(frozenset(sides))
    assert len(set(listed)) == 34
    assert set(listed) == allowed


@pytest.mark.parametrize(
    ("model", "count"),
    [
        (qcd(0.3, flavors=0), 1),
        (qcd(0.3, flavors=1), 7),
        (qcd(0.3, flavors=2), 18),
        (gluons(0.3), 1),
        (quarks(0.3), 1),
        (quarks(0.3, 3), 6),
        (quarks(0.3, 3, antiquarks=True), 24),
    ],
)
def test_smaller_models_have_the_processes_of_their_species(model, count):
    """With gluons and f flavours: 1 + 2f + f + 2f + f + C(2f, 2) - f + C(f, 2)."""
    assert len(model.processes) == count
    for process in model.processes:
        assert row_of(process.legs) == process.matrix_element.__name__


def test_number_and_net_flavours_are_conserved():
    """Four charges, with their values on g u d s ubar dbar sbar."""
    assert MODEL.names == NAMES
    assert MODEL.conserved == {
        "number": (1, 1, 1, 1, 1, 1, 1),
        "net u": (0, 1, 0, 0, -1, 0, 0),
        "net d": (0, 0, 1, 0, 0, -1, 0),
        "net s": (0, 0, 0, 1, 0, 0, -1),
    }


def test_degeneracies_and_statistics():
    """N_g = 16 bosons, N_q = 6 fermions."""
    assert MODEL.degeneracy.tolist() == [16] + 6 * [6]
    assert MODEL.statistics.tolist() == [1] + 6 * [-1]


def test_electric_and_baryon_charges():
    """2/3, -1/3, -1/3, opposite for antiquarks, and a third of a baryon each."""
    electric = [s.charges.get("electric", 0.0) for s in MODEL.species]
    baryon = [s.charges.get("baryon", 0.0) for s in MODEL.species]
    third = 1 / 3
    assert electric == pytest.approx([0, 2 * third, -third, -third, -2 * third, third, third])
    assert baryon == pytest.approx([0, third, third, third, -third, -third, -third])


# --- the table ----------------------------------------------------------------------------------

# 8 d_F^2 C_F^2/d_A = 16, 16 d_F C_F (C_F - C_A/2) = -32/3, 8 d_F C_F^2 = 128/3,
# 8 d_F C_F C_A = 96, 16 d_A C_A^2 = 1152; T = t - m_g^2, U = u - m_g^2, in units of g^4
TABLE = {
    "q1q2_q1q2": lambda s, t, u, T, U: 16 * (s**2 + u**2) / T**2,
    "q1q1_q1q1": lambda s, t, u, T, U: (
        16 * ((s**2 + u**2) / T**2 + (s**2 + t**2) / U**2) - Fr(32, 3) * s**2 / (T * U)
    ),
    "q1q1bar_q1q1bar": lambda s, t, u, T, U: (
        16 * ((s**2 + u**2) / T**2 + (u**2 + t**2) / s**2) - Fr(32, 3) * u**2 / (T * s)
    ),
    "q1q1bar_q2q2bar": lambda s, t, u, T, U: 16 * (t**2 + u**2) / s**2,
    "q1q1bar_gg": lambda s, t, u, T, U: (
        Fr(128, 3) * (u / T + t / U) - 96 * (t**2 + u**2) / s**2
    ),
    "q1g_q1g": lambda s, t, u, T, U: (
        -Fr(128, 3) * (u / s + s / U) + 96 * (s**2 + u**2) / T**2
    ),
    "gg_gg": lambda s, t, u, T, U: (
        1152 * (3 - s * u / T**2 - s * t / U**2 - t * u / s**2)
    ),
}  # fmt: skip

POINTS = [  # s, t, m_g^2, sum of the squared masses
    (Fr(2), Fr(-1, 2), Fr(1, 4), Fr(1)),
    (Fr(7, 2), Fr(-3), Fr(1, 10), Fr(1, 5)),
    (Fr(9), Fr(-1, 100), Fr(1, 2), Fr(0)),
    (Fr(3), Fr(-5, 4), Fr(2), Fr(2)),
]


def first(row):
    """The first process of a row."""
    return next(p for p in MODEL.processes if p.matrix_element.__name__ == row)


def python_value(process, s, t, u, t_screened, u_screened, screening2=None):
    """|M|^2 by the plain Python function, called by name; the regulator's square is t - T."""
    screening2 = t - t_screened if screening2 is None else screening2
    known = dict(
        s=s, t=t, u=u, t_screened=t_screened, u_screened=u_screened,
        t_regulated=t - screening2, u_regulated=u - screening2,
    )  # fmt: skip
    arguments = {n: known.get(n, process.parameters.get(n)) for n in process.arguments}
    return process.matrix_element(**arguments)


@pytest.mark.parametrize("row", ROWS)
@pytest.mark.parametrize("point", POINTS)
def test_matrix_elements_are_those_of_the_table(row, point):
    """Each row against the table with the colour factors worked out in fractions."""
    s, t, screening2, masses = point
    u = masses - s - t
    exact = TABLE[row](s, t, u, t - screening2, u - screening2)
    values = (float(v) for v in (s, t, u, t - screening2, u - screening2))
    assert python_value(first(row), *values) == pytest.approx(G2**2 * float(exact), rel=1e-12)


@pytest.mark.parametrize("row", ROWS)
@pytest.mark.parametrize("ekt", [0.0, 1.0])
def test_compiled_matrix_elements_give_the_same_numbers(row, ekt):
    """The generated loop, screening included, to 1e-12; u from the masses of the legs."""
    process = first(row)
    function, parameters = evaluator(process, {})
    w = np.zeros(kernels.ROWS * kernels.CHUNK)
    m2, screening2 = (0.1, 0.2, 0.15, 0.05), 0.3
    points = [(2.0, -0.5, 0.7, 1.1), (4.5, -3.0, 5.0, 2.0), (9.0, -0.01, 0.02, 9.0)]
    for i, point in enumerate(points):
        for start, value in zip(
            (kernels.S, kernels.T, kernels.Q2, kernels.QU2), point, strict=True
        ):
            w[start + i] = value
    function(len(points), m2, screening2, ekt, parameters, w)
    for i, (s, t, q2, qu2) in enumerate(points):
        u = 0.5 - s - t
        both = screened(t, q2, screening2, ekt), screened(u, qu2, screening2, ekt)
        expected = python_value(process, s, t, u, *both, screening2)
        assert w[kernels.M2 + i] == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("row", ["gg_gg", "q1q1_q1q1", "q1q1bar_gg", "q1q1bar_q2q2bar"])
def test_equal_partners_make_the_element_symmetric_in_t_and_u(row):
    """Exchange of two equal particles (of q and qbar for the last) changes nothing."""
    for s, t, screening2, masses in POINTS:
        s, t, m, total = float(s), float(t), float(screening2), float(masses)
        u = total - s - t
        there = python_value(first(row), s, t, u, t - m, u - m)
        back = python_value(first(row), s, u, t, u - m, t - m)
        assert there == pytest.approx(back, rel=1e-13)


def test_crossing_relates_the_unscreened_rows():
    """Massless and unscreened: s <-> u turns qq into qqbar, s <-> t (with a minus) gg into qg."""
    s, t = 3.0, -1.25
    u = -s - t

    def value(row, x, y, z):
        return python_value(first(row), x, y, z, y, z)

    assert value("q1q1_q1q1", s, t, u) == pytest.approx(value("q1q1bar_q1q1bar", u, t, s))
    assert value("q1g_q1g", s, t, u) == pytest.approx(-value("q1q1bar_gg", t, s, u))
    assert value("q1q2_q1q2", s, t, u) == pytest.approx(value("q1q1bar_q2q2bar", t, s, u))


def test_elements_are_positive_where_masses_are_the_regulator():
    """With m_q <= 2 m_g and the regulator m_g^2 no entry of the table is negative."""
    mg2, mq2 = 0.36, 0.16
    for process in MODEL.processes:
        ma2, mb2, mc2, md2 = (mg2 if leg == "g" else mq2 for leg in process.legs)
        threshold = max(math.sqrt(ma2) + math.sqrt(mb2), math.sqrt(mc2) + math.sqrt(md2)) ** 2
        for s in threshold * np.array([1.01, 1.5, 3, 10, 100]):
            e1, e3 = (s + ma2 - mb2) / (2 * s**0.5), (s + mc2 - md2) / (2 * s**0.5)
            k1, k3 = math.sqrt(max(e1 * e1 - ma2, 0)), math.sqrt(max(e3 * e3 - mc2, 0))
            for cosine in np.linspace(-1, 1, 9):
                t = ma2 + mc2 - 2 * (e1 * e3 - k1 * k3 * cosine)
                u = ma2 + mb2 + mc2 + md2 - s - t
                assert python_value(process, s, t, u, t - mg2, u - mg2) > 0, process


# --- masses -------------------------------------------------------------------------------------


def test_the_mass_matrix_is_symmetric():
    """So a conserved total energy exists."""
    matrix = MODEL.mass_coupling
    assert np.array_equal(matrix, matrix.T)


def test_thermal_masses_are_those_of_the_paper():
    """Eqs. (mg) and (mq) evaluated with I_a = Int d^3p/(2 pi)^3 f_a / (2 E), any state."""
    integral = np.array([0.11, 0.07, 0.05, 0.03, 0.02, 0.013, 0.017])
    ig, iq = integral[0], integral[1:4] + integral[4:7]
    mg2 = 2 * G2 / 8 * (16 * 3 * ig + 6 * 4 / 3 * iq.sum())
    mq2 = 2 * (4 / 3) * G2 * (2 * ig + iq)
    y = 2 * MODEL.degeneracy * integral
    expected = [mg2, *mq2, *mq2]
    assert MODEL.mass_squared(y) == pytest.approx(expected, rel=1e-13)
    assert MODEL.screening.squared(y) == pytest.approx(mg2, rel=1e-13)
    assert not MODEL.screening.ekt and MODEL.thermal


def test_quarks_alone_are_screened_by_the_gluon_mass_they_would_give():
    """Eq. (mg) without its gluon term."""
    model = quarks(ALPHA, 2, antiquarks=True)
    integral = np.array([0.07, 0.05, 0.03, 0.02])
    y = 12 * integral
    assert model.screening.squared(y) == pytest.approx(G2 / 4 * 8 * integral.sum(), rel=1e-13)


def test_ekt_screening_is_xi_squared_times_the_debye_mass():
    """xi = e^(5/6)/sqrt 8, m_D^2 = 2 m_g^2."""
    y = np.linspace(0.1, 0.7, 7)
    model = qcd(ALPHA, masses="massless", screening="ekt")
    xi2 = math.exp(5 / 3) / 8
    assert model.screening.ekt
    assert model.screening.squared(y) == pytest.approx(2 * xi2 * MODEL.mass_squared(y)[0])
    constant = gluons(ALPHA, masses={"g": 0.5}, screening="ekt")
    assert constant.screening.squared(y[:1]) == pytest.approx(2 * xi2 * 0.25)


def test_constant_masses_screen_with_the_gluon_mass_in_force():
    """screening left out: m_g^2; a number: its square."""
    model = qcd(ALPHA, masses={"g": 0.7, "quarks": 0.4})
    assert not model.thermal
    assert model.screening.squared(np.zeros(7)) == pytest.approx(0.49)
    model = qcd(ALPHA, masses="massless", screening=0.3)
    assert model.screening.squared(np.zeros(7)) == pytest.approx(0.09)
    assert not model.constant_mass_squared.any()


def masses_of(**masses):
    """Constant masses [GeV] by species."""
    model = qcd(ALPHA, masses=masses, screening=0.9)
    return dict(zip(model.names, np.sqrt(model.constant_mass_squared).tolist(), strict=True))


def test_a_quark_mass_is_that_of_its_antiquark():
    """u implies ubar, quarks imply antiquarks."""
    assert masses_of(g=0.7, u=0.1, d=0.2, s=0.3) == pytest.approx(
        dict(g=0.7, u=0.1, d=0.2, s=0.3, ubar=0.1, dbar=0.2, sbar=0.3)
    )
    assert masses_of(g=0.7, quarks=0.4)["sbar"] == pytest.approx(0.4)
    assert masses_of(g=0.7, quarks=0.4, ubar=0.5)["ubar"] == pytest.approx(0.5)


@pytest.mark.parametrize("order", [("s", "quarks"), ("quarks", "s")])
def test_a_species_overrides_its_group_in_any_order(order):
    """{ quarks = 0.3, s = 0.5 } and { s = 0.5, quarks = 0.3 } are the same."""
    values = {"s": 0.5, "quarks": 0.3}
    masses = masses_of(g=0.7, **{key: values[key] for key in order})
    assert masses == pytest.approx(dict(g=0.7, u=0.3, d=0.3, s=0.5, ubar=0.3, dbar=0.3, sbar=0.5))


@pytest.mark.parametrize(
    "order",
    [
        ("quarks", "antiquarks"),
        ("antiquarks", "quarks"),
    ],
)
def test_groups_mean_the_same_in_any_order(order):
    """A group that is spelt out is not overruled by what another group implies."""
    values = {"quarks": 0.3, "antiquarks": 0.5}
    masses = masses_of(g=0.7, **{key: values[key] for key in order})
    assert masses == pytest.approx(dict(g=0.7, u=0.3, d=0.3, s=0.3, ubar=0.5, dbar=0.5, sbar=0.5))


# --- bad input ----------------------------------------------------------------------------------


@pytest.mark.parametrize("alpha_s", [0, -0.3, float("nan"), "0.3", None, True])
def test_the_coupling_must_be_a_positive_number(alpha_s):
    """The message names the key and the value."""
    with pytest.raises(InputError, match="model.alpha_s = .*positive number"):
        gluons(alpha_s)


@pytest.mark.parametrize("flavors", [-1, 4, 2.0, "3", True])
def test_flavours_are_a_whole_number_up_to_three(flavors):
    """Zero is allowed with gluons only."""
    with pytest.raises(InputError, match="model.flavors = .*whole number from 0 to 3"):
        qcd(0.3, flavors=flavors)
    with pytest.raises(InputError, match="model.flavors = 0: use a whole number from 1 to 3"):
        quarks(0.3, flavors=0)


@pytest.mark.parametrize(
    ("masses", "message"),
    [
        ("themal", "model.masses = 'themal': use 'thermal', 'massless' or a table"),
        ({"g": 0.7, "quark": 0.4}, "model.masses.quark: did you mean 'quarks'"),
        ({"g": 0.7, "quarks": -0.4}, "model.masses.quarks = -0.4: a mass in GeV"),
        ({"g": "heavy", "quarks": 0.4}, "model.masses.g = 'heavy': a mass in GeV"),
        ({"g": 0.7, "u": 0.4}, "no entry for d, s, dbar, sbar"),
        ({"quarks": 0.4}, "no entry for g"),
        ({"g": 0.0, "quarks": 0.4}, "model.screening is required with massless gluons"),
        ("massless", "model.screening is required with massless gluons"),
    ],
)
def test_bad_masses_are_named(masses, message):
    """Unknown keys suggest the nearest; massless gluons need a screening of their own."""
    with pytest.raises(InputError, match=message):
        qcd(0.3, masses=masses)


@pytest.mark.parametrize("screening", ["debye", 0, -0.5, float("nan"), True])
def test_bad_screening_is_named(screening):
    """'thermal', 'ekt' or a positive mass."""
    with pytest.raises(InputError, match="model.screening = "):
        gluons(0.3, screening=screening)
