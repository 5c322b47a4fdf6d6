-- Files of sources that have counters in place of calls: what posix and stdio, the lowest interfaces, did to
-- each. Standard streams, pipes, devices and files of the system's own are left out.
--
-- file_id: -> files; null if files were counted together
-- name: the file's name, or the pattern of the files that were counted together
-- files: number of files in the row
-- is_together: whether several files were counted together: then no single file is known
-- ranks: processes that used the file
-- rank: the rank that used the file, null for several
-- opens: calls that open the file
-- stats: calls that query the attributes of the file
-- seeks: calls that only move the position
-- syncs: calls that write the file's data to the disk or server
-- transfers: reads and writes
-- read_bytes: bytes that were read
-- written_bytes: bytes that were written
-- meta_ns: ns in opens, closes, seeks, stats and similar calls, of all processes together
-- time_ns: ns in all calls on the file, of all processes together

WITH own AS (SELECT p.*, coalesce(f.name, p.pattern) AS name, coalesce(p.rank, p.upid) AS worker,
    p.file_id IS NULL OR p.pattern IS NOT NULL OR coalesce(p.files, 1) > 1 AS is_together
  FROM profiles p LEFT JOIN files f ON f.file_id = p.file_id WHERE p.interface IN ('posix', 'stdio')
    AND NOT regexp_matches(coalesce(f.name, p.pattern, ''), '{uncounted_names}')
    AND coalesce(f.kind NOT IN ({unfiled_kinds}) OR f.kind = 'other' AND p.pattern IS NOT NULL, true))
SELECT file_id, name, CAST(max(coalesce(files, 1)) AS BIGINT) AS files,
  bool_or(is_together) AS is_together,
  CAST(greatest(max(coalesce(ranks, 1)), count(DISTINCT worker)) AS BIGINT) AS ranks,
  CASE WHEN max(coalesce(ranks, 1)) = 1 AND count(DISTINCT worker) < 2 THEN min(worker) END AS rank,
  CAST(coalesce(sum(opens), 0) AS BIGINT) AS opens, CAST(coalesce(sum(stats), 0) AS BIGINT) AS stats,
  CAST(coalesce(sum(seeks), 0) AS BIGINT) AS seeks,
  CAST(coalesce(sum(syncs) FILTER (WHERE interface = 'posix'), 0) AS BIGINT) AS syncs,
  CAST(coalesce(sum(reads), 0) + coalesce(sum(writes), 0) AS BIGINT) AS transfers,
  CAST(coalesce(sum(read_bytes), 0) AS BIGINT) AS read_bytes,
  CAST(coalesce(sum(written_bytes), 0) AS BIGINT) AS written_bytes,
  CAST(coalesce(sum(meta_time_ns), 0) AS BIGINT) AS meta_ns,
  CAST(coalesce(sum(meta_time_ns), 0) + coalesce(sum(read_time_ns), 0) + coalesce(sum(write_time_ns), 0)
    AS BIGINT) AS time_ns
FROM own GROUP BY file_id, name
