"""NAME COUNT: records of a header (length, id) and 256 to 512 bytes."""

import random
import struct
import sys

chance = random.Random(7)
with open(sys.argv[1], "wb") as out:
    for number in range(int(sys.argv[2])):
        length = chance.randrange(256, 512)
        out.write(struct.pack("<ii", length, number) + bytes([number % 251]) * length)
