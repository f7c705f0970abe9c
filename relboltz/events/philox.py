"""Counter-based random numbers: Philox4x32-10 (Salmon et al., SC11).

``philox(counter, key)`` maps four counter words and two key words to four random words of 32
bits. The counter identifies the sample (sample, channel, step, space cell) and the key holds the
seed, so any thread, device or worker draws the same numbers, in any order and after a restart.
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
    """Do one round; 32-bit words are stored in 64 bits, so that nothing depends on wrap-around."""
    p0 = M0 * (c0 & MASK)  # tells the compiler that this is a 32 x 32 bit product
    p1 = M1 * (c2 & MASK)
    return (p1 >> HALF) ^ c1 ^ k0, p1 & MASK, (p0 >> HALF) ^ c3 ^ k1, p0 & MASK


def philox(c0, c1, c2, c3, k0, k1):
    """Do ten rounds; return four words of 32 random bits. Arguments are uint64 below 2^32."""
    for _ in range(10):
        c0, c1, c2, c3 = philox_round(c0, c1, c2, c3, k0, k1)
        k0 = (k0 + W0) & MASK
        k1 = (k1 + W1) & MASK
    return c0, c1, c2, c3


def uniform(word):
    """Map a random word to a number strictly between 0 and 1."""
    return (word + 0.5) * UNIT
