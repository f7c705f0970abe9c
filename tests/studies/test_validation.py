"""Problems with known answers: their formulas checked by others, a few solved, failures told."""

import json
import re
import sys

import numpy as np
import pytest
from scipy import integrate, special
from test_qcd import TABLE
from typer.testing import CliRunner

import relboltz as rb
from relboltz.cli import app as cli
from relboltz.cli.document import write_document
from relboltz.grid.units import HBARC
from relboltz.studies import validation
from relboltz.studies.validation import (
    KnownProblem,
    ValidationEffort,
    exact_relaxation,
    rows,
    states,
    table,
    waves,
)
from relboltz.studies.validation.exact_relaxation import ANISOTROPIC, ISOTROPIC, T

EFFORT = ValidationEffort(quick=True, backend="cpu", threads=2)
FAST = (
    "crossing", "cross-sections", "masses", "condensation", "liouville", "stationary", "laws",
)  # fmt: skip


@pytest.mark.parametrize("name", FAST)
def test_fast_problems_hold(name):
    found = list(validation.PROBLEMS[name].solved(EFFORT))
    assert found and all(row.passed for row in found), [r for r in found if not r.passed]


# --- what is compared ---------------------------------------------------------------------------


def test_a_row_that_is_not_a_number_fails():
    assert rows.relative("x", 1.01, 1.0, 0.02, "").passed
    assert not rows.relative("x", 1.03, 1.0, 0.02, "").passed
    assert not rows.relative("x", np.nan, 1.0, 0.02, "").passed
    assert not rows.relative("x", 0.0, 0.0, 0.02, "").passed
    assert not rows.at_least("x", np.nan, 1.0, "").passed
    row = rows.absolute("x", np.float64(1.0), 1.0, np.float64(0.1), "")
    assert json.loads(json.dumps(row.described()))["passed"] is True
    assert rows.at_least("x", 2.1, 2.0, "").passed and not rows.at_least("x", 1.9, 2.0, "").passed


def test_a_problem_that_raises_fails_and_keeps_what_it_found():
    def broken(effort):
        yield rows.nothing("first", 0.0, 0.0, "")
        raise ValueError("no such thing")

    found = list(KnownProblem("broken", "", broken).solved(EFFORT))
    assert [row.passed for row in found] == [True, False]
    assert found[1].quantity == "ValueError: no such thing"


@pytest.mark.parametrize("gas", [ISOTROPIC, ANISOTROPIC])
def test_the_exact_solution_conserves_and_has_its_moments(gas):
    """Number and energy at all times, and M_n = n K^(n-1) - (n-1) K^n, by quadrature."""

    def moment(n, tau):
        return integrate.quad(lambda k: k ** (n + 2) * gas.f(k * T, tau), 0, 80)[0]

    for tau in (0.0, 2.0, 6.0):
        assert moment(0, tau) == pytest.approx(2.0, rel=1e-9)
        assert moment(1, tau) == pytest.approx(6.0, rel=1e-9)
        for n in (2, 3, 4, 5):
            exact = special.factorial(n + 2) * gas.moment(n, tau)
            assert moment(n, tau) == pytest.approx(exact, rel=1e-9)


def test_the_angular_distribution_is_normalised_and_has_its_sine():
    """3 cos^2: mean 1, so that sigma is the same, and <sin^2> = 2/5."""
    s = 2.0

    def weight(cosine):
        t, u = -s * (1 - cosine) / 2, -s * (1 + cosine) / 2
        return exact_relaxation.forward_backward(s, t, u, 1.0) / exact_relaxation.isotropic(s, 1.0)

    mean = integrate.quad(lambda c: weight(c) / 2, -1, 1)[0]
    sine2 = integrate.quad(lambda c: weight(c) * (1 - c * c) / 2, -1, 1)[0]
    assert mean == pytest.approx(1.0) and sine2 == pytest.approx(ANISOTROPIC.sine2)


def test_the_rate_of_the_second_moment_follows_from_single_collisions():
    """d<k^2>/dtau at tau = 0 is 12 T^2 <sin^2>/32, by Monte Carlo of colliding pairs.

    No code of C[f]: pairs k1, k2 of the start collide with n sigma (1 - cos) and turn by Theta in
    their rest frame, the azimuth averaged by hand. Half the mean gain of k1^2 + k2^2 is the rate.
    """
    rng, n = np.random.default_rng(1), 1_000_000
    size = rng.gamma(4.0, 0.75, (2, n))  # k^3 exp(-k/0.75), in units of T
    cosine = rng.uniform(-1, 1, n)
    e, s = size.sum(axis=0), 2 * size[0] * size[1] * (1 - cosine)
    p2 = np.maximum(e * e - s, 0)
    alpha2 = (size[0] - size[1]) ** 2 / p2
    for gas in (ISOTROPIC, ANISOTROPIC):
        turn2 = rng.uniform(-1, 1, n) ** 2
        bias = np.ones(n) if gas is ISOTROPIC else 3 * turn2
        after2 = alpha2 * turn2 + 0.5 * (1 - alpha2) * (1 - turn2)
        each = 0.5 * (1 - cosine) * bias * 0.5 * p2 * (after2 - alpha2)
        exact = 12 * gas.sine2 / 32
        error = each.std() / np.sqrt(n)
        assert each.mean() == pytest.approx(exact, abs=4 * error) and error < 0.02 * exact


ROWS = {
    "q1 q2 -> q1 q2": "q1q2_q1q2", "q1 q1 -> q1 q1": "q1q1_q1q1", "q1 g -> q1 g": "q1g_q1g",
    "q1 q1bar -> q1 q1bar": "q1q1bar_q1q1bar", "q1 q1bar -> q2 q2bar": "q1q1bar_q2q2bar",
    "q1 q1bar -> g g": "q1q1bar_gg", "g g -> g g": "gg_gg",
}  # fmt: skip


@pytest.mark.parametrize("row", ROWS)
def test_closed_cross_sections_are_integrals_of_the_table(row):
    """The row with its colour factors as fractions, integrated by scipy."""
    for m2 in (0.02, 0.5):

        def element(y, m2=m2):
            return float(TABLE[ROWS[row]](1.0, -y, y - 1, -y - m2, y - 1 - m2))

        value = integrate.quad(element, 0, 1, epsabs=0, epsrel=1e-10, limit=200)[0]
        assert table.closed_forms(m2)[row] == pytest.approx(value, rel=1e-8)


def test_classical_rates_are_densities_times_cross_sections():
    """A constant cross section: n^2 sigma; and K_1 as scipy has it."""
    x = np.array([0.01, 0.5, 3.0, 20.0])
    assert table.bessel_k1(x) == pytest.approx(special.k1(x), rel=1e-10)
    row, temperature = "q1 q2 -> q1 q2", 0.3
    rate = table.classical_rate(row, temperature, 0.09)

    def integrand(w):
        sigma = table.cross_section(row, w * w, 0.09)
        return 2 * w**4 * sigma * special.k1(w / temperature)

    value = integrate.quad(integrand, 0, 15, limit=200)[0]
    density = 6 * temperature**3 / np.pi**2
    mean = value / (32 * temperature**5)  # <sigma v> of massless particles
    assert rate == pytest.approx(density**2 * mean / HBARC**4, rel=1e-6)


def test_critical_heights_are_those_of_free_gases():
    """By integrals of Bose and Fermi gases at mu = 0, with scipy's zeta."""
    assert states.critical_height(16, 0) == pytest.approx(0.1544, abs=5e-5)
    assert states.critical_height(16, 36) == pytest.approx(0.3078, abs=5e-5)
    zeta = special.zeta(3)
    assert states.critical_height(16, 0) == pytest.approx(
        (6 * zeta) ** 4 * (30 / 8 / np.pi**4) ** 3, rel=1e-12
    )


def test_waves_of_fine_nodes_are_those_without_a_grid():
    """Errors of the nodes fall as h^2; for heat, which weighs soft nodes, a little slower."""
    away = []
    for cells in (24, 48):
        nodes = waves.of_the_nodes(waves.WaveSetup(0.2, cells, 18.0, 4, 1).grid)
        away.append(np.abs(np.array(list(nodes.values())) - 1))
    assert (away[1] < 0.5 * away[0]).all() and away[1].max() < 0.06


# --- the command --------------------------------------------------------------------------------


def test_the_command_tells_and_writes_what_holds(tmp_path):
    path = tmp_path / "table.json"
    result = CliRunner().invoke(cli.app, ["validate", "--quick", "crossing", "--json", str(path)])
    assert result.exit_code == 0, result.output
    found = json.loads(path.read_text())
    assert found["passed"] and found["quick"] and found["problems"][0]["name"] == "crossing"
    assert "all hold" in result.output
    listed = CliRunner().invoke(cli.app, ["validate", "--list"]).output
    assert all(name in listed for name in validation.PROBLEMS)


@pytest.mark.parametrize(
    ("stop", "code"), [(KeyboardInterrupt(), 130), (rb.Interrupted("by SIGTERM", None, 15), 143)]
)
def test_an_interrupt_keeps_the_rows_found_until_then(tmp_path, monkeypatch, stop, code):
    def interrupted(effort):
        yield rows.absolute("one", 1.0, 1.0, 0.0, "")
        raise stop

    problem = KnownProblem("crossing", "", interrupted)
    monkeypatch.setitem(validation.PROBLEMS, "crossing", problem)
    path = tmp_path / "table.json"
    words = ["validate", "--quick", "crossing", "streaming", "--json", str(path)]
    result = CliRunner().invoke(cli.app, words)
    assert result.exit_code == code and "interrupted in crossing" in result.output
    found = json.loads(path.read_text())
    assert found["interrupted"] == code - 128 and not found["passed"]
    assert [[row["quantity"] for row in part["rows"]] for part in found["problems"]] == [["one"]]


def test_a_mistake_in_a_row_of_the_table_makes_the_command_fail(monkeypatch):
    """Through the compiled rows: g g -> g g with 2 in place of 3."""

    def wrong(s, t, u, t_regulated, u_regulated, g4):
        t2, u2 = t_regulated * t_regulated, u_regulated * u_regulated
        return 1152 * g4 * (2 - s * u / t2 - s * t / u2 - t * u / (s * s))

    monkeypatch.setattr(sys.modules["relboltz.model.qcd"], "gg_gg", wrong)
    result = CliRunner().invoke(cli.app, ["validate", "--quick", "cross-sections"])
    assert result.exit_code == 1
    assert "FAILED: cross-sections" in result.output
    assert len(re.findall("FAILED", result.output)) == 3  # two rows and the last line


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["crossings"], "did you mean 'crossing'"),
        (["--backend", "gpu"], "use auto, cpu or cuda"),
        (["--threads", "-1"], "0 = all cores"),
        (["--document", "nowhere/at/all"], "is no folder"),
        (["--json", "nowhere/at/all.json"], "--json"),
    ],
)
def test_bad_input_is_told_before_any_work(arguments, words):
    with pytest.raises(rb.InputError, match=re.escape(words)):
        CliRunner().invoke(cli.app, ["validate", *arguments], catch_exceptions=False)


def test_the_page_has_every_row_and_a_picture(tmp_path):
    found = {
        "version": "1", "quick": True, "backend": "cpu", "device": "2 CPU cores", "seconds": 3.0,
        "passed": False, "problems": [{
            "name": "a", "title": "b", "seconds": 1.0, "passed": False,
            "rows": [rows.relative("<k^2> | x", 1.0, 2.0, 0.1, "why").described(),
                     rows.failed(ValueError("no")).described()],
        }],
    }  # fmt: skip
    study = {
        "name": "spacing", "words": "spacing", "unit": "h/T", "setups": ["one", "two"],
        "x": [1.0, 0.5], "moments": [0.01, 0.002], "left": [0.02, 0.004], "shells": [0.01, 0.003],
    }  # fmt: skip
    page = write_document(tmp_path, found, [study]).read_text()
    assert "| \\<k\\^2\\> \\| x | 1 | 2 | 50 % | 10 % | why | **failed** |" in page
    assert "0 of 2 rows hold" in page and "| h/T | 1 | 0.5 |" in page
    assert 1000 < (tmp_path / "validation.png").stat().st_size < 100_000
