"""Copies lines in capitals, each of them flushed."""

import sys
import zlib

check = 0
with open(sys.argv[1]) as lines, open(sys.argv[2], "w") as out:
    for line in lines:
        print(line.upper(), end="", file=out, flush=True)
        check = zlib.crc32(line.upper().encode(), check)
print(check)
