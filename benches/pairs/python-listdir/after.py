"""Computes the brightness of all frames, and lists the folder again after all known frames are done."""

import os

done = set()
total = 0
while True:
    waiting = [name for name in sorted(os.listdir("frames")) if name not in done]
    if not waiting:
        break
    for name in waiting:
        with open(os.path.join("frames", name), "rb") as frame:
            total += sum(frame.read())
        done.add(name)
print(total, len(done))
