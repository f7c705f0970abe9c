"""Settings of a run: every key, its limits and its advice."""
