"""Computes line widths of 600 random stars of a catalogue of 6,000, and reads the spectra in the order of the
file."""

import random

import numpy as np

stars = random.Random(3).sample(range(6000), 600)
widths = {}
with open("spectra.bin", "rb", buffering=0) as source:
    for star in sorted(stars):
        source.seek(star * 32768)
        spectrum = np.frombuffer(source.read(32768), dtype="f4")
        power = np.abs(np.fft.rfft(spectrum - spectrum.mean())) ** 2
        widths[star] = float(np.sqrt((power * np.arange(len(power)) ** 2).sum() / power.sum()))
print(f"{sum(widths[star] for star in sorted(widths)):.3f}")
