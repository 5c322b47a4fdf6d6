-- Places of the files in `database_files`.
--
-- place: -> place_names

SELECT place FROM place_names WHERE kind IN ('file', 'regular', 'unknown')
  AND place NOT IN (SELECT place FROM plain_places)
  AND NOT regexp_matches(name, '^/(proc|sys|dev)/|/\.git/')
