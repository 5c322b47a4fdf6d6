"""NAME MIB: creates an image of MIB MiB."""

import sys

with open(sys.argv[1], "wb") as out:
    for part in range(int(sys.argv[2])):
        out.write(bytes(range(256)) * 4096 if part % 2 else bytes(1 << 20))
