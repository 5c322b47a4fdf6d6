"""Writes a sample sheet of 700 sequencing runs."""

import random

chance = random.Random(23)
with open("samples.tsv", "w") as sheet:
    for number in range(700):
        sheet.write(f"S{number:04d}\tlane{chance.randrange(8)}\t{chance.randrange(10**6, 10**7)}\t{chance.random():.4f}\n")
