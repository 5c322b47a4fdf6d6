"""Jobs of a folder, a row each: logs of Darshan as they lie there, and stores."""

from iodock.program.jobs.table import COLUMNS, DOC, jobs_of

__all__ = ["COLUMNS", "DOC", "jobs_of"]
