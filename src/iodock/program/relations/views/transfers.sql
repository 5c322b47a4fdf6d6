-- Reads and writes folded by place, call, direction, access pattern and size.
--
-- place: -> place_names; NULL: no file
-- call_id: -> calls
-- direction: 1 read, 2 write
-- pattern: relation to the previous access (docs/explanation/store.md): 0 unknown ... 7 repeated
-- size_bin: n: 2^(n-1) < bytes <= 2^n; 0: 1 byte; -1: 0 bytes (end of file)
-- count: transfers
-- time_ns: time inside the calls, summed over tasks
-- typical_ns: their number times their geometric mean: a few that waited for a disk hardly count
-- bytes: transferred
-- requested_bytes: asked for
-- own_read_bytes: bytes that the same process had read before; NULL where not known
-- any_read_bytes: bytes that any process had read before
-- own_written_bytes: bytes that the same process had written before
-- any_written_bytes: bytes that any process had written before
-- unaligned: number of transfers whose offset is not a multiple of 4096
-- known: number of transfers whose offset is known
-- overlapping: number of transfers that begin within the bytes of the previous one
-- back: number of transfers that begin before the previous one

-- Programs that copy data in the kernel request the largest possible size in each call. The sum of requested
-- bytes may therefore exceed 64 bits, and is limited to the largest BIGINT.
SELECT p.place, e.call_id, e.direction, e.pattern,
  CAST(ceil(log2(greatest(CAST(e.bytes AS DOUBLE), 0.5::DOUBLE))) AS TINYINT) AS size_bin,
  count(*) AS count, CAST(sum(coalesce(e.dur, e.sys_cpu_ns)) AS BIGINT) AS time_ns,
  CAST(count(*) * exp(avg(ln(coalesce(e.dur, e.sys_cpu_ns) + 1))) AS BIGINT) AS typical_ns,
  CAST(sum(e.bytes) AS BIGINT) AS bytes,
  CAST(least(sum(e.requested_bytes), 9223372036854775807) AS BIGINT) AS requested_bytes,
  CAST(sum(e.own_read_bytes) AS BIGINT) AS own_read_bytes,
  CAST(sum(e.any_read_bytes) AS BIGINT) AS any_read_bytes,
  CAST(sum(e.own_written_bytes) AS BIGINT) AS own_written_bytes,
  CAST(sum(e.any_written_bytes) AS BIGINT) AS any_written_bytes,
  count(*) FILTER (WHERE e.offset_bytes & 4095 <> 0) AS unaligned, count(e.offset_bytes) AS known,
  count(*) FILTER (WHERE e.gap_bytes < 0 AND -e.gap_bytes < e.requested_bytes) AS overlapping,
  count(*) FILTER (WHERE e.gap_bytes < 0 AND -e.gap_bytes >= e.requested_bytes) AS back
FROM events e LEFT JOIN places p ON p.file_id = e.file_id
WHERE e.direction IN (1, 2) AND e.bytes IS NOT NULL GROUP BY ALL
