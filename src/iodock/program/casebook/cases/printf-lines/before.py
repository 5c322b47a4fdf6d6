"""Copies lines in capitals, each of them flushed."""

import sys

characters = 0
with open(sys.argv[1]) as lines, open(sys.argv[2], "w") as out:
    for line in lines:
        print(line.upper(), end="", file=out, flush=True)
        characters += len(line)
print(characters)
