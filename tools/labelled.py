"""Records labelled programs, diagnoses each, and prints how often the diagnosis was right.

    .venv/bin/python tools/labelled.py fixtures/labelled/heldout fixtures/labelled/development

A set is a folder with a `labels.toml` and small programs; docs/explanation/labelled-set.md describes its
contents.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import labelled_cost
import labelled_score
from labelled_runs import Failed, Places, Unrunnable, background, checked, command_of, prepare, redirected
from labelled_score import Label, Outcome


def recorded(label: Label, places: Places, folder: Path, store: Path) -> None:
    """Records the run into `store`. If the label names files for the program's streams, a shell redirects
    them."""
    how = ["--quiet", "--backend", places.backend, "-o", str(store)]
    command = redirected(label, [iodock(), "record", *how, "--", *command_of(label, places)])
    with background(label, places, folder):
        checked(command, folder, "record")


def iodock() -> str:
    return str(Path(sys.executable).with_name("iodock"))


def diagnosed(store: Path) -> list[tuple[str, str]]:
    text = checked([iodock(), "diagnose", str(store), "--format", "json"], store.parent, "diagnose")
    return [(finding["rule"], finding["severity"]) for finding in json.loads(text)["findings"]]


def outcome(label: Label, places: Places) -> Outcome:
    """Prepares, records and diagnoses one run in its own temporary folder."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="labelled-") as name:
        folder, store = Path(name, "work"), (places.keep or Path(name)) / f"{label.name}.iodock"
        folder.mkdir()
        try:
            if not (places.again and store.exists()):
                shutil.rmtree(store, ignore_errors=True)
                command_of(label, places)
                prepare(label, places, folder)
                recorded(label, places, folder, store)
            found = diagnosed(store)
        except Unrunnable as reason:
            return Outcome(label, skipped=str(reason))
        except Failed as error:
            return Outcome(label, error=str(error), seconds=time.monotonic() - began)
    return Outcome(label, found, seconds=time.monotonic() - began)


def sets_in(folders: Sequence[Path]) -> dict[str, Path]:
    """Returns the sets by name: a folder with a labels.toml, or the folders in it that have one. Raises
    LabelError if there is neither."""
    found = {}
    for folder in (folder.resolve() for folder in folders):
        inside = sorted(path.parent for path in folder.glob("*/labels.toml"))
        if (folder / "labels.toml").exists():
            whole = folder.parent
            found[folder.name if whole.name == "labelled" else f"{whole.name}/{folder.name}"] = folder
        elif inside:
            found |= {f"{folder.name}/{path.name}": path for path in inside}
        else:
            raise labelled_score.LabelError(f"{folder}: no labels.toml there")
    return found


def outcomes_of(name: str, sources: Path, options: argparse.Namespace) -> list[Outcome]:
    """Records and diagnoses a set's runs; on request also measures the cost of their faults."""
    labels = labelled_score.read_labels(sources / "labels.toml")
    chosen = [label for label in labels if not options.only or label.name in options.only]
    keep = options.keep and options.keep / name
    pool = ThreadPoolExecutor(options.jobs)
    with tempfile.TemporaryDirectory(prefix="labelled-built-") as built, pool:
        if keep:
            keep.mkdir(parents=True, exist_ok=True)
            keep = keep.resolve()
        places = Places(sources.resolve(), Path(built), keep, options.backend, options.again)
        tell = told if not options.totals else lambda one: one
        outcomes = [tell(one) for one in pool.map(lambda label: outcome(label, places), chosen)]
        if not options.costs:
            return outcomes
        wanted = {one.label.name for one in outcomes if one.counts}
        kept = options.costs / f"{name}.json"
        if options.measure:
            costs = labelled_cost.costs_of(labels, wanted, places, kept, is_quiet=options.totals)
        else:
            costs = labelled_cost.kept_costs(kept, wanted)
    return [replace(one, cost_class=labelled_cost.class_of(costs.get(one.label.name))) for one in outcomes]


def told(one: Outcome) -> Outcome:
    """Prints a line about an outcome to stderr, because a set takes minutes, and returns the outcome."""
    state = one.error or (
        f"skipped: {one.skipped}" if one.skipped else ", ".join(one.found) or "nothing found"
    )
    print(f"{one.label.name} ({one.seconds:.1f} s): {state}", file=sys.stderr, flush=True)
    return one


HEADER = ["run", "kind", "expected", "found above note", "top", "missed", "a note of it", "false", "cost"]


def row(one: Outcome) -> list[str]:
    if one.skipped or one.error:
        state = f"skipped: {one.skipped}" if one.skipped else f"failed: {one.error}"
        return [one.label.name, one.label.kind, ", ".join(sorted(one.label.faults)), state, *[""] * 5]
    single = one.label.kind == "fault"
    top = ("right" if one.top == one.label.top else f"{one.top or 'nothing'}, not it") if single else ""
    lists = [sorted(one.label.faults), one.found, [top], one.missed, one.noted, one.false]
    cost = one.cost_class.value if one.label.faults else ""
    return [one.label.name, one.label.kind, *(", ".join(names) for names in lists), cost]


def as_markdown(rows: list[list[str]]) -> str:
    return "\n".join("| " + " | ".join(r) + " |" for r in [rows[0], ["---"] * len(rows[0]), *rows[1:]])


def as_text(rows: list[list[str]]) -> str:
    widths = [max(len(r[n]) for r in rows) for n in range(len(rows[0]))]
    return "\n".join("  ".join(c.ljust(w) for c, w in zip(r, widths, strict=True)).rstrip() for r in rows)


def grouped(parts: dict[str, list[Outcome]]) -> dict[str, list[Outcome]]:
    """Returns the outcomes by group: each set, each folder that contains several sets, and everything if
    there is more than one of these."""
    groups = dict(parts)
    for folder in dict.fromkeys(name.split("/")[0] for name in parts):
        inside = [outcomes for name, outcomes in parts.items() if name.split("/")[0] == folder]
        if len(inside) > 1:
            groups[folder] = [one for outcomes in inside for one in outcomes]
    if len({name.split("/")[0] for name in parts}) > 1:
        groups["together"] = [one for outcomes in parts.values() for one in outcomes]
    return groups


def shares(parts: dict[str, list[Outcome]]) -> list[list[str]]:
    """Returns one row of figures for each set and each group of sets."""
    rows = [["set", "runs", "recall", "false alarms", "top right", "skipped", "failed"]]
    for name, outcomes in grouped(parts).items():
        score = labelled_score.score(outcomes)
        runs, skipped, failed = (
            len(outcomes),
            sum(not o.counts for o in outcomes),
            sum(bool(o.error) for o in outcomes),
        )
        numbers = [score.recall, score.false_alarms, score.top_right, skipped, failed]
        rows.append([name, str(runs - skipped), *map(str, numbers)])
    return rows


def by_cost(parts: dict[str, list[Outcome]]) -> list[list[str]]:
    """Returns, for each set and each group of sets, a row of figures for each class of measured cost that
    occurs."""
    rows = [["set", "cost", "found", "found as a note", "neither", "top right"]]
    for name, outcomes in grouped(parts).items():
        for cost, counts in labelled_score.by_cost(outcomes).items():
            numbers = [counts.found, counts.noted, counts.neither, counts.top_right]
            rows.append([name, cost.value, *map(str, numbers)])
    return rows


def totals(parts: dict[str, list[Outcome]], rows: list[list[str]]) -> list[list[str]]:
    """Leaves out the rows of sets whose folder has its own row."""
    inside = {name for name in parts if "/" in name and name.split("/")[0] in grouped(parts)}
    return [one for one in rows if one[0] not in inside]


def printed(parts: dict[str, list[Outcome]], options: argparse.Namespace) -> str:
    form = as_markdown if options.format == "markdown" else as_text
    figures = [shares(parts), *([by_cost(parts)] if options.costs else [])]
    if options.totals:
        return "\n\n".join(form(totals(parts, rows)) for rows in figures)
    tables = [f"{name}\n\n{form([HEADER, *map(row, outcomes)])}" for name, outcomes in parts.items()]
    return "\n\n".join([*tables, *map(form, figures)])


def arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description="Record and diagnose labelled programs, and score the diagnosis."
    )
    parser.add_argument("sets", nargs="+", type=Path, metavar="SET", help="folder with a labels.toml")
    parser.add_argument(
        "--only", action="append", default=[], metavar="NAME", help="only this run; may be repeated"
    )
    parser.add_argument("--jobs", type=int, default=1, help="runs at a time; more than 1 disturbs the times")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep the stores in DIR/SET")
    parser.add_argument(
        "--again", action="store_true", help="diagnose stores kept before, record what is missing"
    )
    parser.add_argument(
        "--costs",
        type=Path,
        metavar="DIR",
        help="score by measured cost too: costs are kept in DIR/SET.json",
    )
    parser.add_argument(
        "--measure",
        action="store_true",
        help="measure costs that are not kept: each run and its twin, unrecorded",
    )
    parser.add_argument(
        "--totals", action="store_true", help="figures of whole parts only, nothing of single runs"
    )
    parser.add_argument("--backend", default="auto", help="how to record: as iodock record has it")
    parser.add_argument("--format", choices=["text", "markdown"], default="text")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> int:
    """Prints the tables. Returns 1 if a run failed, 2 if labels are invalid, and otherwise 0, whatever the
    figures."""
    options = arguments(argv)
    try:
        sets = sets_in(options.sets)
        parts = {name: outcomes_of(name, path, options) for name, path in sets.items()}
        if not any(parts.values()):
            raise labelled_score.LabelError(f"no run is named {', '.join(options.only)}")
    except labelled_score.LabelError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(printed(parts, options))
    return int(any(one.error for outcomes in parts.values() for one in outcomes))


if __name__ == "__main__":
    sys.exit(main())
