-- Files whose place another one took more than once, by a rename, and that fewer looked at than replaced them.
--
-- file_id: -> files: the name that did not change
-- turns: number of renames to this name

-- A log that moves on when the next one comes is kept, and so is what another name was given.
WITH named AS (SELECT target, count(*) AS turns FROM renamed_files
  WHERE target NOT IN (SELECT source FROM renamed_files) GROUP BY target HAVING count(*) > 1),
used AS (SELECT u.file_id, sum(u.count) AS count FROM uses u JOIN calls c ON c.id = u.call_id
  WHERE c.family IN ('open', 'read', 'mmap', 'exec', 'link') AND u.errno_id IS NULL GROUP BY u.file_id)
SELECT n.target AS file_id, n.turns FROM named n LEFT JOIN used u ON u.file_id = n.target
WHERE coalesce(u.count, 0) < n.turns
