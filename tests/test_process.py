"""Processes: sides and multiplicities, arguments of matrix elements, refusals."""

import pytest
from test_model import one

from relboltz.errors import InputError
from relboltz.process import KINEMATIC, Process
from relboltz.qcd import gluons


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
