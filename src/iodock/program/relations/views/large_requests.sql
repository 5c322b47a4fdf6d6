-- Reads and writes of 64 KiB and more on plain files, and syncs, with the pause before each.
--
-- utid: -> processes
-- ts: start
-- dur: ns
-- direction: 0 none, 1 read, 2 write
-- bytes: transferred; NULL for a sync
-- pause_ns: since the end of the thread's one before; NULL: its first

SELECT e.utid, e.ts, e.dur, e.direction, CASE WHEN e.direction > 0 THEN e.bytes END AS bytes,
  e.ts - lag(e.ts + e.dur) OVER (PARTITION BY e.utid ORDER BY e.ts) AS pause_ns
FROM events e JOIN calls c ON c.id = e.call_id
WHERE e.ts IS NOT NULL AND e.dur IS NOT NULL AND e.side IN (0, 1, 3)
  AND (c.class = 'sync' OR e.direction > 0 AND e.bytes >= 65536 AND e.file_id IN (FROM plain_files))
