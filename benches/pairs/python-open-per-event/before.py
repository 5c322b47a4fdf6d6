"""Computes trigger rates of a telescope array, and opens a station's file for each event."""

import random

chance = random.Random(29)
counts = [0] * 12
for station in range(12):
    open(f"station{station:02d}.txt", "w").close()
for event in range(40_000):
    station = chance.randrange(12)
    counts[station] += 1
    with open(f"station{station:02d}.txt", "a") as out:
        out.write(f"{event} {chance.random():.6f}\n")
print(counts)
