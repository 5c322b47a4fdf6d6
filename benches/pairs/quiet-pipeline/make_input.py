"""Writes alignments of reads: 400,000 lines."""

import random

chance = random.Random(97)
with open("alignments.txt", "w") as out:
    for number in range(400_000):
        out.write(f"read{number}\tchr{chance.randrange(1, 23)}\t{chance.randrange(10**8)}\t{chance.randrange(60)}\n")
