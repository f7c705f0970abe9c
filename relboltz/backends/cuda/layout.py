"""Layout of the small arrays of the CUDA backend, and numbers of threads.

``control`` (integers) and ``scalars`` hold every decision taken during steps. The names here are
positions in these arrays, in the table of channels and in the sums of a block. Kernels read them as
``k.NAME``; only sizes of shared arrays must be imported by name.
"""

from ...stepping.quanta import SUM_BITS
from .driver import SIMULATED

WARP = 1 if SIMULATED else 32
"""Threads of a warp, which exchange numbers without memory."""
THREADS = 8 if SIMULATED else 256
"""Threads per block."""
FEW = 2 if SIMULATED else 4
"""Cells per thread in kernels over tiles."""
TILE = FEW * THREADS
"""Cells per block in kernels over tiles."""
WIDE = 2 if SIMULATED else 1024
"""Threads of the single block that concludes a step."""
EACH = 8
"""Consecutive samples per thread: most share p, so that amounts at p are summed before adding."""
SPAN = EACH * THREADS
"""Samples per block."""

# --- control: integers --------------------------------------------------------------------------

(STATUS, STEP, CURRENT, SOURCE, TARGET, PHASE, PAST, ACCEPTED, WANT_RATES, FAULT, TROUBLED,
 NEEDED, SYMMETRICAL, THERMAL, AUTOMATIC, SINGLE, SEED, IMPORTANCE, NODES, SPECIES,
 ) = range(20)  # fmt: skip
"""CURRENT is the row of ``number`` that holds the state; a part of a step reads the row SOURCE and
writes the row TARGET, so that the state is preserved until the whole step is accepted. TROUBLED:
some site of the batch needs limits; NEEDED: number of the last step in which a site did."""
CONTROLS = 32
(GO, REJECTED, ARRIVED, LIMIT, FAULTY, NOT_FINITE, NO_MASSES, TOO_LONG, NO_LIMITS) = range(9)
TRIAL, REAL = 0, 1
NO_FAULT = 2**62
"""Value of FAULT if there is none; else FAULT is the first event block with an illegal matrix
element, counted over all sites."""

# --- scalars: floating-point numbers ------------------------------------------------------------

(TIME, STOP, NEAR, LENGTH, LASTS, WANTED, TOLERANCE, UNIT, LAST_LENGTH, NULL,
 NOISE, SCATTER, SIZE, NULL_MAX, LIMITED_SUM, LIMITED_MAX, P2_MIN, AT_REST, SCALE,
 PAST_1, PAST_2, CELL, EKT, RATES_NULL, P2_NEXT, CHANGED, ELAPSED, LIMITED, ERROR, RATIO,
 APART, SIZED) = range(32)  # fmt: skip
"""LENGTH is the length of the step, LASTS of one of its parts, PAST_1 and PAST_2 of the last two
steps. APART and SIZED are the contributions of one step to SCATTER and SIZE."""
SCALARS = 32

SPLIT = 2.0**22
"""Unit of the high part of sums that are exact in any order: each sum has a high part in this
unit and a low part in units of 1, both whole numbers stored in floating point."""

# --- squared masses and screening masses of all sites: rows of one array ------------------------

NOW, AT, USED, EXPECTED, PAST_RATE, EARLIER_RATE, PARTS = range(7)
"""Squared masses of the state, within the step, used in the current part and expected after it;
rates in the last two steps; first row of the parts."""
RATE, EARLIER, NEW = range(3)
"""Rows from PARTS on, for every part of a step: rates in the last two steps and in this one."""

# --- results for each site ----------------------------------------------------------------------

MOVED, DIFFERENCE, TOTAL = range(3)
"""Counts of a step in quanta (``stepping.step_report``)."""
COUNTS = 3
(TOLD_ALL, TOLD_LOST, TOLD_QUANTA, TOLD_APART, TOLD_SIZE, TOLD_LIMITED, TOLD_ILLEGAL) = range(7)
"""Weight drawn, weight lost, quanta to move, squared error of C, C^2, fraction that limits refused,
whether f is illegal."""
TOLD = 8
NEEDY, LIMITED_NOW, ILLEGAL, REDONE = range(4)
"""Flags of a site: the step needs limits; the current stage needs limits; a cell is illegal; limits
changed the first stage."""
TROUBLES = 4
COARSER, ALLOWANCE, REFUSED = range(3)
"""Limits of a site: coarsening factor of demands, fraction that may be used, fraction refused."""
BOUNDS = 3

# --- channels -----------------------------------------------------------------------------------

(K1, K2, K3, P, ONLY_P, ELEMENT, CLAMPS, EXCHANGE, SAMPLES, LEG_A, LEG_B, LEG_C, LEG_D,
 FIRST_BLOCK, LAST_BLOCK) = range(15)  # fmt: skip
PEAK, ANGLE_SPAN, FACTOR, MORE_3, MORE_P, REACH, SPACING, OWN = range(8)
"""Floating-point numbers of a channel; the parameters of its matrix element follow at OWN.

MORE_3, MORE_P, REACH: ``kinematics.scatter``; SPACING, squared: ``projection.compensation``."""
CHANNEL, SAMPLE, COUNT, SET = range(4)
"""Work of a block of threads: channel, first sample, number of samples, set."""
FIRST_STAGE, LAST_STAGE = range(2)
"""Stages of a step; ``change`` has a row for each set in the first stage, and one for the last."""

EVERYTHING, LOST, POSITIVE, BELOW, FORWARD, NET, MOVES, NEGATIVE = range(8)
"""Sums of a block while drawing; applying fills only FORWARD, NET and MOVES, and limits put the
refused flow in NEGATIVE.

POSITIVE and NEGATIVE are legal |M|^2 and flaws (``collisions.illegal``), BELOW is the weight of
physical collisions with |M|^2 < 0. While drawing, FORWARD and NET are flows of collisions, without
the part added by ``projection.compensation``."""
SUMS = 8
SHARED_SUMS = SUMS * THREADS
NEAR_BY = 576
"""Numbers of the mass equations that fit in shared memory: up to 19 species."""
LARGEST_SUM = 2.0**SUM_BITS
"""Most quanta that all events together may move, so that sums over cells fit in 64 bits."""

# --- moments: sums over a state -----------------------------------------------------------------

DISTANCE = 9
"""Position of |f - f_final| among the sums of ``transport.moments``."""
