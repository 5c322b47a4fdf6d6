-- The images of each process and their times: the one that it inherited, and each program that it executed.
--
-- upid: -> processes
-- image: number of the image: the same in all processes that were forked with it
-- own: whether it begins here; false: inherited
-- path: -> commands.path; NULL: inherited, or not known
-- argv: arguments
-- from_ts: time at which it began; NULL: with the process
-- until_ts: time at which the next one began; NULL: it ended with the process
-- before: -> image: the image before the exec

-- A process without a parent in the store executed another program before its first recorded one. The store
-- knows nothing about that program. Programs without a time are sorted by the order in which they were
-- executed.
WITH RECURSIVE first AS (SELECT p.upid, min(p.start_ts) AS start_ts,
    any_value(q.upid) FILTER (WHERE q.upid <> p.upid) AS parent
  FROM processes p LEFT JOIN processes q ON q.utid = p.parent_utid GROUP BY p.upid),
executed AS (SELECT p.upid, c.ts, c.path, c.argv,
    row_number() OVER (PARTITION BY p.upid ORDER BY c.ts NULLS FIRST, c.place) AS nth
  FROM (SELECT *, row_number() OVER () AS place FROM commands) c JOIN processes p ON p.utid = c.utid),
began AS (SELECT upid, nth, ts, path, argv FROM executed
  UNION ALL SELECT upid, 0, NULL, NULL, NULL FROM first WHERE parent IS NULL),
numbered AS (SELECT *, row_number() OVER (ORDER BY upid, nth) AS image FROM began),
at_fork AS (SELECT f.upid, arg_max(n.image, n.nth) AS image FROM first f JOIN numbered n ON n.upid = f.parent
  WHERE n.nth > 0 AND (n.ts IS NULL OR f.start_ts IS NULL OR n.ts <= f.start_ts) GROUP BY f.upid),
inherited AS (SELECT upid, image FROM numbered WHERE nth = 0
  UNION ALL SELECT f.upid, coalesce(a.image, i.image) FROM inherited i JOIN first f ON f.parent = i.upid
    LEFT JOIN at_fork a ON a.upid = f.upid),
spans AS (SELECT upid, nth, image, true AS own, path, argv,
    CASE WHEN nth > 0 THEN coalesce(ts, -9000000000000000000 + nth) END AS from_ts FROM numbered
  UNION ALL SELECT i.upid, 0, i.image, false, NULL, NULL, NULL FROM inherited i
    JOIN first f ON f.upid = i.upid WHERE f.parent IS NOT NULL)
SELECT upid, image, own, path, argv, from_ts, lead(from_ts) OVER w AS until_ts, lag(image) OVER w AS before
FROM spans WINDOW w AS (PARTITION BY upid ORDER BY nth)
