"""The command line: one module per command, and shared options and output."""
