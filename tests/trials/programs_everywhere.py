"""Records real programs in every way. Output, files and exit status must equal those without a recorder, and
the calls those that `strace -f` shows. Otherwise the store must have a loss that explains the difference, and
the terminal must show it. `make test-programs` runs this.

    tests/trials/programs_everywhere.py [--only WORD] [--backends auto,rewrite,bpf,ptrace] [--keep FOLDER]

The back end `complete` is `rewrite` with `--complete`; `sites` and `all` are `rewrite` with these `--stacks`.
Compared are the numbers of calls by name, for the calls that a recording contains (docs/reference/calls.md).
The calls of the dynamic linker before the library of `rewrite` is loaded are separated in strace's log: they
end with the munmap of /etc/ld.so.cache. Where programs wait for each other, the pieces in which a pipe is
read differ from run to run, also under strace; then only the bytes are compared."""

from __future__ import annotations

import argparse
import hashlib
import math
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from iodock.program.findings import HIDES_CALLS
from iodock.program.unseen import COUNTED_IN_CALLS, SMALL_SHARE, hides_calls, unseen_in
from programs_table import PROGRAMS, Calls, Program, build, prepare
from strace_counts import MOVING, Counted, counted

_WAITS = "poll ppoll select pselect6 epoll_wait epoll_pwait epoll_pwait2 io_getevents io_uring_enter"
WAITS = frozenset(_WAITS.split())
"""The number of waits depends on when the others are ready."""
# Each line of iodock's own output begins like this, or is empty.
_OWN_WORDS = re.compile(rb"(note|warning|error): |\n|$")
IN_RINGS = frozenset({"io_uring_read", "io_uring_write", "io_uring_fsync"})
"""Requests inside an io_uring are not calls."""
BACKENDS = ("auto", "rewrite", "bpf", "ptrace")
WAYS = {
    "complete": ("rewrite", "--complete"),
    "sites": ("rewrite", "--stacks", "sites"),
    "all": ("rewrite", "--stacks", "all"),
}
PATIENCE_S = 300
MOST_RUNS = 6
"""Number of runs under strace, until the spread of a program with varying behaviour is known."""
ENVIRONMENT = {
    "PATH": os.environ.get("PATH", "/usr/bin:/bin"),
    "LANG": "C.UTF-8",
    "COLUMNS": "1000",
    "TZ": "UTC",
    "PYTHONHASHSEED": "0",
    "PYTHONDONTWRITEBYTECODE": "1",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_AUTHOR_DATE": "1500000000 +0000",
    "GIT_COMMITTER_DATE": "1500000000 +0000",
    "SOURCE_DATE_EPOCH": "1500000000",
    # rustc may be a link to rustup, which finds its toolchains by this variable.
    "RUSTUP_HOME": os.environ.get("RUSTUP_HOME", str(Path.home() / ".rustup")),
}


@dataclass
class Ended:
    """The visible results of a run."""

    status: int
    out: bytes
    said: bytes
    files: dict[str, object]


@dataclass
class Recorded:
    """The content of a store."""

    calls: Counter[str]
    bytes: Counter[str]
    itself: Counter[str]
    """Calls on files that describe the program itself."""
    losses: dict[str, int]
    how: str


class Place:
    """Folders that have the same names in every run."""

    def __init__(self, root: Path) -> None:
        self.root, self.work, self.built = root, root / "work", root / "built"
        self.home, self.store, self.log = root / "home", root / "run.iodock", root / "strace.log"
        self.built.mkdir(parents=True, exist_ok=True)
        # Some programs change to another user, who needs access.
        root.chmod(0o755)
        self._done: set[str] = set()

    def build(self, program: Program) -> str:
        """Builds the files of the program's commands, once. Returns the reason if that fails."""
        for command in program.build:
            if command in self._done:
                continue
            try:
                build(command, self.built)
            except subprocess.SubprocessError as error:
                said = getattr(error, "stderr", b"") or b""
                return f"can't be built: {said.decode(errors='replace').strip().splitlines()[-1:]}"
            self._done.add(command)
        return ""

    def run(self, program: Program, before: Sequence[object] = ()) -> Ended:
        """Runs the program in a fresh folder, with the words BEFORE in front of its command."""
        for folder in (self.work, self.home, self.root / "tmp"):
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
        prepare(self.work)
        words = [word.replace("$BUILT", str(self.built)) for word in program.words()]
        return self._ended([str(word) for word in (*before, *words)])

    def _ended(self, words: Sequence[str]) -> Ended:
        places = {"HOME": str(self.home), "TMPDIR": str(self.root / "tmp"), "BUILT": str(self.built)}
        out, said = self.root / "out", self.root / "said"
        with out.open("wb") as out_file, said.open("wb") as said_file:
            process = subprocess.Popen(
                words, cwd=self.work, env=ENVIRONMENT | places, stdin=subprocess.DEVNULL, stdout=out_file,
                stderr=said_file, start_new_session=True,
            )  # fmt: skip
            try:
                status = process.wait(PATIENCE_S)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                status = 1000
        return Ended(status, out.read_bytes(), said.read_bytes(), dict(_files(self.work)))


def _files(folder: Path) -> Iterator[tuple[str, object]]:
    for path in sorted(folder.rglob("*")):
        found = path.lstat()
        content: object = None
        if stat.S_ISREG(found.st_mode):
            content = (found.st_size, hashlib.md5(path.read_bytes()).hexdigest())
        elif stat.S_ISLNK(found.st_mode):
            content = path.readlink()
        links = 0 if stat.S_ISDIR(found.st_mode) else found.st_nlink
        yield str(path.relative_to(folder)), (oct(found.st_mode), links, content)


# The following functions record with iodock and read the stores.


def recorded_of(store: Path) -> Recorded:
    """Returns the content of the store at STORE."""
    from iodock.program.store import Store

    with Store.open(store) as opened:
        moved = "sum(CASE WHEN result > 0 THEN result ELSE 0 END)::BIGINT"
        rows = opened.rows(f"SELECT call, count(*) AS n, {moved} AS moved FROM calls_seen GROUP BY call")
        itself = opened.rows(f"{_ITSELF} GROUP BY call")
        manifest = opened.manifest
        losses = {loss.name: loss.count for loss in manifest.losses}
        how = str(manifest.raw["captured"]["how"])
    calls = Counter({row["call"]: row["n"] for row in rows if row["call"] not in IN_RINGS})
    moved_bytes = Counter({row["call"]: row["moved"] for row in rows if row["call"] in MOVING})
    looks = Counter({row["call"]: row["n"] for row in itself})
    return Recorded(calls, moved_bytes, looks, losses, how)


# The recorder's library appears in /proc/self/maps, and its variables in environ, so these files are longer.
_ITSELF = r"""
    SELECT call, count(*) AS n FROM calls_seen
    WHERE regexp_matches(file, '^/proc/(self|thread-self|\d+)/(.*/)?(\w*maps|environ)$')"""


@cache
def _compared() -> frozenset[str]:
    """Returns the names of the calls that a recording contains."""
    from iodock import _native

    return frozenset(_native.recorded_calls())


@dataclass
class Verdict:
    """The result of one program with one back end."""

    wrong: list[str] = field(default_factory=list)
    how: str = ""
    """The back end that was used."""
    seen: int = 0
    of: int = 0
    before_load: int = 0
    """Number of calls counted under the loss of that name."""
    hidden: int = 0
    """Number of calls counted under other losses."""
    losses: list[str] = field(default_factory=list)


class Trial:
    """Runs of one program: twice without a recorder, under strace, and with each back end."""

    def __init__(self, program: Program, place: Place) -> None:
        self.program, self.place = program, place
        self.alone = [place.run(program) for _ in range(2)]
        self.logs: list[Counted] = []
        self.notes: list[str] = []
        self.fails = [one.said for one in self.alone if one.status != program.ends]
        if program.calls is not Calls.ANY:
            self._trace()
            if program.calls is Calls.SPREAD:
                self._trace()

    def _trace(self) -> None:
        ended = self.place.run(self.program, ["strace", "-f", "-qq", "-o", self.place.log])
        self.notes += [f"under strace {one}" for one in self._outside(ended)]
        self.logs.append(counted(self.place.log, _compared()))

    def by(self, backend: str) -> Verdict:
        """Records the program and compares the recording."""
        shutil.rmtree(self.place.store, ignore_errors=True)
        way = WAYS.get(backend, (backend,))
        words = [sys.executable, "-m", "iodock", "record", "--force", "--backend", *way]
        ended = self.place.run(self.program, [*words, "-o", self.place.store, "--"])
        verdict = Verdict(self._outside(ended))
        try:
            recorded = recorded_of(self.place.store)
        except Exception as error:
            verdict.wrong.append(f"no store: {error}")
            return verdict
        verdict.how, verdict.seen = recorded.how, recorded.calls.total()
        if self.logs:
            self._count(recorded, verdict, ended.said[len(self.alone[0].said) :].decode(errors="replace"))
        return verdict

    def _outside(self, ended: Ended) -> list[str]:
        """Returns the differences to the run without a recorder, in what the program does the same each
        time."""
        one, two = self.alone
        wrong = []
        if ended.status != one.status and one.status == two.status:
            wrong.append(f"ends with {ended.status}, alone with {one.status}")
        if ended.out != one.out and one.out == two.out:
            wrong.append(f"writes {_shown(ended.out)} to stdout, alone {_shown(one.out)}")
        rest = ended.said.removeprefix(one.said)
        if one.said == two.said and (not ended.said.startswith(one.said) or not _OWN_WORDS.match(rest)):
            wrong.append(f"writes {_shown(ended.said)} to stderr, alone {_shown(one.said)}")
        if one.files.keys() == two.files.keys() != ended.files.keys():
            wrong.append(f"other files than alone: {sorted(one.files.keys() ^ ended.files.keys())[:5]}")
        same = [name for name in one.files if one.files[name] == two.files.get(name)]
        other = [name for name in same if name in ended.files and ended.files[name] != one.files[name]]
        if other:
            wrong.append(f"files are not as alone: {other[:5]}")
        return wrong

    def _count(self, recorded: Recorded, verdict: Verdict, said: str) -> None:
        different = self._different(recorded)
        while different and self.program.calls is Calls.SPREAD and len(self.logs) < MOST_RUNS:
            self._trace()
            different = self._different(recorded)
        verdict.of = round(sum(log.calls.total() for log in self.logs) / len(self.logs))
        if recorded.losses.get("before-load"):
            unseen = max(0, verdict.of - verdict.seen)
            verdict.before_load = min(unseen, max(log.before_load.total() for log in self.logs))
        _explain(recorded, verdict, different, said)

    def _different(self, recorded: Recorded) -> dict[str, int]:
        """Returns the calls whose number differs: call -> how many too few (negative) or too many."""
        found = {}
        names = set(recorded.calls) & _compared() | {name for log in self.logs for name in log.calls}
        for name in sorted(names):
            ranges = [_calls(name, log, recorded) for log in self.logs]
            if off := self._off(ranges, recorded.calls[name]):
                if recorded.how == "rewrite" and 0 < off <= recorded.itself[name]:
                    continue
                if self.program.calls is Calls.SPREAD and self._as_much(name, recorded):
                    continue
                found[name] = off
        return found

    def _off(self, ranges: Sequence[tuple[int, int]], seen: int) -> int:
        low, high = min(one[0] for one in ranges), max(one[1] for one in ranges)
        slack = high - low if self.program.calls is Calls.SPREAD else 0
        return min(0, seen - low + slack) + max(0, seen - high - slack)

    def _as_much(self, name: str, recorded: Recorded) -> bool:
        """Returns whether the call moved the same bytes in a different number of pieces. The pieces of a pipe
        depend on timing."""
        if name in WAITS or name in self.program.varies.split():
            return recorded.calls[name] > 0
        ranges = [_bytes(name, log, recorded) for log in self.logs]
        return name in MOVING and not self._off(ranges, recorded.bytes[name])


def _calls(name: str, log: Counted, recorded: Recorded) -> tuple[int, int]:
    """Returns how often a recording may contain the call: lowest and highest number."""
    low, high = _range(log.calls[name], log.before_load[name], log, recorded)
    # With rewrite, a call that the kernel restarts is one longer call.
    return low - (log.restarted[name] if recorded.how == "rewrite" else 0), high


def _bytes(name: str, log: Counted, recorded: Recorded) -> tuple[int, int]:
    """Returns how many bytes a recording may have moved by the call: lowest and highest number."""
    return _range(log.bytes[name], log.bytes_before_load[name], log, recorded)


def _range(every: int, before_load: int, log: Counted, recorded: Recorded) -> tuple[int, int]:
    programs = recorded.losses.get("before-load", 0)
    if recorded.how != "rewrite" or not programs:
        return every, every
    # The recorder traces programs that a static program starts from their exec on.
    return every - before_load, every - before_load if programs >= log.loaded_programs else every


def _explain(recorded: Recorded, verdict: Verdict, different: dict[str, int], said: str) -> None:
    verdict.losses = [f"{name} {recorded.losses[name]}" for name in sorted(recorded.losses)]
    hiding = [name for name in ("before-load", *HIDES_CALLS) if recorded.losses.get(name)]
    for name in hiding:
        count = f"{recorded.losses[name]:,}"
        is_named = re.search(rf"not seen: ({count} {name}:|.*\b{name} {count}\b)", said)
        if hides_calls(name, recorded.losses[name]) and not is_named:
            verdict.wrong.append(f"the terminal does not name the loss {name}")
    more = {name: count for name, count in different.items() if count > 0}
    fewer = {name: count for name, count in different.items() if count < 0}
    if more:
        verdict.wrong.append(f"more calls than strace: {_counts(more)}")
    verdict.hidden = -sum(fewer.values())
    judges = unseen_in(recorded.losses.items(), verdict.seen).judges
    if (not judges or verdict.hidden > SMALL_SHARE * verdict.of) and not _HEADLINE.search(said):
        verdict.wrong.append("the headline does not say that calls are missing")
    if not verdict.hidden <= _most_behind(set(hiding) - {"before-load"}, recorded):
        verdict.wrong.append(f"fewer calls than strace, and no loss says so: {_counts(fewer)}")


def _most_behind(losses: set[str], recorded: Recorded) -> float:
    """Returns the number of calls that these losses can explain: their counts if they count calls, otherwise
    any number."""
    if losses - COUNTED_IN_CALLS:
        return math.inf
    return sum(recorded.losses[name] for name in losses)


_HEADLINE = re.compile("calls were not seen|Not all (calls were|was) seen")


def _counts(different: dict[str, int]) -> str:
    return ", ".join(f"{name} {count:+}" for name, count in different.items())


def _shown(text: bytes) -> str:
    return repr(text[-300:])[1:]


def tried(program: Program, backends: Sequence[str], place: Place) -> Iterator[tuple[str, Verdict]]:
    """Yields each back end with its verdict."""
    trial = Trial(program, place)
    if trial.fails:
        yield "alone", Verdict([f"fails: {_shown(trial.fails[0])}"])
        return
    for note in trial.notes:
        print(f"  note: {program.name}: {note}")
    for backend in backends:
        yield backend, trial.by(backend)


def line(program: Program, backend: str, verdict: Verdict) -> str:
    """Returns the result as a line of text."""
    way = backend if verdict.how in ("", backend) else f"{backend}: {verdict.how}"
    counts = f"{verdict.seen:,} calls"
    if program.calls is not Calls.ANY:
        about = "" if program.calls is Calls.SAME else "about "
        counts += f" of {about}{verdict.of:,}"
    if verdict.before_load:
        counts += f", {verdict.before_load:,} before-load"
    if verdict.hidden:
        counts += f", {verdict.hidden:,} behind losses ({', '.join(verdict.losses)})"
    return f"{program.name:34} {way:16} {'WRONG' if verdict.wrong else 'ok':5} {counts}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", help="programs whose name has this at its beginning: a regular expression")
    parser.add_argument("--backends", default=",".join(BACKENDS))
    parser.add_argument("--keep", type=Path, help="works there, and leaves what the last run made")
    given: Any = parser.parse_args()
    wrong: list[str] = []
    skipped: list[str] = []
    sums: Counter[str] = Counter()
    begin = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="programs-") as temporary:
        place = Place((given.keep or Path(temporary)).resolve())
        for program in PROGRAMS:
            if given.only and not re.match(given.only, program.name):
                continue
            missing = program.missing()
            why = f"no {', '.join(missing)} here" if missing else place.build(program)
            if why:
                skipped.append(program.name)
                print(f"skipped: {program.name}: {why}", flush=True)
                continue
            sums["programs"] += 1
            for backend, verdict in tried(program, given.backends.split(","), place):
                print(line(program, backend, verdict), flush=True)
                sums["runs"] += 1
                sums["with a loss that hides calls"] += bool(verdict.hidden)
                for one in verdict.wrong:
                    print(f"  {one}", flush=True)
                wrong += [f"{program.name}, {backend}: {one}" for one in verdict.wrong]
    print(", ".join(f"{count:,} {name}" for name, count in sums.items()), end="")
    print(f", {len(skipped)} skipped, in {time.monotonic() - begin:.0f} s; unexplained: {len(wrong)}")
    for one in wrong:
        print(f"  {one}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
