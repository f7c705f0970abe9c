"""Detect whether mpirun or srun started this process as one of several."""

import os

LAUNCHERS = {
    "OMPI_COMM_WORLD_RANK": ("OMPI_COMM_WORLD_SIZE",),
    "PMI_RANK": ("PMI_SIZE", "SLURM_NTASKS"),
    "PMIX_RANK": ("PMIX_SIZE", "SLURM_NTASKS"),
}
"""Environment variables of rank and number of processes under mpirun, mpiexec and srun."""


def started() -> bool:
    """Whether mpirun, or srun with MPI, started this process as one of several."""
    for rank, sizes in LAUNCHERS.items():
        if rank in os.environ:
            told = next((os.environ[size] for size in sizes if size in os.environ), "")
            return told.isdigit() and int(told) > 1
    return False
