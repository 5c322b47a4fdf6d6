"""Records labelled programs, diagnoses each, and says how often the diagnosis was right.

    .venv/bin/python tools/labelled.py fixtures/labelled/heldout fixtures/labelled/development

A set is a folder with a `labels.toml` and small programs; docs/explanation/labelled-set.md
says what stands in it.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import labelled_score
from labelled_score import Input, Label, Outcome

BLOCK = 1 << 22
BUILDING = threading.Lock()
PATIENCE_SECONDS = 120.0
COMPILERS = {
    ".mpi.c": ["mpicc", "-O2"],
    ".c": ["cc", "-O2", "-pthread"],
    ".cpp": ["c++", "-O2"],
    ".f90": ["gfortran", "-O2"],
}
INTERPRETERS = {".py": [sys.executable], ".sh": ["sh"], ".awk": ["awk", "-f"], ".pl": ["perl"]}
# Open MPI refuses root and more ranks than cores unless told; both are harmless for a set of tiny programs.
ENVIRONMENT = {"LC_ALL": "C", "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
# What else a run inherits: little, for PYTHONUNBUFFERED, for one, is a fault of its own.
INHERITED = ("PATH", "HOME", "TMPDIR", "USER", "LD_LIBRARY_PATH")


class Unrunnable(Exception):
    """This machine lacks what a run needs; the run is skipped, and the reason shown."""


class Failed(Exception):
    """A run, or its recording or diagnosis, went wrong."""


@dataclass(frozen=True)
class Places:
    """One set's folders: its sources, what is built from them, where stores are kept (or None); and how it is
    recorded."""

    sources: Path
    built: Path
    keep: Path | None
    backend: str = "auto"
    again: bool = False
    """Diagnose the stores that were kept, without recording."""


def ending_in(name: str, table: dict[str, list[str]]) -> list[str] | None:
    return next((command for ending, command in table.items() if name.endswith(ending)), None)


def compiled(source: Path, compiler: list[str], built: Path) -> Path:
    """The program made from one source file, built once, whoever asks first."""
    target = built / source.name.replace(".", "-")  # a.c and a.cpp may stand side by side
    if not shutil.which(compiler[0]):
        raise Unrunnable(f"no {compiler[0]}")
    with BUILDING:
        if target.exists():
            return target
        done = subprocess.run([*compiler, "-o", target, source, "-lm"], capture_output=True, text=True)
    if done.returncode:
        raise Failed(
            f"{compiler[0]} {source.name}: {(done.stderr.strip().splitlines() or ['no message'])[0]}"
        )
    return target


def started(name: str, places: Places) -> list[str]:
    """The command that runs a file of the set, without its arguments."""
    source = places.sources / name
    compiler = ending_in(name, COMPILERS)
    if compiler:
        return [str(compiled(source, compiler, places.built))]
    interpreter = ending_in(name, INTERPRETERS)
    if not interpreter:
        raise Failed(f"{name}: don't know how to run such a file")
    return [*interpreter, str(source)]


def command_of(label: Label, places: Places) -> list[str]:
    """The command to record. Raises Unrunnable where a tool that it needs is not there."""
    lacking = [tool for tool in label.needs if not shutil.which(tool)]
    if lacking:
        raise Unrunnable(f"no {', '.join(lacking)}")
    command = list(label.command) or started(label.program, places)
    if label.ranks:
        if not shutil.which("mpirun"):
            raise Unrunnable("no mpirun")
        command = ["mpirun", "--oversubscribe", "-n", str(label.ranks), *command]
    return [*command, *label.args]


def write_input(spec: Input, path: Path, seed: int) -> None:
    """One input file: lines of a small table, or bytes that repeat after 4 MiB."""
    chance = random.Random(seed)
    path.parent.mkdir(parents=True, exist_ok=True)
    if spec.lines:
        rows = (f"{n:07d} {chance.randrange(1000):03d} {chance.random():.6f}\n" for n in range(spec.lines))
        path.write_text("".join(rows))
        return
    block = chance.randbytes(min(BLOCK, spec.size_bytes))
    with path.open("wb") as file:
        for start in range(0, spec.size_bytes, BLOCK):
            file.write(block[: spec.size_bytes - start])


def prepare(label: Label, places: Places, folder: Path) -> None:
    for spec in label.inputs:
        for number in range(spec.count):
            write_input(spec, folder / spec.name.format(number), spec.seed + number)
    if label.prepare:
        script, *args = label.prepare
        checked([*started(script, places), *args], folder, "prepare")


def checked(command: Sequence[str], folder: Path, what: str) -> str:
    """Runs a command to its end and gives its output; a failure or a hang is an error that quotes it."""
    with subprocess.Popen(
        command, cwd=folder, env=environment(), text=True, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
    ) as process:  # fmt: skip
        try:
            output, errors = process.communicate(timeout=PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            raise Failed(f"{what}: not done after {PATIENCE_SECONDS:.0f} s") from None
    if process.returncode:
        last = (errors.strip().splitlines() or ["no message"])[-1]
        raise Failed(f"{what}: status {process.returncode}: {last}")
    return output


def environment() -> dict[str, str]:
    return {name: os.environ[name] for name in INHERITED if name in os.environ} | ENVIRONMENT


@contextmanager
def background(label: Label, places: Places, folder: Path) -> Iterator[None]:
    """Runs the label's background program, unrecorded, from the line it prints when ready to the end."""
    if not label.background:
        yield
        return
    script, *args = label.background
    with subprocess.Popen([*started(script, places), *args], cwd=folder, stdout=subprocess.PIPE) as process:
        assert process.stdout
        try:
            if not process.stdout.readline():
                raise Failed(f"{script}: ended before it was ready")
            yield
        finally:
            process.terminate()


def recorded(label: Label, places: Places, folder: Path, store: Path) -> None:
    """Records the run into `store`; its streams go through a shell where the label names files for them."""
    how = ["--quiet", "--backend", places.backend, "-o", str(store)]
    command = [iodock(), "record", *how, "--", *command_of(label, places)]
    ends = [f"<{label.stdin}"] * bool(label.stdin) + [f">{label.stdout}"] * bool(label.stdout)
    if ends:
        command = ["sh", "-c", f'exec "$@" {" ".join(ends)}', "sh", *command]
    with background(label, places, folder):
        checked(command, folder, "record")


def iodock() -> str:
    return str(Path(sys.executable).with_name("iodock"))


def diagnosed(store: Path) -> list[tuple[str, str]]:
    text = checked([iodock(), "diagnose", str(store), "--format", "json"], store.parent, "diagnose")
    return [(finding["rule"], finding["severity"]) for finding in json.loads(text)["findings"]]


def outcome(label: Label, places: Places) -> Outcome:
    """Prepares, records and diagnoses one run in a folder of its own, which is gone afterwards."""
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
    """Sets by name: a folder with a labels.toml, or those in it that do. Raises LabelError for neither."""
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


def outcomes_of(sources: Path, keep: Path | None, options: argparse.Namespace) -> list[Outcome]:
    labels = labelled_score.read_labels(sources / "labels.toml")
    chosen = [label for label in labels if not options.only or label.name in options.only]
    pool = ThreadPoolExecutor(options.jobs)
    with tempfile.TemporaryDirectory(prefix="labelled-built-") as built, pool:
        if keep:
            keep.mkdir(parents=True, exist_ok=True)
            keep = keep.resolve()
        places = Places(sources.resolve(), Path(built), keep, options.backend, options.again)
        return [told(one) for one in pool.map(lambda label: outcome(label, places), chosen)]


def told(one: Outcome) -> Outcome:
    """The same outcome, after a line about it on stderr: a set takes minutes."""
    state = one.error or (
        f"skipped: {one.skipped}" if one.skipped else ", ".join(one.found) or "nothing found"
    )
    print(f"{one.label.name} ({one.seconds:.1f} s): {state}", file=sys.stderr, flush=True)
    return one


HEADER = ["run", "kind", "expected", "found above note", "top", "missed", "false"]


def row(one: Outcome) -> list[str]:
    if one.skipped or one.error:
        state = f"skipped: {one.skipped}" if one.skipped else f"failed: {one.error}"
        return [one.label.name, one.label.kind, ", ".join(sorted(one.label.faults)), state, "", "", ""]
    single = one.label.kind == "fault"
    top = ("right" if one.top == one.label.top else f"{one.top or 'nothing'}, not it") if single else ""
    lists = [sorted(one.label.faults), one.found, [top], one.missed, one.false]
    return [one.label.name, one.label.kind, *(", ".join(names) for names in lists)]


def as_markdown(rows: list[list[str]]) -> str:
    return "\n".join("| " + " | ".join(r) + " |" for r in [rows[0], ["---"] * len(rows[0]), *rows[1:]])


def as_text(rows: list[list[str]]) -> str:
    widths = [max(len(r[n]) for r in rows) for n in range(len(rows[0]))]
    return "\n".join("  ".join(c.ljust(w) for c, w in zip(r, widths, strict=True)).rstrip() for r in rows)


def grouped(parts: dict[str, list[Outcome]]) -> dict[str, list[Outcome]]:
    """The sets, then those of one folder where it holds several, then all together if there is more."""
    groups = dict(parts)
    for folder in dict.fromkeys(name.split("/")[0] for name in parts):
        inside = [outcomes for name, outcomes in parts.items() if name.split("/")[0] == folder]
        if len(inside) > 1:
            groups[folder] = [one for outcomes in inside for one in outcomes]
    if len({name.split("/")[0] for name in parts}) > 1:
        groups["together"] = [one for outcomes in parts.values() for one in outcomes]
    return groups


def shares(parts: dict[str, list[Outcome]]) -> list[list[str]]:
    """One row of figures for each set and each group of sets."""
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


def printed(parts: dict[str, list[Outcome]], form: Callable[[list[list[str]]], str]) -> str:
    tables = [f"{name}\n\n{form([HEADER, *map(row, outcomes)])}\n" for name, outcomes in parts.items()]
    return "\n".join([*tables, form(shares(parts))])


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
    parser.add_argument("--backend", default="auto", help="how to record: as iodock record has it")
    parser.add_argument("--format", choices=["text", "markdown"], default="text")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> int:
    """Prints the tables; 1 if a run failed, 2 for labels that can't be meant, else 0, however good it was."""
    options = arguments(argv)
    try:
        sets = sets_in(options.sets)
        parts = {
            name: outcomes_of(path, options.keep and options.keep / name, options)
            for name, path in sets.items()
        }
        if not any(parts.values()):
            raise labelled_score.LabelError(f"no run is named {', '.join(options.only)}")
    except labelled_score.LabelError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(printed(parts, as_markdown if options.format == "markdown" else as_text))
    return int(any(one.error for outcomes in parts.values() for one in outcomes))


if __name__ == "__main__":
    sys.exit(main())
