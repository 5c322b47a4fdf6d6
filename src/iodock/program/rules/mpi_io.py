"""Finds files that ranks opened with MPI-IO in runs whose MPI-IO calls were not recorded. With MPI-IO, one
rank may move data that others requested, in other pieces, so the system calls do not show what each rank
requested."""

from __future__ import annotations

# MPI-IO queries the type of the file system when it opens a file (fstype of ROMIO and of OMPIO). It makes
# this query for the file or its folder. Other programs rarely do this. The MPI library itself does it for its
# own files.
ASKED = """SELECT DISTINCT f.name, p.upid FROM uses u JOIN calls c ON c.id = u.call_id
  JOIN files f ON f.file_id = u.file_id JOIN processes p ON p.utid = u.utid WHERE c.family = 'statfs'"""
"""SQL for the names for which a process queried the type of the file system: `name upid`."""

FILES = f"""SELECT DISTINCT u.file_id FROM uses u JOIN calls c ON c.id = u.call_id
  JOIN files f ON f.file_id = u.file_id JOIN processes p ON p.utid = u.utid
  JOIN ({ASKED}) a ON a.upid = p.upid AND a.name IN (f.name, rtrim(f.folder, '/'))
WHERE c.family = 'open' AND u.errno_id IS NULL AND p.rank IS NOT NULL
  AND f.kind IN ('file', 'regular', 'unknown')
  AND NOT regexp_matches(f.name, '^/(proc|sys|dev)/|/ompi[^/]*/')"""
"""SQL for the files that ranks opened in this way: `file_id`. Needs the derived table `uses`."""

HAVE_LIBRARY = """SELECT coalesce(bool_and(has_library), false) AS have FROM (
  SELECT p.rank, coalesce(bool_or(regexp_matches(array_to_string(x.libraries, ' '), '\\blibmp[it]')), false)
    AS has_library
  FROM processes p LEFT JOIN commands c ON c.utid = p.utid LEFT JOIN executables x ON x.path = c.path
  WHERE p.rank IS NOT NULL GROUP BY p.rank)"""
"""SQL for whether each rank ran a program that begins with a shared library of MPI: `have`. If calls of
MPI-IO were recorded, all such calls of these programs are in the store."""
