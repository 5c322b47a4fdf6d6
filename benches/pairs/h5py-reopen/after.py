"""Writes mode amplitudes of a plasma code; the file stays open."""

import h5py
import numpy as np

steps, modes = 1500, 64
amplitude = np.full(modes, 1e-6)
rates = np.linspace(-0.01, 0.02, modes)
with h5py.File("modes.h5", "w") as out:
    history = out.create_dataset("amplitude", (steps, modes), "f8")
    for step in range(steps):
        amplitude *= np.exp(rates)
        history[step] = amplitude
print(f"{amplitude.max():.6e}")
