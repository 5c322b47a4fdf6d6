"""Scans the parameter of a logistic map, split among ranks, and writes a file for each parameter."""

import os

import numpy as np
from mpi4py import MPI

comm = MPI.COMM_WORLD
if comm.rank == 0:
    os.makedirs("scan")
comm.Barrier()
total = 0.0
for number in range(comm.rank, 3000, comm.size):
    r, x = 2.8 + 1.2 * number / 3000, 0.4
    orbit = np.empty(64)
    for step in range(64):
        x = r * x * (1 - x)
        orbit[step] = x
    np.save(f"scan/r{number:05d}.npy", orbit)
    total += orbit[-1]
total = comm.reduce(total)
if comm.rank == 0:
    print(f"{total:.6f}")
