"""Jobs in a folder, one row each: Darshan logs and stores."""

from iodock.program.jobs.table import COLUMNS, DOC, jobs_of

__all__ = ["COLUMNS", "DOC", "jobs_of"]
