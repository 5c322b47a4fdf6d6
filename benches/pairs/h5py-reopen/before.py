"""Writes mode amplitudes of a plasma code, and opens the file for each step, so that a crash loses
nothing."""

import h5py
import numpy as np

steps, modes = 1500, 64
with h5py.File("modes.h5", "w") as out:
    out.create_dataset("amplitude", (steps, modes), "f8")
amplitude = np.full(modes, 1e-6)
rates = np.linspace(-0.01, 0.02, modes)
for step in range(steps):
    amplitude *= np.exp(rates)
    with h5py.File("modes.h5", "a") as out:
        out["amplitude"][step] = amplitude
print(f"{amplitude.max():.6e}")
