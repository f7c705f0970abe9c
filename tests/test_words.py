"""What others wrote neither rules a terminal nor fills a message."""

import pytest

from relboltz.words import harmless, shown, unmarked


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
