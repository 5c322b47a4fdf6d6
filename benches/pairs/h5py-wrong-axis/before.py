"""Hottest hour of 6 cities: each series goes through all chunks."""

import h5py
import numpy as np

rng = np.random.default_rng(21)
cities = rng.integers(0, 240, (6, 2))
with h5py.File("t2m.h5") as source:
    field = source["t2m"]
    for y, x in cities:
        series = field[:, y, x]
        print(y, x, series.argmax(), f"{series.max():.1f}")
