-- What each thread of processes with at least three threads did with the user's files.
--
-- upid: -> processes
-- utid: -> processes
-- parent_utid: the thread that started it
-- is_main: whether the thread is the process's first one
-- start_ts: time at which it started
-- end_ts: time at which it ended
-- user_ns: CPU time of the task itself; NULL if unknown
-- busy_ns: CPU time, and the time in which the thread waited in calls on the user's files
-- calls: calls; NULL: none
-- bytes: read and written
-- time_ns: inside the calls
-- first_ts: start of the first one
-- last_ts: start of the last one

WITH threaded AS (SELECT upid FROM processes GROUP BY upid HAVING count(*) >= 3),
members AS (SELECT p.*, min(utid) OVER (PARTITION BY upid) = utid AS is_main FROM processes p
  WHERE upid IN (SELECT upid FROM threaded)),
used AS (SELECT u.utid, sum(u.count) AS calls, sum(u.bytes) AS bytes, sum(u.time_ns) AS time_ns,
    min(u.first_ts) AS first_ts, max(u.last_ts) AS last_ts
  FROM uses u JOIN user_files d ON d.file_id = u.file_id
  WHERE u.side IN (0, 1, 3) AND u.utid IN (SELECT utid FROM members) GROUP BY u.utid)
SELECT m.upid, m.utid, m.parent_utid, m.is_main, m.start_ts, m.end_ts, m.cpu_user_ns AS user_ns,
  m.cpu_user_ns + greatest(m.cpu_system_ns, coalesce(CAST(d.time_ns AS BIGINT), 0)) AS busy_ns,
  CAST(d.calls AS BIGINT) AS calls, CAST(d.bytes AS BIGINT) AS bytes, CAST(d.time_ns AS BIGINT) AS time_ns,
  d.first_ts, d.last_ts
FROM members m LEFT JOIN used d ON d.utid = m.utid
