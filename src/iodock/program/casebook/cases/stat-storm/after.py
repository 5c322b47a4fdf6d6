"""Computes in steps; checks only once that the inputs exist."""

import os
import sys

folder, steps = sys.argv[1], int(sys.argv[2])
names = [os.path.join(folder, name) for name in sorted(os.listdir(folder))]
for name in names:
    if not os.path.exists(name):
        sys.exit(f"{name} is gone")
value = 0
for step in range(steps):
    value = (value * 31 + step) % 1_000_003
print(value, len(names))
