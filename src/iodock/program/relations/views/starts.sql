-- For each process that another process started: when it had loaded its program's files, and when it first
-- used its data.
--
-- upid: -> processes
-- owner: like `siblings`
-- program: like `siblings`
-- builds: whether the process, or the one that runs the loop, is a compiler or a build tool
-- start_ts: first trace of it
-- end_ts: end
-- loaded_ts: time at which 95 % of the system's and the program's own files had been used for the first time;
--   NULL: none
-- data_ts: its first sync, or listing of a user's folder, or read or write of a pipe or the user's data; NULL:
--   none
-- active_ns: CPU time, and the time in the process's calls on files; NULL if unknown

-- A program may load a library late, for a special case. Its start does not depend on that library. Before a
-- forked process executes its program, it may report to its parent through a pipe. Such messages are not
-- data.
WITH ran AS (SELECT p.upid, max(c.ts) AS ts FROM commands c JOIN processes p ON p.utid = c.utid GROUP BY p.upid),
loaded AS (SELECT p.upid, quantile_disc(u.first_ts, 0.95) AS ts FROM uses u
    JOIN processes p ON p.utid = u.utid WHERE u.file_id IN (FROM program_files) GROUP BY p.upid),
came AS (SELECT p.upid, min(u.first_ts) AS ts FROM uses u JOIN calls c ON c.id = u.call_id
    JOIN processes p ON p.utid = u.utid LEFT JOIN ran r ON r.upid = p.upid
    LEFT JOIN files f ON f.file_id = u.file_id
  WHERE u.first_ts >= coalesce(r.ts, u.first_ts) AND (c.class = 'sync'
    OR c.family = 'getdents' AND NOT regexp_matches(f.name, '{system_names}')
    OR u.direction > 0 AND (f.kind IN ('pipe', 'fifo') OR f.file_id IN (FROM data_files)))
  GROUP BY p.upid),
active AS (SELECT upid, CAST(sum(cpu_user_ns + coalesce(cpu_system_ns, 0) + coalesce(io_ns, 0)) AS BIGINT) AS ns
  FROM processes GROUP BY upid)
SELECT s.upid, s.owner, s.program, coalesce(s.builds, false) OR coalesce(g.builds, false) AS builds, s.start_ts,
  s.end_ts, l.ts AS loaded_ts, m.ts AS data_ts, a.ns AS active_ns
FROM siblings s JOIN active a ON a.upid = s.upid LEFT JOIN programs g ON g.upid = s.owner
  LEFT JOIN loaded l ON l.upid = s.upid LEFT JOIN came m ON m.upid = s.upid
