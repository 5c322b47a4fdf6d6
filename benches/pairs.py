"""Measures whether the diagnosis' advice pays: programs with an I/O fault and corrected versions of them,
recorded and timed.

    .venv/bin/python benches/pairs.py
    .venv/bin/python benches/pairs.py --only cpp-endl --runs 2

A pair is a folder in benches/pairs; docs/explanation/pairs.md describes its contents and the results.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tools"))

import pair_score
from labelled import as_markdown, as_text
from pair import Pair, PairError, every
from pair_runs import Measured, diagnosed_again, measure

TURNS = 5


@contextmanager
def working_folder(wanted: Path | None) -> Iterator[Path]:
    """Creates a temporary folder for this run and removes it afterwards."""
    if wanted:
        wanted.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="iodock-pairs-", dir=wanted) as name:
        yield Path(name)


def measured(pairs: Sequence[Pair], options: argparse.Namespace) -> Iterator[Measured]:
    """Measures one pair after the other, and prints the progress to stderr."""
    with working_folder(options.dir) as whole:
        for pair in pairs:
            if options.again:
                one = diagnosed_again(pair, options.keep / pair.name)
            else:
                one = _measured_in(whole / pair.name, pair, options)
            state = f"skipped: {one.skipped}" if one.skipped else one.error or _told(one)
            print(f"{pair.name}: {state}", file=sys.stderr, flush=True)
            yield one


def _measured_in(folder: Path, pair: Pair, options: argparse.Namespace) -> Measured:
    stores = (options.keep.resolve() / pair.name) if options.keep else folder / "stores"
    shutil.rmtree(stores, ignore_errors=True)
    stores.mkdir(parents=True)
    one = measure(pair, folder, stores, options.runs)
    shutil.rmtree(folder, ignore_errors=True)
    return one


def _told(one: Measured) -> str:
    judged = pair_score.judged(one)
    promised = "nothing" if judged.promised is None else "{:.2f} to {:.2f} s".format(*judged.promised)
    return f"{judged.before:.2f} -> {judged.after:.2f} s, promised {promised}; {', '.join(judged.found)}"


def printed(all_measured: Sequence[Measured], form: str) -> str:
    """Returns the tables and the totals as text."""
    table = as_markdown if form == "markdown" else as_text
    judgements = [pair_score.judged(one) for one in all_measured if one.counts]
    faults = [pair_score.fault_row(one) for one in judgements if one.pair.pays]
    quiet = [pair_score.quiet_row(one) for one in judgements if not one.pair.pays]
    parts = []
    if faults:
        parts.append(table([pair_score.FAULT_HEADER, *faults]))
    if details := pair_score.details(judgements):
        parts.append("\n".join(["What was found where something is not right:", "", *_listed(details)]))
    if quiet:
        parts.append(table([pair_score.QUIET_HEADER, *quiet]))
    if judgements:
        parts.append(table(pair_score.totals(judgements)))
    not_run = [f"{one.pair.name}: {one.skipped or one.error}" for one in all_measured if not one.counts]
    if not_run:
        parts.append("\n".join(["Not measured:", "", *_listed(not_run)]))
    return "\n\n".join(parts)


def _listed(lines: Sequence[str]) -> list[str]:
    return [f"- {line}" for line in lines]


def arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description="Follow the diagnosis' advice, and measure whether it was right."
    )
    parser.add_argument(
        "--only", action="append", default=[], metavar="NAME", help="only this pair; may be repeated"
    )
    parser.add_argument("--runs", type=int, default=TURNS, help=f"alternations; default: {TURNS}")
    parser.add_argument("--format", choices=["text", "markdown"], default="text")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep the stores in DIR/NAME")
    parser.add_argument("--again", action="store_true", help="diagnose what --keep kept, and run nothing")
    parser.add_argument("--dir", type=Path, help="where the programs work; default: a temporary folder")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> int:
    """Prints the tables. Returns 1 if a run failed, 2 if pairs are invalid, and otherwise 0, whatever the
    figures."""
    options = arguments(argv)
    try:
        pairs = every()
    except PairError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    unknown = set(options.only) - {pair.name for pair in pairs}
    if unknown:
        print(f"error: no pair is named {', '.join(sorted(unknown))}", file=sys.stderr)
        return 2
    if options.again and not options.keep:
        print("error: --again needs --keep DIR", file=sys.stderr)
        return 2
    chosen = [pair for pair in pairs if not options.only or pair.name in options.only]
    done = list(measured(chosen, options))
    print(printed(done, options.format))
    return int(any(one.error for one in done))


if __name__ == "__main__":
    sys.exit(main())
