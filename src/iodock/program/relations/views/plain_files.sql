-- Plain files, and files of unknown kind, that do not belong to a database.
--
-- file_id: -> files

-- A database answers requests one by one by design, so its small requests are no fault. Files of databases
-- are left out.
SELECT file_id FROM files WHERE kind IN ('file', 'regular', 'unknown')
  AND NOT regexp_matches(name, '^/(proc|sys|dev/pts|dev/fd)/|^/dev/[^/]*$|{database_names}')
  AND name || '-journal' NOT IN (SELECT name FROM files WHERE suffix(name, '-journal'))
  AND name || '-wal' NOT IN (SELECT name FROM files WHERE suffix(name, '-wal'))
