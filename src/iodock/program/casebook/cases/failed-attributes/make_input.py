"""FOLDER COUNT: creates COUNT small files."""

import pathlib
import sys

folder = pathlib.Path(sys.argv[1])
folder.mkdir(exist_ok=True)
for number in range(int(sys.argv[2])):
    (folder / f"frame{number:05}.fits").write_bytes(b"x" * (number % 100))
