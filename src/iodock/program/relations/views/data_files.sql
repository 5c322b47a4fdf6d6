-- Files of `plain_files` that are no part of the system or of a program.
--
-- file_id: -> files

SELECT d.file_id FROM plain_files d JOIN files f ON f.file_id = d.file_id
WHERE NOT regexp_matches(f.name, '{system_names}')
