"""Writes a genome of 3 million bases as FASTA."""

import random

chance = random.Random(41)
with open("genome.fa", "w") as out:
    for contig in range(25):
        out.write(f">contig{contig}\n")
        for _ in range(2000):
            out.write("".join(chance.choices("ACGT", k=60)) + "\n")
