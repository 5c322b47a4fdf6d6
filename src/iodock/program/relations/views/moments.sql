-- Calls on files over time: the run cut into {moments} equal intervals, by actor and call.
--
-- moment: number of the interval in which the call began, 0 to {moments}
-- actor: -> actors
-- call_id: -> calls
-- direction: 0 none, 1 read, 2 write
-- count: calls
-- time_ns: time inside them
-- bytes: transferred

SELECT CAST(least(greatest((e.ts - {first_ts}) // {moment_ns}, 0), {moments}) AS SMALLINT) AS moment,
  a.actor, e.call_id, e.direction, count(*) AS count,
  CAST(sum(e.dur) AS BIGINT) AS time_ns, CAST(sum(e.bytes) AS BIGINT) AS bytes
FROM events e JOIN actors a ON a.utid = e.utid LEFT JOIN files f ON f.file_id = e.file_id
WHERE e.ts IS NOT NULL AND e.side IN (0, 1, 3)
  AND f.kind IN ('file', 'regular', 'directory', 'symlink', 'standard', 'unknown') GROUP BY ALL
