"""Writes 4,000 spectra as the instrument saves them, and the same as one file."""

import os

import numpy as np

rng = np.random.default_rng(5)
os.mkdir("spectra")
spectra = rng.normal(100, 10, (4000, 256)).astype("f4")
for number, spectrum in enumerate(spectra):
    np.save(f"spectra/{number:05d}.npy", spectrum)
np.save("spectra.npy", spectra)
