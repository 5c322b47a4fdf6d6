-- Reads and writes on a file by one interface, of sources that have counters in place of calls. Standard
-- streams, pipes, devices and files of the system's own are left out.
--
-- file_id: -> files; null if files were counted together
-- name: the file's name, or the pattern of the files that were counted together
-- files: number of files in the row
-- is_together: whether several files were counted together: then no single file is known
-- interface: posix, stdio or mpi-io: the bytes of mpi-io are counted again in posix
-- direction: 1 read, 2 write
-- ranks: processes that used the file
-- movers: processes that moved bytes, as far as counters tell
-- rank: the rank that used the file, null for several
-- count: calls
-- bytes: bytes that they moved
-- time_ns: ns inside the calls, of all processes together
-- consecutive: calls that begin at the end of the previous one; null: not counted
-- forward: calls that begin at this offset or later
-- unaligned: calls that begin within a block of `alignment_bytes`, divided between reads and writes by their
--   share
-- alignment_bytes: the file system's block or stripe
-- extent_bytes: highest offset that the transfers reached
-- collective: for mpi-io: calls that all ranks make together
-- is_remote: whether the file is known to be on a network or parallel file system: by its mount or layout, or
--   by a block larger than a page, which no local file system has

WITH known AS (SELECT coalesce(bool_or(counter = 'POSIX_CONSEC_READS'), false) AS orders,
    coalesce(bool_or(counter = 'POSIX_FILE_NOT_ALIGNED'), false) AS edges FROM profile_fields),
wide AS (SELECT profile_id,
    bool_or(value IS NULL AND counter = 'POSIX_CONSEC_READS') AS is_unplaced,
    max(value) FILTER (WHERE counter = 'POSIX_CONSEC_READS') AS consecutive_reads,
    max(value) FILTER (WHERE counter = 'POSIX_CONSEC_WRITES') AS consecutive_writes,
    max(value) FILTER (WHERE counter = 'POSIX_SEQ_READS') AS forward_reads,
    max(value) FILTER (WHERE counter = 'POSIX_SEQ_WRITES') AS forward_writes,
    max(value) FILTER (WHERE counter = 'POSIX_FILE_NOT_ALIGNED') AS unaligned,
    max(value) FILTER (WHERE counter = 'POSIX_FILE_ALIGNMENT') AS alignment,
    max(value) FILTER (WHERE counter IN ('POSIX_MAX_BYTE_READ', 'STDIO_MAX_BYTE_READ')) AS read_extent,
    max(value) FILTER (WHERE counter IN ('POSIX_MAX_BYTE_WRITTEN', 'STDIO_MAX_BYTE_WRITTEN')) AS write_extent,
    sum(value) FILTER (WHERE counter IN ('MPIIO_COLL_READS', 'MPIIO_SPLIT_READS')) AS collective_reads,
    sum(value) FILTER (WHERE counter IN ('MPIIO_COLL_WRITES', 'MPIIO_SPLIT_WRITES')) AS collective_writes
  FROM profile_counters WHERE value >= 0 OR value IS NULL GROUP BY profile_id),
own AS (SELECT p.*, coalesce(f.name, p.pattern) AS name, w.* EXCLUDE (profile_id, is_unplaced),
    coalesce(p.rank, p.upid) AS worker,
    p.file_id IS NULL OR p.pattern IS NOT NULL OR coalesce(p.files, 1) > 1 AS is_together,
    k.orders AND NOT coalesce(w.is_unplaced, false) AS orders,
    CASE WHEN k.edges AND NOT coalesce(w.is_unplaced, false) THEN
      coalesce(w.unaligned, 0) / nullif(coalesce(p.reads, 0) + coalesce(p.writes, 0), 0) END AS odd,
    coalesce(f.mount_point IN ({remote_mounts}), false) OR p.file_id IN (SELECT file_id FROM layouts)
      OR coalesce(w.alignment > 4096, false) AS is_remote
  FROM profiles p CROSS JOIN known k LEFT JOIN files f ON f.file_id = p.file_id
    LEFT JOIN wide w ON w.profile_id = p.profile_id
  WHERE p.interface IN ('posix', 'stdio', 'mpi-io')
    AND NOT regexp_matches(coalesce(f.name, p.pattern, ''), '{uncounted_names}')
    AND coalesce(f.kind NOT IN ({unfiled_kinds}) OR f.kind = 'other' AND p.pattern IS NOT NULL, true)),
moved AS (SELECT *, 1 AS direction, reads AS n, read_bytes AS size, read_time_ns AS ns,
    consecutive_reads AS consecutive, forward_reads AS forward, read_extent + 1 AS extent,
    collective_reads AS collective FROM own
UNION ALL SELECT *, 2, writes, written_bytes, write_time_ns, consecutive_writes, forward_writes,
    write_extent + 1, collective_writes FROM own)
SELECT file_id, name, CAST(max(coalesce(files, 1)) AS BIGINT) AS files, bool_or(is_together) AS is_together,
  interface, direction,
  CAST(greatest(max(coalesce(ranks, 1)), count(DISTINCT worker)) AS BIGINT) AS ranks,
  CAST(sum(CASE WHEN size = 0 THEN 0 WHEN coalesce(ranks, 1) = 1 THEN 1
    WHEN slowest_bytes = coalesce(read_bytes, 0) + coalesce(written_bytes, 0) THEN 1 ELSE ranks END)
    AS BIGINT) AS movers,
  CASE WHEN max(coalesce(ranks, 1)) = 1 AND count(DISTINCT worker) < 2 THEN min(worker) END AS rank,
  CAST(sum(n) AS BIGINT) AS count, CAST(sum(size) AS BIGINT) AS bytes, CAST(sum(ns) AS BIGINT) AS time_ns,
  CASE WHEN bool_and(orders) AND interface = 'posix' THEN CAST(sum(coalesce(consecutive, 0)) AS BIGINT) END
    AS consecutive,
  CASE WHEN bool_and(orders) AND interface = 'posix' THEN CAST(sum(coalesce(forward, 0)) AS BIGINT) END
    AS forward,
  CASE WHEN interface = 'posix' THEN CAST(round(sum(odd * n)) AS BIGINT) END AS unaligned,
  max(alignment) AS alignment_bytes, max(extent) AS extent_bytes,
  CAST(coalesce(sum(collective), 0) AS BIGINT) AS collective, bool_or(is_remote) AS is_remote
FROM moved GROUP BY file_id, name, interface, direction HAVING sum(n) > 0
