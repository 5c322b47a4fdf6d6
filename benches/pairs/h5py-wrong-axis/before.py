"""Finds the hottest hour of 6 cities, and reads all chunks for the series of each city."""

import h5py
import numpy as np

rng = np.random.default_rng(21)
cities = rng.integers(0, 240, (6, 2))
with h5py.File("t2m.h5") as source:
    field = source["t2m"]
    for y, x in cities:
        series = field[:, y, x]
        print(y, x, series.argmax(), f"{series.max():.1f}")
