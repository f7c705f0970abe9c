"""Utilities for all packages: errors, arrays, compilation, caches, text."""
