"""Writes records and syncs them to the device in batches of 500."""

import os
import sys

BATCH = 500
with open(sys.argv[1], "wb", buffering=1 << 20) as journal:
    for number in range(int(sys.argv[2])):
        journal.write(f"{number:08}".encode() + b"x" * 92)
        if number % BATCH == BATCH - 1:
            journal.flush()
            os.fsync(journal.fileno())
print(os.stat(sys.argv[1]).st_size)
