-- What each worker did with the user's files.
--
-- team: like `workers`
-- worker: like `workers`
-- calls: calls; NULL: none
-- bytes: read and written
-- time_ns: inside the calls
-- longest_ns: time inside the longest call
-- first_ts: start of the first one
-- last_ts: start of the last one

WITH used AS (SELECT p.upid, sum(u.count) AS calls, sum(u.bytes) AS bytes, sum(u.time_ns) AS time_ns,
    max(u.longest_ns) AS longest_ns, min(u.first_ts) AS first_ts, max(u.last_ts) AS last_ts
  FROM uses u JOIN user_files d ON d.file_id = u.file_id JOIN processes p ON p.utid = u.utid
  WHERE u.side IN (0, 1, 3) AND p.upid IN (SELECT upid FROM workers) GROUP BY p.upid)
SELECT w.team, w.worker, CAST(sum(d.calls) AS BIGINT) AS calls, CAST(sum(d.bytes) AS BIGINT) AS bytes,
  CAST(sum(d.time_ns) AS BIGINT) AS time_ns, max(d.longest_ns) AS longest_ns,
  min(d.first_ts) AS first_ts, max(d.last_ts) AS last_ts
FROM workers w LEFT JOIN used d ON d.upid = w.upid WHERE w.size >= 2 GROUP BY w.team, w.worker
