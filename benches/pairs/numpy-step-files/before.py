"""Solves the heat equation on a rod, and writes the temperatures of each step into a separate file."""

import os

import numpy as np

os.makedirs("steps")
temperature = np.exp(-(((np.arange(200) - 100) / 10.0) ** 2))
for step in range(4000):
    temperature[1:-1] += 0.2 * (temperature[2:] - 2 * temperature[1:-1] + temperature[:-2])
    np.save(f"steps/t{step:05d}.npy", temperature)
print(f"{temperature.max():.6f}")
