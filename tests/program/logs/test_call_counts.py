"""Tests that outputs that count different sets of calls say which calls they count."""

from __future__ import annotations

import json
import re
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from iodock.program.store import Store
from iodock.program.views.checkup import checkup_of, print_checkup
from iodock.program.views.overview import overview_of
from iodock.program.views.report import report_html, report_of
from recorded import IODOCK, live, record, rows, run

PROGRAMS = {
    "files only": "f = open('a', 'w'); f.write('x'); f.close()",
    "a pipe": "import os\nr, w = os.pipe()\nfor n in range(20): os.write(w, b'x'); os.read(r, 1)",
    "two ends": "import os\nopen('a', 'w').close()\n"
    "for n in range(9): os.rename('a', 'b'); os.rename('b', 'a')",
}


@live
@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.usefixtures("few_rules")
def test_the_report_explains_what_each_number_counts(tmp_path: Path, name: str) -> None:
    done = record(tmp_path, "--", "python3", "-S", "-c", PROGRAMS[name])
    assert done.returncode == 0, done.stderr
    store = tmp_path / "run.iodock"
    every = rows(store, "SELECT count(*) AS n FROM calls_seen")[0]["n"]
    named = rows(store, "SELECT count(*) AS n FROM calls_seen WHERE by_path")[0]["n"]
    shown = run([*IODOCK, "show", "summary", store, "--format", "json"], tmp_path)
    assert json.loads(shown.stdout)["totals"]["total"]["count"] == named
    with Store.open(store) as opened:
        overview = overview_of(opened)
        facts = dict(report_of(opened).facts)
        page = report_html(opened)
        stream = StringIO()
        print_checkup(checkup_of(opened, "run.iodock"), Console(file=stream, width=100))
        checkup = stream.getvalue()
    io, waiting = overview.calls, sum(one.count for one in overview.parts if one.name == "waiting")
    assert [int(one.replace(",", "")) for one in re.findall(r"[0-9][0-9,]*", facts["calls"])] == [
        every, io, named
    ]  # fmt: skip
    assert f"{io:,} I/O calls" in page and every >= io >= named > 0
    assert f"{io:,} I/O calls" in checkup and "Calls on files by time" in checkup
    shown = run([*IODOCK, "show", "summary", store], tmp_path)
    assert shown.stdout.startswith("Calls on files with a path by call\n") and f"{named:,}" in shown.stdout
    every_kind = run([*IODOCK, "show", "summary", store, "--kind", "all", "--format", "json"], tmp_path)
    assert json.loads(every_kind.stdout)["totals"]["total"]["count"] == every
    compared = run([*IODOCK, "diff", store, store], tmp_path)
    (line,) = [
        line for line in compared.stdout.splitlines() if line.startswith("I/O calls, excluding waiting")
    ]
    if name != "two ends":
        assert line.split()[4] == f"{io - waiting:,}"
    if name == "a pipe":
        assert io >= named + 40 and waiting >= 40
