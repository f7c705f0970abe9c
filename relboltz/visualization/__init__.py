"""Plots of results, and HTML reports."""
