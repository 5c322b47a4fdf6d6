"""Writes waveforms of a detector: 80,000 events of 256 samples."""

import h5py
import numpy as np

rng = np.random.default_rng(11)
with h5py.File("waveforms.h5", "w") as out:
    out["adc"] = rng.integers(0, 4096, (80000, 256), dtype="i2")
