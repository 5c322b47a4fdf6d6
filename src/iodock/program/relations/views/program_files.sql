-- Files of the system or of a program.
--
-- file_id: -> files

SELECT file_id FROM files WHERE kind IN ('file', 'regular') AND regexp_matches(name, '{system_names}')
