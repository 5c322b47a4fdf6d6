"""NAME ROWS BYTES: a table of rows of equal length."""

import sys

with open(sys.argv[1], "wb") as out:
    for row in range(int(sys.argv[2])):
        out.write(bytes([row % 251]) * int(sys.argv[3]))
