-- Calls of 20 ms and more, each by itself.
--
-- ts: start
-- dur: ns
-- utid: -> processes
-- call_id: -> calls
-- file_id: -> files
-- direction: 0 none, 1 read, 2 write
-- bytes: transferred

SELECT ts, dur, utid, call_id, file_id, direction, bytes FROM events
WHERE dur >= 20000000 AND side IN (0, 1, 3)
