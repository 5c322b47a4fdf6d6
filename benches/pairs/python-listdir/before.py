"""Brightness of all frames: the next one is the first in the folder that is not done yet."""

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
