"""Computes calibrated energies, and checks for each hit whether its module has a calibration file."""

import os
import random

chance = random.Random(13)
gains = {}
total = 0.0
for hit in range(250_000):
    module = chance.randrange(50)
    path = f"calib/module{module:02d}.txt"
    if not os.path.exists(path):
        continue
    if module not in gains:
        with open(path) as source:
            gains[module] = float(source.read())
    total += gains[module] * chance.random()
print(f"{total:.4f}")
