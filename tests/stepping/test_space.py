"""Matter in space: laws, order of the split step, sound, and what is recorded."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from begun import begun, f_of

import relboltz as rb
from relboltz import thermodynamics as equilibrium
from relboltz.backends.cpu.backend import CpuBackend
from relboltz.backends.cpu.collider import Collider
from relboltz.grid.units import HBARC
from relboltz.studies.validation.waves import damped_wave
from relboltz.transport.forces import courant_limit

QUIET = dict(backend="cpu", progress=False)
GLUONS = rb.gluons(0.3)
HEAVY = rb.gluons(0.3, masses={"g": 0.7})


def hump(x, y, z, px, py, pz):
    """Denser in the middle, faster than thermal along x."""
    return 0.4 * np.exp(-(px**2) / 1.2 - py**2 - pz**2) * (1 + 0.5 * np.cos(np.pi * x / 3))


# --- laws ---------------------------------------------------------------------------------------


def test_equilibrium_with_flow_stays_put():
    """Streaming and collisions on, a periodic box, thermal masses: nothing changes.

    But for rounding to whole quanta, 24 sweeps and 4 steps of collisions: 2 quanta at most.
    """
    grid = rb.PhaseSpace(7, 2.5, [4, 3, 1], 3.0)
    start = {"g": rb.initial.thermal(0.4, 0.1, [0.3, -0.2, 0.1], sampling="node")}
    ds = rb.solve(
        GLUONS, grid, start, end=1.0, step=0.25, every=1.0, snapshots=[0.0, 1.0], samples=4, **QUIET
    )
    quantum = ds.attrs["quantum"] / 16
    assert np.abs(ds.f[1] - ds.f[0]).max() <= 10 * quantum
    assert float(ds.velocity.sel(axis="x")[-1].mean()) == pytest.approx(0.3, rel=1e-9)
    assert int(np.abs(ds.charge_drift).max() + np.abs(ds.momentum_drift).max()) == 0


def test_number_and_energy_are_exact_between_reflecting_walls():
    """Constant masses, collisions on, two very different halves."""
    grid = rb.PhaseSpace(7, 2.0, [4, 1, 3], 2.0, ["reflecting", "periodic", "reflecting"])

    def halves(x, y, z, px, py, pz):
        return 0.4 * np.exp(-(px**2 + (py - 0.3) ** 2 + pz**2)) * np.where(x > 0, 1.0, 0.1)

    ds = rb.solve(HEAVY, grid, {"g": halves}, end=2.0, every=0.5, samples=2, **QUIET)
    energy = ds.total_energy_total.values
    assert np.abs(ds.charge_drift).max() == 0
    assert energy == pytest.approx(energy[0], rel=1e-12)
    assert int(ds.momentum_drift.sel(axis="y")[-1]) == 0  # no walls across y
    number = ds.number.sum("species").mean(("y", "z")).values
    assert np.ptp(number[-1]) < 0.9 * np.ptp(number[0])
    assert (np.diff(ds.total_entropy) > 0).all()


def test_every_site_has_its_own_masses():
    """The gap equation holds in every space cell, at the start and at the end."""
    grid = rb.PhaseSpace(7, 2.0, [4, 1, 1], 3.0)
    ds = rb.solve(
        rb.qcd(0.3), grid, {"g": hump}, end=0.1, every=0.1, snapshots=[0.0, 0.1], samples=1, **QUIET
    )
    model = rb.qcd(0.3)
    for k in range(2):
        for i in range(4):
            f = ds.f.values[k, :, i].reshape(7, -1)
            m2 = equilibrium.masses(grid.without_space, model, f)
            assert ds.mass_squared.values[k, :, i, 0, 0] == pytest.approx(m2, rel=1e-9)
    assert np.ptp(ds.mass_squared.sel(species="g").values[0]) > 0.1


@pytest.mark.parametrize("masses", ["massless", "thermal"])
def test_every_site_screens_each_exchange_by_its_own_mass(masses):
    """Rates of gluons and unequal flavours follow from the state of their space cell."""
    model = rb.qcd(0.1, flavors=2, masses=masses, screening="ekt")
    grid = rb.PhaseSpace(6, 2.0, [3, 1, 1], 3.0)
    shapes = {"g": hump_shape(), "u": hump_shape(), "dbar": rb.initial.step(0.3, 1.0)}
    f = rb.initial.evaluate(shapes, grid, model)
    squares = begun(grid, model, f, samples=1)[1].squares
    assert squares.shape == (3, 5 + 3)
    for site in range(3):
        alone = begun(grid.without_space, model, f[site], samples=1)[1]
        assert squares[site] == pytest.approx(alone.squares[0], rel=1e-9)
        m2 = equilibrium.masses(grid.without_space, model, f[site])
        y = equilibrium.coupling_integrals(grid.without_space, model, f[site], m2)
        assert squares[site] == pytest.approx([*m2, *model.screening_squared(y)], rel=1e-9)
    assert len(set(np.round(squares[:2, 5:].ravel(), 6))) == 6


def hump_shape():
    return rb.initial.from_function(hump)


def test_the_same_seed_gives_the_same_bits_on_any_number_of_threads():
    grid = rb.PhaseSpace(5, 2.0, [4, 2, 1], 3.0, ["periodic", "open", "periodic"])
    options = dict(end=0.2, every=0.1, samples=2, snapshots=[0.2], **QUIET)
    one, three = (rb.solve(GLUONS, grid, {"g": hump}, threads=t, **options) for t in (1, 3))
    for name in ("f", "energy_total", "mass_squared", "rate", "left_energy", "temperature"):
        assert np.array_equal(one[name], three[name], equal_nan=True), name


def test_a_uniform_state_in_space_is_a_homogeneous_one():
    """A uniform box has the records, prediction and spectra of homogeneous matter, per volume.

    Events are others, so there is noise. Homogeneous runs with other seeds differ by 4e-4 in the
    spectrum, 2 % in its outermost shell, 0.3 % in the rate and 3 % in the source.
    """
    start = {"g": rb.initial.gaussian(0.5, [0.8, 0.8, 0.5])}
    options = dict(end=0.02, step=0.01, every=0.01, samples=600, **QUIET)
    one = rb.solve(GLUONS, rb.PhaseSpace(7, 2.0), start, **options)
    many = rb.solve(GLUONS, rb.PhaseSpace(7, 2.0, [2, 1, 2], 3.0), start, **options)
    for name in ("number", "energy_total", "entropy", "temperature", "pressure_ratio"):
        assert np.allclose(many[f"total_{name}"], one[name], rtol=1e-3, atol=1e-8), name
    tensor = many.total_energy_momentum - one.energy_momentum  # other events, so other noise
    assert float(np.abs(tensor).max()) < 1e-3 * float(one.energy_kinetic[0])
    assert np.allclose(many.total_source, one.source, rtol=0.05, equal_nan=True)
    assert np.allclose(many.spectrum[..., :-1], one.spectrum[..., :-1], rtol=1e-3)
    assert np.allclose(many.spectrum[..., -1], one.spectrum[..., -1], rtol=0.05)
    assert np.allclose(many.rate[:2], one.rate[:2], rtol=0.01)
    assert np.allclose(many.equilibrium_distance, one.equilibrium_distance, rtol=1e-3)
    for name in ("equilibrium_temperature", "equilibrium_mass_squared", "equilibrium_number"):
        assert np.allclose(many[name], one[name], rtol=1e-9), name


def test_ctrl_c_in_space_keeps_state_and_record(monkeypatch, tmp_path):
    """Steps since the last record are not lost."""
    import os
    import signal

    grid = rb.PhaseSpace(5, 2.0, [4, 1, 1], 3.0)
    stream, calls = CpuBackend.stream, []

    def interrupted(self, *arguments):
        calls.append(1)
        if len(calls) == 8:  # in the second half of the third step; the first is done twice
            os.kill(os.getpid(), signal.SIGINT)
        return stream(self, *arguments)

    monkeypatch.setattr(CpuBackend, "stream", interrupted)
    with pytest.raises(rb.Interrupted):
        rb.solve(
            GLUONS, grid, {"g": hump}, end=1.0, step=0.05, every=0.5, samples=2,
            file=tmp_path / "run.nc", **QUIET,
        )  # fmt: skip
    kept = rb.load(tmp_path / "run.nc")
    assert kept.attrs["status"] == "interrupted by Ctrl-C"
    assert float(kept.time[-1]) == float(kept.snapshot[-1]) == pytest.approx(0.1)


# --- order --------------------------------------------------------------------------------------


def with_fixed_events(monkeypatch):
    """All steps and both sets draw the same events: C becomes a fixed function of the state."""
    collide, generate = CpuBackend.collide, Collider._generate

    def twins(self, scratch, group, events, sums):
        generate(self, scratch, replace(group, which=0), events, sums)

    monkeypatch.setattr(Collider, "_generate", twins)
    monkeypatch.setattr(CpuBackend, "collide", lambda self, step, *rest: collide(self, 0, *rest))


def test_the_split_step_is_of_second_order(monkeypatch):
    """Transport, force and collisions together: errors fall by four when dt is halved.

    Uniform pairs: importance changes in jumps with the state, and with it the events. Where an
    event lands changes in jumps with the masses: many samples and a mean over all cells make these
    jumps small.
    """
    with_fixed_events(monkeypatch)
    grid = rb.PhaseSpace(7, 2.0, [6, 1, 1], 3.0)
    end, states, energies = 0.8, [], []
    for steps in (2, 4, 8, 16):
        ds = rb.solve(
            GLUONS, grid, {"g": hump}, end=end, step=end / steps, every=end, snapshots=[end],
            samples=128, pair_sampling="uniform", **QUIET,
        )  # fmt: skip
        states.append(ds.f.values[-1])
        energies.append(float(ds.total_energy_total[-1] / ds.total_energy_total[0] - 1))
    apart = [np.abs(a - b).mean() for a, b in pairwise(states)]
    orders = np.log2(np.array(apart[:-1]) / apart[1:])
    assert (orders > 1.8).all(), (apart, orders)
    change = np.abs(np.diff(energies))
    assert change[0] < 1e-5 and change[1:].max() < change[0] / 3.5, energies  # then the jumps


def test_total_energy_drifts_less_on_a_finer_grid():
    """Kinetic plus field energy of a mixture that collides: second order in dx and dp together."""
    drifts = []
    for cells, nodes in ((6, 8), (12, 16)):
        grid = rb.PhaseSpace(nodes, 3.0, [cells, 1, 1], 3.0)
        ds = rb.solve(
            rb.qcd(0.3), grid, {"g": hump, "quarks": rb.initial.gaussian(0.2, 0.7)}, end=0.4,
            step=0.1, every=0.4, samples=1, **QUIET,
        )  # fmt: skip
        energy = ds.total_energy_total.values
        drifts.append(abs(energy[-1] / energy[0] - 1))
    assert drifts[0] < 2e-3
    assert drifts[0] / drifts[1] > 4, drifts


# --- sound --------------------------------------------------------------------------------------


def isotropic(s, strength):
    """|M|^2 of a constant cross section."""
    return strength * s


def test_sound_has_its_speed_and_its_damping():
    """A massless gas of constant cross section, k/(n sigma) = 0.2, 4 samples.

    Exact linear theory: speed 1.0107/sqrt(3), damping 0.969 (2/3) eta k^2 / (e + P) with
    eta = 1.2676 T/sigma. These nodes make them 0.9 and 3.2 % smaller (16 samples, tolerance 1e-4).
    """
    T, free_path = 0.3, 0.5  # GeV, fm
    density = T**3 / np.pi**2
    sigma = HBARC / free_path / density
    k = 0.2 / free_path
    model = rb.Model(
        [rb.Species("a", 1, 0)],
        [rb.Process("a a -> a a", isotropic, strength=32 * np.pi * sigma)],
        masses={"a": 0.0},
    )
    grid = rb.PhaseSpace(12, 8 * T, [12, 1, 1], [np.pi / k, 1.0, 1.0])

    def warm(x, y, z, px, py, pz):
        return np.exp(-np.sqrt(px**2 + py**2 + pz**2) / (T * (1 + 0.02 * np.cos(k * x))))

    period = 2 * np.pi * np.sqrt(3) / k
    ds = rb.solve(
        model, grid, {"a": rb.initial.from_function(warm, sampling="node")}, end=1.25 * period,
        every=period / 32, samples=4, **QUIET,
    )  # fmt: skip
    energy = ds.energy_total.values[:, :, 0, 0]
    wave = (energy * np.cos(k * grid.space_axis(0))).mean(axis=1) / energy.mean()
    expected = 0.969 * 2 / 3 * 1.2676 * T / sigma / (4 * density * T) * k**2 * HBARC
    guess = k / np.sqrt(3), expected
    speed, damping = damped_wave(ds.time.values[4:], wave[4:], guess)
    assert speed / k == pytest.approx(0.991 * 1.0107 / np.sqrt(3), rel=0.005)
    assert damping == pytest.approx(0.968 * expected, rel=0.03)
    assert np.abs(ds.charge_drift).max() == 0
    total = ds.total_energy_total.values
    assert total == pytest.approx(total[0], rel=1e-10)


# --- what is recorded ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def recorded():
    """A short run with everything kept."""
    grid = rb.PhaseSpace([6, 5, 4], 2.0, [4, 3, 1], 3.0, ["periodic", "open", "periodic"])
    ds = rb.solve(
        GLUONS, grid, {"g": hump}, end=0.2, every=0.1, samples=1, snapshots=[0.0, 0.2],
        marginals=["x", "px x", "py y"], **QUIET,
    )  # fmt: skip
    return grid, ds


def test_local_quantities_have_places_and_totals_are_their_averages(recorded):
    grid, ds = recorded
    assert ds.number.dims == ("time", "species", "x", "y", "z")
    assert ds.energy_momentum.dims == ("time", "mu", "nu", "x", "y", "z")
    assert ds.x.attrs["units"] == "fm" and ds.sizes["x"] == 4
    for name in ("number", "energy_kinetic", "energy_total", "momentum", "entropy", "mass_squared"):
        mean = ds[name].mean(("x", "y", "z"))
        assert np.allclose(ds[f"total_{name}"], mean, rtol=1e-12, atol=1e-14), name
        assert ds[name].attrs["units"] and ds[name].attrs["long_name"]
    f = ds.f.isel(snapshot=0).sum(("px", "py", "pz")) * 16 * grid.measure
    assert np.allclose(ds.number[0], f, rtol=1e-9)


def test_the_energy_momentum_tensor_is_that_of_f(recorded):
    grid, ds = recorded
    f = ds.f.values[-1, 0, 2, 1, 0].ravel()
    m2 = float(ds.mass_squared.values[-1, 0, 2, 1, 0])
    e = grid.energies(m2)
    p = np.stack([e, *grid.momenta])
    tensor = 16 * grid.measure * np.einsum("ik,jk,k->ij", p, p, f / e)
    assert ds.energy_momentum.values[-1, :, :, 2, 1, 0] == pytest.approx(
        tensor, rel=1e-9, abs=1e-12
    )


def test_marginals_are_averages_of_f(recorded):
    _, ds = recorded
    f = ds.f.isel(snapshot=-1)
    assert ds.f_x_px.dims == ("time", "species", "x", "px")
    assert np.allclose(ds.f_x[-1], f.mean(("y", "z", "px", "py", "pz")), rtol=1e-9)
    assert np.allclose(ds.f_x_px[-1], f.mean(("y", "z", "py", "pz")), rtol=1e-9)
    assert np.allclose(ds.f_y_py[-1], f.mean(("x", "z", "px", "pz")), rtol=1e-9)


def test_what_leaves_is_in_the_ledger(recorded):
    _, ds = recorded
    inside = ds.total_number.sum("species") + ds.left_number.sum(("wall", "species"))
    assert inside.values == pytest.approx(float(inside[0]), rel=1e-12)
    assert np.abs(ds.charge_drift).max() == 0
    assert float(ds.left_number.sel(wall="y+")[-1].sum()) > 0
    assert float(ds.left_number.sel(wall=["x-", "x+", "z-", "z+"]).sum()) == 0
    energy = ds.total_energy_total + ds.left_energy.sum("wall")
    assert energy.values == pytest.approx(float(energy[0]), rel=2e-3)


def test_local_temperature_and_velocity_are_those_that_were_put_there():
    grid = rb.PhaseSpace(9, 2.5, [4, 1, 1], 3.0)
    model = rb.qcd(0.3, masses={"g": 0.6, "quarks": 0.4})

    def fermi(x, y, z, px, py, pz):
        T, v = 0.3 + 0.02 * x, 0.1 * x
        e = np.sqrt(px**2 + py**2 + pz**2 + 0.16)
        return 1 / (np.exp(((e - v * px) / np.sqrt(1 - v**2) - 0.05) / T) + 1)

    start = {"u": rb.initial.from_function(fermi, sampling="node")}
    ds = rb.solve(model, grid, start, end=1e-3, step=1e-3, every=1e-3, samples=1, **QUIET)
    x = grid.space_axis(0)
    assert ds.temperature.values[0, :, 0, 0] == pytest.approx(0.3 + 0.02 * x, rel=1e-7)
    assert ds.velocity.values[0, 0, :, 0, 0] == pytest.approx(0.1 * x, abs=1e-7)
    mu = ds.chemical_potential.sel(species="u").values[0, :, 0, 0]
    assert mu == pytest.approx(0.05, abs=1e-7)
    assert np.isnan(ds.chemical_potential.sel(species="g").values[0]).all()


def test_snapshots_in_space_are_on_request_and_chunked_by_site(tmp_path, recorded):
    import h5py

    grid, _ = recorded
    path = tmp_path / "run.nc"
    options = dict(end=0.1, step=0.1, every=0.1, samples=1, **QUIET)
    none = rb.solve(GLUONS, grid, {"g": hump}, **options)
    assert none.sizes["snapshot"] == 0
    rb.solve(GLUONS, grid, {"g": hump}, snapshots=[0.1], file=path, **options)
    with h5py.File(path) as handle:
        assert handle["f"].chunks == (1, 1, 4, 3, 1, 6, 5, 4)
        assert handle["f"].compression == "gzip"


def test_a_snapshot_in_space_starts_another_run(tmp_path, recorded):
    grid, _ = recorded
    path = tmp_path / "first.nc"
    options = dict(step=0.1, every=0.1, samples=1, **QUIET)
    first = rb.solve(GLUONS, grid, {"g": hump}, end=0.1, snapshots=[0.1], file=path, **options)
    start = {"g": rb.initial.from_file(path)}
    second = rb.solve(GLUONS, grid, start, end=0.1, snapshots=[0.0], **options)
    assert np.allclose(second.f[0], first.f[0], rtol=0, atol=1e-13)
    other = rb.PhaseSpace([6, 5, 4], 2.0, [2, 3, 1], 3.0)
    with pytest.raises(rb.InputError, match="its grid is 4 x 3 x 1 space cells with 6 x 5 x 4"):
        rb.solve(GLUONS, other, start, end=0.1, **options)
    wider = rb.PhaseSpace([6, 5, 4], 2.0, [4, 3, 1], 4.0)
    with pytest.raises(rb.InputError, match="use the same cells and widths"):
        rb.solve(GLUONS, wider, start, end=0.1, **options)


def test_the_papers_flat_momentum_grid_runs_with_nearest():
    """[10, 10, 1] momentum cells: number exact, f_g(x) levels out."""
    grid = rb.PhaseSpace([10, 10, 1], 2.0, [6, 1, 1], 3.0)
    start = {"g": rb.initial.gradient(0.1, 0.2)}
    ds = rb.solve(
        GLUONS, grid, start, end=3.0, every=3.0, projection="nearest", marginals=["x"], **QUIET
    )
    f = ds.f_x.sel(species="g").values
    assert f[0] == pytest.approx(0.2 + 0.05 * grid.space_axis(0) / 3, rel=1e-9)
    assert np.ptp(f[1]) < 0.6 * np.ptp(f[0])
    assert np.abs(ds.charge_drift).max() == 0
    with pytest.raises(rb.InputError, match="energy cannot be matched"):
        rb.solve(GLUONS, grid, start, end=3.0, **QUIET)


# --- what is refused ----------------------------------------------------------------------------


def test_a_step_that_skips_cells_is_refused_with_the_longest_one():
    grid = rb.PhaseSpace(5, 2.0, [10, 1, 1], 3.0)
    with pytest.raises(rb.InputError, match=r"time.step = 1.0: .* use at most 0.\d+ fm"):
        rb.solve(HEAVY, grid, {"g": hump}, end=2.0, step=1.0, **QUIET)


@pytest.mark.parametrize("pull", [0.0, 0.1])
def test_half_the_longest_step_empties_no_cell_and_three_halves_do(pull):
    """A single full cell at any place and momentum, streaming alone or in a mean field."""
    grid = rb.PhaseSpace([6, 2, 2], [2.0, 0.01, 0.01], [6, 1, 1], 1.5, "periodic", "periodic")
    model = rb.Model([rb.Species("a", 1, 0)], [], masses={"a": 0.0})
    wave = 1 + np.sin(np.pi * grid.space_axis(0) / 1.5)
    squares = np.repeat(0.01 + pull * wave[:, None], 2, axis=1)
    longest = courant_limit(grid, squares[:, :1])

    def kept(part):
        """The least that a cell keeps after a sweep of a part of the longest step."""
        left = []
        for site, j in np.ndindex(6, 6):
            f = np.zeros((6, 1, 6, 4))
            f[site, 0, j] = 1.0
            backend, state = begun(grid, model, f, samples=1)
            backend.stream(0, part * longest, squares)
            left.append(f_of(backend, state)[site, 0].reshape(6, 4)[j].min())
        return min(left)

    assert kept(0.5) > 0.4
    assert kept(1.5) < 1e-9


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        (dict(space_cells=[2, 0, 1]), r"grid.space_cells = \[2, 0, 1\]: each must lie between"),
        (dict(space_max=-1.0), "grid.space_max = .* half widths in fm must be positive"),
        (dict(boundary="wall"), "grid.boundary = 'wall': use 'periodic', 'reflecting' or 'open'"),
        (dict(boundary=["open", "open"]), "grid.boundary = .* or one of them for each axis"),
        (dict(momentum_boundary="open"), "grid.momentum_boundary = 'open': use 'closed' or"),
    ],
)
def test_bad_spaces_are_refused(keys, message):
    with pytest.raises(rb.InputError, match=message):
        rb.PhaseSpace(5, 1.0, **keys)


@pytest.mark.parametrize(
    ("start", "message"),
    [
        (lambda x, y, z, px: px, r"write the function as f\(px, py, pz\) or"),
        (lambda *a: a[0], r"write the function as f\(px, py, pz\) or"),
        (np.ones((5, 5, 5, 2, 1, 1)), r"does not fit .* or \(x, y, z, px, py, pz\) = \(2, 1, 1,"),
        (lambda x, y, z, px, py, pz: np.nan + x, r"returned nan at p = .* and \(.*\) fm"),
    ],
)
def test_faulty_starts_in_space_are_named(start, message):
    grid = rb.PhaseSpace(5, 2.0, [2, 1, 1], 3.0)
    with pytest.raises(rb.InputError, match=message):
        rb.solve(GLUONS, grid, {"g": start}, end=1.0, **QUIET)


def test_functions_may_have_arguments_of_their_own():
    """Arguments with defaults are not positions or momenta."""
    grid = rb.PhaseSpace(5, 2.0, [2, 1, 1], 3.0)

    def local(x, y, z, px, py, pz, height=0.5):
        return height * (1 + 0.1 * x) + 0 * px

    def uniform(px, py, pz, height=0.5, power=1, more=2):
        return height * np.exp(-(px**2)) ** power

    f = rb.initial.evaluate({"g": rb.initial.from_function(local)}, grid, GLUONS)
    assert f[1, 0, 0] == pytest.approx(0.5 * 1.15)
    g = rb.initial.evaluate({"g": rb.initial.from_function(uniform)}, grid, GLUONS)
    assert g[0, 0] == pytest.approx(g[1, 0]) and g.max() < 0.5


def test_a_place_needs_space():
    with pytest.raises(rb.InputError, match="initial.g: depends on the place, and the grid has"):
        rb.solve(GLUONS, 5, {"g": hump}, end=1.0, **QUIET)
    with pytest.raises(rb.InputError, match="output.marginals = .* needs more than one space"):
        rb.solve(GLUONS, 5, {"g": rb.initial.gaussian(1, 1)}, end=1.0, marginals=["x"], **QUIET)


def test_odd_coarse_momenta_warn_that_matter_stays_behind():
    grid = rb.PhaseSpace([5, 4, 4], 2.0, [2, 2, 1], 3.0)
    with pytest.warns(rb.AccuracyWarning, match="5 along x: the nodes with p_x = 0, one in 5"):
        rb.solve(HEAVY, grid, {"g": hump}, end=0.01, samples=1, **QUIET)


def test_a_state_too_large_for_this_machine_is_refused():
    grid = rb.PhaseSpace(64, 2.0, 100, 3.0)
    with pytest.raises(rb.InputError, match=r"needs .* GiB, and this machine has .* use fewer"):
        rb.solve(GLUONS, grid, {"g": rb.initial.gaussian(0.5, 0.5)}, end=1.0, **QUIET)


def test_a_configuration_in_space_runs(tmp_path):
    from relboltz.run import input_file as config
    from relboltz.run import solve as simulation

    text = """
    [model]
    name = "gluons"
    alpha_s = 0.3
    [grid]
    momentum_cells = [5, 5, 5]
    momentum_max = 2.0
    space_cells = [4, 1, 1]
    boundary = ["open", "periodic", "periodic"]
    [initial.g]
    shape = "gradient"
    minimum = 0.1
    maximum = 0.2
    [collisions]
    samples = 1
    [time]
    end = 0.1
    [run]
    backend = "cpu"
    [output]
    marginals = ["x"]
    """
    file = tmp_path / "run.toml"
    file.write_text(text)
    ds = simulation.run_config(config.load(file), tmp_path / "run.nc")
    again = rb.load(tmp_path / "run.nc")
    assert again.sizes["x"] == 4 and "f_x" in again and again.attrs["status"] == "done"
    assert 'boundary = [\n    "open"' in ds.attrs["configuration"]
    assert np.isnan(float(ds.equilibrium_temperature))  # a box that leaks has no final state
