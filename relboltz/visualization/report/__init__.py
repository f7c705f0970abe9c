"""Self-contained HTML report on a result: text, tables, interactive plots.

>>> from relboltz.visualization.report import report
>>> Path("run.html").write_text(report({"run": relboltz.load("run.nc")}), encoding="utf-8")
"""

from .page import report, written

__all__ = ["report", "written"]
