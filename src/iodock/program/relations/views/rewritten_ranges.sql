-- Offsets of writes of which at least half of the bytes replace bytes written before: headers, states,
-- slots.
--
-- file_id: -> files
-- offset_bytes: offset at which the writes begin
-- call_id: -> calls: one of the calls in question
-- count: such writes that begin at this offset
-- bytes: written by them
-- kept_bytes: largest of these writes, in bytes
-- time_ns: time inside them

SELECT file_id, offset_bytes, any_value(call_id) AS call_id, count(*) AS count,
  CAST(sum(bytes) AS BIGINT) AS bytes, max(bytes) AS kept_bytes, CAST(sum(dur) AS BIGINT) AS time_ns
FROM events WHERE direction = 2 AND bytes > 0 AND 2 * any_written_bytes >= bytes AND file_id IS NOT NULL
GROUP BY file_id, offset_bytes
