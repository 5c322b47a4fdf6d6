-- Every file's place: itself for the costliest, its name pattern for the others.
--
-- file_id: -> files
-- place: -> place_names
-- name: the file's name, or the pattern
-- single: whether the location is one file

WITH t AS (SELECT file_id, sum(time_ns) AS time, sum(count) AS count FROM uses GROUP BY 1),
ranked AS (SELECT f.file_id, f.name, f.pattern, f.kind,
    row_number() OVER (ORDER BY t.time DESC NULLS LAST, t.count DESC, f.file_id) <= 300 AS first
  FROM files f LEFT JOIN t ON t.file_id = f.file_id),
named AS (SELECT file_id, CASE WHEN first THEN name ELSE coalesce(pattern, name) END AS name, first, kind
  FROM ranked),
placed AS (SELECT file_id, name, dense_rank() OVER (ORDER BY first, name, kind,
    CASE WHEN first THEN file_id END) AS place FROM named)
SELECT file_id, place, name, count(*) OVER (PARTITION BY place) = 1 AS single FROM placed
