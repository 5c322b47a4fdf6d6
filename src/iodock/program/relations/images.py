"""Derived tables about programs: what each process was at which time, in which languages these are written,
and which libraries they use.

A process becomes an *image* when it executes a program; what it forks is part of the same image until it
executes another. So a shell that executes a program is two images in one process, and a pool's workers are
one in many.
"""

from __future__ import annotations

from iodock.program.relations.derived import Derived

# Interpreters by the names of their programs: what they run is what the user has written.
_INTERPRETERS = (
    ("Python", r"i?python[0-9.]*[a-z]*|pypy[0-9.]*"),
    ("shell", r"(ba|da|z|k|mk|pdk|c|tc|a|fi|rba|y)?sh([0-9.-]+)?|busybox"),
    ("Perl", r"perl[0-9.]*"),
    ("R", r"R|Rscript|littler"),
    ("Java", r"java"),
    ("Julia", r"julia[0-9.-]*"),
    ("JavaScript", r"node|nodejs|deno|bun|qjs"),
    ("Lua", r"lua[0-9.-]*|luajit[0-9.-]*"),
    ("Tcl", r"tclsh[0-9.]*|wish[0-9.]*"),
    ("Ruby", r"ruby[0-9.]*"),
    ("PHP", r"php[0-9.]*"),
    ("Octave", r"octave(-cli)?([0-9.-]*)"),
    ("MATLAB", r"MATLAB"),
    ("awk", r"[gmn]?awk"),
)
# Scripts by their endings, where their first line is not known.
_ENDINGS = (
    ("Python", "py"), ("shell", "(ba|z|k|c|tc)?sh"), ("Perl", "pl"), ("R", "[rR]"), ("Ruby", "rb"),
    ("Julia", "jl"), ("Tcl", "tcl"), ("Lua", "lua"), ("awk", "awk"),
)  # fmt: skip
# Of the system: whoever started them is who can change something.
_SYSTEM = r"^/(usr/)?(s?bin|lib(32|64|x32|exec)?)/"
_LIBRARIES = (
    ("HDF5", r"(^|/)libhdf5[^/]*$"),
    ("NetCDF", r"(^|/)libnetcdf[^/]*$"),
    ("MPI-IO", r"(^|/)lib(f?mpi|mpich|mpi_[^/]*)([.-][^/]*)?$"),
    ("h5py", r"/(site|dist)-packages/h5py/"),
    ("numpy", r"/(site|dist)-packages/numpy/"),
    ("pandas", r"/(site|dist)-packages/pandas/"),
    ("zarr", r"/(site|dist)-packages/zarr/"),
)
_RUN_TIMES = (
    ("Python", r"/libpython|/python3?(\.[0-9]+)?/|/site-packages/"),
    ("Fortran", r"/libgfortran[^/]*\.so|/libifcore|/libflang|/libfj90"),
    ("C++", r"/libstdc\+\+[^/]*\.so|/libc\+\+\.so"),
)


def _named(name: str) -> str:
    """SQL: the language of the interpreter whose program has this NAME (an expression); NULL for others."""
    cases = " ".join(
        f"WHEN regexp_matches({name}, '^({pattern})$') THEN '{language}'"
        for language, pattern in _INTERPRETERS
    )
    return f"CASE {cases} END"


def _ended(name: str) -> str:
    """SQL: the language of scripts whose NAME (an expression) ends so; NULL for others."""
    cases = " ".join(
        f"WHEN regexp_matches({name}, '\\.{ending}$') THEN '{language}'" for language, ending in _ENDINGS
    )
    return f"CASE {cases} END"


def _kept(name: str) -> str:
    """SQL: which of the libraries the file of this NAME (an expression) belongs to; NULL for others."""
    cases = " ".join(
        f"WHEN regexp_matches({name}, '{pattern}') THEN '{library}'" for library, pattern in _LIBRARIES
    )
    return f"CASE {cases} END"


def _run_time(name: str) -> str:
    """SQL: the language whose run-time library the file of this NAME (an expression) is; NULL for others."""
    cases = " ".join(
        f"WHEN regexp_matches({name}, '{pattern}') THEN '{language}'" for language, pattern in _RUN_TIMES
    )
    return f"CASE {cases} END"


# A script's interpreter is mostly looked up by env: the second word.
_SECOND = r"^(?:\S*/)?(?:env(?:\s+-\S+|\s+\w+=\S*)*\s+(?:\S*/)?)?([^/\s]+)"
_WRITTEN_IN = f"""WITH made AS (SELECT DISTINCT path FROM commands),
known AS (SELECT m.path, e.kind, e.languages, coalesce(e.real_path, m.path) AS real_path,
    regexp_extract(e.interpreter, '{_SECOND}', 1) AS interpreter
  FROM made m LEFT JOIN executables e ON e.path = m.path),
named AS (SELECT *, CASE kind WHEN 'script' THEN {_named("interpreter")} ELSE
    coalesce({_named("regexp_extract(path, '[^/]*$')")}, {_named("regexp_extract(real_path, '[^/]*$')")},
      CASE WHEN kind IS NULL THEN {_ended("path")} END) END AS language FROM known)
SELECT path, CASE WHEN language IS NULL THEN languages ELSE [language] END AS languages,
  language IS NOT NULL AS is_interpreted,
  coalesce(kind = 'script', false) OR kind IS NULL AND regexp_matches(path, '\\.[a-zA-Z]+$') AS is_script,
  regexp_matches(CASE kind WHEN 'script' THEN path ELSE real_path END, '{_SYSTEM}')
    AND (coalesce(kind = 'script', false) OR coalesce(language, 'awk') = 'awk') AS is_tool
FROM named"""
WRITTEN_IN = Derived(
    "each program that was executed, and the languages it is written in",
    {
        "path": "-> commands.path",
        "languages": "of a script or an interpreter that of what it runs; empty: not known though the file "
        "was read; NULL: the file was not read",
        "is_interpreted": "whether it runs what is written in one language",
        "is_script": "whether it is a script",
        "is_tool": "whether it is a command of the system, which users don't change",
    },
    lambda store: _WRITTEN_IN,
)

# Who has no parent here was something else before it executed a program: of that nothing is known. Programs
# without a time are in the order in which they were executed.
IMAGES = Derived(
    "what each process was from when to when: the image that it inherited, and each that it became",
    {
        "upid": "-> processes",
        "image": "number of the image: the same in all processes that were forked with it",
        "own": "whether it begins here; false: inherited",
        "path": "-> commands.path; NULL: inherited, or not known",
        "argv": "arguments",
        "from_ts": "when it began; NULL: with the process",
        "until_ts": "when the next one began; NULL: it ended with the process",
        "before": "-> image: what the process was before",
    },
    lambda store: (
        """WITH RECURSIVE first AS (SELECT p.upid, min(p.start_ts) AS start_ts,
    any_value(q.upid) FILTER (WHERE q.upid <> p.upid) AS parent
  FROM processes p LEFT JOIN processes q ON q.utid = p.parent_utid GROUP BY p.upid),
executed AS (SELECT p.upid, c.ts, c.path, c.argv,
    row_number() OVER (PARTITION BY p.upid ORDER BY c.ts NULLS FIRST, c.place) AS nth
  FROM (SELECT *, row_number() OVER () AS place FROM commands) c JOIN processes p ON p.utid = c.utid),
began AS (SELECT upid, nth, ts, path, argv FROM executed
  UNION ALL SELECT upid, 0, NULL, NULL, NULL FROM first WHERE parent IS NULL),
numbered AS (SELECT *, row_number() OVER (ORDER BY upid, nth) AS image FROM began),
at_fork AS (SELECT f.upid, arg_max(n.image, n.nth) AS image FROM first f JOIN numbered n ON n.upid = f.parent
  WHERE n.nth > 0 AND (n.ts IS NULL OR f.start_ts IS NULL OR n.ts <= f.start_ts) GROUP BY f.upid),
inherited AS (SELECT upid, image FROM numbered WHERE nth = 0
  UNION ALL SELECT f.upid, coalesce(a.image, i.image) FROM inherited i JOIN first f ON f.parent = i.upid
    LEFT JOIN at_fork a ON a.upid = f.upid),
spans AS (SELECT upid, nth, image, true AS own, path, argv,
    CASE WHEN nth > 0 THEN coalesce(ts, -9000000000000000000 + nth) END AS from_ts FROM numbered
  UNION ALL SELECT i.upid, 0, i.image, false, NULL, NULL, NULL FROM inherited i
    JOIN first f ON f.upid = i.upid WHERE f.parent IS NOT NULL)
SELECT upid, image, own, path, argv, from_ts, lead(from_ts) OVER w AS until_ts, lag(image) OVER w AS before
FROM spans WINDOW w AS (PARTITION BY upid ORDER BY nth)"""
    ),
)


def _at(upid: str, ts: str) -> str:
    """SQL: a JOIN of `images` i: what the process UPID was at the time TS, which may be NULL."""
    return f"""JOIN images i ON i.upid = {upid} AND coalesce({ts}, 9000000000000000000) >= coalesce(i.from_ts,
  -9000000000000000000) AND (i.until_ts IS NULL OR {ts} < i.until_ts)"""


# Calls that one process made on one file are told together: to the image that made the last of them.
IMAGE_USES = Derived(
    "calls folded by file, image, call and direction",
    {
        "file_id": "-> files; NULL: no file",
        "image": "-> images",
        "call_id": "-> calls",
        "direction": "0 none, 1 read, 2 write",
        "count": "rows",
    },
    lambda store: (
        f"""SELECT u.file_id, i.image, u.call_id, u.direction, CAST(sum(u.count) AS BIGINT) AS count
FROM uses u JOIN processes p ON p.utid = u.utid {_at("p.upid", "u.last_ts")}
GROUP BY ALL"""
    ),
    after=("uses", "images"),
)

# What a program needs itself is opened before what its libraries need, and the C library is the last of it.
_OPENED = f"""opened AS (SELECT i.image, f.name, min(u.first_ts) AS ts FROM uses u
    JOIN files f ON f.file_id = u.file_id JOIN calls c ON c.id = u.call_id JOIN processes p ON p.utid = u.utid
    {_at("p.upid", "u.first_ts")}
  WHERE c.family = 'open' AND u.errno_id IS NULL AND u.direction = 0
    AND regexp_matches(f.name, '/lib[^/]*\\.so|/(site|dist)-packages/|/python[0-9.]*/') GROUP BY ALL)"""
IMAGE_LIBRARIES = Derived(
    "the libraries and run-time libraries that each image uses",
    {
        "image": "-> images",
        "library": "HDF5, NetCDF, MPI-IO, h5py, numpy, pandas or zarr",
        "language": "of a run-time library: C++, Fortran or Python",
    },
    lambda store: (
        f"""WITH {_OPENED},
needed AS (SELECT DISTINCT i.image, unnest(e.libraries) AS name FROM images i
    JOIN executables e ON e.path = i.path),
libc AS (SELECT image, min(ts) AS ts FROM opened WHERE regexp_matches(name, '/libc[.-][^/]*$') GROUP BY image)
SELECT DISTINCT image, {_kept("name")} AS library, CAST(NULL AS VARCHAR) AS language
FROM (SELECT image, name FROM opened UNION ALL SELECT image, name FROM needed) WHERE library IS NOT NULL
UNION ALL SELECT DISTINCT o.image, NULL, {_run_time("o.name")} AS language FROM opened o
  LEFT JOIN libc l ON l.image = o.image
WHERE language IS NOT NULL AND (language = 'Python' OR coalesce(o.ts <= l.ts, true))"""
    ),
    after=("uses", "images"),
)
# A command of the system does what it was asked to: the shell that started it is where something can be
# changed.
AUTHORS = Derived(
    "for each image the one in whose program something can be changed, and its languages",
    {
        "image": "-> images",
        "author": "-> images: itself, or what has started it, where it is a command of the system",
        "path": "-> commands.path: the author's program; NULL: not known",
        "argv": "its arguments",
        "is_script": "whether it is a script",
        "is_interpreted": "whether it runs what is written in one language",
        "languages": "that advice can be in; empty: in none, NULL: not known",
        "is_unclear": "whether the program was read and tells of no language",
    },
    lambda store: (
        """WITH RECURSIVE own AS (SELECT image, any_value(path) AS path, any_value(argv) AS argv,
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
FROM found f JOIN seen s ON s.image = f.author LEFT JOIN linked l ON l.image = f.author"""
    ),
    after=("written_in", "images", "image_libraries"),
)
