-- Files that show which processes do the work: all except those of the system, of programs and of MPI
-- itself.
--
-- file_id: -> files

SELECT file_id FROM files WHERE kind IN ('file', 'regular', 'unknown')
  AND NOT regexp_matches(name, '^/(proc|sys|dev|usr|lib|lib32|lib64|bin|sbin|etc|opt|nix|snap)/'
    || '|\.(so|pyc|py)(\.[0-9.]+)?$|/ompi[^/]*/|/pmix')
