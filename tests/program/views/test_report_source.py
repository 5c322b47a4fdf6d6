"""Tests `iodock report --source`, which shows the lines around those that findings name, if the file has not
changed since the run."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from in_process import printed
from iodock.program.capture import import_logs

RUN_S = 1_700_000_001
LINES = [f"  put({number}, a < b && c); // \t{number}" for number in range(1, 41)]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "solver.c"
    path.write_text("\n".join(LINES) + "\n")
    os.utime(path, (RUN_S - 60, RUN_S - 60))
    return path


def made(folder: Path, source: object, line: int = 20, dated: bool = True) -> Path:
    """Imports a run of a program that writes small pieces from LINE of SOURCE."""
    stack = (
        " > /usr/lib/libc.so.6(__write+0x14) [0xf78d4]\n"
        f" > /home/u/solver(step+0x20) [0x1176] {source}:{line}\n"
    )
    lines = [f'7 {RUN_S}.000000 openat(AT_FDCWD, "/data/out", O_WRONLY|O_CREAT, 0644) = 4 <0.000010>\n']
    for number in range(4000):
        lines.append(f'7 {RUN_S + 1 + number * 0.001:.6f} write(4, "x"..., 16) = 16 <0.000900>\n')
        lines.append(stack)
    text = "".join(lines)
    if not dated:
        text = re.sub(rf"^7 {RUN_S // 100000}\d+\.", "7 10:00:01.", text, flags=re.MULTILINE)
    (folder / "log").write_text(text)
    return import_logs([str(folder / "log")], folder / "run.iodock").store


def excerpt(page: str) -> list[str]:
    (found,) = re.findall(r'<pre class="source".*?</pre>', page, re.DOTALL)
    return re.sub("<[^>]+>", "", found).splitlines()


def test_the_source_around_a_line_is_shown(tmp_path: Path, source: Path) -> None:
    store = made(tmp_path, source)
    page = printed("report", store, "--source", "-o", "-")
    shown = excerpt(page)
    assert [line.split()[0] for line in shown] == ["17", "18", "19", "20", "21", "22", "23"]
    assert shown[3] == "20    put(20, a &lt; b &amp;&amp; c); //   20"
    assert '<mark><span class="number">20' in page
    assert "put(20" not in printed("report", store, "-o", "-")


@pytest.mark.parametrize("line", [1, 40])
def test_lines_at_the_ends_of_a_file_are_shown(tmp_path: Path, source: Path, line: int) -> None:
    shown = excerpt(printed("report", made(tmp_path, source, line), "--source", "-o", "-"))
    assert [one.split()[0] for one in shown] == [
        str(n) for n in range(max(1, line - 3), min(40, line + 3) + 1)
    ]


def test_a_changed_source_file_is_named(tmp_path: Path, source: Path) -> None:
    store = made(tmp_path, source)
    os.utime(source, (RUN_S + 60, RUN_S + 60))
    page = printed("report", store, "--source", "-o", "-")
    assert f"{source} has changed since the run began" in page
    assert "put(20" not in page
    assert "変更されているため" in printed("report", store, "--source", "--lang", "ja", "-o", "-")


def test_unreadable_source_files_are_named(tmp_path: Path, source: Path) -> None:
    fifo = tmp_path / "fifo.c"
    os.mkfifo(fifo)
    (tmp_path / "binary.c").write_bytes(bytes(range(256)) * 10)
    for number, (name, line, said) in enumerate(
        (
            (fifo, 3, "can&#x27;t be read here"),
            (tmp_path / "none.c", 3, "can&#x27;t be read here"),
            (tmp_path, 3, "can&#x27;t be read here"),
            (source, 41, "has no line 41"),
            (tmp_path / "binary.c", 2000, "has changed since"),
        )
    ):
        (tmp_path / str(number)).mkdir()
        page = printed("report", made(tmp_path / str(number), name, line), "--source", "-o", "-")
        assert said in page, name
        assert '<pre class="source"' not in page


def test_the_source_is_shown_for_a_run_without_a_date(tmp_path: Path, source: Path) -> None:
    page = printed("report", made(tmp_path, source, dated=False), "--source", "-o", "-")
    assert f"Whether {source} has changed since the run is not known" in page
    assert len(excerpt(page)) == 7
