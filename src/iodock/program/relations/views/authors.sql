-- For each image, the image whose program the user can change to improve it, and the languages of that
-- program.
--
-- image: -> images
-- author: -> images: the program itself, or, for a command of the system, the program that started it
-- path: -> commands.path: the user's own program; NULL: unknown
-- argv: its arguments
-- is_script: whether the program is a script
-- is_interpreted: whether the program is a script, or an interpreter, of a known language
-- languages: languages in which advice can be given; empty: none, NULL: unknown
-- is_unclear: whether the program was read but shows no language

-- The arguments of a system command decide what it does. The user therefore changes the shell script that
-- started the command, not the command.
WITH RECURSIVE own AS (SELECT image, any_value(path) AS path, any_value(argv) AS argv,
    any_value(before) AS before FROM images WHERE own GROUP BY image),
seen AS (SELECT o.*, w.languages, coalesce(w.is_tool, false) AS is_tool,
    coalesce(w.is_script, false) AS is_script, coalesce(w.is_interpreted, false) AS is_interpreted
  FROM own o LEFT JOIN written_in w ON w.path = o.path),
climbed AS (SELECT image, image AS at, 0 AS steps FROM seen
  UNION ALL SELECT c.image, s.before, c.steps + 1 FROM climbed c JOIN seen s ON s.image = c.at
  WHERE s.is_tool AND s.before IS NOT NULL AND c.steps < 16),
found AS (SELECT c.image, coalesce(arg_min(c.at, c.steps) FILTER (WHERE s.path IS NOT NULL AND NOT s.is_tool),
    c.image) AS author FROM climbed c JOIN seen s ON s.image = c.at GROUP BY c.image),
linked AS (SELECT image, list_sort(list(language)) AS languages FROM image_libraries
  WHERE language IS NOT NULL GROUP BY image)
SELECT f.image, f.author, s.path, s.argv, s.is_script, s.is_interpreted,
  CASE WHEN f.author <> f.image AND coalesce(s.languages <> ['shell'], true) THEN []
    ELSE coalesce(nullif(s.languages, []), l.languages) END AS languages,
  coalesce(s.languages = [], false) AND l.languages IS NULL AS is_unclear
FROM found f JOIN seen s ON s.image = f.author LEFT JOIN linked l ON l.image = f.author
