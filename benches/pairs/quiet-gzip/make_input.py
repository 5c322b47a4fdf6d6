"""Writes compressed reads of a sequencer."""

import gzip
import random

chance = random.Random(83)
with gzip.open("reads.fastq.gz", "wt", compresslevel=4) as out:
    for number in range(120_000):
        bases = "".join(chance.choices("ACGT", k=100))
        out.write(f"@read{number}\n{bases}\n+\n{'I' * 100}\n")
