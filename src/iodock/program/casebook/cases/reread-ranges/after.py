"""Looks up rows in the order of the computation, in memory."""

import random
import sys

name, rows, size, lookups = sys.argv[1], *map(int, sys.argv[2:])
chance = random.Random(11)
total = 0
with open(name, "rb") as file:
    table = file.read()
for _ in range(lookups):
    start = chance.randrange(rows) * size
    total += table[start] + table[start + size - 1]
print(total)
