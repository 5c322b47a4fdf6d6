-- Bytes and time of each process, for sources that have counters in place of calls, by the uppermost
-- interface that used a file. Pipes, sockets, terminals and similar files are left out. If a file was
-- counted for all ranks together, each rank gets the mean; the fastest and the slowest rank get their own
-- numbers, which are known.
--
-- worker: rank, or process where there are no ranks; null for the mean of all
-- bytes: bytes that were read and written
-- time_ns: ns in reads, writes and metadata calls

WITH upper AS (SELECT p.*, coalesce(read_bytes, 0) + coalesce(written_bytes, 0) AS size,
    coalesce(read_time_ns, 0) + coalesce(write_time_ns, 0) + coalesce(meta_time_ns, 0) AS ns
  FROM profiles p LEFT JOIN files f ON f.file_id = p.file_id
  WHERE NOT coalesce(starts_with(f.name, '<') OR regexp_matches(f.name, '{terminal_names}')
      OR f.kind IN ({unfiled_kinds}) AND NOT (f.kind = 'other' AND p.pattern IS NOT NULL), false)
    AND (p.interface = 'mpi-io' OR (p.interface IN ('posix', 'stdio')
      AND coalesce(p.file_id NOT IN (SELECT file_id FROM profiles WHERE interface = 'mpi-io'
        AND file_id IS NOT NULL), true)))),
parts AS (SELECT coalesce(rank, upid) AS worker, size AS bytes, ns AS time_ns FROM upper
  WHERE coalesce(ranks, 1) = 1
UNION ALL SELECT NULL, size / ranks, ns / ranks FROM upper WHERE ranks > 1
UNION ALL SELECT slowest_rank, slowest_bytes - size / ranks, slowest_time_ns - ns / ranks FROM upper
  WHERE ranks > 1 AND slowest_rank IS NOT NULL
UNION ALL SELECT fastest_rank, fastest_bytes - size / ranks, fastest_time_ns - ns / ranks FROM upper
  WHERE ranks > 1 AND fastest_rank IS NOT NULL AND fastest_rank <> slowest_rank)
SELECT worker, CAST(coalesce(sum(bytes), 0) AS BIGINT) AS bytes,
  CAST(coalesce(sum(time_ns), 0) AS BIGINT) AS time_ns
FROM parts GROUP BY worker
