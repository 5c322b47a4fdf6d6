"""Writes a FASTQ file of 10,000 reads."""

import random

chance = random.Random(53)
with open("reads.fastq", "w") as out:
    for number in range(10_000):
        bases = "".join(chance.choices("ACGT", k=150))
        quality = "".join(chr(33 + chance.randrange(2, 41)) for _ in range(150))
        out.write(f"@read{number}\n{bases}\n+\n{quality}\n")
