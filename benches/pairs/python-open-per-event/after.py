"""Computes trigger rates of a telescope array; the stations' files stay open."""

import random
from contextlib import ExitStack

chance = random.Random(29)
counts = [0] * 12
with ExitStack() as stack:
    files = [stack.enter_context(open(f"station{station:02d}.txt", "w")) for station in range(12)]
    for event in range(40_000):
        station = chance.randrange(12)
        counts[station] += 1
        files[station].write(f"{event} {chance.random():.6f}\n")
print(counts)
