-- Bytes that each process read and wrote in all: of files, pipes, sockets and the terminal.
--
-- upid: -> processes
-- read_bytes: read
-- written_bytes: written

SELECT p.upid, CAST(coalesce(sum(u.bytes) FILTER (WHERE u.direction = 1), 0) AS BIGINT) AS read_bytes,
  CAST(coalesce(sum(u.bytes) FILTER (WHERE u.direction = 2), 0) AS BIGINT) AS written_bytes
FROM uses u JOIN processes p ON p.utid = u.utid GROUP BY p.upid
