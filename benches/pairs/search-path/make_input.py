"""Creates a folder of results, and 150 folders of software as a site's modules add them to the search
path."""

import os

for number in range(150):
    os.makedirs(f"software/package{number:03d}/lib")
for number in range(75):
    os.makedirs(f"results/run{number:03d}")
    for step in range(4):
        with open(f"results/run{number:03d}/step{step}.dat", "w") as out:
            out.write(f"{number} {step}\n" * (100 + number))
