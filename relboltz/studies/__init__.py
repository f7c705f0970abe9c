"""Studies with many runs: replicas, scans, convergence, costs, validation."""
