"""Kernels of the CUDA backend: a step is a short sequence of them; the state stays on the GPU.

    prepare    ln(f/F) and ln F of every cell; importance of every node, summed within tiles
    cumulate   sampling tables from these sums
    draw       draws, lands, keeps and applies events for the first stage (generated source)
    predict    ln(f/F) and ln F of the prediction of each set of events
    apply      the kept events for the last stage, each set on the prediction of the other
    update     the new state beside the old one, and the difference between the stages
    tell_sites collision sums of every site
    judge      whether the step is accepted
    conclude   replaces the old state by the new one, or plans another attempt

``control`` (integers) and ``scalars`` hold every decision taken during steps, so the host launches
steps without reading results. A status other than GO turns all kernels into no-ops.
Floating-point sums are taken in a fixed order; cells accumulate integers.
"""

from .cells import cumulate, peaks, predict, prepare, update
from .collision_events import apply, hammer
from .step_control import conclude, find_faults, judge, next_part, set_step_plan, tell_sites

__all__ = [
    "apply", "conclude", "cumulate", "find_faults", "hammer", "judge", "next_part", "peaks",
    "predict", "prepare", "set_step_plan", "tell_sites", "update",
]  # fmt: skip
