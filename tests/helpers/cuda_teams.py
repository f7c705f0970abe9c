"""Differing bits between one GPU and workers with a part each, for the same small systems.

Run by ``cuda_agreement``; the workers are threads.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import begun
import numpy as np
from cuda_agreement import SMALL, hump, two_species, wind

import relboltz as rb
from relboltz.backends.team.division import Division
from relboltz.backends.team.exchange import ExchangeAborted, ThreadExchange
from relboltz.config.settings import Sampling
from relboltz.initial.functions import FromFunction
from relboltz.stepping.quanta import quantised
from relboltz.stepping.state import State
from relboltz.stepping.step import FIRST_STEP
from relboltz.transport.ledger import LostQuanta

TEAMS = {
    "workers in space": (
        rb.gluons(0.3), rb.PhaseSpace([2, 3, 3], 2.0, [4, 1, 1], 3.0, "open"),
        {"g": FromFunction(hump)}, 3, dict(step=0.1), (0.1,),
    ),
    "workers in space, two axes": (
        rb.gluons(0.3, masses={"g": 0.7}),
        rb.PhaseSpace([2, 3, 3], 2.0, [2, 2, 1], 3.0, ["open", "periodic", "open"]),
        {"g": FromFunction(wind)}, 2, dict(step=0.05), (0.05,),
    ),
    "workers at a site, rejected": (
        two_species(), rb.PhaseSpace([3, 3, 2], 1.5),
        {"a": rb.initial.random(0.0, 1.0, seed=2), "b": rb.initial.step(0.5, 1.0)}, 2,
        dict(tolerance=1e-5), (0.001, 0.0027),
    ),
    "workers at a site, limited": (
        rb.gluons(0.3, masses={"g": 0.7}), SMALL, {"g": rb.initial.random(0.05, 1.0, seed=3)}, 3,
        dict(step=0.1), (0.1,),
    ),
}  # fmt: skip
"""name: model, grid, start, number of workers, options of the course, stops."""


def teams(name: str) -> dict:
    """Return the names whose bits differ with workers; each worker is a thread."""
    from relboltz.backends.cuda.backend import CudaBackend
    from relboltz.backends.cuda.slab import CudaSlab

    model, grid, start, size, options, stops = TEAMS[name]
    f = rb.initial.evaluate(start, grid, model).reshape(grid.sites, len(model.species), -1)
    number, bits = quantised(f, model)
    step_plan = begun.course_of(grid, **options)
    division = Division.of(grid, size) if grid.sites > 1 else None

    def gone(exchange):
        given, sites = (grid, model, Sampling(samples=1), "float64"), slice(None)
        if exchange is None or division is None:
            backend = CudaBackend(*given, exchange=exchange)
        else:
            backend = CudaSlab(division, *given[1:], exchange)
            sites = division.sites(exchange.rank)
        backend.put(number[sites], bits)
        bare = np.append(model.constant_mass_squared, np.zeros(len(model.screenings)))
        squares = backend.masses(np.tile(bare, (grid.sites, 1)))
        state = State(bits, squares, len(model.species), FIRST_STEP, LostQuanta(grid, model))
        legs = [leg for stop in stops for leg in backend.advance(state, step_plan, stop)]
        told = [
            np.concatenate([leg.flows.forward, leg.flows.backward, leg.flows.signed.ravel()])
            for leg in legs
            if leg.flows is not None
        ]
        lengths = [(leg.length, leg.null_weight) for leg in legs]
        return state.packed() | {"told": np.array(told), "legs": np.array(lengths)}, backend.get()

    def together(exchange):
        try:
            return gone(exchange)
        except ExchangeAborted:
            raise
        except Exception:
            exchange.give_up()
            raise

    begun.take_turns()
    alone, numbers = gone(None)
    with ThreadPoolExecutor(size) as pool:
        found = list(pool.map(together, ThreadExchange.among(size)))
    whole = np.concatenate([one[1] for one in found]) if division else found[0][1]
    differ = [] if whole.tobytes() == numbers.tobytes() else ["numbers"]
    for told, _ in found:
        differ += [key for key, value in alone.items() if value.tobytes() != told[key].tobytes()]
    watch = State.unpacked(alone, LostQuanta(grid, model)).watch
    return {
        "differ": differ,
        "steps": watch.steps,
        "limited": watch.limited_max,
        "lengths": alone["legs"][:, 0].tolist(),
        "left": float(sum(value.sum() for key, value in alone.items() if key.startswith("left"))),
        "moved": float(np.abs(whole - number).max() / number.max()),
    }
