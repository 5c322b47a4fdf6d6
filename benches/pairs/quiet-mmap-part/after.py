"""Compares model and observation at 2,500 stations, and first reads the whole field into memory."""

import numpy as np

rng = np.random.default_rng(8)
field = np.load("field.npy")
levels, rows, columns = rng.integers(0, 75, 2500), rng.integers(0, 1000, 2500), rng.integers(0, 1000, 2500)
observed = rng.random(2500)
difference = 0.0
for level, row, column, value in zip(levels, rows, columns, observed):
    difference += (field[level, row, column] - value) ** 2
print(f"{np.sqrt(difference / 2500):.6f}")
