"""QCD: the paper's table, the list of 34 processes, thermal masses, and input in words."""

import math
from collections import Counter
from fractions import Fraction as Fr

import numpy as np
import pytest

from relboltz.backends.cpu import collision_events as kernels
from relboltz.backends.elements import Elements, evaluator
from relboltz.events.kinematics import energy_part, screened
from relboltz.model.qcd import gluons, qcd, quarks
from relboltz.model.qcd_settings import XI_GLUON, XI_QUARK
from relboltz.util.errors import InputError

NAMES = ("g", "u", "d", "s", "ubar", "dbar", "sbar")
ALPHA = 0.3
G2 = 4 * math.pi * ALPHA
MODEL = qcd(ALPHA)
EKT_MODEL = qcd(ALPHA, screening="ekt")

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
    name = row.removesuffix("_ekt")
    rows = zip(MODEL.processes, EKT_MODEL.processes, strict=True)
    pair = next(pair for pair in rows if pair[0].matrix_element.__name__ == name)
    return pair[name != row]


def python_value(process, s, t, u, t_gluon, u_gluon, t_quark=None, u_quark=None):
    """|M|^2 by the plain Python function, called by name, with these propagators."""
    known = dict(
        s=s, t=t, u=u, t_screened=t_gluon, u_screened=u_gluon, t_regulated=t_gluon,
        u_regulated=u_gluon, t_exchanged=t_gluon if t_quark is None else t_quark,
        u_exchanged=u_gluon if u_quark is None else u_quark,
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


@pytest.mark.parametrize("row", [row + kind for row in ROWS for kind in ("", "_ekt")])
def test_compiled_matrix_elements_give_the_same_numbers(row):
    """The generated loop, screening included, to 1e-12; u from the masses of the legs."""
    process = first(row)
    function, parameters = evaluator(process, {})
    w = np.zeros(kernels.ROWS * kernels.CHUNK)
    m2, screening2, exchange2, ekt = (0.1, 0.2, 0.15, 0.05), 0.3, 0.2, float("_ekt" in row)
    points = [(2.0, -0.5, 0.7, 1.1), (4.5, -3.0, 5.0, 2.0), (9.0, -0.01, 0.02, 9.0)]
    for i, point in enumerate(points):
        for start, value in zip(
            (kernels.S, kernels.T, kernels.Q2, kernels.QU2), point, strict=True
        ):
            w[start + i] = value
    function(len(points), m2, (screening2, exchange2, ekt), parameters, w)
    for i, (s, t, q2, qu2) in enumerate(points):
        u = 0.5 - s - t
        parts = energy_part(s, *m2), energy_part(s, m2[0], m2[1], m2[3], m2[2])
        propagators = [
            screened(x, y, mass2, ekt, s, part)
            for mass2 in (screening2, exchange2)
            for x, y, part in ((t, q2, parts[0]), (u, qu2, parts[1]))
        ]
        expected = python_value(process, s, t, u, *propagators)
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


# --- the table with the screening of effective kinetic theory -------------------------------------

MASSLESS = [(Fr(3), Fr(-1, 2)), (Fr(2), Fr(-9, 5)), (Fr(7), Fr(-1, 100)), (Fr(5), Fr(-5, 2))]


@pytest.mark.parametrize("row", ROWS)
@pytest.mark.parametrize("point", MASSLESS)
def test_both_tables_are_the_bare_one_without_screening(row, point):
    """Massless legs, and propagators t and u: colour factors and invariants in fractions."""
    s, t = point
    u = -s - t
    bare = G2**2 * float(TABLE[row](s, t, u, t, u))
    values = [float(v) for v in (s, t, u, t, u)]
    assert python_value(first(row), *values) == pytest.approx(bare, rel=1e-12)
    assert python_value(first(row + "_ekt"), *values) == pytest.approx(bare, rel=1e-12)


def change(row, x, y, a, b, f, g, h, k):
    """Return the change of a row by screening [g^4].

    x, y = (s - u)/t, (s - t)/u and a, b = u/t, t/u; f, g and h, k: factors of the exchange of
    gluons and of quarks in the t and the u channel. b is s/u in the row of q g.
    """
    xx, yy = x * x * (f * f - 1), y * y * (g * g - 1)
    return {
        "q1q2_q1q2": 8 * xx,
        "q1q1_q1q1": 8 * (xx + yy) + Fr(16, 3) * (x * (f - 1) + y * (g - 1)),
        "q1q1bar_q1q1bar": 8 * xx - Fr(16, 3) * x * (f - 1),
        "q1q1bar_q2q2bar": 0,
        "q1q1bar_gg": Fr(128, 3) * (a * (h - 1) + b * (k - 1)),
        "q1g_q1g": 48 * xx - Fr(128, 3) * b * (k - 1),
        "gg_gg": 288 * (xx + yy),
    }[row]


@pytest.mark.parametrize("row", ROWS)
@pytest.mark.parametrize("point", MASSLESS)
def test_screening_touches_soft_exchange_alone(row, point):
    """(s - u)/t of gluons and u/t of quarks get their factors; the rest of the bare row stays."""
    s, t = point
    u = -s - t
    f, g, h, k = Fr(1, 3), Fr(4, 5), Fr(2, 7), Fr(9, 10)
    b = s / u if row == "q1g_q1g" else t / u
    soft = change(row, (s - u) / t, (s - t) / u, u / t, b, f, g, h, k)
    expected = G2**2 * float(TABLE[row](s, t, u, t, u) + soft)
    values = [float(v) for v in (s, t, u, t / f, u / g, t / h, u / k)]
    assert python_value(first(row + "_ekt"), *values) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("masses", [(0.0, 0.0), (0.6, 0.4), (0.3, 0.9), (0.0, 0.5)])
def test_only_annihilation_into_gluons_becomes_negative_by_screening(masses):
    """Any strength of screening, massless legs or m_g and m_q; every other row stays positive."""
    elements = Elements(EKT_MODEL)
    rng, lowest = np.random.default_rng(8), {}
    m_g, m_q = masses
    for index, process in enumerate(EKT_MODEL.processes):
        ma2, mb2, mc2, md2 = m2 = [(m_g if leg == "g" else m_q) ** 2 for leg in process.legs]
        least = max(ma2**0.5 + mb2**0.5, mc2**0.5 + md2**0.5, 1e-3) ** 2
        s = np.geomspace(1.0001 * least, 1e4 * least, 4000)
        e1, e3 = (s + ma2 - mb2) / (2 * s**0.5), (s + mc2 - md2) / (2 * s**0.5)
        k1, k3 = np.sqrt(e1 * e1 - ma2), np.sqrt(e3 * e3 - mc2)
        cosine = rng.uniform(-1, 1, len(s))
        t = ma2 + mc2 - 2 * (e1 * e3 - k1 * k3 * cosine)
        q2, qu2 = (k1**2 + k3**2 - 2 * sign * k1 * k3 * cosine for sign in (1, -1))
        for screening2 in (1e-3 * least, least, 1e3 * least):
            squares = np.full(len(EKT_MODEL.screenings), screening2)
            values = elements.evaluate(index, s, t, tuple(m2), squares, q2, qu2)
            row = process.matrix_element.__name__
            lowest[row] = min(lowest.get(row, np.inf), float((values / np.abs(values)).min()))
    negative = {row for row, sign in lowest.items() if sign < 0}
    assert len(lowest) == 7 and negative <= {"q1q1bar_gg_ekt"}
    assert m_g or negative  # the test can tell


def hard_thermal_loops(x):
    """1/m^2 of the soft conversion of quarks and of the soft drag of gluons, per q^3 and dq dx.

    As functions of y = q^2/m^2 with the asymptotic mass m: from the spectral functions of quarks
    and gluons at energy q x, |x| < 1, for a hard particle along z that has q_z = q x.
    """
    log = np.log((1 + x) / (1 - x)) - 1j * np.pi

    def quark(y):
        plus = 1 / (x - 1 - (0.5 * (1 - x) * log + 1) / (2 * y))
        minus = 1 / (x + 1 - (0.5 * (1 + x) * log - 1) / (2 * y))
        return -((1 - x) * plus + (1 + x) * minus).imag / np.pi * y

    def gluon(y):
        longitudinal = 1 / (1 + 2 * (1 - 0.5 * x * log) / y)
        transverse = 1 / (x * x - 1 - (x * x + 0.5 * x * (1 - x * x) * log) / y)
        return -(longitudinal + (1 - x * x) * transverse).imag * x / np.pi * y

    return quark, gluon


@pytest.mark.parametrize("cutoff", [1e2, 1e3])
def test_screening_masses_give_the_soft_rates_of_hard_thermal_loops(cutoff):
    """Conversion of quarks and drag of gluons, all |q| < cutoff in units of the asymptotic mass.

    The rates are 2 pi (ln cutoff + constant); the constant is what xi has to give. Those of xi
    twice as large would be off by ln 2.
    """
    x, weight = np.polynomial.legendre.leggauss(400)
    log_q, step = np.linspace(math.log(1e-5), math.log(cutoff), 4001, retstep=True)
    q2 = np.exp(2 * log_q)
    rates = []
    for function in hard_thermal_loops(x):
        values = np.array([weight @ function(y) for y in q2.tolist()])
        rates.append(float((values.sum() - 0.5 * (values[0] + values[-1])) * step))
    screened_quark = 0.5 * math.log(1 + (cutoff / XI_QUARK) ** 2)
    ratio = 1 + (cutoff / XI_GLUON) ** 2
    screened_gluon = 0.5 * (math.log(ratio) - 1 + 1 / ratio)
    assert rates == pytest.approx([screened_quark, screened_gluon], abs=3e-3 * 1e2 / cutoff)


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


@pytest.mark.parametrize("masses", ["massless", "thermal"])
def test_exchanged_quarks_are_screened_by_the_mass_of_their_flavour(masses):
    """(e/2)^2 m_i^2 of Eq. (mq), unequal flavours, whatever masses the kinematics have."""
    y = np.linspace(0.1, 0.7, 7)
    model = qcd(ALPHA, masses=masses, screening="ekt")
    found = model.screening_squared(y)
    assert len(found) == 4
    for name, m2 in zip(NAMES[1:], MODEL.mass_squared(y)[1:], strict=True):
        assert found[model.exchange_row(name)] == pytest.approx(math.e**2 / 4 * m2)
    assert model.exchange_row("g") == 0


def test_constant_quark_masses_screen_their_exchange():
    """Where a mass is given; a massless flavour has the mass that the state gives it."""
    masses = {"g": 0.7, "u": 0.4, "d": 0.0, "s": 0.5}
    model, y = qcd(ALPHA, masses=masses, screening="ekt"), np.linspace(0.1, 0.7, 7)
    found = model.screening_squared(y)
    for name, m2 in (("u", 0.16), ("ubar", 0.16), ("s", 0.25), ("d", MODEL.mass_squared(y)[2])):
        assert found[model.exchange_row(name)] == pytest.approx(math.e**2 / 4 * m2)
    assert found[0] == pytest.approx(math.exp(5 / 3) / 4 * 0.49)


def test_no_other_screening_has_more_than_one_mass():
    """The paper's regulator is one for all."""
    for model in (MODEL, qcd(ALPHA, screening=0.4), quarks(ALPHA, 3, screening="ekt")):
        assert len(model.screenings) == 1


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
