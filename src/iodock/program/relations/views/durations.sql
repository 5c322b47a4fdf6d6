-- How long calls took: their number by call, direction and duration in powers of two.
--
-- call_id: -> calls
-- direction: 0 none, 1 read, 2 write
-- duration_bin: n: 2^(n-1) < duration + 1 <= 2^n ns
-- count: calls
-- time_ns: time inside them

SELECT e.call_id, e.direction, CAST(ceil(log2(e.dur + 1)) AS TINYINT) AS duration_bin,
  count(*) AS count, CAST(sum(e.dur) AS BIGINT) AS time_ns
FROM events e WHERE e.dur IS NOT NULL AND e.side IN (0, 1, 3) GROUP BY ALL
