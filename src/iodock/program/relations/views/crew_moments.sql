-- How long each worker of a crew spent in calls on files, for each interval of `moments` in which it began
-- such a call.
--
-- crew: like `crews`
-- worker: like `crews`
-- ts: start of the interval
-- end_ts: time at which it ended
-- time_ns: time inside the calls that it began there
-- others_ns: the same for all other processes of the run
-- is_followed: whether the process leads, and one of the others existed in the middle of the interval

WITH spent AS (SELECT moment, actor, sum(time_ns) AS time_ns, sum(sum(time_ns)) OVER (PARTITION BY moment)
    AS whole_ns FROM moments GROUP BY moment, actor),
own AS (SELECT c.crew, c.worker, c.leads, {first_ts} + CAST(s.moment AS BIGINT) * {moment_ns} AS ts,
    sum(s.time_ns) AS time_ns, any_value(s.whole_ns) AS whole_ns
  FROM (SELECT DISTINCT crew, worker, leads, upid FROM crews) c JOIN spent s ON s.actor = c.upid + 1
  GROUP BY c.crew, c.worker, c.leads, s.moment),
lives AS (SELECT c.crew, min(p.start_ts) AS start_ts, max(p.end_ts) AS end_ts
  FROM crews c JOIN processes p ON p.upid = c.upid WHERE NOT c.leads GROUP BY c.crew, p.upid)
SELECT o.crew, o.worker, o.ts, o.ts + {moment_ns} AS end_ts, CAST(o.time_ns AS BIGINT) AS time_ns,
  CAST(o.whole_ns - o.time_ns AS BIGINT) AS others_ns,
  o.leads AND EXISTS (SELECT 1 FROM lives l WHERE l.crew = o.crew
    AND l.start_ts < o.ts + {moment_ns} / 2 AND l.end_ts > o.ts + {moment_ns} / 2) AS is_followed
FROM own o
