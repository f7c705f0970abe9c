"""Profiles in the transverse plane: their moments are those that were asked for."""

import numpy as np
import pytest

import relboltz as rb
from relboltz import initial
from relboltz.initial.profiles import profile_of
from relboltz.run import input_file as config
from relboltz.util.errors import InputError

GRID = rb.PhaseSpace(4, 1.5, [48, 48, 1], [12.0, 12.0, 1.0], "open")
CLASSICAL = rb.Model([rb.Species("a", 2, 0)], [], masses={"a": 0.5})


def energies(shape, grid=GRID, model=CLASSICAL):
    """Kinetic energy of every cell, and its place."""
    f = initial.evaluate({model.names[0]: shape}, grid, model)[:, 0]
    return f @ grid.energies(0.25), *grid.positions[:2]


def eccentricity(weight, x, y, n):
    """-<r^n exp(i n phi)>/<r^n>: its size is epsilon_n, its angle n Phi."""
    z = x + 1j * y
    z = z - (weight * z).sum() / weight.sum()
    return (
        -(weight * abs(z) ** n * np.exp(1j * n * np.angle(z))).sum() / (weight * abs(z) ** n).sum()
    )


@pytest.mark.parametrize(
    ("n", "wanted", "angle"), [(2, 0.0, 0.0), (2, 0.3, 0.0), (2, 0.5, 0.7), (3, 0.25, 0.3),
                               (4, 0.2, -0.2), (2, 0.7, np.pi / 4)],
)  # fmt: skip
def test_the_energy_density_has_the_eccentricity_the_angle_and_the_radius(n, wanted, angle):
    """Sums over cells of a quarter of the radius; averages over them add h^2/12 to <x^2>.

    And n^2 h^2/24 <r^(n-2)> to <r^n>, but nothing to <r^n cos n phi>: epsilon_n is smaller by
    n h^2/24 R^2 = 0.26 % n, and other sums of a smooth function are exact.
    """
    profile = initial.gaussian_profile(2.0, wanted, angle, n)
    shape = initial.gaussian(0.5, 0.5, profile=profile)
    weight, x, y = energies(shape)
    found = eccentricity(weight, x, y, n)
    assert abs(found) == pytest.approx(wanted, abs=0.003 * n * max(wanted, 0.01))
    if wanted:
        assert np.angle(found * np.exp(-1j * n * angle)) == pytest.approx(0.0, abs=1e-3)
    r2 = (weight * (x**2 + y**2)).sum() / weight.sum()
    assert r2 == pytest.approx(2 * 4.0 + 2 * 0.25 / 12, rel=2e-3)
    middle = initial.gaussian(0.5, 0.5, sampling="node", profile=profile)
    weight, x, y = energies(middle)
    assert abs(eccentricity(weight, x, y, n)) == pytest.approx(wanted, abs=1e-3)


def test_two_components_have_the_eccentricity_of_each():
    """And their centre is 1: the heights are 1 - share and share."""
    profile = profile_of(
        {"kind": "two-component", "radius": 1.2, "second_radius": 2.4, "share": 0.3,
         "eccentricity": 0.4, "angle": 0.5}
    )  # fmt: skip
    assert isinstance(profile, initial.two_components)
    assert profile.at(0.0, 0.0) == pytest.approx(1.0)
    shape = initial.gaussian(0.5, 0.5, sampling="node", profile=profile)
    weight, x, y = energies(shape)
    found = eccentricity(weight, x, y, 2)
    assert abs(found) == pytest.approx(0.4, abs=2e-3)
    assert np.angle(found) / 2 == pytest.approx(0.5, abs=1e-3)
    shares = np.array([0.7 * 1.2**2, 0.3 * 2.4**2])
    r2 = 2 * (shares @ [1.2**2, 2.4**2]) / shares.sum()
    assert (weight * (x**2 + y**2)).sum() / weight.sum() == pytest.approx(r2, rel=1e-3)


def test_a_turned_ellipse_is_the_straight_one_turned():
    """By a quarter of a turn, to rounding; and by 45 degrees on points of its own."""
    straight, turned = (initial.gaussian_profile(2.0, 0.4, a) for a in (0.0, np.pi / 2))
    x, y = np.random.default_rng(1).normal(size=(2, 50))
    assert turned.at(-y, x) == pytest.approx(straight.at(x, y), rel=1e-12)
    oblique, root = initial.gaussian_profile(2.0, 0.4, np.pi / 4), np.sqrt(0.5)
    assert oblique.at(root * (x - y), root * (x + y)) == pytest.approx(straight.at(x, y), rel=1e-12)
    sx2, sy2 = 4.0 * 0.6, 4.0 * 1.4
    ellipse = np.exp(-0.5 * (x**2 / sx2 + y**2 / sy2))
    assert straight.at(x, y) == pytest.approx(ellipse, rel=1e-8)


def test_a_temperature_follows_its_fourth_root():
    """e ~ T^4 for massless particles: the energy has the eccentricity, each cell its own T."""
    grid = rb.PhaseSpace(32, 3.0, [12, 12, 1], [4.0, 4.0, 1.0], "open")
    model = rb.Model([rb.Species("a", 2, 0)], [], masses={"a": 0.0})
    table = {"kind": "gaussian", "radius": 1.0, "eccentricity": 0.3, "scales": "temperature"}
    shape = initial.thermal(0.25, profile=table)
    f = initial.evaluate({"a": shape}, grid, model)[:, 0]
    energy, number = f @ grid.energies(0.0), f.sum(axis=1)
    w = np.array([shape.profile.of_cell(grid, i, "cell") for i in range(grid.sites)])
    warm = w > 0.2  # where h is below T
    assert energy[warm] / energy.max() == pytest.approx(w[warm] / w.max(), rel=0.02)
    t = energy / number / 3
    assert t[warm] == pytest.approx(0.25 * w[warm] ** 0.25, rel=0.02)
    assert abs(eccentricity(energy, *grid.positions[:2], 2)) == pytest.approx(0.3, abs=0.02)


def test_thermal_masses_are_those_of_every_place():
    """Gluons at a local temperature: m ~ T as in matter that is everywhere the same."""
    grid = rb.PhaseSpace(8, 2.4, [4, 4, 1], [3.0, 3.0, 1.0], "open")
    shape = initial.thermal(0.4, profile={"radius": 2.0, "scales": "temperature"})
    model = rb.gluons(0.3)
    f = initial.evaluate({"g": shape}, grid, model)
    w = shape.profile.of_cell(grid, 5, "cell")
    alone = initial.evaluate({"g": initial.thermal(0.4 * w**0.25)}, grid.without_space, model)
    assert f[5, 0] == pytest.approx(alone[0], rel=1e-12)


@pytest.mark.parametrize("shape", [
    initial.step(0.4, 1.0), initial.random(0.0, 1.0), initial.thermal(0.3),
    initial.from_function(lambda px, py, pz: np.exp(-(px**2))),
    initial.from_function(lambda x, y, z, px, py, pz: np.exp(-(px**2) + 0.1 * x)),
])  # fmt: skip
def test_any_shape_takes_a_profile_that_multiplies_f(shape):
    from dataclasses import replace

    grid = rb.PhaseSpace(6, 1.5, [6, 5, 1], 3.0, "open")
    profile = initial.gaussian_profile(1.5, 0.2, 0.3)
    kept = {"sampling": "cell", "profile": profile}
    if isinstance(shape, initial.FromFunction):
        with_it = initial.from_function(shape.function, **kept)
    else:
        with_it = replace(shape, **kept)
    assert with_it.is_local(grid)
    species = CLASSICAL.species[0]
    for site in (0, 14, 29):
        w = profile.of_cell(grid, site, "cell")
        plain = shape.values(grid, species, 0.25, site)
        assert with_it.values(grid, species, 0.25, site) == pytest.approx(w * plain, rel=1e-14)


def test_a_configuration_names_a_profile_and_its_mistakes(tmp_path):
    text = """
[model]
name = "gluons"
alpha_s = 0.3
[grid]
momentum_cells = [6, 6, 6]
momentum_max = [2.0, 2.0, 2.0]
space_cells = [6, 6, 1]
boundary = "open"
[initial.g]
shape = "step"
height = 0.5
edge = 1.5
profile = { kind = "gaussian", radius = 1.5, eccentricity = 0.3 }
[time]
end = 0.1
"""
    path = tmp_path / "run.toml"
    path.write_text(text)
    shape = config.load(path).build_initial()["g"]
    assert shape.profile == initial.gaussian_profile(1.5, 0.3)
    for change, words in (
        ("profile.radius=-1", "initial.g.profile.radius = -1: use a radius above 0 fm"),
        ("profile.eccentricity=1.2", "profile.eccentricity = 1.2: use a number from 0 to 0.95"),
        ("profile.harmonic=1", "profile.harmonic = 1: use a whole number from 2 to 8"),
        ("profile.kind='square'", "profile.kind = 'square': "),
        ("profile.radios=1", "initial.g.profile.radios: unknown key; did you mean 'radius'?"),
        ("profile.kind='two-component'", "profile.second_radius: missing"),
        ("profile.scales='temperature'", "profile.scales = 'temperature': 'step' has none"),
        ("profile=3", "profile = 3: use a table such as"),
    ):
        with pytest.raises(InputError) as error:
            config.load(path, [f"initial.g.{change}"])
        assert words in str(error.value), change
    with pytest.raises(InputError, match=r"initial\.g: depends on the place"):
        initial.evaluate({"g": shape}, rb.PhaseSpace(6, 2.0), rb.gluons(0.3))


def test_an_automatic_box_holds_a_start_with_a_profile():
    """As large as that of the same matter without one, in the mean over places."""
    from relboltz.checks.box import automatic_grid

    space = rb.PhaseSpace(5, 1.0, [8, 8, 1], 4.0, "open")
    model = rb.gluons(0.3, masses={"g": 0.5}, screening=0.5)
    shape = initial.gaussian(0.4, 0.5, profile={"radius": 2.0})
    found = automatic_grid(11, model, {"g": shape}, space)
    assert 1.5 < found.momentum_max[0] < 6.0
