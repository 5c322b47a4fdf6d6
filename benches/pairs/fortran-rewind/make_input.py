"""Writes an opacity table: 20,000 entries of two columns, as Fortran writes them (unformatted,
sequential)."""

import struct

with open("opacity.dat", "wb") as out:
    for number in range(20_000):
        record = struct.pack("<dd", number * 0.5, 1.0 / (1.0 + number))
        out.write(struct.pack("<i", 16) + record + struct.pack("<i", 16))
