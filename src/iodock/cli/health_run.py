"""Implements `iodock health run DIR`, which measures the performance of a file system."""

from __future__ import annotations

import os
import re
import shlex
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

import click

from iodock.cli.options import examples, json_too, language, quiet, spoken
from iodock.cli.output import check_folder
from iodock.cli.progress import ProgressBar
from iodock.cli.streams import say
from iodock.shared.errors import IodockError, RequestError, meant

if TYPE_CHECKING:
    from iodock.file_system.health.classes import Cell
    from iodock.file_system.health.mpi import Meeting
    from iodock.file_system.health.ranks import Job
    from iodock.file_system.health.results import Partial, Plan, Result
    from iodock.file_system.health.run import Estimate, Wanted

_EXAMPLES = (
    "iodock health run /scratch/me --class S",
    "iodock health run /scratch/me --class L -o work.json",
    "iodock health run /scratch/me --class L -o work.json --resume",
    "srun -N 4 --ntasks-per-node 8 iodock health run /scratch/me --class M -o work.json",
    "iodock health run /scratch/me --workload mixture.toml",
)
_TESTS = ("large-transfer", "constant-volume", "metadata")
_SUFFIXES = {"": 0, "k": 10, "m": 20, "g": 30}


def _sizes(context: click.Context, parameter: click.Parameter, value: str | None) -> tuple[int, ...]:
    """Parses the option --sizes, such as `4096,4k,1m,1g`. Returns sizes in bytes."""
    return tuple(_size(part.strip()) for part in (value or "").split(",") if part.strip())


def _size(text: str) -> int:
    parts = re.fullmatch(r"(\d{1,15})([kmg]?)(i?b)?", text.lower())
    if not parts or int(parts[1]) == 0:
        raise RequestError(f"--sizes {text}: not a size", "write bytes, or 4k, 1m, 1g")
    return int(parts[1]) << _SUFFIXES[parts[2]]


def _counts(context: click.Context, parameter: click.Parameter, value: str | None) -> tuple[int, ...]:
    parts = [part.strip() for part in (value or "").split(",") if part.strip()]
    if any(not re.fullmatch(r"[0-9]{1,6}", part) or not 0 < int(part) <= 100_000 for part in parts):
        raise RequestError(f"--processes {value}: must be numbers of 1 or more", "write 1,4,16")
    return tuple(int(part) for part in parts)


def _tests(context: click.Context, parameter: click.Parameter, value: str | None) -> tuple[str, ...]:
    parts = tuple(part.strip() for part in (value or "").split(",") if part.strip())
    for part in parts:
        if part not in _TESTS:
            raise RequestError(f"no such test: {part}", meant(part, _TESTS, f"tests: {', '.join(_TESTS)}"))
    return parts or _TESTS


@click.command("run", epilog=examples(_EXAMPLES))
@click.argument("directory", metavar="DIR", type=click.Path())
@click.option(
    "--class",
    "name",
    type=click.Choice(("S", "M", "L")),
    default="S",
    show_default=True,
    help="delay: below 2 minutes, half an hour, some hours",
)
@click.option("--tests", callback=_tests, metavar="NAME,...", help=f"only some of {', '.join(_TESTS)}")
@click.option(
    "--sizes", callback=_sizes, metavar="SIZE,...", help="request sizes of large transfer: 4k,1m,16m"
)
@click.option("--processes", callback=_counts, metavar="N,...", help="total for all nodes: 1,4,16")
@click.option(
    "--repeats",
    type=click.IntRange(3, 1000),
    default=3,
    show_default=True,
    help="repeats of each measurement",
)
@click.option("--direct", is_flag=True, help="bypass the client's cache (O_DIRECT)")
@click.option(
    "--shared-file", is_flag=True, help="large transfer: one file for all processes instead of one for each"
)
@click.option(
    "--workload",
    metavar="FILE",
    help="a mixture of operations from a TOML or Filebench (.f) file instead of the tests",
)
@click.option(
    "--seed", type=click.IntRange(0, (1 << 32) - 1), metavar="N", help="seed of the order; default: random"
)
@click.option(
    "--meet",
    type=click.Choice(("auto", "mpi", "files")),
    default="auto",
    show_default=True,
    help="how ranks wait for each other: through MPI, where mpi4py is installed, or files in DIR",
)
@click.option("--dry-run", is_flag=True, help="print the expected cost and exit")
@click.option("--resume", is_flag=True, help="resume the interrupted run")
@click.option("--force", is_flag=True, help="start an interrupted run again from the beginning")
@json_too
@click.option(
    "--format", "form", type=click.Choice(("table", "json", "csv")), help="default: table, or by -o"
)
@click.option("-o", "--output", metavar="FILE", help="output file; default: stdout")
@language
@quiet
def command(directory: str, **values: Any) -> None:
    """Measure the performance of the file system of DIR, as an ordinary user: large transfers, a constant
    volume in ever smaller requests, and metadata, over I/O size and number of processes. All files are in
    a separate folder in DIR, which is removed at the end, also after Ctrl-C or if the disk is full;
    results measured until then are kept. Under mpirun or srun all ranks work together and rank 0 writes
    the result."""
    from iodock.file_system.health import ranks
    from iodock.file_system.health.run import check_directory, follow

    check_folder(values["output"])
    place = check_directory(Path(directory))
    job, meeting = _met(ranks.job_of(os.environ), values["meet"])
    with _terminated():
        if job and job.rank > 0:
            follow(place, job, meeting)
        else:
            _first_rank(place, job, meeting, values)


def _met(job: Job | None, way: str) -> tuple[Job | None, Meeting | None]:
    """Returns the job, and the MPI barrier at which its ranks wait for each other. The barrier is None if
    they synchronise through files. WAY is the value of --meet. Raises RequestError if MPI was requested but
    can't be used."""
    from dataclasses import replace

    from iodock.file_system.health import mpi

    if job is None or way == "files":
        return job, None
    meeting = mpi.meeting(job.size)
    if meeting is None and way == "mpi":
        raise RequestError(
            "mpi4py is missing, or does not belong to the MPI that started these ranks",
            "install it for that MPI, or let the ranks meet through files: --meet files",
        )
    return replace(job, met_outside=meeting is not None), meeting


def _first_rank(place: Path, job: Job | None, meeting: Meeting | None, values: dict[str, Any]) -> None:
    from dataclasses import replace

    from iodock.cli.bench import write
    from iodock.file_system.health import remarks
    from iodock.file_system.health.engine import EngineError
    from iodock.file_system.health.results import Partial
    from iodock.file_system.health.run import carried_out, measurements

    partial = Partial(Path(_partial_name(values, place)))
    plan, done, estimate = _begun(partial, _wanted(place, job, values), values)
    if plan is None:
        return
    try:
        with ProgressBar("measuring", values["quiet"], f"of {len(plan.steps)} runs", rated=False) as bar:

            def progress(seconds: float, steps: int) -> None:
                bar(int(seconds * 1000), int(estimate.seconds * 1000), steps)

            results = carried_out(plan, job, partial, done, estimate, progress, say_note(values), meeting)
    except (EngineError, KeyboardInterrupt, SystemExit):
        partial.close(remove=False)
        _say_kept(partial, plan)
        raise
    measured = measurements(plan, results, shlex.join(["iodock", *sys.argv[1:]]))
    found = replace(measured, remarks=remarks.find(measured))
    write(found, values["form"], values["output"], spoken(values["lang"]), remarks=True)
    partial.close(remove=True)


def _begun(
    partial: Partial, wanted: Wanted, values: dict[str, Any]
) -> tuple[Plan | None, list[Result], Estimate]:
    """Returns the plan, the results so far, and the estimate. With --resume, plan and results are those of
    the interrupted run. The plan is None if only the estimate was requested."""
    from iodock.file_system.health.run import estimated_anew, planned, steps_left, waited

    if values["resume"]:
        plan, done = partial.go_on()
        if plan.directory != str(wanted.directory) or plan.ranks != (wanted.job.size if wanted.job else 1):
            raise RequestError(
                f"{partial.path}: is of {plan.directory} with {plan.ranks} ranks",
                "give the same DIR and the same number of ranks as in the interrupted run",
            )
        estimate = estimated_anew(plan, wanted.job)
        left = [estimate.of_step[step.id] for step in steps_left(plan, done)]
        say_note(values)(f"{len(left)} of {len(plan.steps)} runs are left; about {waited(sum(left))}")
        _check_quotas(wanted.directory, (estimate.bytes_at_once, estimate.inodes_at_once), values)
        return plan, done, estimate
    if partial.path.exists() and not (values["force"] or values["dry_run"]):
        raise IodockError(
            f"{partial.path}: holds an interrupted run",
            "--resume continues the interrupted run, --force starts again from the beginning",
        )
    plan, estimate = planned(wanted)
    if values["dry_run"]:
        click.echo(_cost(plan, estimate))
        return None, [], estimate
    say_note(values)(_cost(plan, estimate))
    _check_quotas(wanted.directory, (estimate.bytes_at_once, estimate.inodes_at_once), values)
    partial.begin(plan)
    return plan, [], estimate


def _check_quotas(place: Path, need: tuple[int, int], values: dict[str, Any]) -> None:
    """Prints warnings about quotas. Raises IodockError if a quota does not have enough space for the
    check-up."""
    from iodock.file_system.health.quotas import KINDS, check_room
    from iodock.file_system.health.run import quotas_at
    from iodock.shared.language import language_in
    from iodock.shared.message import Message
    from iodock.shared.sentences import say as sentence

    text = language_in(spoken(values["lang"]))
    for one in check_room(quotas_at(place), str(place), *need):
        kind = {name: text.gettext(KINDS[str(value)]) for name, value in one.values.items() if name == "kind"}
        say_note(values)(sentence(Message(one.text, {**one.values, **kind}), text))


def _wanted(place: Path, job: Job | None, values: dict[str, Any]) -> Wanted:
    from iodock.file_system.health.classes import Choice
    from iodock.file_system.health.run import Wanted, memory_bytes

    choice = Choice(
        tests=values["tests"],
        sizes=values["sizes"],
        processes=values["processes"],
        ranks=job.size if job else 1,
        direct=values["direct"],
        shared=values["shared_file"],
        memory_bytes=memory_bytes(),
    )
    workload: list[Cell] = []
    if values["workload"]:
        from iodock.file_system.health.workload import cells

        workload = cells(Path(values["workload"]), choice)
    name = "workload" if workload else values["name"]
    return Wanted(place, name, values["repeats"], values["seed"], choice, workload, job)


def _cost(plan: Plan, estimate: Estimate) -> str:
    from iodock.file_system.health.run import waited
    from iodock.shared.units import BYTES

    cells = len(plan.steps) // plan.repeats
    grid = f"{cells} measurements, {plan.repeats} times each"
    data = "no data"
    if estimate.written_bytes:
        data = f"up to {BYTES.text(estimate.written_bytes)}"
    at_once = f"{BYTES.text(estimate.bytes_at_once)} and " if estimate.bytes_at_once else ""
    return (
        f"class {plan.name} of tests on {plan.directory}: {grid}; writes {data} into up to "
        f"{estimate.files:,} files and folders, of which {at_once}{estimate.inodes_at_once:,} are "
        f"there at one time; about {waited(estimate.seconds)}"
    )


def _partial_name(values: dict[str, Any], place: Path) -> str:
    output = values["output"]
    if output and output != "-":
        return f"{output}.partial"
    name = "workload" if values["workload"] else values["name"]
    # The file is in the current folder, where there may be files of check-ups of other file systems. Its name
    # therefore contains the measured folder.
    return f"health-{name}{str(place).replace('/', '-').rstrip('-')}.partial"


def _say_kept(partial: Partial, plan: Plan) -> None:
    try:
        lines = sum(1 for _ in partial.path.open("rb")) - 1
    except OSError:
        return
    if lines == 0:
        partial.close(remove=True)
        return
    kept = f"{lines} of {len(plan.steps)} runs are kept in {partial.path}"
    say(f"note: {kept}; the same command with --resume continues the run")


def say_note(values: dict[str, Any]) -> Any:
    """Returns a function that prints a note on stderr. With --quiet, the function prints nothing."""
    return (lambda text: None) if values["quiet"] else (lambda text: say(f"note: {text}"))


@contextmanager
def _terminated() -> Iterator[None]:
    """Makes SIGTERM and SIGHUP raise an exception, as Ctrl-C does, so that the files of the check-up are
    removed."""

    def end(number: int, frame: FrameType | None) -> None:
        raise SystemExit(128 + number)

    before = {number: signal.signal(number, end) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
