"""FOLDER COUNT: small XML records, and a list of them."""

import pathlib
import sys

folder = pathlib.Path(sys.argv[1])
folder.mkdir(exist_ok=True)
names = []
for number in range(int(sys.argv[2])):
    name = folder / f"{number:05}.xml"
    name.write_text(f"<record>\n<id>{number}</id>\n<text>{'x' * 200}</text>\n</record>\n")
    names.append(str(name))
pathlib.Path("list").write_text("\n".join(names) + "\n")
