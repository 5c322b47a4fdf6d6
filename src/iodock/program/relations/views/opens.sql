-- Opens for writing, and opens and fcntl's F_SETFL whose flags change how bytes are written (O_APPEND,
-- O_DSYNC, O_SYNC, O_DIRECT), by file, task, call and flags.
--
-- file_id: -> files
-- utid: -> processes
-- call_id: -> calls
-- flags: open flags, Linux numbers
-- errno_id: -> errnos; NULL: the call did not fail
-- count: opens

-- The numbers are Linux's flags O_ACCMODE (3), O_APPEND (1024), O_DSYNC (4096, contained in O_SYNC) and
-- O_DIRECT (16384).
SELECT file_id, utid, call_id, flags, errno_id, count(*) AS count
FROM events WHERE flags IS NOT NULL AND flags & (3 | 1024 | 4096 | 16384) <> 0 AND direction = 0 GROUP BY ALL
