"""What the small arrays of the CUDA backend hold, and how many threads work together.

``control`` (whole numbers) and ``scalars`` hold everything that is decided during steps; names
here are positions in them, in the table of channels and in the sums of a block. Kernels read them
as ``k.NAME``; only sizes of shared arrays must be imported by name.
"""

from ...stepping.quanta import SUM_BITS
from .driver import SIMULATED

WARP = 1 if SIMULATED else 32
"""Threads that exchange numbers without memory."""
THREADS = 8 if SIMULATED else 256
"""Threads of a block."""
FEW = 2 if SIMULATED else 4
"""Cells of a thread in kernels that add up cells."""
TILE = FEW * THREADS
"""Cells of a block there."""
WIDE = 2 if SIMULATED else 1024
"""Threads of the one block that concludes a step."""
EACH = 8
"""Consecutive samples of a thread: they mostly share p, which is added up before it is moved."""
SPAN = EACH * THREADS
"""Samples of a block."""

# --- control: whole numbers ---------------------------------------------------------------------

(STATUS, STEP, CURRENT, SOURCE, TARGET, PHASE, PAST, ACCEPTED, WANT_RATES, FAULT, TROUBLED,
 NEEDED, SYMMETRICAL, THERMAL, AUTOMATIC, SINGLE, SEED, IMPORTANCE, NODES, SPECIES,
 ) = range(20)  # fmt: skip
"""CURRENT is the row of numbers that holds the state; a part of a step reads the row SOURCE and
writes the row TARGET, so that the state itself stays until the whole step stands. TROUBLED: some
site at work needs limits; NEEDED: number of the last step in which one did."""
CONTROLS = 32
(GO, REJECTED, ARRIVED, LIMIT, FAULTY, NOT_FINITE, NO_MASSES, TOO_LONG, NO_LIMITS) = range(9)
TRIAL, REAL = 0, 1
NO_FAULT = 2**62
"""FAULT is the first event block, of all sites, with an illegal matrix element."""

# --- scalars: floating-point numbers ------------------------------------------------------------

(TIME, STOP, NEAR, LENGTH, LASTS, WANTED, TOLERANCE, UNIT, LAST_LENGTH, NULL,
 NOISE, SCATTER, SIZE, NULL_MAX, LIMITED_SUM, LIMITED_MAX, P2_MIN, AT_REST, SCALE,
 PAST_1, PAST_2, CELL, EKT, RATES_NULL, P2_NEXT, CHANGED, ELAPSED, LIMITED, ERROR, RATIO,
 APART, SIZED) = range(32)  # fmt: skip
"""LENGTH is that of the step, LASTS that of one of its parts; PAST_1 and PAST_2 of the last two
steps. APART and SIZED: what one step adds to SCATTER and SIZE."""
SCALARS = 32

SPLIT = 2.0**22
"""Sums in any order: as two whole numbers in floating point, of which one counts this many units,
so that all of them are exact."""

# --- squared masses and screening masses of all sites: rows of one array ------------------------

NOW, AT, USED, EXPECTED, PAST_RATE, EARLIER_RATE, PARTS = range(7)
"""Of the state, within the step, in the part at hand, after it; rates in the last two steps."""
RATE, EARLIER, NEW = range(3)
"""From PARTS on, for every part of a step: rates in the last two steps, and in this one."""

# --- what is known of a site --------------------------------------------------------------------

MOVED, DIFFERENCE, TOTAL = range(3)
"""Counts of a step in quanta: see ``stepping.step_report``."""
COUNTS = 3
(TOLD_ALL, TOLD_LOST, TOLD_QUANTA, TOLD_APART, TOLD_SIZE, TOLD_LIMITED, TOLD_ILLEGAL) = range(7)
"""Weight drawn and lost, quanta to move, noise, part that limits refused, whether f is illegal."""
TOLD = 8
NEEDY, LIMITED_NOW, ILLEGAL, REDONE = range(4)
"""Trouble of a site: the step needs limits; the stage at hand does; a cell is illegal; limits
changed the first stage."""
TROUBLES = 4
COARSER, ALLOWANCE, REFUSED = range(3)
"""Limits of a site: how much larger quanta of demands are, part that may be used, part refused."""
BOUNDS = 3

# --- channels -----------------------------------------------------------------------------------

(K1, K2, K3, P, ONLY_P, ELEMENT, CLAMPS, EXCHANGE, SAMPLES, LEG_A, LEG_B, LEG_C, LEG_D,
 FIRST_BLOCK, LAST_BLOCK) = range(15)  # fmt: skip
PEAK, ANGLE_SPAN, FACTOR, MORE_3, MORE_P, REACH, SPACING, OWN = range(8)
"""Floating-point numbers of a channel; the parameters of its matrix element follow at OWN.

MORE_3, MORE_P, REACH: ``kinematics.scatter``; SPACING, squared: ``projection.compensation``."""
CHANNEL, SAMPLE, COUNT, SET = range(4)
"""What a block of threads works on: first sample and number of samples of a set of a channel."""
FIRST_STAGE, LAST_STAGE = range(2)
"""Stages of a step; changes have a row for each set in the first, and one for the last."""

EVERYTHING, LOST, POSITIVE, BELOW, FORWARD, NET, MOVES, NEGATIVE = range(8)
"""What a block sums up while drawing; applying only from FORWARD on, and refused in NEGATIVE.

POSITIVE and NEGATIVE are legal |M|^2 and flaws (``collisions.illegal``), BELOW is the weight of
physical collisions with |M|^2 < 0. While drawing, FORWARD and NET are flows of collisions, without
what ``projection.compensation`` adds to them."""
SUMS = 8
SHARED_SUMS = SUMS * THREADS
NEAR_BY = 576
"""Numbers of the mass equations that fit into shared memory: up to 19 species."""
LARGEST_SUM = 2.0**SUM_BITS
"""Quanta that all events together may move: sums over cells then fit 64 bits."""

# --- moments: what is summed over a state -------------------------------------------------------

DISTANCE = 9
"""Where |f - f_final| is among the sums of ``records.moments``."""
