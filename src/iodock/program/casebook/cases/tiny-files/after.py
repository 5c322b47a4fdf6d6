"""Writes all results into one file."""

import pathlib
import sys

folder, count = pathlib.Path(sys.argv[1]), int(sys.argv[2])
folder.mkdir(exist_ok=True)
total = 0
with open(folder / "results.tsv", "w") as results:
    for number in range(count):
        content = f"{number}\t{number * number}\t{'x' * 300}\n"
        results.write(content)
        total += len(content)
print(count, total)
