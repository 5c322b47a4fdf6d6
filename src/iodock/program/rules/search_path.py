"""What the loader, an interpreter or a shell looks for in vain along a search path of many folders, in any
program: tools that look through folders on purpose don't choose where their libraries are sought."""

from __future__ import annotations

from iodock.program.findings import Advice
from iodock.shared.language import N_
from iodock.shared.message import Message

# In each folder of its path the loader first looks for folders for certain processors, and in these.
_PROCESSORS = (
    r"/(glibc-hwcaps(/[^/]+)?|tls|haswell|avx512_1|x86_64)(/(tls|haswell|avx512_1|x86_64))*"
    r"(/[^/]+\.so[.0-9]*)?$"
)
_FOR_PROCESSOR = f"regexp_matches(f.name, '{_PROCESSORS}')"
_FOLDER = f"""CASE WHEN {_FOR_PROCESSOR} THEN regexp_replace(f.name, '{_PROCESSORS}', '')
    ELSE rtrim(f.folder, '/') END"""
_BASE = "regexp_extract(f.name, '[^/]*$')"
_VARIABLE = f"""CASE WHEN regexp_matches({_BASE}, '\\.py$|\\.(cpython-[^.]*|abi3)\\.so$') THEN 'PYTHONPATH'
    WHEN {_FOR_PROCESSOR} OR regexp_matches({_BASE}, '\\.so(\\.[0-9.]+)?$') THEN 'LD_LIBRARY_PATH'
    WHEN regexp_matches({_BASE}, '\\.(jar|class)$') THEN 'CLASSPATH'
    WHEN regexp_matches({_BASE}, '\\.pmc?$') THEN 'PERL5LIB'
    WHEN c.family = 'execve' OR regexp_matches(g.program, '/(ba|da|z|k|c|tc)?sh$') THEN 'PATH' END"""
# A linker looks for libraries as they are named for it, the loader for those of a version.
_BY_LOADER = f"({_FOR_PROCESSOR} OR regexp_matches({_BASE}, '\\.so\\.[0-9.]+$'))"


def ctes(least_folders: int) -> str:
    """SQL: `sought`, failed look-ups (`file_id utid folder variable base count time_ns longest_ns`) of names
    that one process looked for in LEAST_FOLDERS or more."""
    return f"""tried AS (SELECT u.file_id, u.utid, s.upid, {_FOLDER} AS folder, {_VARIABLE} AS variable,
    {_BASE} AS base, u.count, u.time_ns, u.longest_ns
  FROM uses u JOIN calls c ON c.id = u.call_id JOIN errnos x ON x.id = u.errno_id
    JOIN files f ON f.file_id = u.file_id JOIN processes s ON s.utid = u.utid
    LEFT JOIN programs g ON g.upid = s.upid
  WHERE c.family IN ('open', 'access', 'stat', 'execve') AND x.name IN ('ENOENT', 'ENOTDIR')
    AND (g.is_tool IS NOT TRUE OR {_BY_LOADER})),
paths AS (SELECT upid, base FROM tried WHERE variable IS NOT NULL GROUP BY upid, base
  HAVING count(DISTINCT folder) >= {least_folders}),
sought AS (SELECT t.* FROM tried t JOIN paths p ON p.upid = t.upid AND p.base = t.base
  WHERE t.variable IS NOT NULL)"""


def folders_sql(least_folders: int) -> str:
    """The folders of such search paths, the costliest first: `name count time_ns processes variable base
    never`, whether nothing was ever opened in it or below it."""
    return f"""WITH {ctes(least_folders)},
had AS (SELECT DISTINCT {_FOLDER} AS folder FROM uses u JOIN calls c ON c.id = u.call_id
    JOIN files f ON f.file_id = u.file_id
  WHERE c.family IN ('open', 'execve') AND u.errno_id IS NULL AND f.kind <> 'directory')
SELECT folder AS name, CAST(sum(count) AS BIGINT) AS count,
  CAST(sum(time_ns) AS BIGINT) AS time_ns, count(DISTINCT upid) AS processes,
  arg_max(variable, count) AS variable, mode(base) AS base, folder NOT IN (FROM had) AS never
FROM sought GROUP BY folder ORDER BY never DESC, time_ns DESC NULLS LAST, count DESC, name"""


MESSAGE = N_(
    "{count} look-ups in vain along a search path of {folders} folders ({variable}), of which {never} never "
    "had anything; processes: {processes}. Sought was {name}, for one."
)
_ANY = N_("Take folders that never had anything out of {variable}, and put those first that have most.")
_OF_VARIABLE = {
    "LD_LIBRARY_PATH": N_(
        "Link with -Wl,-rpath for the folders that are needed, or put links to all libraries into one folder "
        "and name that alone."
    ),
    "PYTHONPATH": N_("Install the modules into one virtual environment, in place of a folder each."),
    "CLASSPATH": N_("Pack the classes into one jar, in place of many jars and folders."),
    "PERL5LIB": N_("Install the modules into one folder, in place of one each."),
    "PATH": N_("Call programs by their full path in loops."),
}
_ADMINISTRATOR = N_(
    "Modules that add a folder for each package make the path long: offer one folder of links (a view) for "
    "all of them."
)


def advice(variable: str) -> tuple[Advice, ...]:
    """What to do about a long search path, by the variable that has it."""
    return (
        Advice("any", Message(_ANY, {"variable": variable})),
        Advice("any", Message(_OF_VARIABLE[variable])),
        Advice("administrator", Message(_ADMINISTRATOR)),
    )
