"""Implements `iodock record` without click, because importing click takes longer than recording a short
program. Simple arguments are parsed here as well."""

from __future__ import annotations

import os
import sys

from iodock.cli.spoken import ask
from iodock.cli.streams import say
from iodock.program import recording
from iodock.shared.locales import LANGUAGES

TYPE_CHECKING = False
"""The same value as typing's, whose import takes as long as Python's own start."""

if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import AbstractContextManager
    from typing import Any, TypedDict

    from iodock._native import RecordSummary

    class Asked(TypedDict):
        """The arguments of the function `run`, as parsed by `plain`."""

        command: Sequence[str]
        pids: Sequence[int]
        cgroup: str | None
        output: str | None
        backend: str
        page_faults: str
        interfaces: str
        stacks: str
        complete: bool
        force: bool
        live: bool
        quiet: bool
        lang: str | None
        light: tuple[int, int] | None
        ranks: tuple[str, bool] | None


_FLAGS = {"-q": "quiet", "--quiet": "quiet", "--force": "force", "--complete": "complete", "--live": "live",
          "--light": "light"}  # fmt: skip
_VALUES = {"-o": "output", "--output": "output", "--backend": "backend",
           "--page-faults": "page_faults", "--interfaces": "interfaces", "--stacks": "stacks",
           "--lang": "lang"}  # fmt: skip


def plain(arguments: Sequence[str]) -> Asked | None:
    """Parses the arguments of `record` if they are simple: a command, and options that are separated from
    their values by blanks. Returns None otherwise; click then parses or rejects them."""
    flags = dict.fromkeys(_FLAGS.values(), False)
    values = {"output": "", "backend": "auto", "page_faults": "auto", "interfaces": "auto", "stacks": "auto",
              "lang": ""}  # fmt: skip
    at = 0
    while at < len(arguments) and arguments[at].startswith("-") and arguments[at] != "--":
        if name := _FLAGS.get(arguments[at]):
            flags[name] = True
            at += 1
        elif (name := _VALUES.get(arguments[at])) and at + 1 < len(arguments):
            values[name] = arguments[at + 1]
            at += 2
        else:
            return None
    command = arguments[at + (arguments[at : at + 1] == ["--"]) :]
    if not command or values["backend"] not in recording.BACKENDS:
        return None
    if values["page_faults"] not in recording.PAGE_FAULTS or values["lang"] not in ("", *LANGUAGES):
        return None
    if values["interfaces"] not in recording.INTERFACES or values["stacks"] not in recording.STACKS:
        return None
    if values["stacks"] not in ("auto", "off") and flags["light"]:
        return None
    return {
        "command": command, "pids": (), "cgroup": None, "output": values["output"] or None,
        "backend": values["backend"], "page_faults": values["page_faults"],
        "interfaces": values["interfaces"], "stacks": values["stacks"], "complete": flags["complete"],
        "force": flags["force"],
        "live": flags["live"], "quiet": flags["quiet"], "lang": values["lang"] or None,
        "light": recording.LIGHT if flags["light"] else None, "ranks": None,
    }  # fmt: skip


def run(
    *,
    command: Sequence[str],
    pids: Sequence[int],
    cgroup: str | None,
    output: str | None,
    backend: str,
    page_faults: str,
    interfaces: str,
    stacks: str,
    complete: bool,
    force: bool,
    live: bool,
    quiet: bool,
    lang: str | None,
    light: tuple[int, int] | None = None,
    ranks: tuple[str, bool] | None = None,
) -> int:
    """Records a command or running processes, and prints the check-up. Returns the exit status of the
    program."""
    sys.stdout.flush()
    ask(lang)
    asked = _named(output) if output else f"{_stem(command, pids, cgroup)}.iodock"
    if os.path.lexists(asked) and not force:
        from iodock.cli.stored import refuse_at_a_terminal

        refuse_at_a_terminal(asked)
    with _shown(asked, lang) if live else _Nothing():
        if command:
            recorded = _record(
                command,
                asked,
                backend=backend,
                force=force,
                page_faults=page_faults,
                interfaces=interfaces,
                stacks=stacks,
                complete=complete,
                light=light,
                ranks=ranks,
            )
        else:
            recorded = recording.attach(
                pids, asked, backend=backend, force=force, group=cgroup, page_faults=page_faults
            )
    _after(recorded, asked, lang, quiet)
    status = _pass_on(recorded)
    if "iodock.cli.patience" in sys.modules:
        _leave_those_who_ask(status)
    return status


def _leave_those_who_ask(status: int) -> None:
    """Ends this process at once if a thread still waits for an answer of the monitor. Otherwise, Python would
    wait for the thread at exit, and its error could change the exit status."""
    from iodock.cli.patience import is_asking

    if is_asking():
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


class _Nothing:
    """A context manager that does nothing. contextlib.nullcontext is not used, because importing contextlib
    takes time."""

    def __enter__(self) -> None: ...
    def __exit__(self, *raised: object) -> None: ...


def _shown(store: str, lang: str | None) -> AbstractContextManager[None]:
    """Returns a context that displays the recording on the terminal, if there is one. Raises RequestError."""
    from iodock.cli.live import shown, terminal_for

    terminal = terminal_for(store)
    return _Nothing() if terminal is None else shown(terminal, lang)


def _record(command: Sequence[str], store: str, **options: Any) -> RecordSummary:
    try:
        return recording.record(command, store, **options)
    except recording.RecordRefused as refused:
        if not refused.in_the_way:
            raise
        from iodock.cli.stored import run_unrecorded

        run_unrecorded(command, str(refused))


def _named(output: str) -> str:
    """Replaces placeholders in the name of a store: `%h` becomes the name of this host, `%r` the MPI rank,
    and `%%` a percent sign. Without a rank, `%r` becomes `pid` and the process id."""
    if "%" not in output:
        return output
    from iodock._native import launched_rank

    rank = launched_rank()
    known = {"%h": os.uname().nodename, "%r": f"pid{os.getpid()}" if rank is None else str(rank)}
    # The name is split at `%%` first. Otherwise, the percent sign of `%%h` would be taken for the beginning
    # of `%h`.
    parts = [part.replace("%h", known["%h"]).replace("%r", known["%r"]) for part in output.split("%%")]
    return "%".join(parts)


def _stem(command: Sequence[str], pids: Sequence[int], cgroup: str | None) -> str:
    """Returns the default name of the store, without its ending: the name of the cgroup, the program or the
    process."""
    if cgroup:
        return cgroup.rstrip("/").rpartition("/")[2].replace(":", "-")
    return command[0].rpartition("/")[2] if command else _name_of_process(pids[0])


def _name_of_process(pid: int) -> str:
    try:
        with open(f"/proc/{pid}/comm") as name:  # noqa: PTH123 (pathlib is one of the slow ones)
            return name.read().strip().replace("/", "_") or str(pid)
    except OSError:
        return str(pid)


def _after(recorded: RecordSummary, asked: str, lang: str | None, quiet: bool) -> None:
    """Creates the tables and prints the check-up. If this fails, only an error is printed, because the exit
    status is that of the program."""
    store = recorded["store"]
    if recorded.get("elsewhere") or (not quiet and (recorded.get("kept") or recorded.get("made_folder"))):
        from iodock.cli.options import spoken
        from iodock.cli.stored import say_where

        say_where(recorded, asked, spoken(lang), quiet)
    # If several ranks write to the same store, `must_finish` is set only for the rank that ends last, so the
    # line appears once.
    if recorded["must_finish"] and not quiet:
        _say_how(recorded, lang)
    for warning in recorded["warnings"] if not quiet else ():
        say(f"warning: {warning}")
    if recorded["failure"]:
        say(f"error: recording stopped early: {recorded['failure']}")
    if not recorded["must_finish"]:
        return
    try:
        _finish(store, lang, quiet)
    except KeyboardInterrupt:
        say(f"note: interrupted; {store} is completed when it is next opened")
    except Exception as error:
        # This includes bugs of iodock and exceptions of other packages. The program has already run, and its
        # exit status must be returned.
        from iodock.cli.run import say_error

        say_error(error)


def _say_how(recorded: RecordSummary, lang: str | None) -> None:
    from iodock.cli.options import spoken
    from iodock.cli.reasons import reason_of
    from iodock.shared.language import language_in

    reason = reason_of(recorded["backend"], recorded["reason"], language_in(spoken(lang)))
    if reason:
        say(f"note: {reason}")


def _finish(store: str, lang: str | None, quiet: bool) -> None:
    if quiet:
        recording.finish(store)
        return
    from pathlib import Path

    from iodock.cli.checkup import print_checkup_of
    from iodock.cli.interrupts import watch
    from iodock.cli.options import spoken
    from iodock.cli.progress import ProgressBar

    with ProgressBar("writing tables", quiet) as progress:
        recording.finish(store, progress)
    watch()
    print_checkup_of(Path(store), spoken(lang))


def _pass_on(recorded: RecordSummary) -> int:
    """Ends this process in the same way as the program ended: with its exit status, or by the same signal."""
    if recorded["exit_signal"] is not None:
        sys.stdout.flush()
        sys.stderr.flush()
        _die_of(recorded["exit_signal"])
        return 128 + recorded["exit_signal"]
    if recorded["exit_code"] is not None:
        return recorded["exit_code"]
    return 1 if recorded["failure"] else 0


def _die_of(number: int) -> None:
    import resource
    import signal

    # The program has already written its core dump, if one was configured. Python must not write another one.
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    if number not in (signal.SIGKILL, signal.SIGSTOP):
        signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})
    os.kill(os.getpid(), number)
