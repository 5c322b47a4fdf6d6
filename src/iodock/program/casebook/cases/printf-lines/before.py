"""Copies a file in upper case, with a call for each line, because the output file has no buffer."""

import sys

size = 0
with open(sys.argv[1], "rb") as lines, open(sys.argv[2], "wb", buffering=0) as out:
    for line in lines:
        size += out.write(line.upper())
print(size)
