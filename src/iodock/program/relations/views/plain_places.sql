-- Places of the files in `plain_files`.
--
-- place: -> place_names

SELECT place FROM place_names WHERE kind IN ('file', 'regular', 'unknown')
  AND NOT regexp_matches(name, '^/(proc|sys|dev/pts|dev/fd)/|^/dev/[^/]*$|{database_names}')
  AND name || '-journal' NOT IN (SELECT name FROM files WHERE suffix(name, '-journal'))
  AND name || '-wal' NOT IN (SELECT name FROM files WHERE suffix(name, '-wal'))
