"""Globs for file names. `*` matches within a folder, `**` across folders."""

from __future__ import annotations

import re

from iodock.shared.errors import RequestError


def is_glob(text: str) -> bool:
    """Whether the text contains a wildcard."""
    return any(letter in text for letter in "*?[")


def glob_expression(glob: str) -> str:
    """Converts a glob to a regular expression (RE2 and Java alike) for whole names. A glob that does not
    begin with `/` may match any part of a name from a slash to its end. Raises RequestError."""
    parts = [] if glob.startswith("/") else ["(?:.*/)?"]
    at = 0
    while at < len(glob):
        token, at = _token(glob, at)
        parts.append(token)
    expression = "(?s)" + "".join(parts)
    try:
        re.compile(expression)
    except re.error as error:
        message = f"not a pattern of names: {glob}: {error.msg}"
        raise RequestError(message, "write [[] for a bracket that is part of the name") from None
    return expression


def _token(glob: str, at: int) -> tuple[str, int]:
    if glob.startswith("**/", at):
        return "(?:.*/)?", at + 3
    if glob.startswith("**", at):
        return ".*", at + 2
    if glob[at] == "*":
        return "[^/]*", at + 1
    if glob[at] == "?":
        return "[^/]", at + 1
    end = glob.find("]", at + 2)
    if glob[at] == "[" and end > 0:
        inside = glob[at + 1 : end].replace("\\", "\\\\").replace("[", "\\[")
        return f"[{'^' + inside[1:] if inside[0] in '!^' else inside}]", end + 1
    return re.escape(glob[at]).replace("\\/", "/"), at + 1
