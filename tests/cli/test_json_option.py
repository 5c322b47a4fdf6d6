"""Tests `--json` on every command that prints results: it equals `--format json`, in the documented forms."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import jsonschema
import pytest

from iodock.cli import application
from iodock.cli.run import run as run_command
from places import ROOT

REFERENCE = ROOT / "docs" / "reference"
PAGE = (REFERENCE / "json.md").read_text()


def verbs(command: click.Command, name: str) -> Iterator[tuple[str, click.Command]]:
    """Yields all commands with their names. Of the analyses, which are alike, it yields only one."""
    yield name, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        inner = ["summary"] if name == "iodock show" else command.list_commands(context)
        for one in inner:
            found = command.get_command(context, one)
            assert found is not None
            yield from verbs(found, f"{name} {one}")


def options(command: click.Command) -> set[str]:
    return {name for one in command.params for name in one.opts}


def gives_json(command: click.Command) -> bool:
    """Returns whether the command's --format accepts json."""
    forms = [one for one in command.params if "--format" in one.opts]
    return any(isinstance(one.type, click.Choice) and "json" in one.type.choices for one in forms)


def documented() -> dict[str, list[str]]:
    """Returns the documented keys of each command, from the page's table."""
    found = {}
    for line in re.findall(r"^\| `iodock.*$", PAGE, re.MULTILINE):
        cells = line.split(" | ")
        for verb in re.findall("`([^`]+)`", cells[0]):
            found[verb] = re.findall("`([^`]+)`", cells[1])
    return found


def test_every_command_with_results_has_a_documented_json_option() -> None:
    every = dict(verbs(application(), "iodock"))
    with_format = {name for name, one in every.items() if gives_json(one)}
    with_json = {name for name, one in every.items() if "--json" in options(one)}
    assert with_format <= with_json and len(with_format) >= 13
    assert {name.replace("iodock show summary", "iodock show") for name in with_json} == set(documented())


def answer(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> Any:
    assert run_command(arguments) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize(
    "arguments",
    [
        ["show", "summary", "STORE"],
        ["show", "errors", "STORE", "--top", "1"],
        ["query", "STORE", "SELECT call, count(*) FROM calls_seen GROUP BY call ORDER BY call"],
        ["ratio", "LOG"],
        ["diagnose", "STORE"],
        ["diff", "STORE", "STORE"],
        ["explain", "openat"],
        ["cases"],
        ["cases", "show", "sync"],
    ],
    ids=lambda arguments: "-".join(arguments[:2]),
)
def test_the_keys_of_json_output_are_documented(
    arguments: list[str], mixed_path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "time.log").write_text("real 10.0\nuser 1.0\nsys 1.0\n")
    places = {"STORE": str(mixed_path), "LOG": str(tmp_path / "time.log")}
    given = [places.get(one, one) for one in arguments]
    found = answer([*given, "--json"], capsys)
    known = documented()
    assert list(found) == known.get(f"iodock {' '.join(given[:2])}", known.get(f"iodock {given[0]}"))
    if given[0] in ("show", "query", "ratio"):
        jsonschema.validate(found, json.loads((REFERENCE / "answer.schema.json").read_text()))
    if given[0] not in ("explain", "cases"):
        assert answer([*given, "--format", "json"], capsys) == found


def test_listed_objects_have_the_documented_keys(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments, rows in ((["explain"], "explanations"), (["cases"], "cases"), (["doctor"], None)):
        if arguments == ["doctor"]:
            run_command(["doctor", "--json"])
            found = json.loads(capsys.readouterr().out)
        else:
            found = answer([*arguments, "--json"], capsys)[rows]
        (line,) = [one for one in PAGE.splitlines() if one.startswith(f"| `iodock {arguments[0]}`")]
        assert list(found[0]) == re.findall("`([^`]+)`", line.rsplit("each: ", 1)[1])


def test_two_output_formats_exclude_each_other(mixed_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in (["show", "files"], ["query"], ["diff", str(mixed_path)]):
        extra = ["SELECT 1"] if arguments == ["query"] else []
        assert run_command([*arguments, str(mixed_path), *extra, "--json", "--format", "csv"]) == 2
        assert "error: --json can't be combined with --format csv" in capsys.readouterr().err
    assert run_command(["diagnose", str(mixed_path), "--json", "--format", "json"]) == 0
