"""Computes a histogram of counts, and reads 1 MB at a time."""

import numpy as np

histogram = np.zeros(200, dtype="i8")
with open("counts.bin", "rb") as source:
    while len(block := np.fromfile(source, dtype="i8", count=125_000)):
        histogram += np.bincount(block, minlength=200)
print(histogram[:5], histogram.sum())
