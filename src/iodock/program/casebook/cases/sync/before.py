"""Writes records and syncs each to the device before the next."""

import os
import sys

with open(sys.argv[1], "wb", buffering=0) as journal:
    for number in range(int(sys.argv[2])):
        journal.write(f"{number:08}".encode() + b"x" * 92)
        os.fsync(journal.fileno())
print(os.stat(sys.argv[1]).st_size)
