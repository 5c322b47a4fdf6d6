-- Places of the files in `data_files`.
--
-- place: -> place_names

SELECT d.place FROM plain_places d JOIN place_names p ON p.place = d.place
WHERE NOT regexp_matches(p.name, '{system_names}')
