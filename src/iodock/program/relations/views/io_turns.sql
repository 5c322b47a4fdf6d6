-- Large I/O and the pauses between it, thread by thread: reads and writes of 64 KiB and more on plain files,
-- and syncs. A turn begins with a pause that is no shorter than half of the mean one.
--
-- utid: -> processes
-- turns: number of turns, including the first one
-- requests: reads and writes
-- read_bytes: read
-- written_bytes: written
-- typical_ns: number of requests and syncs times the geometric mean of their durations: a few long waits
--   hardly count
-- pause_ns: pauses before turns; NULL: a single turn
-- whole_ns: from the first request to the end of the last

WITH large AS (SELECT e.utid, e.ts, e.dur, e.direction, CASE WHEN e.direction > 0 THEN e.bytes END AS bytes,
    e.ts - lag(e.ts + e.dur) OVER (PARTITION BY e.utid ORDER BY e.ts) AS pause_ns
  FROM events e JOIN calls c ON c.id = e.call_id
  WHERE e.ts IS NOT NULL AND e.dur IS NOT NULL AND e.side IN (0, 1, 3)
    AND (c.class = 'sync' OR e.direction > 0 AND e.bytes >= 65536 AND e.file_id IN (SELECT file_id FROM plain_files))),
marked AS (SELECT l.*, l.pause_ns IS NULL OR l.pause_ns > 0 AND 2 * l.pause_ns >= m.pause_ns AS begins
  FROM large l JOIN (SELECT utid, avg(pause_ns) AS pause_ns FROM large GROUP BY utid) m ON m.utid = l.utid)
SELECT utid, count(CASE WHEN begins THEN 1 END) AS turns, count(bytes) AS requests,
  CAST(coalesce(sum(CASE direction WHEN 1 THEN bytes END), 0) AS BIGINT) AS read_bytes,
  CAST(coalesce(sum(CASE direction WHEN 2 THEN bytes END), 0) AS BIGINT) AS written_bytes,
  CAST(count(*) * exp(avg(ln(dur + 1))) AS BIGINT) AS typical_ns,
  CAST(sum(CASE WHEN begins THEN pause_ns END) AS BIGINT) AS pause_ns,
  max(ts + dur) - min(ts) AS whole_ns
FROM marked GROUP BY utid
