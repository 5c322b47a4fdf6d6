-- Names that a loader, an interpreter or a shell looked for in vain in the folders of a search path.
--
-- file_id: -> files: the file that does not exist
-- utid: -> processes: the process that searched
-- upid: -> processes
-- folder: folder of the path, without parts that a loader adds for processor types
-- variable: the environment variable that holds the path
-- base: the name
-- folders: number of folders in which this process searched for this name and did not find it
-- count: look-ups
-- time_ns: time inside them

-- In each folder of its search path, the loader first looks for subfolders for certain types of processors,
-- and searches these. Tools search folders on purpose, but they do not choose the folders in which the loader
-- searches for their own libraries. A linker searches for a library by its name without a version, and the
-- loader by its name with a version.
WITH missing AS (SELECT file_id, name, regexp_extract(name, '[^/]*$') AS base,
    regexp_replace(name, '/(glibc-hwcaps(/[^/]+)?|tls|haswell|avx512_1|x86_64)(/(tls|haswell|avx512_1|x86_64))*'
      || '(/[^/]+\.so[.0-9]*)?$', '') AS above, rtrim(folder, '/') AS folder FROM files),
tried AS (SELECT u.file_id, u.utid, s.upid, m.base, u.count, u.time_ns,
    CASE WHEN m.above <> m.name THEN m.above ELSE m.folder END AS folder,
    CASE WHEN regexp_matches(m.base, '\.py$|\.(cpython-[^.]*|abi3)\.so$') THEN 'PYTHONPATH'
      WHEN m.above <> m.name OR regexp_matches(m.base, '\.so(\.[0-9.]+)?$') THEN 'LD_LIBRARY_PATH'
      WHEN regexp_matches(m.base, '\.(jar|class)$') THEN 'CLASSPATH'
      WHEN regexp_matches(m.base, '\.pmc?$') THEN 'PERL5LIB'
      WHEN c.family = 'execve' OR regexp_matches(g.program, '/(ba|da|z|k|c|tc)?sh$') THEN 'PATH' END
      AS variable
  FROM uses u JOIN calls c ON c.id = u.call_id JOIN errnos x ON x.id = u.errno_id
    JOIN missing m ON m.file_id = u.file_id JOIN processes s ON s.utid = u.utid
    LEFT JOIN programs g ON g.upid = s.upid
  WHERE c.family IN ('open', 'access', 'stat', 'execve') AND x.name IN ('ENOENT', 'ENOTDIR')
    AND (g.is_tool IS NOT TRUE OR m.above <> m.name OR regexp_matches(m.base, '\.so\.[0-9.]+$'))),
paths AS (SELECT upid, base, count(DISTINCT folder) AS folders FROM tried WHERE variable IS NOT NULL
  GROUP BY upid, base)
SELECT t.file_id, t.utid, t.upid, t.folder, t.variable, t.base, p.folders, t.count, t.time_ns
FROM tried t JOIN paths p ON p.upid = t.upid AND p.base = t.base WHERE t.variable IS NOT NULL
