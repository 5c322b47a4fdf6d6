"""Copies a file in upper case. The output file's buffer collects many lines for one call."""

import sys

size = 0
with open(sys.argv[1], "rb") as lines, open(sys.argv[2], "wb", buffering=1 << 20) as out:
    for line in lines:
        size += out.write(line.upper())
print(size)
