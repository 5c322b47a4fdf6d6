-- Files that were replaced more than once by renaming another file to their name, and that were read less
-- often than they were replaced.
--
-- file_id: -> files: the name that did not change
-- turns: number of renames to this name

-- A file that was itself renamed before another file got its name, such as an old log, still exists. It does
-- not count as replaced.
WITH named AS (SELECT target, count(*) AS turns FROM renamed_files
  WHERE target NOT IN (SELECT source FROM renamed_files) GROUP BY target HAVING count(*) > 1),
used AS (SELECT u.file_id, sum(u.count) AS count FROM uses u JOIN calls c ON c.id = u.call_id
  WHERE c.family IN ('open', 'read', 'mmap', 'exec', 'link') AND u.errno_id IS NULL GROUP BY u.file_id)
SELECT n.target AS file_id, n.turns FROM named n LEFT JOIN used u ON u.file_id = n.target
WHERE coalesce(u.count, 0) < n.turns
