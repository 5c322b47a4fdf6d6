"""GC content of packed reads, line by line, from a file that was read as a whole."""

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
