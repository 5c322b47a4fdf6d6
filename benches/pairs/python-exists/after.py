"""Computes calibrated energies, and lists the calibration files once."""

import os
import random

chance = random.Random(13)
there = set(os.listdir("calib"))
gains = {}
total = 0.0
for hit in range(250_000):
    module = chance.randrange(50)
    name = f"module{module:02d}.txt"
    if name not in there:
        continue
    if module not in gains:
        with open(f"calib/{name}") as source:
            gains[module] = float(source.read())
    total += gains[module] * chance.random()
print(f"{total:.4f}")
