"""Writes seismograms of 600,000 records: a header of 32 bytes and 60 samples each."""

import random
import struct

chance = random.Random(43)
samples = [struct.pack("<60h", *(chance.randrange(-2000, 2000) for _ in range(60))) for _ in range(50)]
with open("records.sgy", "wb") as out:
    for number in range(600_000):
        out.write(struct.pack("<iif20x", number, number % 97, number * 0.01))
        out.write(samples[number % 50])
