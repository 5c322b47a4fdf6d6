"""Computes power spectra of 80 daily maps, all in one file."""

import numpy as np

total = np.zeros((512, 257))
for one in np.load("days.npy"):
    total += np.abs(np.fft.rfft2(one)) ** 2
print(f"{total[1:, 1:].mean():.6f}")
