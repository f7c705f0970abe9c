"""Doubling of the momentum spacing along an axis in expanding matter.

In anisotropic expansion the comoving momentum range shrinks as 1/a along an axis, whereas the
momenta of colliding matter do not. Every column of nodes along the axis is moved to new nodes,
twice as far apart: f is interpolated to the new nodes, and f/F multiplied by
exp(alpha + beta p + gamma E) such that number, momentum and energy of the column are unchanged;
f then stays legal for both bosons and fermions. Quanta are made smaller, so that number and
momentum are conserved to the last quantum.
"""

from concurrent.futures import ThreadPoolExecutor
from math import exp, expm1, log, sqrt

import numpy as np

from ..grid.phase_space import PhaseSpace
from ..model.model import Model
from ..util.arrays import Array, Integers
from ..util.jit import kernel
from .quanta import capacities

TRIES = 40
CLOSE = 1e-13
"""Relative miss of number, momentum and energy at which a column counts as matched."""
FAINT = 1e-250


def more_bits(cells: int) -> int:
    """Return the binary digits that quanta gain, beyond the digit for the spacing itself.

    cells : nodes along the axis. Old nodes lie half or a quarter of the way between new ones, and
        the extra digits keep the split quanta whole.
    """
    return 1 if cells % 2 else 2


def _split(old, extra, new):
    """Split every old node between its two new neighbours, conserving number and momentum."""
    m = old.size
    for j in range(m):
        new[j] = 0
    for i in range(m):
        twice = 2 * i + m - 1  # four times its position among the new nodes
        j, rest = twice // 4, twice % 4
        parts = old[i] * (2 if extra == 1 else 4)
        right = parts * rest // 4
        new[j] += parts - right
        if rest:
            new[j + 1] += right


def _taken(old, scale, eta, guess):
    """Interpolate ln(f/F) cubically to the new nodes; -inf where f vanishes."""
    m = old.size
    for j in range(m):
        guess[j] = -np.inf
        twice = 4 * j - (m - 1)  # twice its position among the old nodes
        if twice < 0 or twice > 2 * (m - 1):
            continue
        i = twice // 2
        if twice % 2 == 0:
            f = old[i] * scale
            if f > FAINT:
                guess[j] = log(f) - log(max(1.0 + eta * f, FAINT))
            continue
        a, b = old[i] * scale, old[i + 1] * scale
        if not (a > FAINT and b > FAINT):
            f = 0.5 * (a + b)
            if f > FAINT:
                guess[j] = log(f) - log(max(1.0 + eta * f, FAINT))
            continue
        la = log(a) - log(max(1.0 + eta * a, FAINT))
        lb = log(b) - log(max(1.0 + eta * b, FAINT))
        value = 0.5 * (la + lb)
        if 0 < i and i + 2 < m:
            c, d = old[i - 1] * scale, old[i + 2] * scale
            if c > FAINT and d > FAINT:
                lc = log(c) - log(max(1.0 + eta * c, FAINT))
                ld = log(d) - log(max(1.0 + eta * d, FAINT))
                value = (9.0 * (la + lb) - lc - ld) / 16.0
        guess[j] = value


def _occupied(x, eta):
    """Return f from ln(f/F) = x; negative where no boson state has this x."""
    if eta > 0.0:
        return 1.0 / expm1(-x) if x < 0.0 else -1.0
    return 1.0 / (exp(-x) - eta)


def _sums(tilt, guess, p, e, eta, f, s):
    """Fill f and its sums: number, momentum, energy and their derivatives; return if f is legal."""
    for i in range(9):
        s[i] = 0.0
    for j in range(p.size):
        f[j] = 0.0
        if guess[j] > -np.inf:
            x = guess[j] + tilt[0] + tilt[1] * p[j] + tilt[2] * e[j]
            f[j] = occupied(x, eta)
            if not 0.0 <= f[j] < 1e300:
                return False
            g = f[j] * (1.0 + eta * f[j])
            s[0] += f[j]
            s[1] += f[j] * p[j]
            s[2] += f[j] * e[j]
            s[3] += g
            s[4] += g * p[j]
            s[5] += g * e[j]
            s[6] += g * p[j] * p[j]
            s[7] += g * p[j] * e[j]
            s[8] += g * e[j] * e[j]
    return True


def _missed(s, goal, size):
    """Return the largest mismatch, relative to number, to the sum of |p| and to energy."""
    worst = abs(s[0] - goal[0]) / goal[0]
    worst = max(worst, abs(s[1] - goal[1]) / size[0])
    return max(worst, abs(s[2] - goal[2]) / size[1])


def _solve3(s, goal, size, step):
    """Compute the Newton step in units where p and E are about 1, with a tiny diagonal shift."""
    u, v = size[0] / goal[0], size[1] / goal[0]
    a00, a01, a02 = s[3], s[4] / u, s[5] / v
    a11, a12, a22 = s[6] / (u * u), s[7] / (u * v), s[8] / (v * v)
    salt = 1e-12 * (a00 + a11 + a22)
    a00, a11, a22 = a00 + salt, a11 + salt, a22 + salt
    b0, b1, b2 = goal[0] - s[0], (goal[1] - s[1]) / u, (goal[2] - s[2]) / v
    d0 = a11 * a22 - a12 * a12
    d1 = a02 * a12 - a01 * a22
    d2 = a01 * a12 - a02 * a11
    det = a00 * d0 + a01 * d1 + a02 * d2
    step[0] = (d0 * b0 + d1 * b1 + d2 * b2) / det
    step[1] = (d1 * b0 + (a00 * a22 - a02 * a02) * b1 + (a01 * a02 - a00 * a12) * b2) / det / u
    step[2] = (d2 * b0 + (a01 * a02 - a00 * a12) * b1 + (a00 * a11 - a01 * a01) * b2) / det / v


def _repaired(number, goal_number, goal_moment, capacity):
    """Correct number and momentum of rounded quanta exactly; return whether that is possible.

    goal_moment : sum of n (2j - (m - 1))
    """
    m = number.size
    total, moment, top = 0, 0, 0
    for j in range(m):
        total += number[j]
        moment += number[j] * (2 * j - (m - 1))
        if number[j] > number[top]:
            top = j
    change = goal_number - total
    moment += change * (2 * top - (m - 1))
    number[top] += change
    moves = goal_moment - moment
    if moves % 2:
        return False
    moves //= 2
    near = top + 1 if moves > 0 else top - 1
    if moves != 0:
        if near < 0 or near >= m:  # use the neighbour on the other side
            near = top
            top = top - 1 if moves > 0 else top + 1
        number[top] -= abs(moves)
        number[near] += abs(moves)
    legal = True
    for j in range(m):
        legal = legal and 0 <= number[j] <= capacity
    return legal


split = kernel(_split, inlined=True)
taken = kernel(_taken, inlined=True)
occupied = kernel(_occupied, inlined=True)
sums = kernel(_sums, inlined=True)
missed = kernel(_missed, inlined=True)
solve3 = kernel(_solve3, inlined=True)
repaired = kernel(_repaired, inlined=True)


@kernel
def widen(old, extra, scales, p2, momenta, eta, capacity, new):
    """Regrid the columns (rows, nodes) of one species at one site to twice the spacing.

    scales : f of an old and of a new quantum; p2 : m^2 plus the squared transverse momentum of
    every row; momenta : those of the old and of the new nodes.
    """
    m = old.shape[1]
    before, after = momenta
    guess, f, e = np.empty(m), np.empty(m), np.empty(m)
    s, goal, size = np.empty(9), np.empty(3), np.empty(2)
    tilt, trial, step = np.zeros(3), np.zeros(3), np.zeros(3)
    for row in range(old.shape[0]):
        column, out = old[row], new[row]
        split(column, extra, out)  # exact number and momentum, though slightly too wide
        whole, moment = 0, 0
        for j in range(m):
            whole += out[j]
            moment += out[j] * (2 * j - (m - 1))
        if whole == 0:
            continue
        goal[0], goal[1], goal[2], size[0] = 0.0, 0.0, 0.0, 0.0
        for i in range(m):
            share = 0.5 * column[i] * scales[0]
            goal[0] += share
            goal[1] += share * before[i]
            goal[2] += share * sqrt(before[i] ** 2 + p2[row])
            size[0] += share * abs(before[i])
        size[0], size[1] = max(size[0], 1e-12 * goal[2]), goal[2]
        for j in range(m):
            e[j] = sqrt(after[j] ** 2 + p2[row])
        taken(column, scales[0], eta, guess)
        for i in range(3):
            tilt[i] = 0.0
        if size[1] <= 0.0 or not sums(tilt, guess, after, e, eta, f, s) or not s[0] > 0.0:
            continue
        miss = missed(s, goal, size)
        for _ in range(TRIES):
            if miss <= CLOSE:
                break
            solve3(s, goal, size, step)
            length, found = 1.0, False
            for _ in range(30):
                for i in range(3):
                    trial[i] = tilt[i] + length * step[i]
                if sums(trial, guess, after, e, eta, f, s) and s[0] > 0.0:
                    now = missed(s, goal, size)
                    if now < miss:
                        miss, found = now, True
                        break
                length *= 0.5
            if not found:
                break
            for i in range(3):
                tilt[i] = trial[i]
        legal = sums(tilt, guess, after, e, eta, f, s)
        if not legal or miss > 1e-6:
            continue
        spare = guess  # no longer needed
        for j in range(m):
            spare[j] = float(out[j])
            out[j] = np.int64(np.rint(f[j] / scales[1]))
        if not repaired(out, whole, moment, capacity):
            for j in range(m):
                out[j] = np.int64(spare[j])
            split(column, extra, out)


def widened(
    number: Integers, bits: int, grid: PhaseSpace, model: Model, squares: Array, axis: int,
    threads: int = 0,
) -> tuple[Integers, int, Array]:  # fmt: skip
    """Return a state (sites, species, nodes) regridded to twice the spacing along an axis.

    squares : squared masses at these sites; grid : the present grid; threads : 0 for all cores.
    Also returns the new bits, and the energy of every site before and after, in equal units:
    columns that are too coarse change their energy.
    """
    m = grid.momentum_cells[axis]
    extra = more_bits(m)
    fine = bits + 1 + extra
    wide = grid.scaled(tuple(2.0 if i == axis else 1.0 for i in range(3)))  # type: ignore[arg-type]
    across = [grid.axis(i) ** 2 for i in range(3) if i != axis]
    transverse = (across[0][:, None] + across[1][None, :]).ravel()
    momenta = grid.axis(axis), wide.axis(axis)
    capacity = capacities(model, fine)
    result = np.empty_like(number)
    energies, shape = np.zeros((len(number), 2)), (len(model.species), *grid.momentum_cells)

    def at(site: int) -> None:
        cube = np.moveaxis(number[site].reshape(shape), axis + 1, 3)
        there = np.moveaxis(result[site].reshape(shape), axis + 1, 3)
        for a, species in enumerate(model.species):
            old = np.ascontiguousarray(cube[a].reshape(-1, m))
            new = np.zeros_like(old)
            scales = (2.0**-bits / species.degeneracy, 2.0**-fine / species.degeneracy)
            p2 = transverse + squares[site, a]
            statistics = float(species.statistics)
            widen(old, extra, scales, p2, momenta, statistics, capacity[a], new)
            there[a] = new.reshape(there[a].shape)
            energies[site, 0] += _energy(old, p2, momenta[0]) * 2.0**extra
            energies[site, 1] += _energy(new, p2, momenta[1])

    with ThreadPoolExecutor(threads or None) as pool:
        for _ in pool.map(at, range(len(number))):
            pass
    return result, fine, energies


@kernel
def _energy(number, p2, momenta):
    """Sum n E over columns."""
    total = 0.0
    for row in range(number.shape[0]):
        for j in range(number.shape[1]):
            total += number[row, j] * sqrt(p2[row] + momenta[j] ** 2)
    return total
