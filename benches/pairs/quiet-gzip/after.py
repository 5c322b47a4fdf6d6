"""Computes the GC content of compressed reads line by line, after reading the whole file into memory."""

import gzip
import io

gc = bases = 0
with open("reads.fastq.gz", "rb") as packed:
    whole = io.BytesIO(packed.read())
with gzip.open(whole, "rt") as reads:
    for number, line in enumerate(reads):
        if number % 4 == 1:
            gc += line.count("G") + line.count("C")
            bases += len(line) - 1
print(f"{gc / bases:.6f}")
