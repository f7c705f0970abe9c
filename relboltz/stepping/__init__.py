"""Time stepping: splitting, step-size control and the evolving state."""
