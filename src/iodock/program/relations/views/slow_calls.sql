-- The longest calls of 20 ms and more, without those that wait for pipes and sockets.
--
-- ts: start
-- dur: ns
-- utid: -> processes
-- call_id: -> calls
-- file_id: -> files
-- direction: 0 none, 1 read, 2 write
-- bytes: transferred

SELECT e.ts, e.dur, e.utid, e.call_id, e.file_id, e.direction, e.bytes FROM long_calls e
  JOIN calls c ON c.id = e.call_id JOIN files f ON f.file_id = e.file_id
WHERE c.class IN ('data', 'metadata', 'seek', 'sync')
  AND f.kind IN ('file', 'regular', 'directory', 'symlink')
ORDER BY e.dur DESC LIMIT 20000
