"""Computes in steps, and checks before each step that every input still exists."""

import os
import sys

folder, steps = sys.argv[1], int(sys.argv[2])
names = [os.path.join(folder, name) for name in sorted(os.listdir(folder))]
value = 0
for step in range(steps):
    for name in names:
        if not os.path.exists(name):
            sys.exit(f"{name} is gone")
    value = (value * 31 + step) % 1_000_003
print(value, len(names))
