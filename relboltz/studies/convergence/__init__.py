"""Error bars: the runs of ``converge``, their plan, and the limits they lead to."""
