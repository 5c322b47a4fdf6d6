-- How many requests of which size a file got by one interface, of sources that have counters in place of
-- calls.
--
-- file_id: -> files
-- interface: posix or mpi-io
-- direction: 1 read, 2 write
-- low: lower size limit of the bin, bytes
-- high: upper size limit of the bin, bytes; null if it has none
-- count: requests

SELECT p.file_id, p.interface, CASE h.quantity WHEN 'read-size' THEN 1 ELSE 2 END AS direction, h.low, h.high,
  CAST(sum(h.count) AS BIGINT) AS count
FROM histograms h JOIN profiles p ON p.profile_id = h.profile_id
WHERE h.quantity IN ('read-size', 'write-size') GROUP BY ALL
