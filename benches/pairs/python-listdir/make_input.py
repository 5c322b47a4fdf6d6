"""Writes 1,000 camera frames of an experiment."""

import os

os.mkdir("frames")
for number in range(1000):
    with open(f"frames/frame_{number:06d}.raw", "wb") as out:
        out.write(bytes([number % 251]) * 512)
