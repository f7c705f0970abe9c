"""Kernels of the CUDA backend: a step is a short sequence of them, all state stays on the GPU.

    prepare    ln(f/F) and ln F of every cell; importance of every node, summed within tiles
    cumulate   sampling tables from these sums
    draw       events: drawn, landed, kept, and applied for the first stage (generated source)
    predict    the same logarithms of what each set of events predicts
    apply      the kept events for the last stage, each set on what the other one predicts
    update     the new state beside the old one, and how far they are apart
    tell_sites what the collisions of every site showed
    judge      whether the step stands
    conclude   the new state replaces the old one, or another attempt is planned

``control`` (whole numbers) and ``scalars`` hold everything that is decided on the way, so the
host launches steps without looking. A status other than GO turns all kernels into no-ops.
Sums of floating-point numbers are taken in a fixed order; cells are added up in whole numbers.
"""

from .cells import cumulate, peaks, predict, prepare, update
from .collision_events import apply, hammer
from .step_control import conclude, find_faults, judge, next_part, set_course, tell_sites

__all__ = [
    "apply", "conclude", "cumulate", "find_faults", "hammer", "judge", "next_part", "peaks",
    "predict", "prepare", "set_course", "tell_sites", "update",
]  # fmt: skip
