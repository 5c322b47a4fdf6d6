"""Writes each result into a separate file."""

import pathlib
import sys

folder, count = pathlib.Path(sys.argv[1]), int(sys.argv[2])
folder.mkdir(exist_ok=True)
total = 0
for number in range(count):
    content = f"{number}\t{number * number}\t{'x' * 300}\n"
    with open(folder / f"result_{number:05}.txt", "w") as result:
        result.write(content)
    total += len(content)
print(count, total)
