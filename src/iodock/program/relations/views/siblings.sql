-- Processes that one process started to run the same program: a shell loop's commands, a pool's workers.
--
-- upid: -> processes
-- parent: -> processes.upid: the parent process
-- program: program that the process ran; NULL: none of its own (a subshell, a forked worker)
-- start_ts: first trace of it
-- end_ts: end
-- builds: whether its own program is a compiler or a build tool
-- is_tool: like `programs`, for its own program
-- alike: number of such processes, including this one
-- median_ns: the median of their lifetimes; NULL where not known
-- owner: -> processes.upid: the process that runs the loop: the parent, or, if there are many similar
--   parents, the process that started these
-- alike_of_owner: number of processes with the same program and owner, including this one

-- A shell starts another shell for each $(...), and a program starts one for each line that it runs by `sh
-- -c`. The commands of one loop may therefore have a different parent each time.
WITH first AS (SELECT upid, min_by(parent_utid, utid) AS parent_utid, min(start_ts) AS start_ts,
    max(end_ts) AS end_ts FROM processes GROUP BY upid),
made AS (SELECT f.upid, q.upid AS parent, CASE WHEN g.own THEN g.program END AS program, f.start_ts, f.end_ts,
    g.own AND g.builds AS builds, g.own AND g.is_tool AS is_tool
  FROM first f JOIN processes q ON q.utid = f.parent_utid JOIN programs g ON g.upid = f.upid
  WHERE q.upid <> f.upid),
counted AS (SELECT *, count(*) OVER w AS alike, CAST(median(end_ts - start_ts) OVER w AS BIGINT) AS median_ns
  FROM made WINDOW w AS (PARTITION BY parent, program)),
owned AS (SELECT c.*, CASE WHEN s.alike >= 10 THEN s.parent ELSE c.parent END AS owner
  FROM counted c LEFT JOIN counted s ON s.upid = c.parent)
SELECT *, count(*) OVER (PARTITION BY owner, program) AS alike_of_owner
FROM owned
