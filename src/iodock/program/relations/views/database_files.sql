-- Files of databases. Repositories do not count as databases.
--
-- file_id: -> files

SELECT file_id FROM files WHERE kind IN ('file', 'regular', 'unknown')
  AND file_id NOT IN (SELECT file_id FROM plain_files)
  AND NOT regexp_matches(name, '^/(proc|sys|dev)/|/\.git/')
