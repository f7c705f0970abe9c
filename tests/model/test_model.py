"""User models: derived charges, masses and screening, refusals."""

import numpy as np
import pytest

from relboltz.model.model import Model, Process, Screening, Species
from relboltz.model.qcd import qcd
from relboltz.util.errors import InputError


def one(s, t, u, ma2, mb2, mc2, md2):
    """A constant matrix element."""
    return 1.0


A, B, C = Species("a"), Species("b"), Species("c")


def model(*reactions, species=(A, B), **options):
    """A model with these reactions and a constant matrix element."""
    return Model(species, [Process(r, one) for r in reactions], **options)


# --- charges ------------------------------------------------------------------------------------


def test_changing_species_conserves_only_the_number():
    """a a -> b b leaves one charge."""
    assert model("a a -> b b").conserved == {"number": (1, 1)}


def test_elastic_scattering_conserves_every_species():
    """a b -> a b leaves two independent charges, the number first."""
    conserved = model("a b -> a b").conserved
    assert next(iter(conserved)) == "number" and conserved["number"] == (1, 1)
    assert len(conserved) == 2
    assert np.linalg.matrix_rank(np.array(list(conserved.values()))) == 2


def test_number_is_conserved_alone_by_a_a_to_a_b():
    """a a -> a b changes one a into one b."""
    assert model("a a -> a b").conserved == {"number": (1, 1)}


def test_charges_are_the_integer_null_space_of_the_stoichiometry():
    """Each charge is unchanged by each process, and no charge is missing."""
    m = model("a b -> c c", "a d -> a d", species=(A, B, C, Species("d")))
    assert m.stoichiometry.tolist() == [[-1, -1, 2, 0], [0, 0, 0, 0]]
    charges = np.array(list(m.conserved.values()))
    assert not (m.stoichiometry @ charges.T).any()
    assert len(charges) == np.linalg.matrix_rank(charges) == 3


def test_named_integer_charges_come_before_derived_ones():
    """A user's charge keeps its name if the processes conserve it, and is dropped if not."""
    species = (Species("a", charges={"q": 1, "odd": 1}), Species("b", charges={"q": -1}))
    elastic = Model(species, [Process("a b -> a b", one)])
    assert elastic.conserved == {"number": (1, 1), "q": (1, -1)}
    assert Model(species, [Process("a a -> b b", one)]).conserved == {"number": (1, 1)}


def test_a_model_without_processes_conserves_everything():
    """Free streaming keeps every species."""
    assert len(Model((A, B, C), []).conserved) == 3


class Reaction(Process):
    """A process with any number of legs: what charges and predictions look at, no more."""

    def __init__(self, reaction):
        self.name, self.peak, self.matrix_element = reaction, None, None
        self.sides = tuple(tuple(side.split()) for side in reaction.split(" -> "))


@pytest.mark.parametrize(
    ("reactions", "table", "conserved"),
    [
        (["a a -> a a a"], [[1, 0]], {"b": (0, 1)}),
        (["a a -> a a a", "b b -> a b b"], [[1, 0], [1, 0]], {"b": (0, 1)}),
        (["a a -> b"], [[-2, 1]], {"a + 2 b": (1, 2)}),
        (["a a -> a a a", "a a -> b"], [[1, 0], [-2, 1]], {}),
        (["a a -> b b a", "a b -> a b"], [[-1, 2], [0, 0]], {"2 a + b": (2, 1)}),
    ],
)
def test_a_number_that_reactions_change_is_no_charge(reactions, table, conserved):
    """Sides of unequal length: the number of particles is then not conserved."""
    m = Model((A, B), [Reaction(r) for r in reactions])
    assert m.stoichiometry.tolist() == table and m.conserved == conserved


# --- refusals -----------------------------------------------------------------------------------


@pytest.mark.parametrize("second", ["a b -> c c", "b a -> c c", "c c -> a b", "c c -> b a"])
def test_each_physical_process_is_listed_once(second):
    """Reversed and reordered duplicates are refused."""
    with pytest.raises(InputError, match="is the same as a b -> c c"):
        model("a b -> c c", second, species=(A, B, C))


def test_different_processes_of_the_same_species_are_not_duplicates():
    """a a -> b b, a b -> a b and a a -> a b are three processes."""
    assert len(model("a a -> b b", "a b -> a b", "a a -> a b").processes) == 3


def test_an_unknown_species_is_suggested():
    """In a process and in the masses."""
    pion = (Species("pion"), Species("rho"))
    with pytest.raises(InputError, match="unknown species 'poin'; did you mean 'pion'"):
        Model(pion, [Process("pion poin -> pion pion", one)])
    with pytest.raises(InputError, match="unknown species masses.rhoo; did you mean 'rho'"):
        Model(pion, [], masses={"rhoo": 1.0})


def test_a_forward_peak_needs_a_screening_mass():
    """Without one the weight 1/(screening2 - t)^2 has no limit."""
    peaked = [Process("a a -> a a", one, peak="t")]
    with pytest.raises(InputError, match='peak = "t" needs a screening mass'):
        Model([A], peaked)
    assert Model([A], peaked, screening=0.5).screening.constant == 0.25
    assert Model([A], peaked, screening=Screening(coupling=(1.0,))).thermal
    with pytest.raises(InputError, match="peak = 'u'"):
        Process("a a -> a a", one, peak="u")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"name": ""}, "use one word"),
        ({"name": "two words"}, "use one word"),
        ({"name": "a->b"}, "use one word"),
        ({"name": "a", "statistics": 2}, "statistics = 2"),
        ({"name": "a", "statistics": 0.5}, "statistics = 0.5"),
        ({"name": "a", "degeneracy": 0}, "degeneracy = 0 must be > 0"),
    ],
)
def test_bad_species_are_named(options, message):
    """One line for each mistake."""
    with pytest.raises(InputError, match=message):
        Species(**options)


def test_species_are_few_and_different():
    """At least one, no name twice."""
    with pytest.raises(InputError, match="at least one species"):
        Model([], [])
    with pytest.raises(InputError, match="species names must differ"):
        Model([A, Species("a", 2)], [])


@pytest.mark.parametrize("mass", [-1.0, float("nan"), float("inf")])
def test_masses_are_finite_and_not_negative(mass):
    """A bad mass is named."""
    with pytest.raises(InputError, match="masses: a = "):
        Model([A], [], masses={"a": mass})


@pytest.mark.parametrize("matrix", [[[1.0, 2.0], [2.1, 1.0]], [[1.0]], [1.0, 2.0]])
def test_the_mass_matrix_must_be_symmetric(matrix):
    """Only then is there a conserved total energy."""
    with pytest.raises(InputError, match="symmetric 2 x 2 matrix"):
        Model([A, B], [], mass_coupling=np.array(matrix))


def test_species_may_have_screening_masses_of_their_own():
    """For their exchange; equal ones are kept once, and the others take that of t and u."""
    light, heavy = Screening(0.2, (1.0, 0.0, 0.0)), Screening(0.5)
    m = model(
        "a b -> a b",
        species=(A, B, C),
        screening=Screening(0.1, exchange={"a": light, "b": heavy, "c": heavy}),
    )
    assert m.thermal and len(m.screenings) == 3
    assert m.screening_squared(np.array([0.3, 1.0, 1.0])) == pytest.approx([0.1, 0.5, 0.5])
    assert [m.exchange_row(name) for name in "abc"] == [1, 2, 2]
    assert model("a b -> a b", screening=0.3).exchange_row("b") == 0
    described = m.describe()["screening"]["exchange"]
    assert described["a"] == {"constant": 0.2, "ekt": False, "coupling": [1.0, 0.0, 0.0]}
    with pytest.raises(InputError, match="unknown species screening.exchange.d"):
        model("a b -> a b", screening=Screening(0.1, exchange={"d": heavy}))
    with pytest.raises(InputError, match="screening.coupling has 3 entries for 2 species"):
        model("a b -> a b", screening=Screening(0.1, exchange={"a": light}))


def test_masses_and_screening_are_linear_in_the_state():
    """m_a^2 = m_a,0^2 + K Y, screening2 = constant + coupling . Y."""
    m = model(
        "a b -> a b",
        masses={"pair": 0.5},
        groups={"pair": ("a", "b")},
        mass_coupling=np.array([[1.0, 2.0], [2.0, 5.0]]),
        screening=Screening(0.1, (3.0, 4.0)),
    )
    assert m.thermal
    assert m.mass_squared(np.array([0.1, 0.01])) == pytest.approx([0.37, 0.5])
    assert m.screening.squared(np.array([0.1, 0.01])) == pytest.approx(0.44)
    assert not model("a b -> a b", masses={"a": 1}, screening=0.3).thermal


# --- models that grow ---------------------------------------------------------------------------


def exchange(t_regulated, strength):
    return strength / (t_regulated * t_regulated)


def grown():
    """Gluons, screened as in effective kinetic theory with quarks, and a heavy particle."""
    base = qcd(0.3, 2, screening="ekt")
    heavy = [Species("c", 6, -1, {"charm": 1}), Species("cbar", 6, -1, {"charm": -1})]
    scattering = Process("c g -> c g", exchange, peak="t", strength=2.0)
    return base, base.extend(
        heavy, [scattering], masses={"heavy": 1.3}, groups={"heavy": ["c", "cbar"]}
    )


def test_a_model_that_grows_keeps_its_masses_and_screening():
    """New species neither feel the mean field nor add to it, whatever their Y."""
    base, more = grown()
    y = np.linspace(0.1, 0.5, 5)
    with_heavy = np.append(y, [7.0, 9.0])
    assert more.names == (*base.names, "c", "cbar")
    assert more.mass_squared(with_heavy)[:5] == pytest.approx(base.mass_squared(y), rel=1e-15)
    assert more.mass_squared(with_heavy)[5:] == pytest.approx([1.69, 1.69], rel=1e-15)
    same = pytest.approx(base.screening_squared(y), rel=1e-15)
    assert more.screening_squared(with_heavy) == same
    assert [more.exchange_row(n) for n in base.names] == [base.exchange_row(n) for n in base.names]
    assert more.processes[: len(base.processes)] == base.processes
    assert more.screening.ekt
    assert more.conserved["charm"] == (0, 0, 0, 0, 0, 1, -1)
    assert {"quarks", "heavy"} <= more.groups.keys()
    assert base.names == ("g", "u", "d", "ubar", "dbar"), "the old model is as it was"


def test_constant_masses_stay_when_a_model_grows():
    base = qcd(0.3, 1, {"g": 0.7, "quarks": 0.4})
    more = base.extend([Species("h")], masses={"h": 2.0}, screening=0.9, name="hidden")
    assert np.sqrt(more.constant_mass_squared) == pytest.approx([0.7, 0.4, 0.4, 2.0])
    assert more.screening_squared(np.zeros(4)) == pytest.approx([0.81])
    assert more.name == "hidden"
    assert more.extend([Species("k")]).name == "hidden + k"


def test_what_a_grown_model_cannot_have_is_named():
    base = qcd(0.3, 1)
    with pytest.raises(InputError, match=r"masses\.g: qcd has g already"):
        base.extend([Species("c")], masses={"g": 0.5})
    with pytest.raises(InputError, match="names must differ"):
        base.extend([Species("u")])
    with pytest.raises(InputError, match="unknown species 'b'"):
        base.extend([Species("c")], [Process("c b -> c b", exchange, strength=1.0)])
    with pytest.raises(InputError, match="the same as g g -> g g"):
        base.extend([], [Process("g g -> g g", exchange, strength=1.0)])
