-- Every task's actor: its process for the busiest processes, 0 for all others together.
--
-- utid: -> processes
-- upid: -> processes
-- rank: MPI rank
-- actor: upid + 1, or 0

WITH t AS (SELECT p.upid, sum(u.time_ns) AS time, sum(u.count) AS count
  FROM uses u JOIN processes p ON p.utid = u.utid GROUP BY 1),
ranked AS (SELECT upid, row_number() OVER (ORDER BY time DESC NULLS LAST, count DESC, upid) AS place FROM t)
SELECT p.utid, p.upid, p.rank, CASE WHEN r.place <= 64 THEN p.upid + 1 ELSE 0 END AS actor
FROM processes p LEFT JOIN ranked r ON r.upid = p.upid
