"""Errors of the exact solution against resolution, from ``validation.studies``."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

CURVES = {
    "moments": "worst of <k²> … <k⁵>",
    "left": "what is left of the deviation",
    "shells": "f in shells, rms",
}
SLOPES = {"spacing": 2.0, "step": 2.0, "samples": -0.5}
"""Orders drawn as reference lines."""


def draw_study(ax: Any, study: dict[str, Any]) -> None:
    """Plot one study: errors in percent, both axes logarithmic."""
    x = study["x"]
    for (name, description), marker in zip(CURVES.items(), "os^", strict=True):
        ax.loglog(x, [100 * value for value in study[name]], marker=marker, label=description)
    if study["name"] in SLOPES:
        slope = SLOPES[study["name"]]
        start = 20 * max(study["moments"])
        first = max(x) if slope > 0 else min(x)
        line = [start * (value / first) ** slope for value in x]
        ax.loglog(x, line, "--", color="0.6")
        middle = x[len(x) // 2], line[len(x) // 2]
        below = {"xytext": (4, -12), "textcoords": "offset points", "color": "0.4"}
        ax.annotate(f"order {abs(slope):g}", middle, **below)
    ax.set_xticks(x, labels=[f"{value:.3g}" for value in x])
    ax.xaxis.minorticks_off()
    ax.margins(y=0.12)  # room for the text below a line
    ax.set_xlabel(study["unit"])
    ax.set_ylabel("error [%]")
    ax.set_title(study["words"], fontsize=10)
    ax.grid(True, which="major", alpha=0.3)


def draw_studies(found: Sequence[dict[str, Any]], path: Path) -> None:
    """Plot all studies in one figure."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.4, 6.4), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(2, 2).ravel()
    for ax, study in zip(axes, found, strict=False):
        draw_study(ax, study)
    lines, description = axes[0].get_legend_handles_labels()
    figure.legend(lines[:3], description[:3], loc="outside lower center", ncols=3, fontsize=9)
    figure.savefig(path, dpi=84)
