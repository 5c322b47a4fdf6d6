"""Writes 400 MB of counts."""

import numpy as np

rng = np.random.default_rng(4)
with open("counts.bin", "wb") as out:
    for _ in range(50):
        rng.integers(0, 200, 1_000_000, dtype="i8").tofile(out)
