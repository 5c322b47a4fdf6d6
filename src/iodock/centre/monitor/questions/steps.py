"""Builds SQL for the steps of Slurm's jobs. Samples of a step's processes are lower bounds until Slurm
reports the step's total. The totals also show when a job has ended."""

from __future__ import annotations

from iodock.centre.monitor.questions.counted import PROCESSES
from iodock.centre.monitor.questions.spans import Span

IS_SAMPLE = "(source = 'process_io' AND job IS NOT NULL AND session IS NOT NULL)"
"""SQL condition: a row of `job_io` is a sample of a step whose total may still arrive."""
IS_TOTAL = "(source = 'slurm_step' AND exact)"
"""SQL condition: a row of `job_io` is a step's total. Samples and total together are the I/O of the step."""
_WHOLE_JOB = ("step_batch", "step_extern")
"""Steps that end with the job: if there is a batch step, the job ends with it; the extern step always ends
with the job."""
ENDS = ", ".join(
    [
        *(
            f"max(CASE WHEN source = 'slurm_step' AND session = '{step}' THEN end_ts END) AS {step}_ended"
            for step in _WHOLE_JOB
        ),
        "bool_or(coalesce(session = 'step_batch', false)) AS has_batch",
    ]
)
"""SQL columns that `ended` needs from rows grouped by job."""
RUNNING = (
    "max(CASE WHEN source = 'process_io' AND known_by IN ('scheduler', 'cgroup') THEN begin_ts END) "
    "AS running_ts"
)
"""SQL column that `ended` needs: when a Slurm process of the job was last seen. Processes that only have the
job's environment variables are excluded, because they may outlive the job."""


def ended() -> str:
    """Returns SQL for the time when Slurm ended a job, over rows with the columns of ENDS and RUNNING. It is
    NULL if the end is not reported, or if the job was requeued and runs again."""
    batch, extern = (f"max({step}_ended)" for step in _WHOLE_JOB)
    end = f"CASE WHEN bool_or(has_batch) THEN {batch} ELSE {extern} END"
    return f"CASE WHEN max(running_ts) >= {end} THEN NULL ELSE {end} END"


def completed(where: str, within: Span, place: str = PROCESSES) -> str:
    """Returns a SELECT of the rows of `job_io` that meet the condition WHERE. If PLACE is
    `processes`, it sets `exact` to true for samples of a step whose total is also in the span, because the
    samples and the total add up to the exact amount."""
    if place != PROCESSES:
        return f"SELECT * FROM job_io WHERE {where}"
    inside = f"begin_ts >= {within.begin} AND end_ts <= {within.end}"
    is_completed = f"{IS_SAMPLE} AND begin_ts >= {within.begin} AND begin_ts < total_ts"
    return f"""
        SELECT rows.* REPLACE (
            exact OR coalesce({is_completed}, false) AS exact
        ) FROM (SELECT * FROM job_io WHERE {where}) AS rows LEFT JOIN (
            SELECT host AS of_host, job AS of_job, session AS of_session, max(end_ts) AS total_ts
            FROM job_io WHERE {IS_TOTAL} AND {inside} AND ({where}) GROUP BY ALL
        ) ON host = of_host AND job = of_job AND session = of_session
    """


def all_completed(within: Span) -> str:
    """Returns the SQL condition, over rows of jobs from summaries.py, that the sums of a job are exact: the
    totals of all steps with samples have arrived, and no total began before the span. The part of such a
    total that belongs to the span would be unknown."""
    open_steps, totals = (
        f"coalesce(flatten(list({name}) FILTER ({name} IS NOT NULL)), []::VARCHAR[])"
        for name in ("open_steps", "totals")
    )
    is_inside = f"coalesce(min(totals_begin) >= {within.begin}, true)"
    return f"(bool_and(exact) AND {is_inside} AND list_has_all({totals}, {open_steps}))"
