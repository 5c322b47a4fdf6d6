"""Data flows one way: who may import whom, as an executable list."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "iodock"
LEVELS = {
    "errors": -1,
    "bounded": 0,
    "browser": 0,
    "language": 0,
    "answer": 0,
    "headings": 0,
    "findings": 0,
    "_native": 0,
    "settings": 1,
    "capture": 1,
    "following": 1,
    "recording": 1,
    "doctor": 1,
    "simulation": 1,
    "store": 2,
    "monitor": 3,
    "portal": 9,
    "relations": 3,
    "unseen": 3,
    "analyses": 4,
    "ratio": 4,
    "rules": 5,
    "diagnosis": 6,
    "volume": 6,
    "health": 4,
    "probe": 5,
    "casebook": 7,
    "reference": 6,
    "comparison": 7,
    "views": 8,
    "results": 9,
    "bundle": 9,
    "run": 10,
    "cli": 11,
    "__init__": 12,
    "__main__": 12,
}
"""A room may import rooms of a lower level, and itself."""
EXCEPTIONS = {
    ("__init__", "run"): "the package's face",
}
# The programs of the casebook are no modules.
MODULES = sorted(path for path in SOURCE.rglob("*.py") if "cases" not in path.parts)


def room(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_imports_go_down(path: Path) -> None:
    own = room(path)
    for name in imports(path):
        parts = name.split(".")
        if parts[0] != "iodock" or len(parts) < 2 or parts[1] not in LEVELS:
            continue
        assert parts[1] == own or LEVELS[parts[1]] < LEVELS[own], f"{own} imports {name}"


def test_only_the_store_names_the_engine() -> None:
    for path in MODULES:
        if room(path) != "store":
            assert not re.search(r"\b(duckdb|pyspark|spark)\b", path.read_text(), re.IGNORECASE), path


def test_only_the_command_line_prints_and_exits() -> None:
    for path in MODULES:
        if room(path) in ("cli", "__main__"):
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                assert node.func.id not in ("print", "exit", "quit", "input"), path
            if (
                isinstance(node, ast.Attribute)
                and isinstance(node.value, ast.Name)
                and node.value.id == "sys"
            ):
                assert node.attr not in ("argv", "exit", "stdout", "stderr"), path


def test_native_types_are_what_is_there() -> None:
    from iodock import _native

    declared = ast.parse((SOURCE / "_native.pyi").read_text())
    there = {name for name in dir(_native) if not name.startswith("_")}
    classes = {node.name: node for node in declared.body if isinstance(node, ast.ClassDef)}
    shapes = {
        name for name, node in classes.items() if [ast.unparse(base) for base in node.bases] == ["TypedDict"]
    }
    functions = functions_of(declared)
    assert there == set(functions) | (set(classes) - shapes)
    for name, node in functions.items():
        assert parameters(getattr(_native, name)) == declared_parameters(node), name
    for name in set(classes) - shapes:
        for method, node in functions_of(classes[name]).items():
            if method != "__init__":
                assert parameters(getattr(getattr(_native, name), method)) == declared_parameters(node), (
                    method
                )


def functions_of(node: ast.Module | ast.ClassDef) -> dict[str, ast.FunctionDef]:
    return {child.name: child for child in node.body if isinstance(child, ast.FunctionDef)}


def parameters(function: object) -> list[str]:
    signature = getattr(function, "__text_signature__", None) or "()"
    return [name for name in re.findall(r"[(,]\s*(?:\*,\s*)?\$?(\w+)", signature) if name != "self"]


def declared_parameters(node: ast.FunctionDef) -> list[str]:
    return [argument.arg for argument in (*node.args.args, *node.args.kwonlyargs) if argument.arg != "self"]
