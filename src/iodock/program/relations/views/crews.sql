-- Processes that work on one task: the ranks of a job, or processes that run at the same time and the
-- process that forked them.
--
-- crew: -1 for the ranks of a parallel job; otherwise the upid of the first worker
-- worker: rank, or upid
-- upid: -> processes: the worker, or a process that the worker started
-- leads: whether the process forked the others, even if again for each step
-- size: number of other processes at the same time, or number of ranks
-- start_ts: for the leading process: time at which it forked the first of the others; else NULL
-- end_ts: for the leading process: time at which the last of the others ended; else NULL

WITH led AS (SELECT w.*, s.parent, s.program IS NULL AS is_forked, s.start_ts, s.end_ts
  FROM workers w LEFT JOIN siblings s ON s.upid = w.worker AND w.team >= 0),
known AS (SELECT *, CASE WHEN is_forked THEN min(team) OVER (PARTITION BY parent, is_forked) ELSE team END AS crew
  FROM led)
SELECT crew, worker, upid, false AS leads, max(size) OVER (PARTITION BY crew) AS size,
  NULL AS start_ts, NULL AS end_ts FROM known
UNION ALL SELECT crew, parent, parent, true, max(size), min(start_ts), max(end_ts)
  FROM known WHERE is_forked AND parent IS NOT NULL GROUP BY crew, parent
