"""Letters, numbers and colours of a page."""

import re
from pathlib import Path

import numpy as np
import pytest

from relboltz.visualization.plots import style
from relboltz.visualization.report import number_format, palette


def test_numbers_and_units_are_spelt_as_in_print():
    assert number_format.number("-5.8e-04") == "−5.8 × 10⁻⁴"
    assert number_format.number("1.0e+12 %") == "1.0 × 10¹² %"
    assert number_format.number("0.3714 ± 2e-05") == "0.3714 ± 2 × 10⁻⁵"
    assert number_format.number("0 (exact)") == "0 (exact)" and number_format.number("a-1") == "a-1"
    assert [number_format.percent(x) for x in (-1.59, 0.00373, 4e-7)] == [
        "−159 %", "+0.37 %", "+4 × 10⁻⁵ %"
    ]  # fmt: skip
    assert (
        number_format.listed(["a"]) == "a" and number_format.listed(["a", "b", "c"]) == "a, b and c"
    )
    assert number_format.with_unit("rate", "GeV fm^-4") == "rate [GeV fm⁻⁴]"
    assert number_format.with_unit("ratio", "1") == "ratio"
    times = [number_format.duration(s) for s in (7.24, 200, 7500)]
    assert times == ["7.2 s", "3 min 20 s", "2 h 5 min"]
    assert number_format.numbers(np.array([1.23456, np.inf, 2.0, 1e-9])) == [1.235, None, 2, 1e-9]
    slow = 24.5 + 1e-3 * np.linspace(0, 1, 50)
    shown = np.array(number_format.numbers(slow, number_format.enough(slow)))
    assert abs(shown - slow).max() < 1e-3 * np.ptp(slow)


def test_species_are_spelt_in_letters():
    spelt = [style.spelt(n) for n in ("g", "ubar", "pi+", "Lambdabar", "K0", "q1bar", "a b", "mu-")]
    assert spelt == ["g", "ū", "π⁺", "Λ̄", "K⁰", "q̅1̅", "a b", "μ⁻"]
    assert style.label(["u", "d", "ubar", "dbar"], style.spelt) == "u, d and antiquarks"


@pytest.mark.parametrize("paper", [palette.LIGHT, palette.DARK])
def test_every_colour_stands_out_from_its_paper(paper):
    colors = re.findall(r"#\w{6}", palette.variables(paper))
    assert len(colors) == len(set(colors)) == len(style.COLORS)
    assert min(palette.contrast(color, paper) for color in colors) >= 3
    assert palette.contrast("#000000", "#ffffff") == pytest.approx(21)


def test_the_looks_know_the_paper_of_their_colours():
    """page.css draws on the colours that palette reckons with; text has contrast 4.5."""
    css = Path(palette.__file__).with_name("page.css").read_text(encoding="utf-8")
    papers = re.findall(r"--card: (#\w+)", css)
    assert papers == [palette.LIGHT, palette.DARK, palette.DARK]
    for name in ("ink", "muted", "accent", "good", "warn"):
        for card, color in zip(papers, re.findall(rf"--{name}: (#\w+)", css), strict=True):
            assert palette.contrast(card, color) >= 4.5, (name, color)
