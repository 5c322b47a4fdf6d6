-- Calls folded by file, task, call, error, direction and side.
--
-- file_id: -> files; NULL: no file
-- utid: -> processes
-- call_id: -> calls
-- errno_id: -> errnos; NULL: the call did not fail
-- direction: 0 none, 1 read, 2 write
-- side: 0 single end, 1 in, 2 out, 3 old, 4 new; count calls in the rows with 0, 1 or 3
-- count: rows
-- time_ns: time inside the calls, summed over tasks; NULL if the source has no durations
-- longest_ns: duration of the longest of these calls
-- bytes: bytes transferred; NULL for calls that transfer no data
-- first_ts: start of the first one
-- last_ts: start of the last one

SELECT file_id, utid, call_id, errno_id, direction, side, count(*) AS count,
  CAST(sum(coalesce(dur, sys_cpu_ns)) AS BIGINT) AS time_ns, max(dur) AS longest_ns,
  CAST(sum(bytes) AS BIGINT) AS bytes, min(ts) AS first_ts, max(coalesce(ts, end_ts)) AS last_ts
FROM events GROUP BY ALL
