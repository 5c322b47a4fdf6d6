-- Calls folded by file, image, call and direction.
--
-- file_id: -> files; NULL: no file
-- image: -> images
-- call_id: -> calls
-- direction: 0 none, 1 read, 2 write
-- count: rows

-- `uses` has one row for all equal calls of a task on a file. If several images made them, they count for the
-- image that made the last of them.
SELECT u.file_id, i.image, u.call_id, u.direction, CAST(sum(u.count) AS BIGINT) AS count
FROM uses u JOIN processes p ON p.utid = u.utid
  JOIN images i ON i.upid = p.upid
    AND coalesce(u.last_ts, 9000000000000000000) >= coalesce(i.from_ts, -9000000000000000000)
    AND (i.until_ts IS NULL OR u.last_ts < i.until_ts)
GROUP BY ALL
