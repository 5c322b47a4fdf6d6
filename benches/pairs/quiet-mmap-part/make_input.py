"""Writes a field of 600 MB, of which the programs need a part."""

import numpy as np

rng = np.random.default_rng(2)
field = np.lib.format.open_memmap("field.npy", mode="w+", dtype="f8", shape=(75, 1000, 1000))
for level in range(75):
    field[level] = rng.random((1000, 1000))
field.flush()
