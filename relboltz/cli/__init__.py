"""The command line: one file for each command, and what all of them print."""
