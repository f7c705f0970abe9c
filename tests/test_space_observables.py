"""Records in space: the balance of momentum on the grid, the energy source."""

import numpy as np
import pytest

import relboltz as rb

QUIET = dict(backend="cpu", progress=False)


def gas(collide=False):
    """Particles of constant mass."""
    processes = [rb.Process("a a -> a a", lambda s: 400.0 * s)] if collide else []
    return rb.Model([rb.Species("a", 2, 0)], processes, masses={"a": 0.3})


def changes(ds, axis):
    """d_t of the momentum (3, sites) at the last record but one, and d_x of a quantity there."""
    place = "xyz"[axis]
    dx = float(ds[place][1] - ds[place][0])
    t = ds.time.values
    rate = (ds.momentum.values[-1] - ds.momentum.values[-3]) / (t[-1] - t[-3])

    def along(values):
        return ((values.roll({place: -1}) - values.roll({place: 1})) / (2 * dx)).values.reshape(-1)

    return rate.reshape(3, -1), along


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_a_linear_profile_changes_by_exactly_the_divergence_of_the_flux(axis):
    """d_t T^{0i} = -d_j flux^{ij} to rounding, i, j = x, y, z; with p/E it is wrong by O(dp^2).

    Far from the walls a profile linear in x stays linear, so that nothing depends on dx or dt.
    """
    cells = [1, 1, 1]
    cells[axis] = 96
    grid = rb.PhaseSpace([6, 5, 4], 2.0, cells, 24.0, "open")

    def start(x, y, z, px, py, pz):
        place = (x, y, z)[axis]
        return (1 + 0.03 * place) * np.exp(-np.sqrt(0.1 + px**2 + py**2 + pz**2 - 0.5 * px * py
                                                   + 0.3 * pz * px + 0.4 * py * pz))  # fmt: skip

    shape = {"a": rb.initial.from_function(start, sampling="node")}
    ds = rb.solve(gas(), grid, shape, end=0.2, step=0.1, every=0.1, **QUIET)
    rate, along = changes(ds, axis)
    now, middle = ds.isel(time=-2), slice(47, 49)
    scale = np.abs(rate[:, middle]).max()
    for i, name in enumerate("xyz"):
        flux = along(now.momentum_flux.sel(axis=name, axis2="xyz"[axis]))
        assert rate[i, middle] == pytest.approx(-flux[middle], abs=1e-10 * scale)
    tensor = along(now.energy_momentum.sel(mu="xyz"[axis], nu="xyz"[axis]))
    assert np.abs(rate[axis, middle] + tensor[middle]).min() > 0.01 * scale


@pytest.mark.parametrize("collide", [False, True])
def test_the_balance_of_momentum_holds_with_the_flux_of_the_grid(collide):
    """d_t T^{0x} + d_x flux^{xx} falls as dx^2 on fixed momentum nodes, streaming or colliding.

    With T^{xx} instead it tends to a limit: its velocities p/E are not those of the transport.
    """

    def wave(x, y, z, px, py, pz):
        return 0.3 * np.exp(0.5 * np.sin(np.pi * x / 3) - (px - 0.2) ** 2 - py**2 - pz**2)

    flux, tensor = [], []
    for n in (16, 32, 64):
        grid = rb.PhaseSpace(5, 2.0, [n, 1, 1], 3.0)
        ds = rb.solve(
            gas(collide), grid, {"a": rb.initial.from_function(wave, sampling="node")},
            end=0.4 + 1.6 / n, step=1.6 / n, every=1.6 / n, samples=64, **QUIET,
        )  # fmt: skip
        rate, along = changes(ds, 0)
        now = ds.isel(time=-2)
        scale = np.abs(rate[0]).max()
        for apart, values in (
            (flux, now.momentum_flux.sel(axis="x", axis2="x")),
            (tensor, now.energy_momentum.sel(mu="x", nu="x")),
        ):
            apart.append(np.abs(rate[0] + along(values)).max() / scale)
    assert flux[0] / flux[1] > 3.5 and flux[1] / flux[2] > 3.5 and flux[2] < 0.005
    assert tensor[2] > 0.015 and tensor[2] > 0.8 * tensor[1]


def test_with_thermal_masses_the_pressure_of_the_field_makes_up_for_the_force():
    """d_t T^{0x} + d_x (flux^{xx} + B), B = E_kin - E_total, falls with dx and dp together."""

    def hump(x, y, z, px, py, pz):
        return 0.4 * np.exp(-(px**2) / 1.2 - py**2 - pz**2) * (1 + 0.5 * np.cos(np.pi * x / 3))

    left, force = [], []
    for n, nodes in ((8, 8), (16, 16)):
        grid = rb.PhaseSpace(nodes, 3.2, [n, 1, 1], 3.0)
        ds = rb.solve(
            rb.gluons(0.3), grid, {"g": rb.initial.from_function(hump, sampling="node")},
            end=6.4 / n, step=0.8 / n, every=0.8 / n, samples=1, **QUIET,
        )  # fmt: skip
        rate, along = changes(ds, 0)
        now = ds.isel(time=-2)
        flux = along(now.momentum_flux.sel(axis="x", axis2="x"))
        field = along(now.energy_kinetic - now.energy_total)
        scale = np.abs(rate[0]).max()
        left.append(np.abs(rate[0] + flux + field).max() / scale)
        force.append(np.abs(rate[0] + flux).max() / scale)
    assert left[1] < 0.4 * left[0] and left[1] < 0.15 * force[1]


def test_the_flux_of_momentum_is_that_of_f_and_not_symmetric():
    """Nine components in every cell, their averages, and the limit T^{ij} of fine nodes."""
    grid = rb.PhaseSpace([6, 5, 4], 2.0, [4, 3, 1], 3.0, ["periodic", "open", "periodic"])

    def tilted(x, y, z, px, py, pz):
        return np.exp(
            0.1 * x - (px - 0.3) ** 2 - (py - 0.2) ** 2 - pz**2 + 0.5 * px * py + 0.2 * pz
        )

    ds = rb.solve(
        rb.gluons(0.3), grid, {"g": tilted}, end=0.1, every=0.1, samples=1, snapshots=[0.1],
        **QUIET,
    )  # fmt: skip
    assert ds.momentum_flux.dims == ("time", "axis", "axis2", "x", "y", "z")
    f = ds.f.values[-1, 0, 2, 1, 0].ravel()
    m2 = float(ds.mass_squared.values[-1, 0, 2, 1, 0])
    p = grid.momenta
    for j in range(3):
        half = np.eye(3)[j][:, None] * grid.spacing[j] / 2
        high, low = (np.sqrt(((p + s * half) ** 2).sum(axis=0) + m2) for s in (1, -1))
        expected = 16 * grid.measure * (p * f * (high - low) / grid.spacing[j]).sum(axis=1)
        found = ds.momentum_flux.values[-1, :, j, 2, 1, 0]
        assert found == pytest.approx(expected, rel=1e-9, abs=1e-12)
    flux = ds.momentum_flux.isel(time=-1, x=2, y=1, z=0)
    assert abs(float(flux[0, 1] / flux[1, 0] - 1)) > 1e-3
    assert np.allclose(ds.total_momentum_flux, ds.momentum_flux.mean(("x", "y", "z")), rtol=1e-12)


def test_the_source_in_space_is_of_second_order_from_the_start_on():
    """Streaming and force, no collisions: errors at all sites fall by four when dt is halved."""

    def flowing(x, y, z, px, py, pz):
        f = np.exp(-((px - 0.4) ** 2) / 1.2 - py**2 - pz**2)
        return 0.4 * f * (1 + 0.5 * np.cos(np.pi * x / 3))

    model = rb.Model([rb.Species("g", 16, 1)], [], mass_coupling=rb.gluons(0.3).mass_coupling)
    grid = rb.PhaseSpace(7, 2.0, [6, 1, 1], 3.0)
    found = []
    for steps in (8, 16, 32, 64):
        ds = rb.solve(
            model, grid, {"g": flowing}, end=0.8, step=0.8 / steps, every=0.4, **QUIET
        )  # fmt: skip
        found.append(ds.source.values[..., 0, 0])
    apart = np.abs(np.diff(found, axis=0)).max(axis=2)  # (halvings, times)
    orders = np.log2(apart[:-1] / apart[1:])
    assert (orders > 1.7).all(), orders
    assert (apart[-1] < 2e-4 * np.abs(found[-1]).max()).all()
