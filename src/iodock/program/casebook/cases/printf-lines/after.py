"""Copies a file in upper case. The output file's buffer collects many lines for one call."""

import sys

characters = 0
with open(sys.argv[1]) as lines, open(sys.argv[2], "w", buffering=1 << 20) as out:
    for line in lines:
        print(line.upper(), end="", file=out)
        characters += len(line)
print(characters)
