-- What each process ran: the last program it became, or its parent's where it became none.
--
-- upid: -> processes
-- program: path; NULL if not known
-- own: whether the process executed a program itself
-- walks: whether the program is a tool whose task is to process files one by one
-- builds: whether the program is a compiler or a build tool: these search folders for files that a source
--   file includes, and start other programs that do the actual work
-- is_tool: either of both
-- changes: whether the program is a tool whose output differs from its input, even if both have the same size

WITH RECURSIVE own AS (SELECT p.upid, arg_max(c.path, c.ts) AS program
  FROM commands c JOIN processes p ON p.utid = c.utid GROUP BY p.upid),
made AS (SELECT p.upid, any_value(q.upid) FILTER (WHERE q.upid <> p.upid) AS parent
  FROM processes p LEFT JOIN processes q ON q.utid = p.parent_utid GROUP BY p.upid),
known AS (SELECT m.upid, o.program, o.upid IS NOT NULL AS own FROM made m LEFT JOIN own o ON o.upid = m.upid
  WHERE o.upid IS NOT NULL OR m.parent IS NULL
UNION ALL SELECT m.upid, k.program, false FROM made m JOIN known k ON k.upid = m.parent
  WHERE m.upid NOT IN (SELECT upid FROM own)),
judged AS (SELECT *, coalesce(regexp_matches(program, '(^|/)('
    || 'git(-[a-z-]+)?|hg|svn|tar|bsdtar|gtar|cpio|rsync|cp|mv|rm|ln|install|find|fd|grep|egrep|rg|ls|du'
    || '|chmod|chown|touch|zip|unzip|updatedb|diff|sha[0-9]*sum|md5sum|b2sum|cksum|ctags|wc|file|stat|cat'
    || '|head|tail'
    || ')$'), false) AS walks,
  coalesce(regexp_matches(program, '(^|/)('
    || 'cc|c\+\+|cc1|cc1plus|cc1obj|f951|as|ld|ld\.[a-z]+|collect2|lto1|lto-wrapper|ar|ranlib|nm|strip|cpp'
    || '|([a-z0-9_]+-)*(gcc|g\+\+|gfortran|clang|clang\+\+|flang)(-[0-9.]+)?|rustc|cargo|go|compile|link'
    || '|javac|javadoc|ifort|ifx|icc|icx|nvcc|frt|fcc|make|gmake|ninja|cmake|ctest|meson|mpicc|mpif90'
    || '|mpic\+\+|opal_wrapper|swiftc|ghc|ocamlopt|tsc|ccache|distcc|libtool'
    || ')$'), false) AS builds FROM known),
converting AS (SELECT DISTINCT p.upid FROM commands c JOIN processes p ON p.utid = c.utid
  WHERE regexp_matches(c.path, '(^|/)dd$') AND contains(array_to_string(c.argv, ' '), ' conv='))
SELECT upid, program, own, walks, builds, walks OR builds AS is_tool,
  coalesce(regexp_matches(program,
    '(^|/)(sort|shuf|tac|rev|tr|sed|iconv|openssl|gpg2?|age|xxd|recode|dos2unix|unix2dos)$'), false)
    OR upid IN (SELECT upid FROM converting) AS changes FROM judged
