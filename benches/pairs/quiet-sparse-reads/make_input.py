"""Writes a catalogue of 200 MB in pages of 32 kB, each with a star's spectrum."""

import numpy as np

rng = np.random.default_rng(6)
with open("spectra.bin", "wb") as out:
    for _ in range(6000):
        rng.random(8192, dtype="f4").tofile(out)
