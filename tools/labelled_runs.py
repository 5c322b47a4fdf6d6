"""Builds the programs of a labelled set and runs them: compilers, inputs, slow servers, streams."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from labelled_score import Input, Label

COMMON = Path(__file__).parent.parent / "fixtures" / "labelled" / "common"
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
# Open MPI refuses to run as root, or with more ranks than cores, without these variables. Both are harmless
# for small programs.
ENVIRONMENT = {"LC_ALL": "C", "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
# A run inherits only these other variables, because some are faults by themselves, such as PYTHONUNBUFFERED.
INHERITED = ("PATH", "HOME", "TMPDIR", "USER", "LD_LIBRARY_PATH")


class Unrunnable(Exception):
    """This machine lacks something that a run needs. The run is skipped, and the reason is shown."""


class Failed(Exception):
    """A run, a recording or a diagnosis failed."""


@dataclass(frozen=True)
class Places:
    """Folders of one set (sources, build results, stores or None), and the back end that records it."""

    sources: Path
    built: Path
    keep: Path | None
    backend: str = "auto"
    again: bool = False
    """Diagnose the stores that were kept, without recording."""


def ending_in(name: str, table: dict[str, list[str]]) -> list[str] | None:
    return next((command for ending, command in table.items() if name.endswith(ending)), None)


def compiled(source: Path, compiler: list[str], built: Path) -> Path:
    """Returns the program made from one source file. Concurrent callers build it only once."""
    target = built / source.name.replace(".", "-")  # a.c and a.cpp may be in the same folder.
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
    """Returns the command that runs a file of the set, or of the folder that all sets share, without its
    arguments."""
    source = next((file for file in (places.sources / name, COMMON / name) if file.exists()), Path(name))
    compiler = ending_in(name, COMPILERS)
    if compiler:
        return [str(compiled(source, compiler, places.built))]
    interpreter = ending_in(name, INTERPRETERS)
    if not interpreter:
        raise Failed(f"{name}: don't know how to run such a file")
    return [*interpreter, str(source)]


def command_of(label: Label, places: Places) -> list[str]:
    """Returns the command to record. Raises Unrunnable if a tool that the command needs is missing."""
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
    """Writes one input file: lines of a small table, or bytes that repeat after 4 MiB."""
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


def checked(
    command: Sequence[str],
    folder: Path,
    what: str,
    variables: Mapping[str, str] | None = None,
    begin: Callable[[], None] | None = None,
) -> str:
    """Runs a command to its end and returns its output. A failure or a hang raises an error that quotes the
    output. The process calls `begin` first."""
    with subprocess.Popen(
        command, cwd=folder, env={**environment(), **(variables or {})}, text=True, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True, preexec_fn=begin,
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
    """Runs the label's background program without a recorder, from the line that it prints when it is ready
    until the context ends."""
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


def redirected(label: Label, command: Sequence[str]) -> list[str]:
    """Returns the command. If the label names files for its streams, a shell redirects them."""
    ends = [f"<{label.stdin}"] * bool(label.stdin) + [f">{label.stdout}"] * bool(label.stdout)
    return ["sh", "-c", f'exec "$@" {" ".join(ends)}', "sh", *command] if ends else list(command)
