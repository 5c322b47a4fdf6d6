"""Tests that data flow in one direction: the allowed imports as an executable list."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from places import SOURCE

WINGS = {
    "shared": (),
    "file_system": ("shared",),
    # iodock shows the results of a site's probes with a run's findings.
    "program": ("shared", "file_system"),
    "centre": ("shared",),
    # The simulation creates files and stores of a simulated centre, for tests and demonstrations.
    "simulation": ("shared", "centre"),
    "cli": ("shared", "file_system", "program", "centre", "simulation"),
    # In Python, information on servers comes from the same place as on the command line
    # (docs/decisions/0038).
    "__init__": ("shared", "program", "cli"),
    "__main__": ("cli",),
}
"""Each package, and the packages that it may import."""
LEVELS = {
    "shared": (
        ("locales", "templates"),
        ("errors", "message", "language", "browser", "headings", "text", "meanwhile", "plugins"),
        ("labels",),
        ("answer",),
        ("bounded", "clock", "units", "engine", "response", "quantile"),
        ("settings", "sentences", "lines"),
        ("tables", "charts", "pages"),
    ),
    "file_system": (("health",), ("probe",), ("views",)),
    "program": (
        ("findings", "capture", "following", "recording", "doctor"),
        ("store",),
        ("relations", "unseen", "meanwhile"),
        ("analyses", "ratio"),
        ("rules",),
        ("diagnosis", "volume", "reference", "jobs"),
        ("comparison", "casebook"),
        ("views", "exports"),
        ("results", "bundle"),
        ("run",),
    ),
    "centre": (("store",), ("prometheus", "monitor"), ("watch",), ("views", "alongside"), ("portal",)),
}
"""Modules of a package, the lowest first: one may import those of lower levels, and its own."""
# The programs of the casebook are not modules.
MODULES = sorted(path for path in SOURCE.rglob("*.py") if "cases" not in path.parts)


def place(path: Path) -> tuple[str, str]:
    """Returns package and module group of a file."""
    parts = path.relative_to(SOURCE).parts
    return parts[0].removesuffix(".py"), parts[1].removesuffix(".py") if len(parts) > 1 else ""


def imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def level(wing: str, room: str) -> int:
    """Returns the level of a module in its package. A package's own `__init__` may import all of its
    modules."""
    return next((n for n, rooms in enumerate(LEVELS.get(wing, ())) if room in rooms), 99)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_modules_import_only_lower_layers(path: Path) -> None:
    wing, room = place(path)
    for name in imports(path):
        parts = [*name.split("."), ""]
        if parts[0] != "iodock" or parts[1] not in WINGS:
            continue
        if parts[1] != wing:
            assert parts[1] in WINGS[wing], f"{wing} imports {name}"
        elif wing in LEVELS and parts[2] != room and level(wing, parts[2]) < 99:
            assert level(wing, parts[2]) < level(wing, room), f"{wing}.{room} imports {name}"


def test_every_package_has_a_layer() -> None:
    for wing, levels in LEVELS.items():
        there = {
            path.stem for path in (SOURCE / wing).iterdir() if path.stem not in ("__init__", "__pycache__")
        }
        assert there == {room for rooms in levels for room in rooms}


ENGINE = ("program/store/", "shared/engine/", "centre/store.py", "centre/prometheus/")
"""Only these name an engine: stores query it, and all others query stores."""


def test_only_the_store_packages_import_the_engine() -> None:
    for path in MODULES:
        if not str(path.relative_to(SOURCE)).startswith(ENGINE):
            assert not re.search(r"\b(duckdb|pyspark|spark)\b", path.read_text(), re.IGNORECASE), path


def test_only_the_command_line_package_prints_and_exits() -> None:
    for path in MODULES:
        if place(path)[0] in ("cli", "__main__"):
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


def test_declared_native_names_equal_the_existing_ones() -> None:
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
