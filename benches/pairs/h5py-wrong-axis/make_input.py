"""Writes a model's hourly surface temperature with a compressed chunk for each hour, as models do."""

import h5py
import numpy as np

rng = np.random.default_rng(12)
with h5py.File("t2m.h5", "w") as out:
    shape = (240, 240, 240)
    field = out.create_dataset("t2m", shape, "f4", chunks=(1, 240, 240), compression="lzf")
    for hour in range(shape[0]):
        field[hour] = np.round(280 + 10 * np.sin(hour / 24 * 2 * np.pi) + rng.normal(0, 1, shape[1:]), 1)
