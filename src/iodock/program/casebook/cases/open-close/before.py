"""Logs each step, opening the log every time."""

import pathlib
import sys

name, steps = sys.argv[1], int(sys.argv[2])
pathlib.Path(name).unlink(missing_ok=True)
value = 1.0
for step in range(steps):
    value = value * 1.0001 + step % 7
    with open(name, "a") as log:
        log.write(f"step {step}: {value:.6f}\n")
print(f"{pathlib.Path(name).stat().st_size} bytes, {value:.6f}")
