"""Writes six tables of 150,000 rows."""

import random

chance = random.Random(91)
for month in range(6):
    with open(f"month{month}.txt", "w") as out:
        for row in range(150_000):
            out.write(f"{chance.randrange(1000)} {chance.gauss(10, 3):.4f}\n")
