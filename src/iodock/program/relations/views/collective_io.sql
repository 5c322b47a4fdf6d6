-- Bytes of each file that collective calls of MPI-IO transferred: a row for each call, file and process.
--
-- call: name of the call
-- file_id: -> files
-- direction: 1 read, 2 write
-- upid: -> processes
-- rank: MPI rank
-- calls: calls of MPI-IO
-- requested_bytes: requested by the program
-- moved_bytes: transferred by system calls on the file inside these calls
-- moving_ns: time inside these system calls

WITH inside AS (SELECT e.interface_call_id AS id, e.file_id, sum(e.bytes) AS bytes, sum(e.dur) AS time_ns
  FROM events e WHERE e.interface_call_id IS NOT NULL AND e.bytes > 0 GROUP BY 1, 2)
SELECT k.call, k.file_id, k.direction, p.upid, p.rank, count(*) AS calls,
  CAST(sum(k.requested_bytes) AS BIGINT) AS requested_bytes,
  CAST(coalesce(sum(i.bytes), 0) AS BIGINT) AS moved_bytes, CAST(sum(i.time_ns) AS BIGINT) AS moving_ns
FROM interface_calls k JOIN processes p ON p.utid = k.utid
LEFT JOIN inside i ON i.id = k.id AND i.file_id = k.file_id
WHERE k.interface = 'MPI-IO' AND k.is_collective AND k.direction > 0 AND k.file_id IS NOT NULL
GROUP BY k.call, k.file_id, k.direction, p.upid, p.rank
