-- What each process did with each file that has a name.
--
-- file_id: -> files
-- upid: -> processes
-- opens: successful opens
-- open_ns: time inside them
-- stats: calls of the stat, access and readlink families, including failed ones
-- stat_ns: time inside them
-- closes: closes
-- close_ns: time inside them
-- seeks: lseeks
-- seek_ns: time inside them
-- others: calls that are neither metadata nor transfers, mainly ioctl
-- other_ns: time inside them
-- reads: calls that read
-- read_ns: time inside them
-- writes: calls that write
-- write_ns: time inside them
-- metadata: all metadata calls
-- metadata_ns: time inside them
-- longest_open_ns: time inside the longest of these opens
-- longest_stat_ns: time inside the longest of these stat calls
-- longest_close_ns: time inside the longest of these closes
-- longest_metadata_ns: time inside the longest of all metadata calls
-- read_bytes: read
-- written_bytes: written
-- first_ts: start of the first call
-- last_ts: start of the last call

-- `role` is a small number for a kind of call, because comparing the names of calls in each row would take
-- most of the time. Sums of DOUBLE take half the time of sums of BIGINT, and are exact up to 104 days in ns.
-- The longest call of each kind is kept, because the first of several calls may wait for the disk while the
-- others find the data in memory.
SELECT file_id, upid,
  CAST(sum(CASE WHEN role = 1 AND worked THEN CAST(count AS DOUBLE) ELSE 0 END) AS BIGINT) AS opens,
  CAST(sum(CASE WHEN role = 1 AND worked THEN CAST(time_ns AS DOUBLE) END) AS BIGINT) AS open_ns,
  CAST(sum(CASE WHEN role = 2 THEN CAST(count AS DOUBLE) ELSE 0 END) AS BIGINT) AS stats,
  CAST(sum(CASE WHEN role = 2 THEN CAST(time_ns AS DOUBLE) END) AS BIGINT) AS stat_ns,
  CAST(sum(CASE WHEN role = 3 THEN CAST(count AS DOUBLE) ELSE 0 END) AS BIGINT) AS closes,
  CAST(sum(CASE WHEN role = 3 THEN CAST(time_ns AS DOUBLE) END) AS BIGINT) AS close_ns,
  CAST(sum(CASE WHEN role = 4 THEN CAST(count AS DOUBLE) ELSE 0 END) AS BIGINT) AS seeks,
  CAST(sum(CASE WHEN role = 4 THEN CAST(time_ns AS DOUBLE) END) AS BIGINT) AS seek_ns,
  CAST(sum(CASE WHEN role = 5 THEN CAST(count AS DOUBLE) ELSE 0 END) AS BIGINT) AS others,
  CAST(sum(CASE WHEN role = 5 THEN CAST(time_ns AS DOUBLE) END) AS BIGINT) AS other_ns,
  CAST(sum(CASE WHEN direction = 1 THEN CAST(count AS DOUBLE) ELSE 0 END) AS BIGINT) AS reads,
  CAST(sum(CASE WHEN direction = 1 THEN CAST(time_ns AS DOUBLE) END) AS BIGINT) AS read_ns,
  CAST(sum(CASE WHEN direction = 2 THEN CAST(count AS DOUBLE) ELSE 0 END) AS BIGINT) AS writes,
  CAST(sum(CASE WHEN direction = 2 THEN CAST(time_ns AS DOUBLE) END) AS BIGINT) AS write_ns,
  CAST(sum(CASE WHEN metadata THEN CAST(count AS DOUBLE) ELSE 0 END) AS BIGINT) AS metadata,
  CAST(sum(CASE WHEN metadata THEN CAST(time_ns AS DOUBLE) END) AS BIGINT) AS metadata_ns,
  max(CASE WHEN role = 1 AND worked THEN longest_ns END) AS longest_open_ns,
  max(CASE WHEN role = 2 THEN longest_ns END) AS longest_stat_ns,
  max(CASE WHEN role = 3 THEN longest_ns END) AS longest_close_ns,
  max(CASE WHEN metadata THEN longest_ns END) AS longest_metadata_ns,
  CAST(sum(CASE WHEN direction = 1 THEN CAST(bytes AS DOUBLE) ELSE 0 END) AS BIGINT) AS read_bytes,
  CAST(sum(CASE WHEN direction = 2 THEN CAST(bytes AS DOUBLE) ELSE 0 END) AS BIGINT) AS written_bytes,
  min(first_ts) AS first_ts, max(last_ts) AS last_ts
FROM (SELECT u.file_id, p.upid, r.role, r.metadata, u.direction, u.count, u.time_ns, u.longest_ns, u.bytes,
    u.first_ts, u.last_ts, u.errno_id IS NULL AS worked
  FROM uses u JOIN files f ON f.file_id = u.file_id JOIN processes p ON p.utid = u.utid
    JOIN (SELECT id, class = 'metadata' AS metadata, CAST(CASE family WHEN 'open' THEN 1 WHEN 'stat' THEN 2
  WHEN 'access' THEN 2 WHEN 'readlink' THEN 2 WHEN 'close' THEN 3 WHEN 'lseek' THEN 4
  ELSE CASE class WHEN 'other' THEN 5 ELSE 0 END END AS UTINYINT) AS role FROM calls) r ON r.id = u.call_id
  WHERE u.side <> 4 AND f.kind IN ('file', 'regular', 'directory', 'symlink'))
GROUP BY file_id, upid
