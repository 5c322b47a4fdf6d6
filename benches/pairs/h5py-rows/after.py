"""Computes pulse heights of all events, and reads the dataset in blocks of 10,000 events."""

import h5py
import numpy as np

with h5py.File("waveforms.h5") as source:
    adc = source["adc"]
    heights = np.empty(len(adc))
    for first in range(0, len(adc), 10000):
        block = adc[first : first + 10000]
        for event, samples in enumerate(block, first):
            heights[event] = samples[100:140].max() - samples[:64].mean()
print(f"{heights.mean():.3f}")
