-- Plain files, and those of unknown kind, that no database keeps.
--
-- file_id: -> files

-- Databases answer requests one by one, and do it on purpose.
SELECT file_id FROM files WHERE kind IN ('file', 'regular', 'unknown')
  AND NOT regexp_matches(name, '^/(proc|sys|dev/pts|dev/fd)/|^/dev/[^/]*$|{database_names}')
  AND name || '-journal' NOT IN (SELECT name FROM files WHERE suffix(name, '-journal'))
  AND name || '-wal' NOT IN (SELECT name FROM files WHERE suffix(name, '-wal'))
