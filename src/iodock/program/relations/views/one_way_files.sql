-- Plain files that a process only read, or only wrote. Tools are left out, and so are programs that are
-- known to change the data that pass through them.
--
-- upid: -> processes
-- file_id: -> files
-- direction: 1 read, 2 written
-- bytes: moved
-- count: number of calls that moved them
-- calls: all calls of the process on the file
-- spent_ns: time inside all calls
-- time_ns: time inside the calls that transferred bytes
-- since: start of the first of these calls
-- until: approximate end of the last of these calls
-- moved_ts: start of the last one that moved bytes

SELECT q.upid, u.file_id, CAST(max(u.direction) AS INTEGER) AS direction, CAST(sum(u.bytes) AS BIGINT) AS bytes,
  CAST(sum(u.count) FILTER (WHERE u.direction > 0) AS BIGINT) AS count, CAST(sum(u.count) AS BIGINT) AS calls,
  CAST(sum(u.time_ns) AS BIGINT) AS spent_ns,
  CAST(sum(u.time_ns) FILTER (WHERE u.direction > 0) AS BIGINT) AS time_ns,
  min(u.first_ts) FILTER (WHERE u.direction > 0) AS since,
  max(u.last_ts + u.time_ns / u.count) FILTER (WHERE u.direction > 0) AS until,
  max(u.last_ts) FILTER (WHERE u.bytes > 0) AS moved_ts
FROM uses u JOIN processes q ON q.utid = u.utid LEFT JOIN programs g ON g.upid = q.upid
WHERE u.side = 0 AND u.file_id IN (FROM plain_files) AND NOT coalesce(g.is_tool OR g.changes, false)
GROUP BY q.upid, u.file_id HAVING count(DISTINCT u.direction) FILTER (WHERE u.bytes > 0) = 1
