"""qcd(flavor_symmetric=True): one species stands for all quarks, with the same physics."""

import inspect
import math

import numpy as np
import pytest

import relboltz as rb
from relboltz.model.qcd import qcd
from relboltz.util.errors import InputError


def kind(process):
    """The process of alike quarks that one between flavours is a part of."""
    legs = ["g" if leg == "g" else "q" for leg in process.legs]
    return f"{legs[0]} {legs[1]} -> {legs[2]} {legs[3]}"


def element(process, s, t, u, screening2):
    """|M|^2 of a row for massless particles, both forms of screening with q^2 = -t, -u."""
    ratio_t, ratio_u = t - screening2, u - screening2
    known = {
        "s": s, "t": t, "u": u, "t_regulated": t - screening2, "u_regulated": u - screening2,
        "t_screened": ratio_t, "u_screened": ratio_u, "t_exchanged": ratio_t,
        "u_exchanged": ratio_u, **process.parameters,
    }  # fmt: skip
    names = inspect.signature(process.matrix_element).parameters
    return process.matrix_element(*(known[name] for name in names))


@pytest.mark.parametrize("screening", ["thermal", "ekt"])
@pytest.mark.parametrize("flavors", [1, 2, 3])
def test_elements_are_sums_over_all_flavours(flavors, screening):
    """Sum of w |M|^2 of the table over the flavours, t and u exchanged where legs are equal."""
    full = qcd(0.3, flavors, screening=screening)
    few = {
        p.name: p for p in qcd(0.3, flavors, screening=screening, flavor_symmetric=True).processes
    }
    s, t, m2 = 2.3, -0.7, 0.4
    u = -s - t
    for name, process in few.items():
        parts = [p for p in full.processes if kind(p) == name]
        swapped = process.identical  # legs that may be called either k3 or p

        def total(t, u, parts=parts):
            return sum(p.multiplicity * element(p, s, t, u, m2) for p in parts)

        expected = 0.5 * (total(t, u) + total(u, t)) if swapped else total(t, u)
        found = process.multiplicity * element(process, s, t, u, m2)
        assert found == pytest.approx(expected, rel=1e-13), name
    assert set(map(kind, full.processes)) == set(few)


@pytest.mark.parametrize("flavors", [1, 2, 3])
def test_masses_and_screening_are_those_of_every_flavour(flavors):
    """Y of q is that of all 2 N_f quarks and antiquarks."""
    full, few = qcd(0.3, flavors), qcd(0.3, flavors, flavor_symmetric=True)
    y = np.array([0.2] + [0.03] * (2 * flavors))
    total = np.array([0.2, 0.03 * 2 * flavors])
    assert few.mass_squared(total) == pytest.approx(full.mass_squared(y)[:2], rel=1e-14)
    assert few.screening_squared(total) == pytest.approx(full.screening_squared(y), rel=1e-14)
    ekt = [qcd(0.3, flavors, "massless", "ekt", flavor_symmetric=a) for a in (False, True)]
    one, other = (sorted(set(m.screening_squared(v).round(12)))
                  for m, v in zip(ekt, (y, total), strict=True))  # fmt: skip
    assert one == pytest.approx(other, rel=1e-11)


GRID = rb.PhaseSpace(10, 2.5)
GLUONS, QUARKS = rb.initial.step(0.5, 1.5), rb.initial.gaussian(0.4, [0.6, 0.7, 0.8])


def starts():
    return [
        (qcd(0.3), {"g": GLUONS, "quarks": QUARKS, "antiquarks": QUARKS}),
        (qcd(0.3, flavor_symmetric=True), {"g": GLUONS, "quarks": QUARKS}),
    ]


def test_collisions_have_the_rates_of_all_flavours_together():
    """Within four standard errors, there and back; and so has what they do to <p^4>."""
    terms = [
        rb.collision_term(model, GRID, start, samples=n, batches=12, backend="cpu")
        for (model, start), n in zip(starts(), (16, 128), strict=True)
    ]
    full, few = terms
    model, alike = qcd(0.3), qcd(0.3, flavor_symmetric=True)
    for way in ("rate", "rate_reverse"):
        for i, process in enumerate(alike.processes):
            part = [k for k, p in enumerate(model.processes) if kind(p) == process.name]
            # u ubar -> d dbar and its reverse are both collisions of q q -> q q
            back = [k for k in part if process.elastic and not model.processes[k].elastic]
            reverse = "rate_reverse" if way == "rate" else "rate"
            value = full[way].values[part].sum() + full[reverse].values[back].sum()
            squares = [np.square(full[f"{w}_error"].values[k]).sum()
                       for w, k in ((way, part), (reverse, back))]  # fmt: skip
            error = math.hypot(math.sqrt(sum(squares)), few[f"{way}_error"].values[i])
            assert abs(few[way].values[i] - value) < 4 * error, (way, process)
            assert error < 0.03 * value
    p4 = (GRID.momentum_squared**2).reshape(GRID.momentum_cells)
    for species, of in (("g", ["g"]), ("q", list(qcd(0.3).names[1:]))):
        means, errors = [], []
        for ds, some in ((full, of), (few, [species])):
            rows = ds.sel(species=some)
            means.append(float((rows.collision_term.mean("species") * p4).sum()))
            variance = (np.square(rows.error) * p4**2).sum() / len(some) ** 2
            errors.append(float(np.sqrt(variance)))
        assert abs(means[0] - means[1]) < 4 * math.hypot(*errors), species


def test_a_run_ends_in_the_same_state_with_the_same_numbers():
    """Numbers at all records within the scatter of the seeds, and the predicted end alike."""
    found = []
    for model, start in starts():
        runs = [
            rb.solve(
                model, rb.PhaseSpace(8, 2.5), start, end=0.6, every=0.3, samples=8, seed=seed,
                backend="cpu", progress=False,
            )
            for seed in (1, 2, 3)
        ]  # fmt: skip
        g = np.array([ds.number.sel(species="g").values for ds in runs])
        everything = np.array([ds.number.sum("species").values for ds in runs])
        assert np.ptp(everything) <= 1e-12 * everything.max()
        found.append((g, everything, runs[0]))
    (g1, n1, full), (g2, n2, few) = found
    assert n1[0] == pytest.approx(n2[0], rel=1e-12)
    scatter = np.sqrt(g1.var(axis=0, ddof=1) / 3 + g2.var(axis=0, ddof=1) / 3)
    moved = abs(g1.mean(axis=0)[-1] - g1[0, 0])
    assert np.all(abs(g1.mean(axis=0) - g2.mean(axis=0)) <= 5 * scatter + 1e-12)
    assert scatter[-1] < 0.05 * moved
    for name in ("temperature", "mass_squared", "chemical_potential", "number"):
        one, other = full[f"equilibrium_{name}"], few[f"equilibrium_{name}"]
        if "species" in one.dims:
            q = one.sel(species="u") * (6 if name == "number" else 1)
            assert float(other.sel(species="q")) == pytest.approx(float(q), rel=1e-8)
            one, other = one.sel(species="g"), other.sel(species="g")
        assert float(other) == pytest.approx(float(one), rel=1e-8)
    assert few.energy_total.values[0] == pytest.approx(full.energy_total.values[0], rel=1e-12)
    assert few.entropy.values[0] == pytest.approx(full.entropy.values[0], rel=1e-12)


def test_viscosity_is_that_of_all_flavours():
    """Four standard errors of either."""
    one, other = (
        rb.transport_coefficients(m, 0.4, events=60_000, backend="cpu")
        for m in (qcd(0.3), qcd(0.3, flavor_symmetric=True))
    )
    apart = float(one.shear_viscosity - other.shear_viscosity)
    error = math.hypot(float(one.shear_viscosity_error), float(other.shear_viscosity_error))
    assert abs(apart) < 4 * error
    assert error < 0.03 * float(one.shear_viscosity)
    assert float(other.entropy) == pytest.approx(float(one.entropy), rel=1e-10)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"flavor_symmetric": "yes"}, r"model\.flavor_symmetric = 'yes': use true or false"),
        ({"flavor_symmetric": True, "flavors": 0}, "no quarks with flavors = 0"),
    ],
)
def test_what_cannot_be_alike_is_named(given, message):
    with pytest.raises(InputError, match=message):
        qcd(0.3, **given)


def test_antiquarks_have_no_start_of_their_own():
    with pytest.raises(InputError, match="antiquarks"):
        rb.solve(
            qcd(0.3, flavor_symmetric=True), 9, {"quarks": QUARKS, "antiquarks": QUARKS}, end=0.1,
            backend="cpu", progress=False,
        )  # fmt: skip
