"""Computes the brightness of all frames, and lists the folder for each frame to find the next one."""

import os

done = set()
total = 0
while True:
    waiting = [name for name in sorted(os.listdir("frames")) if name not in done]
    if not waiting:
        break
    with open(os.path.join("frames", waiting[0]), "rb") as frame:
        total += sum(frame.read())
    done.add(waiting[0])
print(total, len(done))
