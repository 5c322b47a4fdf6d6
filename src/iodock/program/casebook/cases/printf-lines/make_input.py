"""NAME COUNT: lines of 9 to 128 bytes."""

import random
import sys

chance = random.Random(3)
with open(sys.argv[1], "w") as out:
    for number in range(int(sys.argv[2])):
        out.write(f"{number:08}" + "x" * chance.randrange(0, 120) + "\n")
