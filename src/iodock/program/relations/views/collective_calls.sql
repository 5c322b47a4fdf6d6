-- Collective reads and writes of MPI-IO: a row for each that several ranks made together.
--
-- file_id: -> files
-- call: name of the call
-- direction: 1 read, 2 write
-- number: number of the call among these calls on the file, from 1
-- ranks: number of ranks that made the call
-- movers: ranks whose system calls inside moved bytes
-- requested_bytes: by all ranks
-- requests: system calls inside that moved bytes
-- moved_bytes: by these
-- is_contiguous: each rank requested one range
-- moving_ns: time inside the system calls of the slowest rank
-- exchange_ns: time of the call beyond that, for the rank that waited least for the others: messages and
--   copies

WITH inside AS (SELECT e.interface_call_id AS id, count(*) AS requests, sum(e.bytes) AS bytes, sum(e.dur) AS time_ns
  FROM events e WHERE e.interface_call_id IS NOT NULL AND e.bytes > 0 AND e.file_id IN
    (SELECT k.file_id FROM interface_calls k
      WHERE k.interface = 'MPI-IO' AND k.is_collective AND k.direction > 0) GROUP BY 1),
made AS (SELECT k.*, p.upid, row_number() OVER (PARTITION BY p.upid, k.file_id, k.call ORDER BY k.id) AS number
  FROM interface_calls k JOIN processes p ON p.utid = k.utid
  WHERE k.interface = 'MPI-IO' AND k.is_collective AND k.direction > 0 AND k.result = 0
    AND k.dur IS NOT NULL AND k.file_id IS NOT NULL)
SELECT m.file_id, m.call, m.direction, m.number, count(*) AS ranks,
  count(*) FILTER (i.bytes > 0) AS movers, CAST(sum(m.requested_bytes) AS BIGINT) AS requested_bytes,
  CAST(coalesce(sum(i.requests), 0) AS BIGINT) AS requests,
  CAST(coalesce(sum(i.bytes), 0) AS BIGINT) AS moved_bytes,
  count(m.offset_bytes) = count(*) AS is_contiguous,
  CAST(max(coalesce(i.time_ns, 0)) AS BIGINT) AS moving_ns,
  CAST(greatest(0, min(m.dur) - max(coalesce(i.time_ns, 0))) AS BIGINT) AS exchange_ns
FROM made m LEFT JOIN inside i ON i.id = m.id
GROUP BY m.file_id, m.call, m.direction, m.number HAVING count(*) > 1
