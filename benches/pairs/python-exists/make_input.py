"""Writes calibration files of 40 detector modules."""

import os

os.mkdir("calib")
for module in range(40):
    with open(f"calib/module{module:02d}.txt", "w") as out:
        out.write(f"{1 + module / 100:.3f}\n")
