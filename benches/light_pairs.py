"""Measures whether the diagnosis of a light recording agrees with that of a full one, on the pairs' faulty
programs, each recorded both ways.

    .venv/bin/python benches/light_pairs.py
    .venv/bin/python benches/light_pairs.py --only cpp-endl --dir FOLDER

A pair agrees if both name the same first finding worth changing, or neither names one. If the full
recording's first finding is of a rule that needs single calls, the light diagnosis says that it cannot check
the rule; this is counted separately. Programs run twice, once each way, so a finding near a threshold can
differ by chance.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent / "tools"))

import pair_runs
from labelled import as_text
from labelled_runs import Failed, Unrunnable
from pair import Pair, every
from pairs import working_folder

WAYS = {"full": (), "light": ("--light",)}


@dataclass(frozen=True)
class Compared:
    """First findings worth changing (None: there are none), and the rules that the light diagnosis could not
    check."""

    pair: Pair
    full: str | None
    light: str | None
    not_judged: frozenset[str]

    @property
    def verdict(self) -> str:
        if self.full == self.light:
            return "same"
        return "needs calls" if self.full in self.not_judged else "differs"


def compared(pair: Pair, folder: Path) -> Compared:
    """Records and diagnoses the faulty program both ways. Raises Failed, Unrunnable."""
    found = {way: _diagnosed(pair, folder / way, options) for way, options in WAYS.items()}
    not_judged = frozenset(one["rule"] for one in found["light"]["silent"])
    return Compared(pair, _first(found["full"]), _first(found["light"]), not_judged)


def _diagnosed(pair: Pair, folder: Path, options: Sequence[str]) -> dict[str, Any]:
    store = folder / "run.iodock"
    place = pair_runs.prepared(pair, folder / "work")
    # A first run reads the files into the cache, so that both recordings find them there.
    place.run(pair.before.run, "before")
    place.run(
        [pair_runs.iodock(), "record", "--quiet", *options, "-o", str(store), "--", *pair.before.run],
        "record",
    )
    return pair_runs.diagnosis(store)


def _first(diagnosis: dict[str, Any]) -> str | None:
    worth = [one["rule"] for one in diagnosis["findings"] if one["severity"] != "note"]
    return worth[0] if worth else None


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", action="append", default=[], metavar="NAME")
    parser.add_argument("--dir", type=Path, help="where the programs work; default: a temporary folder")
    options = parser.parse_args(argv)
    rows, counts = [("pair", "full recording", "light recording", "")], {}
    with working_folder(options.dir) as whole:
        for pair in every():
            if options.only and pair.name not in options.only:
                continue
            try:
                one = compared(pair, whole / pair.name)
            except (Failed, Unrunnable) as reason:
                print(f"{pair.name}: {reason}", file=sys.stderr)
                continue
            finally:
                shutil.rmtree(whole / pair.name, ignore_errors=True)
            print(f"{pair.name}: {one.full} / {one.light}: {one.verdict}", file=sys.stderr, flush=True)
            rows.append((pair.name, one.full or "-", one.light or "-", one.verdict))
            counts[one.verdict] = counts.get(one.verdict, 0) + 1
    print(as_text(rows))
    print(", ".join(f"{verdict}: {count}" for verdict, count in sorted(counts.items())))
    return 0


if __name__ == "__main__":
    sys.exit(main())
