"""Random numbers as pure functions of identity: Philox4x32-10 (Salmon et al., SC11).

``philox(counter, key)`` maps four counter words and two key words to four random words of 32
bits. The counter says who asks (sample, channel, step, space cell) and the key holds the seed,
so any thread, device or worker draws the same numbers, in any order, and after a restart.
"""

import numpy as np

MASK = np.uint64(0xFFFFFFFF)
HALF = np.uint64(32)
M0 = np.uint64(0xD2511F53)
M1 = np.uint64(0xCD9E8D57)
W0 = np.uint64(0x9E3779B9)
W1 = np.uint64(0xBB67AE85)
UNIT = 2.0**-32


def philox_round(c0, c1, c2, c3, k0, k1):
    """One round; words of 32 bits are held in 64, so that nothing depends on wrap-around."""
    p0 = M0 * (c0 & MASK)  # says that 32 x 32 bits are multiplied
    p1 = M1 * (c2 & MASK)
    return (p1 >> HALF) ^ c1 ^ k0, p1 & MASK, (p0 >> HALF) ^ c3 ^ k1, p0 & MASK


def philox(c0, c1, c2, c3, k0, k1):
    """Ten rounds: four words of 32 random bits. All arguments are uint64 below 2^32."""
    for _ in range(10):
        c0, c1, c2, c3 = philox_round(c0, c1, c2, c3, k0, k1)
        k0 = (k0 + W0) & MASK
        k1 = (k1 + W1) & MASK
    return c0, c1, c2, c3


def uniform(word):
    """A random word as a number strictly between 0 and 1."""
    return (word + 0.5) * UNIT
