-- Files of `plain_files` that do not belong to the system or to a program.
--
-- file_id: -> files

SELECT d.file_id FROM plain_files d JOIN files f ON f.file_id = d.file_id
WHERE NOT regexp_matches(f.name, '{system_names}')
