"""Limits what a user's query can do: it may read the tables of one store, and nothing else.

There are two barriers. First, the engine is configured so that it can open only the store's own files.
Second, each query is checked before it runs, because some functions of the engine change settings, write logs
or show settings. Only table functions that are known to be harmless are allowed, because each version of the
engine adds new ones.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from iodock.shared.engine.bare import bare
from iodock.shared.errors import QueryError

EXAMPLE = "SELECT count(*) FROM calls_seen"
HINT = "--unsafe (in Python: unsafe=True) allows a query everything that you may do yourself"

_TABLE_FUNCTIONS = frozenset(
    (
        *("range", "generate_series", "unnest", "repeat", "repeat_row", "json_each", "json_tree"),
        *("generate_subscripts", "regexp_split_to_table", "pragma_version", "pragma_table_info"),
    )
)
_FORBIDDEN_FUNCTIONS = frozenset(("current_setting", "getenv", "write_log", "setval", "nextval"))
_SYSTEM_SCHEMAS = ("pg_catalog", "information_schema")
_SYSTEM_TABLE = re.compile(r"(pg|duckdb|sqlite|pragma)_.*")
_READABLE = frozenset(
    (
        *("information_schema.tables", "information_schema.columns", "information_schema.views"),
        *("information_schema.schemata", "duckdb_tables", "duckdb_columns", "duckdb_views", "duckdb_types"),
    )
)
"""Tables of the engine that describe the available tables. Its other tables contain settings."""
_EXPLAIN = re.compile(r"(?is)\s*EXPLAIN\b\s*(?:ANALY[ZS]E\b\s*)?")
_OPTIONS = re.compile(r"(?s)\s*\([^()]*\)\s*")
_LIKE_A_FILE = re.compile(r"[/\\.:*]")


def check(connection: bare.DuckDBPyConnection, sql: str) -> None:
    """Raises QueryError for a query that may do more than read the store, and bare.Error for invalid SQL."""
    kind = _kind(connection, sql)
    if kind == "EXPLAIN":
        sql = _explained(connection, sql)
    if _kind(connection, sql) != "SELECT":
        word = kind.replace("_", " ")
        why = f"this is an {word} statement" if word[0] in "AEIOU" else f"this is a {word} statement"
        raise _refused(why, _instead(kind))
    _check_parts(_parsed(connection, sql))


def _kind(connection: bare.DuckDBPyConnection, sql: str) -> str:
    """Returns the kind of the SQL statement. Raises QueryError if there is no statement, or more than one."""
    statements = connection.extract_statements(sql)
    if len(statements) != 1:
        message = "there are several statements" if statements else "there is no statement"
        raise QueryError(message, f"write one query, for example {EXAMPLE}")
    return statements[0].type.name


def _explained(connection: bare.DuckDBPyConnection, sql: str) -> str:
    """Returns the statement after the word EXPLAIN. Options in parentheses may precede it, and the
    statement itself may be in parentheses, too."""
    rest = _EXPLAIN.sub("", sql, count=1)
    try:
        connection.extract_statements(rest)
    except bare.Error:
        rest = _OPTIONS.sub("", rest, count=1)
    return rest


def closed(connection: bare.DuckDBPyConnection, files: list[str]) -> None:
    """Restricts the engine permanently: from now on it can open only these files and its own temporary
    ones."""
    # By default, the engine treats an unknown table name as the name of a Python variable.
    connection.execute("SET python_enable_replacements = false")
    connection.execute("SET allowed_paths = $files", {"files": files})
    connection.execute("SET enable_external_access = false")


def refusal(error: Exception, said: str) -> QueryError | None:
    """Returns the error to show if the restricted engine refused to open something; None for other errors."""
    if not isinstance(error, bare.PermissionException):
        return None
    named = re.search(r'"([^"]*)"', said)
    why = f"the query may not open {named.group(1)}" if named else "the query may not open other files"
    return _refused(why)


def _refused(why: str, hint: str = HINT) -> QueryError:
    return QueryError(f"a query may only read the tables of its store: {why}", hint)


def _instead(kind: str) -> str:
    hints = {
        "COPY": f"iodock query ... --format csv -o FILE writes a file; {HINT}",
        "MULTI": f"name the columns of a PIVOT: PIVOT ... ON column IN(value, ...); {HINT}",
        "PRAGMA": f"DESCRIBE table and SHOW TABLES show what exists; {HINT}",
    }
    return hints.get(kind, HINT)


def _parsed(connection: bare.DuckDBPyConnection, sql: str) -> Any:
    """Returns the syntax tree of a SELECT statement from the engine's own parser."""
    (text,) = connection.execute("SELECT json_serialize_sql($sql)", {"sql": sql}).fetchall()[0]
    try:
        parsed = json.loads(text)
    except RecursionError:
        raise _refused("the query is nested too deeply to be checked") from None
    if parsed.get("error"):
        raise _refused(f"it can't be looked through ({parsed.get('error_message')})", _instead("MULTI"))
    return parsed


def _check_parts(parsed: Any) -> None:
    parts = list(_parts(parsed))
    named = {entry["key"] for part in parts for entry in _entries(part.get("cte_map"))}
    for part in parts:
        if part.get("type") == "TABLE_FUNCTION":
            name = str((part.get("function") or {}).get("function_name", "a table function")).lower()
            if name not in _TABLE_FUNCTIONS:
                raise _refused(f"the query may not use {name}()")
        if str(part.get("function_name", "")).lower() in _FORBIDDEN_FUNCTIONS:
            raise _refused(f"the query may not use {part['function_name']}()")
        table = str(part.get("table_name", ""))
        if part.get("type") != "BASE_TABLE":
            continue
        if table not in named and _LIKE_A_FILE.search(table):
            raise _refused(f"the query may not open {table}")
        if not _is_readable(str(part.get("schema_name", "")).lower(), table.lower()):
            raise _refused(f"the query may not read {table}")


def _is_readable(schema: str, table: str) -> bool:
    """Returns whether users may read a table of this name. They may not read the engine's own tables that
    show settings. A WITH may not define such a name either, because its scope is not examined."""
    if schema not in _SYSTEM_SCHEMAS and not _SYSTEM_TABLE.fullmatch(table):
        return True
    return table in _READABLE or f"{schema}.{table}" in _READABLE


def _entries(cte_map: Any) -> list[dict[str, Any]]:
    return cte_map.get("map") or [] if isinstance(cte_map, dict) else []


def _parts(parsed: Any) -> Iterator[dict[str, Any]]:
    """Yields all objects in a parsed statement. It uses no recursion, because a query may be nested too
    deeply for that."""
    waiting = [parsed]
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict):
            yield one
            waiting.extend(one.values())
        elif isinstance(one, list):
            waiting.extend(one)
