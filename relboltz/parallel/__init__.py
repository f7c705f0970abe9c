"""Many workers: processes of Ray and of MPI."""
