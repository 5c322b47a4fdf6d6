-- Each program that was executed, and the languages in which it is written.
--
-- path: -> commands.path
-- languages: for a script or an interpreter the language of what it runs; empty: unknown although the file
--   was read; NULL: the file was not read
-- is_interpreted: whether the program is a script, or an interpreter, of a known language
-- is_script: whether the program is a script
-- is_tool: whether the program is a command of the system, which users do not change

-- Most scripts name `env` as their interpreter, and the real interpreter as the second word of the first
-- line. The user's code is the script, not the interpreter. If the first line names no interpreter, the
-- ending of the script's name shows its language.
WITH made AS (SELECT DISTINCT path FROM commands),
known AS (SELECT m.path, e.kind, e.languages, coalesce(e.real_path, m.path) AS real_path,
    regexp_extract(e.interpreter, '^(?:\S*/)?(?:env(?:\s+-\S+|\s+\w+=\S*)*\s+(?:\S*/)?)?([^/\s]+)', 1)
      AS interpreter,
    regexp_extract(m.path, '[^/]*$') AS name,
    regexp_extract(coalesce(e.real_path, m.path), '[^/]*$') AS real_name
  FROM made m LEFT JOIN executables e ON e.path = m.path),
names AS (SELECT interpreter AS name FROM known UNION SELECT name FROM known
  UNION SELECT real_name FROM known),
interpreters AS (SELECT name, CASE
    WHEN regexp_full_match(name, 'i?python[0-9.]*[a-z]*|pypy[0-9.]*') THEN 'Python'
    WHEN regexp_full_match(name, '(ba|da|z|k|mk|pdk|c|tc|a|fi|rba|y)?sh([0-9.-]+)?|busybox') THEN 'shell'
    WHEN regexp_full_match(name, 'perl[0-9.]*') THEN 'Perl'
    WHEN name IN ('R', 'Rscript', 'littler') THEN 'R'
    WHEN name = 'java' THEN 'Java'
    WHEN regexp_full_match(name, 'julia[0-9.-]*') THEN 'Julia'
    WHEN name IN ('node', 'nodejs', 'deno', 'bun', 'qjs') THEN 'JavaScript'
    WHEN regexp_full_match(name, 'lua[0-9.-]*|luajit[0-9.-]*') THEN 'Lua'
    WHEN regexp_full_match(name, 'tclsh[0-9.]*|wish[0-9.]*') THEN 'Tcl'
    WHEN regexp_full_match(name, 'ruby[0-9.]*') THEN 'Ruby'
    WHEN regexp_full_match(name, 'php[0-9.]*') THEN 'PHP'
    WHEN regexp_full_match(name, 'octave(-cli)?([0-9.-]*)') THEN 'Octave'
    WHEN name = 'MATLAB' THEN 'MATLAB'
    WHEN regexp_full_match(name, '[gmn]?awk') THEN 'awk' END AS language FROM names),
named AS (SELECT k.*, CASE kind WHEN 'script' THEN i.language ELSE
    coalesce(n.language, r.language, CASE WHEN kind IS NULL THEN CASE
      WHEN regexp_matches(path, '\.py$') THEN 'Python'
      WHEN regexp_matches(path, '\.(ba|z|k|c|tc)?sh$') THEN 'shell'
      WHEN regexp_matches(path, '\.pl$') THEN 'Perl'
      WHEN regexp_matches(path, '\.[rR]$') THEN 'R'
      WHEN regexp_matches(path, '\.rb$') THEN 'Ruby'
      WHEN regexp_matches(path, '\.jl$') THEN 'Julia'
      WHEN regexp_matches(path, '\.tcl$') THEN 'Tcl'
      WHEN regexp_matches(path, '\.lua$') THEN 'Lua'
      WHEN regexp_matches(path, '\.awk$') THEN 'awk' END END) END AS language
  FROM known k LEFT JOIN interpreters i ON i.name = k.interpreter
    LEFT JOIN interpreters n ON n.name = k.name LEFT JOIN interpreters r ON r.name = k.real_name)
SELECT path, CASE WHEN language IS NULL THEN languages ELSE [language] END AS languages,
  language IS NOT NULL AS is_interpreted,
  coalesce(kind = 'script', false) OR kind IS NULL AND regexp_matches(path, '\.[a-zA-Z]+$') AS is_script,
  regexp_matches(CASE kind WHEN 'script' THEN path ELSE real_path END,
      '^/(usr/)?(s?bin|lib(32|64|x32|exec)?)/')
    AND (coalesce(kind = 'script', false) OR coalesce(language, 'awk') = 'awk') AS is_tool
FROM named
