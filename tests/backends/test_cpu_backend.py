"""All sites on the CPU: threads change no bit, sites are shared out or done one by one."""

import numpy as np
import pytest
from begun import advanced, backend_of, begun

import relboltz as rb


def hump(x, y, z, px, py, pz):
    return 0.4 * np.exp(-(px**2) / 1.2 - py**2 - pz**2) * (1 + 0.5 * np.cos(np.pi * x / 3))


@pytest.mark.parametrize("cells", [[1, 1, 1], [2, 1, 1], [4, 3, 1]], ids=str)
def test_the_number_of_threads_changes_no_bit(cells):
    """Fewer sites than threads: all threads at one; more: a site for each."""
    grid = rb.PhaseSpace(7, 2.0, cells, 3.0, "open")
    start = {"g": rb.initial.from_function(hump) if grid.sites > 1 else rb.initial.step(0.5, 1.5)}
    results = []
    for threads in (1, 2, 3):
        backend, state = begun(grid, rb.gluons(0.3), start, samples=4, threads=threads)
        assert len(backend.colliders) == (1 if threads > grid.sites else threads)
        for _ in range(2):
            advanced(backend, state, 0.05)
        moments = backend.moments(state.squares, np.zeros((1, grid.size)))
        results.append((backend.get().copy(), state.squares, moments.sums, state.watch.noise))
    for other in results[1:]:
        assert all(np.array_equal(a, b) for a, b in zip(results[0], other, strict=True))


def test_words_tell_the_threads():
    grid, model = rb.PhaseSpace(5, 2.0), rb.gluons(0.3)
    words = [backend_of(grid, model, threads=n).description for n in (1, 3)]
    assert words == ["cpu, 1 thread, float64", "cpu, 3 threads, float64"]


def test_masses_that_do_not_converge_name_the_space_cell():
    """By its number among all of the run."""
    grid = rb.PhaseSpace(4, 1.0, [2, 1, 1], 1.0)
    model = rb.Model([rb.Species("a", 1, 0)], [], mass_coupling=np.array([[-1e9]]))
    f = np.zeros((2, 1, grid.size))
    f[1] = 1.0
    with pytest.raises(rb.RunError, match="do not converge in space cell 1: check"):
        begun(grid, model, f)
