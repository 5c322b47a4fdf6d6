-- Pipes through which processes of the run pass data to each other; the other ends of other pipes are
-- outside of the run. Many sockets may have the same name: they count if about as many bytes are sent as
-- received. Messages between ranks of MPI and their launcher do not count.
--
-- file_id: -> files

WITH ends AS (SELECT u.file_id, p.upid, p.rank, u.direction, f.kind = 'socket' AS is_socket,
    sum(u.bytes) AS bytes
  FROM uses u JOIN files f ON f.file_id = u.file_id JOIN processes p ON p.utid = u.utid
  WHERE f.kind IN ('pipe', 'fifo', 'socket') AND u.direction IN (1, 2) AND u.bytes > 0
    AND (f.kind <> 'socket' OR p.rank IS NOT NULL OR NOT EXISTS (FROM processes WHERE rank IS NOT NULL))
  GROUP BY ALL),
spoken AS (SELECT sum(CASE direction WHEN 1 THEN bytes END) AS taken,
    sum(CASE direction WHEN 2 THEN bytes END) AS sent FROM ends WHERE is_socket)
SELECT e.file_id FROM ends e, spoken s WHERE NOT e.is_socket OR s.taken < 2 * s.sent AND s.sent < 2 * s.taken
GROUP BY e.file_id
HAVING count(DISTINCT e.direction) = 2 AND count(DISTINCT e.upid) > 1 AND count(e.rank) IN (0, count(*))
