"""Counts the lines of source of each part of the project that is built and shipped, without tests, cases and
translations."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[1]
KINDS = {".py", ".pyi", ".rs", ".c", ".h", ".S", ".sql", ".js", ".css", ".html", ".toml"}
LEFT_OUT = ("/tests/", "/examples/", "/benches/", "/fixtures/", "/locale/", "casebook/cases/", "/target/")
_TESTS_INSIDE = re.compile(r"^#\[cfg\(test\)\]\n(?:pub )?mod \w+ \{\n.*?^\}$", re.MULTILINE | re.DOTALL)


def main() -> None:
    """Prints a row for each package or crate."""
    lines, blank, comments, inside = Counter[str](), Counter[str](), Counter[str](), Counter[str]()
    for path in sources():
        wing, text = wing_of(path), path.read_text(encoding="utf-8", errors="replace")
        every = [line.strip() for line in text.splitlines()]
        lines[wing] += len(every)
        blank[wing] += every.count("")
        comments[wing] += sum(line.startswith(("//", "/*", "# ", "-- ", '"""')) for line in every)
        if path.suffix == ".rs":
            inside[wing] += sum(found.count("\n") + 1 for found in _TESTS_INSIDE.findall(text))
    print(f"{'wing':<28}{'lines':>9}{'blank':>9}{'comments':>10}{'tests inside':>14}")
    for wing, count in [*lines.most_common(), ("all", lines.total())]:
        rest = (one.total() if wing == "all" else one[wing] for one in (blank, comments, inside))
        print(f"{wing:<28}{count:>9,}" + "{:>9,}{:>10,}{:>14,}".format(*rest))


def sources() -> list[Path]:
    """Returns the source files of the product."""
    found = [path for part in ("src", "crates") for path in (ROOT / part).rglob("*") if path.suffix in KINDS]
    named = [path for path in found if path.name != "tests.rs" and path.is_file()]
    return [path for path in named if not any(part in str(path) for part in LEFT_OUT)]


def wing_of(path: Path) -> str:
    """Returns the package or crate that contains a file."""
    parts = path.relative_to(ROOT).parts
    return "/".join(parts[: 3 if parts[0] == "src" and len(parts) > 3 else 2])


if __name__ == "__main__":
    main()
