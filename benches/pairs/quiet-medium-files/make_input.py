"""Writes 80 daily maps of 2 MB, and the same as one file."""

import numpy as np

rng = np.random.default_rng(9)
maps = rng.random((80, 512, 512)).astype("f8")
for day, one in enumerate(maps):
    np.save(f"day{day:03d}.npy", one)
np.save("days.npy", maps)
