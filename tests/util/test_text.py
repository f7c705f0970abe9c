"""Foreign text neither controls a terminal nor fills a message."""

import pytest

from relboltz.util.text import harmless, shown, unmarked, with_error


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.5, "0.5"),
        ("a'b", '"a\'b"'),
        (10**400, "a whole number of 401 digits"),
    ],
)
def test_values_in_messages(value, text):
    assert shown(value) == text


def test_numbers_that_python_does_not_print():
    assert shown(16**5000) == "a whole number of 6022 digits"
    assert shown([16**5000]) == "a list that cannot be shown (ValueError)"


def test_long_and_deep_values_are_cut():
    assert len(shown("a" * 10**6)) <= 200 and shown("a" * 300).endswith("aaa'")
    deep = []
    for _ in range(100_000):
        deep = [deep]
    assert shown(deep) == "a list that cannot be shown (RecursionError)"


def test_control_characters_are_spelt_out():
    assert harmless("a\x1b[31mb\u202ec\r\nd") == "a\\x1b[31mb\\u202ec\\r\nd"
    assert unmarked("x[/b]\x07") == "x\\[/b]\\x07"
    assert harmless("\udcff.nc") == "\\udcff.nc" and harmless("grüße 𝔤") == "grüße 𝔤"


@pytest.mark.parametrize(
    ("value", "error", "text"),
    [
        (0.395012, 9e-6, "0.395012 ± 0.000009"),
        (0.395012, 9.6e-6, "0.39501 ± 0.00001"),
        (-1.2345, 0.026, "-1.23 ± 0.03"),
        (26.73, 14.0, "27 ± 14"),
        (9.2, 0.94, "9.2 ± 0.9"),
        (0.02, 0.5, "0.0 ± 0.5"),
        (3.2e-7, 4.4e-9, "(3.20 ± 0.04)e-07"),
        (6.5e11, 2.6e9, "(6.50 ± 0.03)e+11"),
        (0.5, 1e-16, "0.5 ± 1e-16"),
        (0.38801, 0.0, "0.388"),
        (float("nan"), 0.1, "nan"),
    ],
)
def test_a_value_and_its_error_have_the_same_digits(value, error, text):
    assert with_error(value, error) == text
