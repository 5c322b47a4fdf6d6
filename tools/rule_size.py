"""Prints the size of each rule: its numbers of thresholds, constants, lines of SQL and names of other rules.

    tools/rule_size.py [--format text|markdown]

SQL is counted in the source, including the helper modules and the pieces of SQL in `relations` that a rule's
functions name. So moving lines to a helper does not change the size. The queries are not counted at run time,
because that would give the same lines only if every rule made all of its queries in that run. Views in files
(`relations/views/`) are not counted: they are documented, and made once for all rules. Facts of a run
(`rules/facts.py`) count in the total only.
"""

from __future__ import annotations

import argparse
import ast
import dataclasses
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from iodock.program import rules
from iodock.program.relations.derived import DERIVED
from iodock.program.rules.base import Rule

PACKAGE = Path(rules.__file__).parent.parent
FOLDERS = ("rules", "relations")
OWN = ("rules.base", "rules.facts", "rules.asking")
"""Modules that each rule has: nothing is followed into them."""
_SQL = re.compile(
    r"\b(SELECT|FROM|WHERE|JOIN|CASE|WHEN|AND|OR|IS|IN|NOT|FILTER|GROUP BY|ORDER BY|WITH|HAVING|AS)\b"
    r"|\b(sum|max|min|count|avg|arg_max|arg_min|any_value|coalesce|greatest|least|regexp_matches)\("
)
Text = ast.Constant | ast.JoinedStr
_TEXTS = {"N_", "Message", "advise", "Rule", "Advice"}


@dataclass(frozen=True, slots=True)
class Size:
    """Counts of one rule, or of all rules together."""

    name: str
    thresholds: int
    constants: int
    """Numbers that are named in its module."""
    sql_lines: int
    """Sizes of its module and of the parts of other modules that it uses."""
    longest_query: int
    """Lines, with the pieces it is put together from."""
    causes: int
    """Names of other rules that it yields to."""


@dataclass(slots=True)
class _Piece:
    """A constant or function of a module: its strings of SQL and the names that it uses."""

    module: str
    node: ast.AST
    lines: int = 0
    names: set[str] = field(default_factory=set)
    """`module.name` of other pieces."""


def sizes() -> tuple[list[Size], Size]:
    """Returns the size of each rule, and the totals, in which lines of SQL that rules share count once."""
    found = [_size(rule) for rule in rules.every() if rule.settings.__module__.startswith("iodock.")]
    modules = {name for name in _modules() if name.startswith("rules.")}
    total = Size(
        "total",
        sum(one.thresholds for one in found),
        sum(_constants(module) for module in modules),
        sum(piece.lines for piece in _pieces().values() if piece.module in modules),
        max(one.longest_query for one in found),
        sum(one.causes for one in found),
    )
    return found, total


def _size(rule: Rule) -> Size:
    module = rule.settings.__module__.removeprefix("iodock.program.")
    used = reached({name for name, piece in _pieces().items() if piece.module == module})
    return Size(
        rule.name,
        len(dataclasses.fields(rule.settings)),
        _constants(module),
        sum(_pieces()[name].lines for name in used),
        max((_length(name) for name in used), default=0),
        len(rule.yields_to),
    )


@cache
def _modules() -> dict[str, ast.Module]:
    """Returns the syntax tree of each module by its name, such as `rules.costs`."""
    return {
        f"{folder}.{path.stem}": ast.parse(path.read_text(encoding="utf-8"))
        for folder in FOLDERS
        for path in sorted((PACKAGE / folder).glob("*.py"))
    }


def _constants(module: str) -> int:
    return sum(
        1
        for node in _modules()[module].body
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None and _is_number(node.value)
    )


def _is_number(node: ast.AST) -> bool:
    if isinstance(node, ast.Constant):
        return isinstance(node.value, int | float) and not isinstance(node.value, bool)
    if isinstance(node, ast.Tuple):
        return bool(node.elts) and all(map(_is_number, node.elts))
    if isinstance(node, ast.BinOp):
        return _is_number(node.left) and _is_number(node.right)
    return isinstance(node, ast.UnaryOp) and _is_number(node.operand)


@cache
def _pieces() -> dict[str, _Piece]:
    """Returns every constant, function and method by `module.name`."""
    found = {}
    for module, tree in _modules().items():
        for name, node in _named(tree):
            found[f"{module}.{name}"] = _Piece(module, node)
    for piece in found.values():
        piece.lines = sum(_lines(one) for one in _strings(piece.node))
        piece.names = {name for name in _references(piece.node, piece.module) if name in found}
    return found


def _named(tree: ast.Module) -> Iterator[tuple[str, ast.AST]]:
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            yield node.name, node
        elif isinstance(node, ast.ClassDef):
            yield from (
                (f"{node.name}.{one.name}", one) for one in node.body if isinstance(one, ast.FunctionDef)
            )
        elif isinstance(node, ast.Assign):
            yield from ((one.id, node) for one in node.targets if isinstance(one, ast.Name))
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield node.target.id, node


def _strings(node: ast.AST) -> Iterator[Text]:
    """Yields strings that may be SQL, without docstrings and texts for users."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _TEXTS:
        return
    if isinstance(node, ast.JoinedStr | ast.Constant):
        if _SQL.search(_text(node)):
            yield node
        if isinstance(node, ast.Constant):
            return
    for child in ast.iter_child_nodes(node):
        yield from (
            one for one in _strings(child) if not (isinstance(node, ast.JoinedStr) and one in node.values)
        )


def _text(node: Text) -> str:
    parts = node.values if isinstance(node, ast.JoinedStr) else [node]
    return "".join(one.value for one in parts if isinstance(one, ast.Constant) and isinstance(one.value, str))


def _lines(node: Text) -> int:
    return node.end_lineno - node.lineno + 1  # type: ignore[operator]


def _references(node: ast.AST, module: str) -> Iterator[str]:
    """Yields the names used in NODE as `module.name`: from its own module, imported, or from an imported
    module."""
    imported = _imported(module)
    for one in ast.walk(node):
        if isinstance(one, ast.Name):
            yield imported.get(one.id, f"{module}.{one.id}")
        elif isinstance(one, ast.Attribute) and isinstance(one.value, ast.Name):
            yield f"{imported.get(one.value.id, one.value.id)}.{one.attr}"


@cache
def _imported(module: str) -> dict[str, str]:
    return {
        alias.asname or alias.name: f"{node.module.removeprefix('iodock.program.')}.{alias.name}"
        for node in _modules()[module].body
        if isinstance(node, ast.ImportFrom) and node.module
        for alias in node.names
    }


def views_asked(rule: Rule) -> set[str]:
    """Returns the views that a rule's SQL reads, in the rule itself or in a helper."""
    module = rule.settings.__module__.removeprefix("iodock.program.")
    found = set()
    for name in reached({name for name, piece in _pieces().items() if piece.module == module}):
        for string in _strings(_pieces()[name].node):
            found.update(re.findall(r"\b(?:FROM|JOIN)\s+(\w+)", _text(string)))
    return found & set(DERIVED)


def reached(names: set[str]) -> set[str]:
    """Returns NAMES and all names that they use, directly or through others."""
    found: set[str] = set()
    while names:
        found |= names
        names = {
            other for name in names for other in _pieces()[name].names if _pieces()[other].module not in OWN
        } - found
    return found


@cache
def _length(name: str) -> int:
    """Returns the number of lines of the longest query of a piece, with everything inserted into it. Pieces
    that name each other in a circle count once."""
    return _put_together(name, frozenset())


def _put_together(name: str, above: frozenset[str]) -> int:
    piece, seen = _pieces()[name], above | {name}
    if name in above or piece.module in OWN:
        return 0

    def length(string: Text) -> int:
        return _lines(string) + sum(max(0, one - 1) for one in _inside(string, piece, seen))

    written = (length(one) for one in _strings(piece.node))
    called = (
        _put_together(made, seen) + sum(map(length, _strings(call)))
        for call, made in _calls(piece)
        if any(True for _ in _strings(call))
    )
    return max((*written, *called), default=0)


def _calls(piece: _Piece) -> Iterator[tuple[ast.Call, str]]:
    """Yields calls of functions that return SQL, with the name of each function."""
    for node in ast.walk(piece.node):
        if isinstance(node, ast.Call):
            for made in _references(node.func, piece.module):
                if made in piece.names and _pieces()[made].lines:
                    yield node, made


def _inside(string: Text, piece: _Piece, above: frozenset[str]) -> Iterator[int]:
    """Yields the lengths of values inserted into a string: directly, or by a name of the enclosing
    function."""
    local = {
        target.id: node.value
        for node in ast.walk(piece.node)
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name) and node is not piece.node
    }
    for value in ast.walk(string):
        if not isinstance(value, ast.FormattedValue):
            continue
        named = [one.id for one in ast.walk(value.value) if isinstance(one, ast.Name)]
        for node in (value.value, *(local[one] for one in named if one in local)):
            yield from (_lines(one) for one in _strings(node))
            for reference in _references(node, piece.module):
                if reference in _pieces():
                    yield _put_together(reference, above)


HEADINGS = ("rule", "thresholds", "constants", "SQL lines", "longest query", "yields to")


def rows() -> list[tuple[str, ...]]:
    """Returns a row for each rule, and the totals below."""
    found, total = sizes()
    return [tuple(map(str, dataclasses.astuple(one))) for one in (*found, total)]


def main(argv: Sequence[str] | None = None) -> int:
    """Prints the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--format", choices=["text", "markdown"], default="text")
    as_markdown = parser.parse_args(argv).format == "markdown"
    print(_markdown(rows()) if as_markdown else _text_table(rows()))
    return 0


def _markdown(found: Sequence[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(line)} |" for line in (HEADINGS, ("---",) * len(HEADINGS), *found))


def _text_table(found: Sequence[Sequence[str]]) -> str:
    lines = [HEADINGS, *found]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join([line[0].ljust(widths[0]), *map(str.rjust, line[1:], widths[1:])]) for line in lines
    )


if __name__ == "__main__":
    sys.exit(main())
