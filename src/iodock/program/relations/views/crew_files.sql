-- What each worker of a crew did with the user's data, by kind of file. Workers that read the same kind of
-- file, or write it, share the work.
--
-- crew: like `crews`
-- worker: like `crews`
-- leads: like `crews`: only while it had others
-- size: like `crews`
-- pattern: of the files' names
-- is_written: whether more is written to the file than read from it
-- calls: calls
-- bytes: read and written
-- time_ns: inside the calls
-- first_ts: start of the first one
-- last_ts: start of the last one
-- kind_bytes: bytes read and written by the whole crew in this kind of file, in the same direction
-- crew_bytes: bytes read and written by the whole crew in all kinds of files

WITH done AS (SELECT c.crew, c.worker, c.leads, c.size, coalesce(f.pattern, f.name) AS pattern,
    w.written_bytes > w.read_bytes AS is_written, sum(w.reads + w.writes + w.metadata) AS calls,
    sum(w.read_bytes + w.written_bytes) AS bytes,
    sum(coalesce(w.read_ns, 0) + coalesce(w.write_ns, 0) + coalesce(w.metadata_ns, 0)
      + coalesce(w.other_ns, 0)) AS time_ns, min(w.first_ts) AS first_ts, max(w.last_ts) AS last_ts
  FROM crews c JOIN file_work w ON w.upid = c.upid JOIN files f ON f.file_id = w.file_id
  WHERE f.file_id IN (SELECT file_id FROM data_files) AND (NOT c.leads OR w.first_ts BETWEEN c.start_ts AND c.end_ts)
  GROUP BY ALL)
SELECT crew, worker, leads, size, pattern, is_written, CAST(calls AS BIGINT) AS calls,
  CAST(bytes AS BIGINT) AS bytes, CAST(time_ns AS BIGINT) AS time_ns, first_ts, last_ts,
  CAST(sum(bytes) OVER (PARTITION BY crew, pattern, is_written) AS BIGINT) AS kind_bytes,
  CAST(sum(bytes) OVER (PARTITION BY crew) AS BIGINT) AS crew_bytes
FROM done
