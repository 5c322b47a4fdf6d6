"""Computes, and prints every thousandth step."""

import sys

name, steps = sys.argv[1], int(sys.argv[2])
value = 0.5
with open(name, "w") as debug:
    for step in range(steps):
        for _ in range(40):
            value = 3.7 * value * (1 - value)
        if step % 1000 == 0:
            print(f"step {step}: value {value}", file=debug)
print(f"{value:.12f}")
