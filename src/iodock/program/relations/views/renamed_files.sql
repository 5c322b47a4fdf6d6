-- Renames of files: a row for each one.
--
-- source: -> files: the file with its old name
-- target: -> files: the file with its new name
-- ts: when

SELECT o.file_id AS source, n.file_id AS target, o.ts
FROM events o JOIN events n ON n.utid = o.utid AND n.ts = o.ts AND n.call_id = o.call_id
  AND n.file_id = o.other_file_id
WHERE o.side = 3 AND n.side = 4 AND o.errno_id IS NULL AND n.errno_id IS NULL
  AND o.call_id IN (SELECT id FROM calls WHERE family = 'rename')
