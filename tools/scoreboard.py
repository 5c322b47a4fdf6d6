"""Scores the rules on labelled logs of Darshan: compares the findings with the experts' labels of each log.

    tools/scoreboard.py FOLDER [--format text|markdown] [--logs]

FOLDER, or each folder in it, has a `labels.json`: a log's name -> its `labels`, and under `peers` the results
of other programs (words of `AREAS`; null if none is stored). The log is in the same folder: NAME.darshan or
NAME.darshan-parser.txt. The tool imports each log into a temporary store and diagnoses it as `iodock
diagnose` does. A label says that a pattern is *present*, not that it is worth changing, so a note counts as
an answer.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from iodock.program.capture import import_logs
from iodock.program.diagnosis import diagnose
from iodock.program.findings import Diagnosis
from iodock.program.store import Store
from iodock.shared.settings import Settings

LABELS_OF: Mapping[str, tuple[str, ...]] = {
    "small-requests": ("SML-R", "SML-W"),
    "unaligned-requests": ("MSL-R", "MSL-W"),
    "unaligned-shared-file": ("MSL-W", "SHF"),
    "random-access": ("RMA-R", "RMA-W"),
    "redundant-reads": ("RDA",),
    "shared-file-contention": ("SHF",),
    "metadata-heavy": ("HMD",),
    "uneven-servers": ("SLIM",),
    "rank-imbalance": ("RLIM",),
    "independent-io-where-collective-would-do": ("NC-R", "NC-W"),
    "many-processes-without-parallel-io": ("MPNM",),
    "low-level-interface": ("LLL-R", "LLL-W"),
}
"""Rule -> the labels that its findings answer: of -R and -W the one of the finding's call."""
AREAS: Mapping[str, tuple[str, ...]] = {
    "access_granularity": ("SML", "MSL"),
    "access_pattern": ("RMA", "RDA"),
    "file_strategy": ("SHF",),
    "interface_choice": ("NC", "MPNM", "LLL"),
    "metadata_intensity": ("HMD",),
    "parallelism_efficiency": ("SLIM", "RLIM"),
}
"""What peers answer -> the labels that lie in it, without -R and -W. They do not say which."""
_SIDES = {"read": "R", "write": "W"}


@dataclass(frozen=True)
class Judged:
    """One log: its labels, the labels that the rules found, and the areas that peers named."""

    name: str
    labels: frozenset[str]
    found: frozenset[str]
    peers: Mapping[str, frozenset[str] | None]

    @property
    def areas(self) -> frozenset[str]:
        """Returns the areas of the log's labels."""
        return areas_of(self.labels)


@dataclass(frozen=True)
class Score:
    """Counts of hits, false alarms and misses."""

    hits: int
    false_alarms: int
    misses: int

    @property
    def precision(self) -> float | None:
        """Returns the share of hits among all findings, or None if there are none."""
        found = self.hits + self.false_alarms
        return self.hits / found if found else None

    @property
    def recall(self) -> float | None:
        """Returns the share of hits among all labels, or None if there are none."""
        there = self.hits + self.misses
        return self.hits / there if there else None

    @property
    def f1(self) -> float | None:
        """Returns the harmonic mean of precision and recall, or None if there are neither labels nor
        findings."""
        whole = 2 * self.hits + self.false_alarms + self.misses
        return 2 * self.hits / whole if whole else None


def labels_of(diagnosis: Diagnosis) -> frozenset[str]:
    """Returns the labels that the findings of a diagnosis answer. Notes count, too."""
    return frozenset(
        label
        for finding in diagnosis.findings
        for label in LABELS_OF.get(finding.rule, ())
        if _is_side(label, finding.call)
    )


def _is_side(label: str, call: str | None) -> bool:
    side = label.partition("-")[2]
    return not side or call not in _SIDES or side == _SIDES[call]


def areas_of(labels: Iterable[str]) -> frozenset[str]:
    """Returns the areas to which labels belong."""
    heads = {label.partition("-")[0] for label in labels}
    return frozenset(area for area, inside in AREAS.items() if heads.intersection(inside))


def score(pairs: Iterable[tuple[frozenset[str], frozenset[str]]]) -> Score:
    """Counts hits, false alarms and misses over the (labels, findings) of all logs."""
    known = list(pairs)
    return Score(
        sum(len(there & found) for there, found in known),
        sum(len(found - there) for there, found in known),
        sum(len(there - found) for there, found in known),
    )


def judged(folder: Path) -> Iterator[Judged]:
    """Yields every labelled log below FOLDER. Raises ValueError if there is none, or if a log is missing."""
    lists = sorted(folder.rglob("labels.json"))
    if not lists:
        raise ValueError(f"{folder}: no labels.json in it or below it")
    for path in lists:
        for name, told in json.loads(path.read_text(encoding="utf-8")).items():
            peers = {
                peer: None if said is None else frozenset(said) & AREAS.keys()
                for peer, said in told.get("peers", {}).items()
            }
            found = labels_of(_diagnosed(_log(path.parent, name)))
            yield Judged(name, frozenset(told["labels"]), found, peers)


def _log(folder: Path, name: str) -> Path:
    for ending in (".darshan", ".darshan-parser.txt"):
        if (folder / f"{name}{ending}").is_file():
            return folder / f"{name}{ending}"
    raise ValueError(f"{folder}: has a label for {name}, and no log of that name")


def _diagnosed(log: Path) -> Diagnosis:
    with TemporaryDirectory(prefix="iodock-scoreboard-") as folder:
        made = import_logs([str(log)], Path(folder) / "log.iodock")
        with Store.open(made.store) as store:
            return diagnose(store, Settings())


HEADINGS = ("label", "logs with it", "found", "wrongly found", "precision", "recall", "F1")
PEER_HEADINGS = ("by area", "logs", "found", "wrongly found", "precision", "recall", "F1")


def label_rows(known: Sequence[Judged]) -> list[tuple[str, ...]]:
    """Returns a row for each label, and one for all of them."""
    names = sorted({label for answers in LABELS_OF.values() for label in answers} | _labels(known))
    rows = [_row(name, [_only(one, frozenset({name})) for one in known]) for name in names]
    return [*rows, _row("all (micro)", [(one.labels, one.found) for one in known])]


def _labels(known: Sequence[Judged]) -> set[str]:
    return {label for one in known for label in one.labels}


def _only(one: Judged, names: frozenset[str]) -> tuple[frozenset[str], frozenset[str]]:
    return one.labels & names, one.found & names


def _row(name: str, pairs: Sequence[tuple[frozenset[str], frozenset[str]]]) -> tuple[str, ...]:
    found = score(pairs)
    numbers = (found.precision, found.recall, found.f1)
    counts = (found.hits + found.misses, found.hits, found.false_alarms)
    return (name, *map(str, counts), *("-" if one is None else f"{one:.2f}" for one in numbers))


def peer_rows(known: Sequence[Judged]) -> list[tuple[str, ...]]:
    """Returns a row for the rules and one for each peer, by area: the peer's on all logs that it answered,
    and the rules' on the same logs."""
    rows = [_area_row("rules", known, [(one.areas, areas_of(one.found)) for one in known])]
    for peer in sorted({peer for one in known for peer in one.peers}):
        answered = [one for one in known if one.peers.get(peer) is not None]
        rows.append(
            _area_row(peer, answered, [(one.areas, one.peers[peer] or frozenset()) for one in answered])
        )
        if len(answered) < len(known):
            ours = [(one.areas, areas_of(one.found)) for one in answered]
            rows.append(_area_row(f"rules, logs of {peer}", answered, ours))
    return rows


def _area_row(
    name: str, logs: Sequence[Judged], pairs: Sequence[tuple[frozenset[str], frozenset[str]]]
) -> tuple[str, ...]:
    return (name, str(len(logs)), *_row(name, pairs)[2:])


def log_rows(known: Sequence[Judged]) -> list[tuple[str, ...]]:
    """Returns a row for each log, with its missed labels and false findings."""
    return [
        (one.name, _listed(one.labels & one.found), _listed(one.labels - one.found),
         _listed(one.found - one.labels))
        for one in known
    ]  # fmt: skip


def _listed(labels: Iterable[str]) -> str:
    return " ".join(sorted(labels)) or "-"


def table(rows: Sequence[Sequence[str]], as_markdown: bool) -> str:
    """Returns the rows as text; the first one has the headings."""
    if as_markdown:
        head, *others = (f"| {' | '.join(row)} |" for row in rows)
        return "\n".join([head, f"|{' --- |' * len(rows[0])}", *others])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Prints the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--format", choices=["text", "markdown"], default="text")
    parser.add_argument("--logs", action="store_true", help="what was missed and wrongly found in each log")
    asked = parser.parse_args(argv)
    try:
        known = list(judged(asked.folder))
    except ValueError as error:
        parser.error(str(error))
    tables = [[HEADINGS, *label_rows(known)], [PEER_HEADINGS, *peer_rows(known)]]
    if asked.logs:
        tables.append([("log", "found", "missed", "wrongly found"), *log_rows(known)])
    print("\n\n".join(table(rows, asked.format == "markdown") for rows in tables))
    return 0


if __name__ == "__main__":
    sys.exit(main())
