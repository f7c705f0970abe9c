"""Observables of a state, and result and checkpoint files."""
