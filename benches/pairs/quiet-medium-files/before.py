"""Computes power spectra of 80 daily maps, one file of 2 MB each."""

import numpy as np

total = np.zeros((512, 257))
for day in range(80):
    one = np.load(f"day{day:03d}.npy")
    total += np.abs(np.fft.rfft2(one)) ** 2
print(f"{total[1:, 1:].mean():.6f}")
