"""Writes a catalogue of galaxies, then reads it again for each of 40 redshift bins."""

import numpy as np

rng = np.random.default_rng(17)
np.savetxt("catalogue.txt", np.column_stack([rng.uniform(0, 2, 15000), rng.normal(22, 1, 15000)]), fmt="%.5f")

for number in range(40):
    low, high = 0.05 * number, 0.05 * (number + 1)
    with open("catalogue.txt") as catalogue:
        table = [tuple(map(float, line.split())) for line in catalogue]
    inside = [magnitude for redshift, magnitude in table if low <= redshift < high]
    print(number, len(inside), f"{np.mean(inside):.3f}")
