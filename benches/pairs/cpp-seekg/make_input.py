"""Writes 700,000 hits of a time projection chamber, 40 bytes each."""

import random
import struct

chance = random.Random(47)
with open("hits.raw", "wb") as out:
    for number in range(700_000):
        out.write(struct.pack("<qdddd", number, *(chance.uniform(-250, 250) for _ in range(4))))
