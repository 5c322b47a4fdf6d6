"""Creates eight folders of software, as `module load` adds them to the search path, and a table."""

import os
import random

chance = random.Random(71)
for number in range(8):
    os.makedirs(f"software/package{number}/lib")
with open("table.txt", "w") as out:
    for row in range(400_000):
        out.write(f"{chance.randrange(10**9)} {chance.random():.6f}\n")
