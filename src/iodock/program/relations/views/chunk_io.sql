-- Reads and writes of HDF5's data sets in chunks: a row for each data set, process and direction.
--
-- file_id: -> files
-- name: name of the data set in the file
-- upid: -> processes
-- direction: 1 read, 2 write
-- chunk: number of elements in each dimension
-- chunk_bytes: size of a chunk before filters
-- has_filters: chunks are compressed, or pass another filter
-- calls: number of calls of H5Dread or H5Dwrite
-- requested_bytes: requested by the program
-- time_ns: time inside these calls, including filters
-- requests: system calls inside the interface calls that transferred bytes in the same direction, except for
--   those of collective calls
-- moved_bytes: by these
-- handled_bytes: the same before filters: each request for a filtered chunk transfers all of it

WITH inside AS (SELECT CASE k.interface WHEN 'HDF5' THEN k.id ELSE k.parent_id END AS id, e.direction,
    count(*) AS requests, sum(e.bytes) AS bytes
  FROM events e JOIN interface_calls k ON k.id = e.interface_call_id
  WHERE e.bytes > 0 AND NOT k.is_collective GROUP BY ALL)
SELECT d.file_id, d.name, p.upid, k.direction, d.chunk, d.chunk_bytes, d.filters IS NOT NULL AS has_filters,
  count(*) AS calls, CAST(sum(k.requested_bytes) AS BIGINT) AS requested_bytes,
  CAST(sum(k.dur) AS BIGINT) AS time_ns, CAST(sum(i.requests) AS BIGINT) AS requests,
  CAST(sum(i.bytes) AS BIGINT) AS moved_bytes,
  CAST(sum(greatest(i.bytes, CASE WHEN d.filters IS NULL THEN 0 ELSE i.requests * d.chunk_bytes END))
    AS BIGINT) AS handled_bytes
FROM datasets d JOIN interface_calls k ON k.handle_id = d.handle_id AND k.file_id = d.file_id
JOIN processes p ON p.utid = k.utid LEFT JOIN inside i ON i.id = k.id AND i.direction = k.direction
WHERE d.layout = 'chunked' AND k.call IN ('H5Dread', 'H5Dwrite') AND k.requested_bytes > 0
GROUP BY ALL
