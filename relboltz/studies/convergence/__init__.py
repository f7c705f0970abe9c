"""Error bars: the runs of ``converge``, their plan, and the extrapolated limits."""
