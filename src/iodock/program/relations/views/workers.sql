-- The ranks of a parallel job, or processes that did the same work at the same time.
--
-- team: -1 for the ranks of a parallel job; otherwise the upid of the first worker
-- worker: rank, or upid
-- upid: -> processes: the worker, or a process that the worker started
-- size: workers of the team

-- A program may start other processes before and after its workers, such as a shell's commands or a second
-- pool. A process that began after all earlier workers had ended belongs to another team. The stages of a
-- pipeline are no team, even if they run the same program, because each processes the output of the one
-- before. Passing tokens through a pipe is no work, and work on pipes can't be seen in logs that have one
-- name for all pipes. The processes that a worker starts (such as a sub-shell's commands) count as part of
-- it, unless they are a team of their own.
WITH RECURSIVE ranked AS (SELECT DISTINCT -1 AS team, p.rank AS worker, p.upid FROM processes p
  WHERE p.rank IS NOT NULL),
ends AS (SELECT *, max(end_ts) OVER (PARTITION BY parent, program ORDER BY start_ts, upid
    ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before FROM siblings),
turns AS (SELECT *, count(*) FILTER (WHERE start_ts >= before) OVER (PARTITION BY parent, program
    ORDER BY start_ts, upid) AS turn FROM ends),
piped AS (SELECT u.file_id, p.upid, u.direction, sum(u.bytes) AS bytes FROM uses u
    JOIN files f ON f.file_id = u.file_id JOIN processes p ON p.utid = u.utid
  WHERE f.kind = 'pipe' AND f.name <> 'pipe' AND u.bytes > 0 GROUP BY ALL HAVING sum(u.bytes) >= 4096),
ended AS (SELECT t.parent, t.program, t.turn, e.file_id, e.direction, min(t.upid) AS one, max(t.upid) AS other
  FROM piped e JOIN turns t ON t.upid = e.upid GROUP BY ALL),
stages AS (SELECT DISTINCT w.parent, w.program, w.turn FROM ended w
    JOIN ended r ON r.file_id = w.file_id AND r.parent = w.parent AND r.turn = w.turn
      AND r.program IS NOT DISTINCT FROM w.program
  WHERE w.direction = 2 AND r.direction = 1
    AND (w.one <> w.other OR r.one <> r.other OR w.one <> r.one)),
pools AS (SELECT t.upid, min(t.upid) OVER w AS team, count(*) OVER w BETWEEN 3 AND 1024
    AND max(start_ts) OVER w < min(end_ts) OVER w AS together FROM turns t
  WHERE NOT EXISTS (FROM stages s WHERE s.parent = t.parent AND s.turn = t.turn
    AND s.program IS NOT DISTINCT FROM t.program)
  WINDOW w AS (PARTITION BY t.parent, t.program, t.turn)),
chosen AS (SELECT * FROM pools WHERE together AND (SELECT count(DISTINCT worker) FROM ranked) < 2),
started AS (SELECT team, upid AS worker, upid FROM chosen
UNION ALL SELECT s.team, s.worker, c.upid FROM started s JOIN siblings c ON c.parent = s.upid
  WHERE c.upid NOT IN (SELECT upid FROM chosen)),
pooled AS (SELECT CAST(team AS INTEGER) AS team, CAST(worker AS INTEGER) AS worker, upid FROM started),
every AS (SELECT * FROM ranked UNION ALL SELECT * FROM pooled)
SELECT e.*, n.size FROM every e
  JOIN (SELECT team, count(DISTINCT worker) AS size FROM every GROUP BY team) n ON n.team = e.team
