"""Parallel runs: worker processes started by Ray or MPI."""
