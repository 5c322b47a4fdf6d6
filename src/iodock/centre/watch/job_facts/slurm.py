"""Slurm: squeue(1) of jobs that are there, else sacct(1). A name is last, as it may hold the delimiter."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from iodock.centre.watch.job_facts.facts import JobFacts, Run, Scheduler, moment, text_of, whole

_QUEUE = ("squeue", "--noheader", "--states=all", "--format=%A|%u|%D|%S|%e|%j")
_PAST = (
    "sacct", "--noheader", "--parsable2", "--allocations", "--duplicates",
    "--format=JobIDRaw,User,NNodes,Start,End,JobName",
)  # fmt: skip


def facts(ids: Sequence[str], run: Run) -> Mapping[str, JobFacts]:
    found: dict[str, JobFacts] = {}
    for command in (_QUEUE, _PAST):
        if missing := [job for job in ids if job not in found]:
            answer = run([*command, f"--jobs={','.join(missing)}"])
            found |= {job: one for job, one in _rows(answer or "") if job in missing}
    return found


def _rows(answer: str) -> Iterator[tuple[str, JobFacts]]:
    """Of a job that ran several times the last counts."""
    for line in answer.splitlines():
        fields = line.split("|", 5)
        if len(fields) == 6:
            job, owner, nodes, begin, end, name = fields
            yield (
                job.strip(),
                JobFacts(text_of(owner), text_of(name), whole(nodes), moment(begin), moment(end)),
            )


SCHEDULER = Scheduler("slurm", "squeue", True, facts)
