"""Matter that expands: comoving nodes, conservation, work, spacings that double."""

import os
import pickle
import signal
import subprocess
import sys

import numpy as np
import pytest
from begun import EVERYWHERE, backend_of

import relboltz as rb
from relboltz.backends.cpu.backend import CpuBackend
from relboltz.io.result import average, box, comoving
from relboltz.stepping import expanding
from relboltz.stepping.expanding import ExpansionSchedule, reserve
from relboltz.stepping.step import StepPlan, begin
from relboltz.visualization.plots import save_all

GAS = rb.Model([rb.Species("a", 1, 0)], [rb.Process("a a -> a a", sigma=0.5)])
FREE = rb.Model([rb.Species("a", 1, 0)], [])
GLUONS = rb.gluons(0.3)


def bjorken(cells, widths, **others):
    return rb.PhaseSpace(cells, widths, expansion="bjorken", **others)


def solved(model, grid, initial, **options):
    return rb.solve(model, grid, initial, progress=False, **{"samples": 2, "every": 0.5} | options)


def energy(ds):
    """Return the change of the conserved energy relative to the start."""
    total = comoving(ds).energy_total.values
    return total / total[0] - 1


# --- scale factors ------------------------------------------------------------------------------


def test_laws_of_expansion_start_at_one_and_have_the_rates_of_their_scales():
    laws = [
        rb.PhaseSpace(4, 1.0, expansion="bjorken").expansion,
        rb.PhaseSpace(4, 1.0, expansion="hubble", hubble_rate=0.3).expansion,
        rb.PhaseSpace(4, 1.0, expansion="hubble", hubble_power=0.5).expansion,
        rb.PhaseSpace(4, 1.0, expansion=lambda t: (1.0, 1 + t, (1 + t) ** 2)).expansion,
    ]
    for law in laws:
        assert law.scales(0.5, 0.5) == (1.0, 1.0, 1.0)
        a, b = (np.array(law.scales(t, 0.5)) for t in (1.99, 2.01))
        assert np.log(b / a) / 0.02 == pytest.approx(law.rates(2.0), rel=1e-4, abs=1e-12)
    assert laws[0].scales(2.0, 0.5) == (1.0, 1.0, 4.0)
    assert laws[1].scales(2.5, 0.5)[0] == pytest.approx(np.exp(0.6))
    assert laws[2].scales(2.0, 0.5)[1] == pytest.approx(2.0)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"expansion": "bjorken"}, "time.start"),
        ({"expansion": "bjorken", "space_cells": [1, 1, 4]}, "homogeneous"),
        ({"expansion": "hubble", "hubble_rate": 0.1, "space_cells": [4, 1, 1]}, "along x"),
        ({"expansion": "hubble"}, "hubble_rate"),
        ({"expansion": "hubbel"}, "did you mean 'hubble'"),
        ({"expansion": "none", "hubble_power": 1.0}, "is for expansion = 'hubble'"),
        ({"expansion": lambda t: -t}, "one number above 0"),
        ({"expansion": lambda t: 1 / 0}, "ZeroDivisionError"),
        ({"expansion": lambda t: None}, "are None; return one number above 0, or three"),
        ({"expansion": lambda t: [1.0, t]}, "one number above 0, or three"),
        ({"expansion": lambda t: np.exp(600 * t)}, "an earlier time.end, or a slower expansion"),
        ({"expansion": "hubble", "hubble_rate": 1e6}, "an earlier time.end, or a smaller rate"),
        ({"expansion": "hubble", "hubble_rate": -1e6}, "change by a factor inf"),
        ({"expansion": "hubble", "hubble_power": 1e5}, "change by a factor inf"),
        ({"expansion": "hubble", "hubble_rate": "a"}, "hubble_rate = 'a': use a number of 1/fm"),
        ({"expansion": "hubble", "hubble_rate": np.nan}, "hubble_rate = nan: use a number"),
        ({"expansion": "hubble", "hubble_power": True}, "hubble_power = True: use a number"),
    ],
)
def test_what_cannot_expand_is_said_before_any_work(options, words):
    start = 0.0 if words == "time.start" else 0.5
    with pytest.raises(rb.InputError, match=words):
        solved(GAS, rb.PhaseSpace(6, 2.0, **options), {"a": rb.initial.step(0.5, 1.5)},
               start=start, end=1.0)  # fmt: skip


@pytest.mark.parametrize(
    ("law", "times", "words"),
    [("none", [0.7], "is for momenta that expand"), ("bjorken", [0.2, 0.7], "begins at 0.5 fm")],
)
def test_times_of_doubling_that_make_no_sense_are_refused(law, times, words):
    with pytest.raises(rb.InputError, match=rf"time.regrid_times = \[.*{words}"):
        solved(GAS, rb.PhaseSpace(6, 2.0, expansion=law), {"a": rb.initial.step(0.5, 1.5)},
               start=0.5, end=1.0, regrid_times=times)  # fmt: skip


def table(t):
    """Known between 0.5 and 1.5 fm alone."""
    assert 0.5 <= t <= 1.5
    return np.array(1 + t)


def test_functions_are_asked_of_times_of_the_run_alone_and_may_turn_around():
    """Work of matter that is compressed again: of second order as ever, 1e-5 for these steps."""
    start = {"a": rb.initial.thermal(0.3)}
    solved(GAS, rb.PhaseSpace(6, 2.0, expansion=table), start, start=0.5, end=1.5)
    turning = rb.PhaseSpace(8, 2.4, expansion=lambda t: 2 - abs(t - 1))
    ds = solved(GAS, turning, start, start=0.5, end=1.5, step=0.125, every=0.25)
    assert ds.scale.values[[0, 2, 4], 0] == pytest.approx([1.0, 4 / 3, 1.0])
    assert abs(energy(ds)).max() < 2e-3
    finer = solved(GAS, turning, start, start=0.5, end=1.5, step=0.125 / 4, every=0.25)
    assert abs(energy(finer)).max() < abs(energy(ds)).max() / 8


# --- free streaming -----------------------------------------------------------------------------


@EVERYWHERE
def test_free_particles_keep_the_numbers_of_their_nodes_to_the_bit(where):
    grid = bjorken([5, 6, 7], 2.0)
    backend = backend_of(grid, FREE, where, samples=1)
    flow = ExpansionSchedule(grid.expansion, 0.5, ())
    rng = np.random.default_rng(3)
    state = begin(backend, rng.random((1, 1, grid.size)), flow)
    before = backend.get().copy()
    for _ in backend.advance(state, StepPlan(0.3, 1e-3, 1e-9, grid, schedule=flow), 2.0):
        pass
    assert state.time == 2.0 and (backend.get() == before).all()
    assert backend.grid.momentum_max == pytest.approx((2.0, 2.0, 0.5))
    backend.close()


def test_free_streaming_has_the_pressures_of_its_closed_form():
    """e and P_L/P_T of a massless thermal state, squeezed: to the accuracy of the nodes."""
    grid = bjorken([32, 32, 64], [9.0, 9.0, 9.0])
    start = np.exp(-np.sqrt(grid.momentum_squared))
    ds = solved(FREE, grid, start[None], start=1.0, end=3.0, regrid_times=[])
    x = ds.time.values[1:]
    r = np.sqrt(x**2 - 1)
    e = 0.5 * (1 / x**2 + np.arctan(r) / r)
    assert ds.energy_total.values[1:] / float(ds.energy_total[0]) == pytest.approx(e, rel=3e-3)
    along = (np.arctan(r) / r - 1 / x**2) / (2 * r**2)  # times e_0; P_T = (e - P_L)/2
    assert ds.pressure_ratio.values[1:] == pytest.approx(2 * along / (e - along), rel=1e-2)
    assert abs(energy(ds)).max() < 3e-5  # the quadrature
    assert (ds.f[0] == ds.f[-1]).all()


# --- conservation -------------------------------------------------------------------------------


def test_number_and_momenta_are_exact_and_energy_is_of_second_order_in_the_step():
    grid, found = bjorken([9, 9, 15], [2.5, 2.5, 3.5]), []
    for step in (0.04, 0.02):
        start = {"g": rb.initial.thermal(0.5)}
        ds = solved(GLUONS, grid, start, start=0.5, end=1.5, step=step, samples=8, regrid_times=[])
        assert not ds.charge_drift.any() and not ds.momentum_drift.any()
        found.append(abs(energy(ds)[-1]))
    assert found[0] < 2e-4 and found[0] / found[1] == pytest.approx(4.0, rel=0.35)


@pytest.mark.parametrize("nz", [23, 24])
def test_spacings_double_when_momenta_become_tight_and_nothing_is_lost(nz):
    model, grid = rb.qcd(0.3, 1), bjorken([7, 7, nz], [2.5, 2.5, 4.0])
    flowing = rb.initial.thermal(0.35, velocity=[0.2, 0.1, 0.15])  # momenta count, too
    ds = solved(model, grid, {"g": flowing, "quarks": flowing}, start=0.3, end=2.4, every=0.1)
    assert abs(ds.momentum.values[0]).min() > 0.1
    assert ds.doublings.sel(axis="z").values[-1] >= 1
    assert not ds.doublings.sel(axis=["x", "y"]).any()
    assert not ds.charge_drift.any() and not ds.momentum_drift.any()
    assert (ds.f >= 0).all() and (ds.f.sel(species=["u", "ubar"]) <= 1).all()
    assert abs(energy(ds)).max() < 2e-4
    per_rapidity = comoving(ds).number.sum("species") * 0.3
    assert ds.dN_dy.sum("species").values == pytest.approx(per_rapidity.values, rel=1e-12)
    entropy = (ds.entropy * ds.time).values
    assert np.diff(entropy).min() > -2e-3 * entropy[0]


def test_a_spacing_that_is_too_coarse_yet_doubles_later():
    """Ten nodes to 8 T: twice their spacing costs too much energy at first, and less later."""
    grid, start = bjorken([7, 7, 10], [2.5, 2.5, 1.6]), {"g": rb.initial.thermal(0.2)}
    states = []
    with pytest.MonkeyPatch.context() as patched:
        real = expanding.double

        def seen(backend, state, *others):
            real(backend, state, *others)
            states.append((state.time, list(state.doublings), list(state.waits), any(state.stuck)))

        patched.setattr(expanding, "double", seen)
        ds = solved(GLUONS, grid, start, start=0.4, end=1.6, every=0.2, backend="cpu")
    first, doubled = states[0], next(one for one in states if one[1] != [0, 0, 0])
    assert first[0] > 0.6 and first[1] == [0, 0, 0] and first[2][2] > 2.0 and not first[3]
    assert len(states) < 4  # not at every step
    assert doubled[1:] == ([0, 0, 1], [1.0, 1.0, 1.0], False)
    assert not ds.charge_drift.any() and not ds.momentum_drift.any()


def test_many_nodes_double_their_spacing_as_soon_as_momenta_are_tight():
    """To 10 T, 4 % of <p_z^2> lie in the outer quarter from the start on; to 16 T, 0.1 %."""
    start = {"a": rb.initial.thermal(0.2)}
    early, late = (
        solved(GAS, bjorken([6, 6, 4 * n + 1], [1.6, 1.6, n * 0.2]), start, start=0.4, end=0.5)
        for n in (10, 16)
    )
    assert early.doublings.values[-1, 2] == 1 and not late.doublings.any()


def test_an_expanding_run_is_told_that_its_box_is_small():
    """By the equilibrium of its start: 4 T hold too few collisions, 14 T nearly all."""
    start = {"g": rb.initial.thermal(0.25)}
    small, large = (
        solved(GLUONS, bjorken([8, 8, 12], w), start, start=0.4, end=0.41, samples=1)
        for w in (1.0, 3.5)
    )
    assert "the box is small" in small.attrs["warnings"] and float(small.box_loss_relaxation) > 0.3
    assert "the box is small" not in large.attrs["warnings"]
    assert float(large.box_loss_relaxation) < 0.05


def test_named_times_of_doubling_are_taken():
    grid = bjorken([7, 7, 15], [2.5, 2.5, 2.5])
    start = {"a": rb.initial.thermal(0.35)}
    options = {"start": 0.5, "end": 2.0, "every": 0.25, "samples": 4}
    ds = solved(GAS, grid, start, regrid_times=[1.0], **options)
    doubled = ds.time.values[ds.doublings.sel(axis="z").values > 0]
    assert doubled[0] == pytest.approx(1.0) and ds.doublings.values.max() == 1
    between = solved(GAS, grid, start, regrid_times=[0.9], step=0.2, snapshots=[0.9], **options)
    assert between.momentum_scale.sel(axis="z").values == pytest.approx([2 * 0.5 / 0.9])
    scale = ds.momentum_scale.sel(axis="z").values
    assert scale == pytest.approx([1.0, 2 * 0.5 / 2.0])


def test_a_column_keeps_number_momentum_and_energy_when_its_spacing_doubles():
    """Bosons and fermions, even and odd numbers of nodes; f stays legal."""
    from relboltz.stepping.quanta import occupation, quantised
    from relboltz.stepping.regridding import more_bits, widened

    for model, height in ((GLUONS, 3.0), (rb.quarks(0.3), 0.97)):
        for nz in (24, 25):
            grid = rb.PhaseSpace([5, 4, nz], [2.0, 2.0, 5.0])
            wide = grid.scaled((1.0, 1.0, 2.0))
            pz, e = grid.momenta[2], np.sqrt(grid.momentum_squared + 0.09)
            f = np.zeros((1, len(model.species), grid.size))
            f[0, 0] = height * np.exp(-((e - 0.3) ** 2) - 0.3 * (pz - 0.7) ** 2)
            number, bits = quantised(f, model)
            squares = np.full((1, len(model.species) + len(model.screenings)), 0.09)
            new, fine, told = widened(number, bits, grid, model, squares, 2)
            assert told[0, 1] == pytest.approx(told[0, 0], rel=1e-10) and (new >= 0).all()
            old, now = (x[0, 0].reshape(-1, nz) for x in (number, new))
            extra = more_bits(nz)
            assert (now.sum(axis=1) == old.sum(axis=1) << extra).all()
            place = 2 * np.arange(nz) - (nz - 1)
            assert (2 * (now * place).sum(axis=1) == (old * place).sum(axis=1) << extra).all()
            g = occupation(new, fine, model)[0, 0]
            assert model.statistics[0] > 0 or g.max() <= 1
            energies = [
                (v * np.sqrt(w.momentum_squared + 0.09)).reshape(-1, nz).sum(axis=1)
                for v, w in ((f[0, 0], grid), (2 * g, wide))
            ]
            assert energies[1] == pytest.approx(energies[0], rel=1e-9)


# --- Hubble flow --------------------------------------------------------------------------------


@pytest.mark.parametrize("larger", [2.0, 3.0])
def test_matter_that_is_larger_has_the_numbers_of_static_matter(larger):
    """Thermal masses and a fixed coupling know no scale: with a = 2 all momenta are half as large,
    and a step that is twice as long does the same, to rounding: the last bit of the iterated masses
    turns the rounding of an event now and then: one quantum (2^-48 of f) in each of ten steps."""
    grid = rb.PhaseSpace([9, 8, 8], 2.5)
    grown = rb.PhaseSpace([9, 8, 8], 2.5, expansion=lambda t: 1.0 if t <= 1.0 else larger)
    start, end = {"g": rb.initial.gaussian(0.5, [0.8, 0.8, 0.8])}, 0.2 * larger
    still = solved(GLUONS, grid, start, end=0.2, every=0.2, step=0.02, backend="cpu")
    times = {
        "start": 1.0,
        "end": 1.0 + end,
        "every": end,
        "step": 0.02 * larger,
        "regrid_times": [],
    }
    moved = solved(GLUONS, grown, start, backend="cpu", **times)
    assert abs(still.f[-1] - moved.f[-1]).max() <= 10 * 2.0**-48
    m2 = float(moved.mass_squared[-1, 0])
    assert larger**2 * m2 == pytest.approx(float(still.mass_squared[-1, 0]), rel=1e-14)


def test_a_hubble_flow_of_a_conformal_gas_is_static_in_its_own_time():
    """df/dt = C/a of thermal masses: as a static run in the integral of dt/a, up to steps."""
    grid = rb.PhaseSpace([8, 8, 8], 2.5)
    flow = rb.PhaseSpace([8, 8, 8], 2.5, expansion="hubble", hubble_power=0.5)
    start = {"g": rb.initial.gaussian(1.0, [0.6, 0.6, 0.3])}
    options = {"samples": 256, "tolerance": 1e-4}  # seeds scatter by 2e-4 of the ratio
    still = solved(GLUONS, grid, start, end=0.2, every=0.05, **options)
    end = (0.5**0.5 + 0.1 / 0.5**0.5) ** 2  # Int dt/a = 2 t0^(1/2) (t^(1/2) - t0^(1/2))
    moved = solved(GLUONS, flow, start, start=0.5, end=end, every=0.5, **options)
    ratios = [float(ds.energy_momentum[-1, 3, 3] / ds.energy_momentum[-1, 1, 1])
              for ds in (still, moved)]  # fmt: skip
    assert ratios[1] == pytest.approx(ratios[0], rel=1e-3)
    assert not moved.charge_drift.any() and abs(energy(moved)).max() < 1e-5
    shape = moved.f[-1].sum(["py", "px"]) / still.f[-1].sum(["py", "px"]) - 1
    assert abs(shape).max() < 0.03  # other events: 256 samples leave about 0.3 %


# --- everything else works in it ----------------------------------------------------------------


def almond(x, y, z, px, py, pz):
    """A hot spot, wider along y."""
    e = np.sqrt(px**2 + py**2 + pz**2 + 0.04)
    return 2 * np.exp(-e / 0.5) * np.exp(-(x**2) / 2 - y**2 / 4)


TRANSVERSE = {"space_cells": [3, 3, 1], "space_max": [3.0, 3.0, 1.0], "boundary": "open"}


def test_a_plane_that_expands_along_z_keeps_number_and_energy_with_what_left():
    grid = bjorken([5, 5, 11], [2.0, 2.0, 2.5], **TRANSVERSE)
    model = rb.gluons(0.3, masses={"g": 0.5})
    ds = solved(model, grid, {"g": almond}, start=0.4, end=1.4, every=0.25, samples=1)
    assert not ds.charge_drift.any() and ds.doublings.values.max() >= 1
    volume = ds.scale.prod("axis")
    total = (ds.total_energy_total + ds.left_energy.sum("wall")) * volume + ds.energy_work
    assert float(ds.left_number[-1].sum()) > 0
    assert abs(total / total[0] - 1).max() < 1e-4
    number = ds.dN_dy.sum("species")
    assert number.values == pytest.approx(float(number[0]), rel=1e-12)
    spread = ds.dN_d2pT.sum(["species", "px", "py"]) * (2 * 2.0 / 5) ** 2
    assert spread.values == pytest.approx(number.values, rel=1e-12)


@pytest.mark.parametrize("space", [{}, TRANSVERSE])
def test_workers_and_threads_have_the_bits_of_one_process(space):
    from begun import team_of

    grid = bjorken([5, 5, 9], [2.0, 2.0, 2.0], **space)
    start = {"g": almond} if space else {"g": rb.initial.thermal(0.35)}
    flow = ExpansionSchedule(grid.expansion, 0.4)
    states = rb.initial.starting_states(start, GLUONS)
    f = rb.initial.evaluate(states, grid, GLUONS).reshape(grid.sites, 1, grid.size)
    found = []
    for backend in (
        backend_of(grid, GLUONS, "cpu", threads=1, samples=1),
        backend_of(grid, GLUONS, "cpu", threads=2, samples=1),
        team_of(grid, GLUONS, size=3, samples=1),
    ):
        state = begin(backend, f, flow)
        for _ in backend.advance(state, StepPlan("auto", 1e-3, 1e-9, grid, schedule=flow), 1.2):
            pass
        shells = backend.moments(state.squares, np.zeros((1, grid.size))).shells
        told = state.work, state.doublings, state.bits, state.squares, shells
        found.append((backend.get(), *told))
        backend.close()
    for number, work, doublings, bits, squares, shells in found[1:]:
        assert (number == found[0][0]).all() and (squares == found[0][4]).all()
        assert (shells == found[0][5]).all()
        assert (work, doublings, bits) == found[0][1:4]
    assert found[0][2][2] >= 1


def test_a_run_that_was_cut_goes_on_to_the_same_bits(tmp_path):
    grid, start = bjorken([7, 7, 13], [2.0, 2.0, 2.0]), {"g": rb.initial.thermal(0.35)}
    options = {"start": 0.4, "every": 0.2, "samples": 2}
    whole = solved(GLUONS, grid, start, end=1.6, file=tmp_path / "whole.nc", **options)
    solved(GLUONS, grid, start, end=1.0, file=tmp_path / "cut.nc", **options)
    gone_on = rb.resume(tmp_path / "cut.nc", until=1.6, snapshots=[1.4], progress=False)
    assert whole.doublings.values.max() >= 1
    for name in ("number", "energy_work", "pressure_ratio", "doublings", "dN_d2pT"):
        assert np.array_equal(whole[name], gone_on[name], equal_nan=True), name
    assert (whole.f[-1] == gone_on.f[-1]).all() and 1.4 in gone_on.snapshot
    assert (whole.momentum_scale[-1] == gone_on.momentum_scale[-1]).all()


def dense(px, py, pz):
    """So much that quanta of all of it are coarse: digits for doublings count."""
    return 2e5 * np.exp(-np.sqrt(px**2 + py**2 + pz**2) / 0.35)


def test_quanta_do_not_depend_on_the_end_and_are_used_up_without_harm():
    """Six doublings have their digits; the seventh is not done, and the result says so."""
    thin = rb.Model([rb.Species("a", 1, 0)], [rb.Process("a a -> a a", sigma=1e-9)])
    grid, start = bjorken([7, 7, 15], [2.0, 2.0, 2.0]), {"a": dense}
    early, late = (
        solved(thin, grid, start, start=0.4, end=end, every=end, regrid_times="auto")
        for end in (0.45, 3.2)
    )
    assert early.attrs["quantum"] > 2.0**-44  # or there would be nothing to see
    reserved = [
        reserve(ExpansionSchedule(grid.expansion, 0.4, times), grid)
        for times in ("auto", (), (1.0,))
    ]
    assert reserved == [6, 0, 1]
    assert early.attrs["quantum"] == late.attrs["quantum"] and late.doublings.values.max() == 1
    times = [0.42 + 0.02 * i for i in range(7)]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("relboltz.stepping.expanding.DOUBLINGS", 1)
        patched.setattr("relboltz.stepping.expanding.MOST_LOST", 1.0)
        ds = solved(thin, grid, start, start=0.4, end=0.7, every=0.3, regrid_times=times)
    assert 2 <= ds.doublings.values.max() < 7 and not ds.charge_drift.any()
    assert "no binary digits left" in ds.attrs["warnings"]


@pytest.mark.parametrize("when", ["widened", "stresses"])
def test_a_signal_after_a_step_lets_it_stand_with_its_work(tmp_path, monkeypatch, when):
    """SIGINT while spacings double, or while work is added up: resumed to the same bits."""
    grid, start = bjorken([7, 7, 13], [2.0, 2.0, 2.0]), {"g": rb.initial.thermal(0.35)}
    options = {"start": 0.4, "end": 1.2, "every": 0.2, "backend": "cpu"}
    whole = solved(GLUONS, grid, start, **options)
    where = expanding if when == "widened" else CpuBackend
    real, calls = getattr(where, when), []

    def cut(*given):
        calls.append(None)
        if len(calls) == (1 if when == "widened" else 12):
            os.kill(os.getpid(), signal.SIGINT)
        return real(*given)

    monkeypatch.setattr(where, when, cut)
    with pytest.raises(rb.Interrupted):
        solved(GLUONS, grid, start, file=tmp_path / "cut.nc", **options)
    monkeypatch.undo()
    gone_on = rb.resume(tmp_path / "cut.nc", progress=False)
    for name in ("energy_work", "pressure_ratio", "doublings", "dN_d2pT"):
        assert np.array_equal(whole[name], gone_on[name].sel(time=whole.time)), name
    assert (whole.f[-1] == gone_on.f[-1]).all() and whole.doublings.values.max() >= 1


LAW = "def grow(t):\n    return 1.0, 1.0, t\n"


def test_a_law_of_a_file_goes_to_other_processes_and_is_known_again(tmp_path):
    (tmp_path / "law.py").write_text(LAW)
    grid = rb.PhaseSpace(6, 2.0, expansion=f"{tmp_path}/law.py:grow")
    start = {"g": rb.initial.thermal(0.35)}
    solved(GLUONS, grid, start, start=0.5, end=0.6, file=tmp_path / "f.nc")
    code = "import pickle, sys; print(pickle.load(sys.stdin.buffer).expansion.scales(1.0, 0.5))"
    told = subprocess.run([sys.executable, "-c", code], input=pickle.dumps(grid),
                          capture_output=True, check=True)  # fmt: skip
    assert told.stdout.decode().strip() == "(1.0, 1.0, 2.0)"
    (tmp_path / "law.py").write_text(LAW.replace("t\n", "t**2\n"))
    with pytest.raises(rb.InputError, match=r"law\.py, which was changed since"):
        rb.resume(tmp_path / "f.nc", until=0.7, progress=False)
    (tmp_path / "law.py").write_text(LAW)
    assert rb.resume(tmp_path / "f.nc", until=0.7, progress=False).scale[-1, 2] == 1.4


def bjorken_like(t):
    return 1.0, 1.0, t


def test_a_function_of_python_is_given_again(tmp_path):
    bjorken_like.__name__ = "bjorken"  # its name alone means nothing
    grid = rb.PhaseSpace(6, 2.0, expansion=bjorken_like)
    start, file = {"g": rb.initial.thermal(0.35)}, tmp_path / "f.nc"
    ds = solved(GLUONS, grid, start, start=0.5, end=0.6, file=file)
    assert ds.attrs["expansion"] == "function bjorken" and "dN_dy" not in ds
    with pytest.raises(rb.InputError, match=r"give it again: resume\(file, expansion=bjorken\)"):
        rb.resume(file, until=0.7, progress=False)
    with pytest.raises(rb.InputError, match="bring back the function"):
        rb.resume(file, until=0.7, expansion=lambda t: 1 + t, progress=False)
    gone_on = rb.resume(file, until=0.7, expansion=bjorken_like, progress=False)
    assert gone_on.scale[-1, 2] == 1.4


def test_a_configuration_expands(tmp_path):
    (tmp_path / "law.py").write_text("def grow(t):\n    return 1.0, 1.0, t**0.5\n")
    path = tmp_path / "run.toml"
    path.write_text(
        '[model]\nname = "gluons"\nalpha_s = 0.3\n[grid]\nmomentum_cells = 7\nmomentum_max = 2.0\n'
        'expansion = "law.py:grow"\n[initial.g]\nshape = "step"\nheight = 0.5\nedge = 1.5\n'
        "[time]\nstart = 0.5\nend = 1.0\n[collisions]\nsamples = 1\n"
    )
    from relboltz.run import input_file as config
    from relboltz.run import solve as simulation

    ds = simulation.run_config(config.load(path), tmp_path / "run.nc")
    assert ds.scale.sel(axis="z").values[-1] == pytest.approx(2**0.5)
    assert ds.attrs["expansion"].endswith("law.py:grow")
    assert rb.resume(tmp_path / "run.nc", until=1.2, progress=False).time[-1] == 1.2


def test_verdict_pictures_and_page_tell_of_expansion(tmp_path):
    """Drifts are those of what is conserved with the volume; warnings name what will be coarse."""
    from relboltz.analysis import verdict

    grid = bjorken([7, 7, 13], [2.0, 2.0, 2.0])
    ds = solved(GLUONS, grid, {"g": rb.initial.thermal(0.35)}, start=0.4, end=1.0, every=0.2)
    rows = {row.key: row for row in verdict.rows(ds)}
    assert rows["charge"].value == rows["momentum"].value == "0 (exact)"
    assert (
        abs(float(rows["energy_total"].value)) < 1e-3 and "work" in rows["energy_total"].description
    )
    assert float(rows["pressure_ratio"].value) == pytest.approx(
        float(ds.pressure_ratio[-1]), abs=1e-4
    )
    assert float(rows["dN_dy"].value) == pytest.approx(float(ds.dN_dy[-1].sum()), rel=1e-4)
    told = ds.attrs["warnings"]
    assert "along x and y" in told and "late rates" in told and "13 nodes are few" in told
    page = ds.rb.report(tmp_path / "run.html").read_text()
    assert "work done" in page and "Bjorken flow: boost-invariant along z" in page
    ds.rb.plot_attractor(0.3)
    names = {path.name for path in save_all(ds, tmp_path, ("png",))}
    assert "overview.png" in names and not any(name.startswith("box_") for name in names)


def test_energy_is_made_comoving_once():
    """Pictures of averages over a plane do so with what is one already."""
    grid = bjorken([6, 6, 9], [2.0, 2.0, 2.0], **TRANSVERSE)
    ds = solved(GAS, grid, {"a": almond}, start=0.4, end=0.8, every=0.2, regrid_times=[])
    once, volume = ds.rb.comoving(), ds.scale.prod("axis")
    expected = (ds.total_energy_total + ds.left_energy.sum("wall")) * volume + ds.energy_work
    assert once.energy_total.values == pytest.approx(expected.values, rel=1e-14)
    assert (comoving(once).energy_total == once.energy_total).all()
    mean = average(ds, left=True)
    assert (mean.number == ds.total_number).all()
    assert (box(mean, left=True).energy_total == once.energy_total).all()


def test_laws_have_words():
    from relboltz.visualization.report.run_description import expansion

    assert "H = 0.1/fm" in expansion("hubble", {"hubble_rate": 0.1})
    assert "a = t^0.5" in expansion("hubble", {"hubble_power": 0.5})
    assert expansion("hubble", {}) == "Hubble flow"
    assert "of mine.py:a" in expansion("mine.py:a", {})
