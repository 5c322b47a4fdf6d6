-- The line on which a list shows each file: a pattern, if {least_files} files or more have names that match
-- it; otherwise the file's name.
--
-- file_id: -> files
-- pattern: a glob that matches the names, or the file's own name
-- several: whether `pattern` is a glob for several files

-- If a file name contains a character that is a wildcard in globs, the pattern contains it in brackets, such
-- as `[*]`. All names that sort between the first and the last name have the beginning that these two share.
-- It is therefore sufficient to compare the first and the last name.
WITH s AS (SELECT {side} file_id, name, CASE
    WHEN kind NOT IN ('file', 'regular', 'directory', 'symlink', 'device', 'fifo') THEN name
    WHEN regexp_matches(name, '[*?\[]')
      THEN regexp_replace(regexp_replace(name, '([*?\[])', '[\1]', 'g'), '[0-9]+', '*', 'g')
    ELSE coalesce(pattern, name) END AS starred FROM {files}),
alike AS (SELECT {side} starred, string_split(starred, '/') AS stars, string_split(min(name), '/') AS a,
    string_split(max(name), '/') AS z,
    min(split_part(name, '/', -1)) = max(split_part(name, '/', -1)) AS is_last_alike
  FROM s WHERE starred <> name AND regexp_matches(starred, '[^/*.?\[\]]')
  GROUP BY ALL HAVING count(*) >= {least_files} AND min(name) <> max(name)),
varied AS (SELECT *, len(stars) AS last, [n FOR n IN range(1, len(stars)) IF a[n] <> z[n]] AS varying
  FROM alike),
parts AS (SELECT {side} starred, [CASE WHEN n < coalesce(varying[1], last) OR (n = last AND is_last_alike)
    THEN regexp_replace(a[n], '([*?\[])', '[\1]', 'g') ELSE stars[n] END FOR n IN range(1, last + 1)] AS parts
  FROM varied)
SELECT {side} file_id, coalesce(array_to_string(parts, '/'), name) AS pattern, parts IS NOT NULL AS several
FROM s LEFT JOIN parts USING ({side} starred)
