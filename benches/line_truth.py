"""Measures whether the first line that a finding names is the faulty one, in labelled programs in C, C++,
Fortran and Python.

    .venv/bin/python benches/line_truth.py [SET ...] [--only RUN] [--keep DIR] [--again] [--jobs 1]

The sources of the development part mark the lines to change: `HERE small-requests`, with the fault's rule.
Each faulty run is recorded with default options (compilers get -g in addition) and diagnosed. A true finding
is one above a note whose rule is a fault of the run. Its first location, and the caller that it names, are
compared with the marks. Prints the findings whose first location is not marked, then the counts.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import stat
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent / "tools"))

from labelled import iodock, recorded
from labelled_runs import Failed, Places, Unrunnable, checked, command_of, prepare
from labelled_score import Label, read_labels
from measure import table

DEVELOPMENT = Path(__file__).parent.parent / "fixtures" / "labelled" / "development"
LANGUAGES = {".c": "C", ".cpp": "C++", ".f90": "Fortran", ".py": "Python"}
COMPILERS = ("cc", "gcc", "c++", "g++", "gfortran", "gfortran-12", "mpicc")
MARK = re.compile(r"\bHERE ([a-z-]+(?:, [a-z-]+)*)")


@dataclass(frozen=True)
class Named:
    """A true finding: its first location, and whether that line is marked."""

    run: str
    rule: str
    language: str
    place: str
    is_right: bool
    is_right_with_caller: bool
    """The marked line is the first location or the caller that it names."""
    is_among_all: bool
    """One of its locations is marked, if not the first one."""


def source_of(label: Label, sources: Path) -> Path | None:
    """Returns the source file of the program that a run records, if it is in one of the languages."""
    if label.program:
        files = [sources / label.program]
    else:
        files = sorted(sources.glob(f"{Path(label.command[0]).name}.*"))
    return next((file for file in files if file.suffix in LANGUAGES and file.exists()), None)


def marks_of(sources: Path) -> dict[str, set[tuple[str, int]]]:
    """Returns the lines marked with each rule, as (file name, line)."""
    found: dict[str, set[tuple[str, int]]] = {}
    for file in sorted(path for path in sources.iterdir() if path.suffix in {*LANGUAGES, ".h"}):
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
            if mark := MARK.search(line):
                for rule in mark[1].split(", "):
                    found.setdefault(rule, set()).add((file.name, number))
    return found


def faulty_runs(sources: Path) -> list[Label]:
    return [
        label for label in read_labels(sources / "labels.toml") if label.faults and source_of(label, sources)
    ]


def named(label: Label, sources: Path, findings: Sequence[Mapping[str, Any]]) -> Iterator[Named]:
    """Yields the run's true findings, one for each fault."""
    source, marks = source_of(label, sources), marks_of(sources)
    assert source
    for rule in sorted(label.faults):
        mine = [one for one in findings if one["rule"] == rule and one["severity"] != "note"]
        if not mine:
            continue
        locations = mine[0]["locations"]
        right = [is_marked(one, marks.get(rule, set())) for one in locations]
        first = locations[0] if locations else None
        caller = first and first["called_from"]
        place = " < ".join(one["place"] for one in (first, caller) if one) or "(unknown)"
        is_right = right[:1] == [True]
        is_caller = bool(caller and is_marked(caller, marks.get(rule, set())))
        yield Named(
            label.name, rule, LANGUAGES[source.suffix], place, is_right, is_right or is_caller, any(right)
        )


def is_marked(place: Mapping[str, Any], marks: set[tuple[str, int]]) -> bool:
    return (Path(place["file"] or "").name, place["line"]) in marks


def with_debug_information(folder: Path) -> None:
    """Writes wrappers that add -g, which later look-ups of the compilers find."""
    for name in COMPILERS:
        if real := shutil.which(name):
            script = folder / name
            script.write_text(f'#!/bin/sh\nexec {real} -g "$@"\n')
            script.chmod(script.stat().st_mode | stat.S_IXUSR)
    os.environ["PATH"] = f"{folder}:{os.environ['PATH']}"


def findings_of(label: Label, places: Places) -> list[dict[str, Any]] | str:
    """Returns the findings of a recording of the run, or the reason why there are none."""
    assert places.keep
    store, kept = places.keep / f"{label.name}.iodock", places.keep / f"{label.name}.json"
    with tempfile.TemporaryDirectory(prefix="line-truth-") as name:
        folder = Path(name)
        try:
            if not (places.again and store.exists()):
                shutil.rmtree(store, ignore_errors=True)
                command_of(label, places)
                prepare(label, places, folder)
                recorded(label, places, folder, store)
            text = checked([iodock(), "diagnose", str(store), "--format", "json"], folder, "diagnose")
        except (Unrunnable, Failed) as reason:
            return str(reason)
    kept.write_text(text)
    found: list[dict[str, Any]] = json.loads(text)["findings"]
    return found


def of_set(sources: Path, options: argparse.Namespace, keep: Path) -> Iterator[Named]:
    """Yields the true findings of a set's runs. Prints to stderr which runs failed."""
    keep.mkdir(parents=True, exist_ok=True)
    labels = [one for one in faulty_runs(sources) if not options.only or one.name in options.only]
    with tempfile.TemporaryDirectory(prefix="line-truth-built-") as built:
        places = Places(sources, Path(built), keep, "auto", options.again)
        with ThreadPoolExecutor(options.jobs) as pool:
            for label, found in zip(
                labels, pool.map(lambda one: findings_of(one, places), labels), strict=True
            ):
                if isinstance(found, str):
                    print(f"{label.name}: {found}", file=sys.stderr, flush=True)
                    continue
                print(f"{label.name}: recorded", file=sys.stderr, flush=True)
                yield from named(label, sources, found)


def counts(rows: Sequence[Named]) -> list[str]:
    right, all_of = sum(one.is_right for one in rows), sum(one.is_among_all for one in rows)
    with_caller = sum(one.is_right_with_caller for one in rows)
    return [
        str(len(rows)),
        *(f"{count} ({100 * count / len(rows):.1f} %)" if rows else "" for count in (right, with_caller)),
        str(all_of),
        str(sum(one.place == "(unknown)" for one in rows)),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "sets", nargs="*", metavar="SET", help="folders of the development part (default: all)"
    )
    parser.add_argument("--only", action="append", default=[], metavar="RUN", help="may be repeated")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep stores and findings in DIR/SET")
    parser.add_argument("--again", action="store_true", help="diagnose kept stores, record what is missing")
    parser.add_argument("--jobs", type=int, default=1, help="runs at a time")
    options = parser.parse_args()
    sets = [DEVELOPMENT / name for name in options.sets] or sorted(
        path.parent for path in DEVELOPMENT.glob("*/labels.toml")
    )
    with tempfile.TemporaryDirectory(prefix="line-truth-") as name:
        with_debug_information(Path(name))
        keep = options.keep.resolve() if options.keep else Path(name, "stores")
        rows = [one for sources in sets for one in of_set(sources, options, keep / sources.name)]
    wrong = [[one.run, one.rule, one.place] for one in rows if not one.is_right]
    table("first locations that are not marked", ["run", "rule", "first location"], wrong)
    kinds = Counter(one.language for one in rows)
    groups = {kind: [one for one in rows if one.language == kind] for kind in sorted(kinds)} | {"all": rows}
    header = [
        "language",
        "true findings",
        "first is marked",
        "it or its caller is",
        "one of the first three is",
        "no line",
    ]
    table(
        "is the first location the faulty line?", header, [[kind, *counts(of)] for kind, of in groups.items()]
    )


if __name__ == "__main__":
    main()
