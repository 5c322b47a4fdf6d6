"""Computes pulse heights of all events, and reads the dataset event by event."""

import h5py
import numpy as np

with h5py.File("waveforms.h5") as source:
    adc = source["adc"]
    heights = np.empty(len(adc))
    for event in range(len(adc)):
        samples = adc[event]
        heights[event] = samples[100:140].max() - samples[:64].mean()
print(f"{heights.mean():.3f}")
