"""Computes the line strengths of 4,000 spectra, one file each, by two workers."""

import glob
from multiprocessing import Pool

import numpy as np


def strength(name):
    spectrum = np.load(name)
    baseline = np.median(spectrum)
    return float(spectrum[120:136].sum() - 16 * baseline)


if __name__ == "__main__":
    with Pool(2) as pool:
        strengths = pool.map(strength, sorted(glob.glob("spectra/*.npy")))
    print(f"{np.mean(strengths):.3f} {len(strengths)}")
