"""Tests `monitor digest`, which parses plain arguments without click. Both parsers must give the same
result."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from iodock.cli.digest_portal import plain
from iodock.cli.monitor_digest import digest
from places import ROOT

NAMES = {
    "job": "job", "portal": "portal", "token_file": "token", "portal_ca": "authority", "form": "form",
    "lang": "lang",
}  # fmt: skip
"""Parameter of the command -> its name in `plain`."""
PLAIN = (
    "4711 --portal http://a:1",
    "--portal http://a:1 4711 --format json",
    "--portal http://a:1 --portal http://b:1 4711@20261121T200000Z --lang ja",
    "--token-file t --portal-ca c.pem --portal https://a:1 4711_3",
    "4711 --json --portal http://a:1",
)
OTHERS = (
    "4711",
    "4711 --portal",
    "4711 4712 --portal http://a:1",
    "--portal http://a:1",
    "4711 --portal http://a:1 -o x.html",
    "4711 --portal http://a:1 --within 3",
    "4711 --portal http://a:1 --run r.iodock",
    "4711 --portal http://a:1 --format pdf",
    "4711 --portal http://a:1 --lang fr",
    "4711 --portal http://a:1 --json --format text",
    "4711 --portal=http://a:1",
    "4711 --portal http://a:1 --store s",
    "-h",
)


def by_click(arguments: list[str]) -> dict[str, Any]:
    values = digest.make_context("digest", arguments).params
    found = {name: values[own] for own, name in NAMES.items() if values[own]}
    return found | ({"json": "json"} if values["as_json"] else {})


@pytest.mark.parametrize("line", PLAIN)
def test_plain_arguments_are_parsed_as_by_click(line: str) -> None:
    assert plain(line.split()) == by_click(line.split())


@pytest.mark.parametrize("line", OTHERS)
def test_other_arguments_are_parsed_by_click(line: str) -> None:
    assert plain(line.split()) is None


def test_a_digest_request_loads_only_required_modules() -> None:
    # The test runs without the module site, which imports what installed packages request.
    start = (
        f"import sys; sys.path.insert(0, {str(ROOT / 'src')!r}); "
        "from iodock.centre.portal.visiting import Portal; Portal.get = lambda *asked: (200, b'told'); "
        "sys.argv = ['iodock', 'monitor', 'digest', '4711', '--portal', 'http://127.0.0.1:9']; "
        "from iodock.cli import main; sys.exit = lambda status: print('', status, *sys.modules); main()"
    )
    done = subprocess.run(
        [sys.executable, "-S", "-c", start], capture_output=True, text=True, check=False, timeout=60
    )
    told, status, *loaded = done.stdout.split()
    assert (told, status) == ("told", "0"), done.stderr
    slow = {"click", "typing", "pathlib", "dataclasses", "inspect", "gettext", "duckdb", "pyarrow"}
    assert "iodock.cli.digest_portal" in loaded and not slow & set(loaded)
