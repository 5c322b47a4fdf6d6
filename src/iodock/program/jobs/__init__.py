"""Lists the jobs in a folder, with one row for each Darshan log or store."""

from iodock.program.jobs.table import COLUMNS, DOC, jobs_of

__all__ = ["COLUMNS", "DOC", "jobs_of"]
