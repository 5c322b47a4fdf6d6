"""Converts globs for file names to regular expressions. `*` matches within a folder, `**` across folders."""

from __future__ import annotations

import re

from iodock.shared.errors import RequestError


def is_glob(text: str) -> bool:
    """Returns whether the text contains a wildcard."""
    return any(letter in text for letter in "*?[")


def glob_expression(glob: str) -> str:
    """Converts a glob for whole names to a regular expression that RE2 and Java both accept. A glob that does
    not begin with `/` matches a whole name, or the part of a name after any slash. Raises RequestError if the
    glob is invalid."""
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
