"""Tests recorded source lines on cases whose users knew the expensive calls but not the lines that made
them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from in_process import printed, shown
from iodock.program.casebook import find
from marked import built, marks
from recorded import live, needs_gcc, record

pytestmark = [live, needs_gcc]
METADATA = r"""
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

static struct stat known;
static int field(const char *name, int flags) {
    return open(name, flags, 0644); /* HERE open */
}
static void result(const char *name, const char *data) {
    struct statvfs room;
    int old, out;
    stat(name, &known);                   /* HERE stat_before */
    old = field(name, O_RDWR | O_CREAT);
    fstat(old, &known);                   /* HERE fstat_before */
    fstatvfs(old, &room);                 /* HERE fstatfs */
    close(old);                           /* HERE close_before */
    out = open(name, O_WRONLY | O_APPEND); /* HERE open_again */
    fstat(out, &known);                   /* HERE fstat_again */
    write(out, data, 100);
    close(out);                           /* HERE close_again */
    stat(name, &known);                   /* HERE stat_after */
}
int main(int count, char **arguments) {
    static char data[100];
    for (int step = 0; step < 30 * count; step++)
        result(arguments[1], data);
    return 0;
}
"""


def test_each_metadata_call_around_a_write_has_its_line(tmp_path: Path) -> None:
    """A case of JAXA: a solver made nine metadata calls for each write, from an unknown place in its
    source."""
    program = built(tmp_path, METADATA, "-g", "-O2")
    done = record(tmp_path, "--", program, tmp_path / "out")
    assert done.returncode == 0, done.stderr
    rows = shown(tmp_path / "run.iodock", "summary", "--by", "line", "--file", "*/out")["rows"]
    calls = {row["line"]: row["count"] for row in rows}
    lines = marks(METADATA)
    assert len(lines) == 9
    assert {name: calls.pop(f"marked.c:{line}", 0) for name, line in lines.items()} == dict.fromkeys(
        lines, 60
    )
    # The remaining line is that of the write itself.
    assert list(calls.values()) == [60]


@pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")
def test_the_first_place_of_a_seek_storm_is_the_line_with_tellg(tmp_path: Path) -> None:
    """A case of Super-Kamiokande: millions of lseeks, which users traced to `ifstream::tellg` by hand."""
    case = find("ifstream-tellg")
    source = (case.folder / "before.cpp").read_text()
    program = built(tmp_path, source, "-g", "-O2", name="before.cc")
    record_of = (60).to_bytes(4, "little") * 2 + bytes(60)
    (tmp_path / "events.dat").write_bytes(record_of * 30_000)
    done = record(tmp_path, "--", program, tmp_path / "events.dat")
    assert done.returncode == 0, done.stderr
    store = tmp_path / "run.iodock"
    seeks = shown(store, "summary", "--by", "line", "--call", "lseek", "--file", "*/events.dat")["rows"]
    calls = {row["line"]: row["count"] for row in seeks}
    lines = source.splitlines()
    tell, *seek = (
        f"before.cc:{number}"
        for word in ("tellg", "seekg")
        for number, line in enumerate(lines, 1)
        if word in line
    )
    assert calls[tell] >= 30_000 and set(calls) == {tell, *seek}
    found = json.loads(printed("diagnose", store, "--format", "json"))["findings"]
    (storm,) = [one for one in found if one["rule"] == "seek-storm"]
    assert storm["locations"][0]["place"] == tell
    assert {one["place"] for one in storm["locations"]} == set(calls)
