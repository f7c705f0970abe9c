"""Checks and automatic choices before a run, and warnings about its accuracy."""
