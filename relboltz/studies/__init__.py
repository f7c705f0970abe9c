"""Many runs: replicas, scans, convergence, costs, validation."""
