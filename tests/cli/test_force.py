"""Tests that --force replaces only files that iodock wrote. Other files, and targets of links, stay."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

import in_process
from iodock import _native
from iodock.file_system.health.results import FORMAT, Partial, Plan
from iodock.program.bundle import is_bundle
from iodock.program.capture import import_logs
from iodock.shared.errors import IodockError
from recorded import IODOCK, run

LOG = '1 1700000000.1 openat(AT_FDCWD, "/a", O_RDONLY) = 3 <0.1>\n'
STORES = {
    "import": ("import", "run.log", "--force", "-o", "target"),
    "record": ("record", "--quiet", "--force", "-o", "target", "--", "true"),
}


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "run.log").write_text(LOG)
    import_logs([str(tmp_path / "run.log")], tmp_path / "run.iodock")
    return tmp_path


def iodock(place: Path, *words: str) -> subprocess.CompletedProcess[str]:
    cases = {"IODOCK_CASES": str(place / "cases")}
    if words[0] != "record":
        return in_process.iodock(*words, cwd=place, **cases)
    return run([*IODOCK, *words], place, env={**os.environ, **cases})


def content(folder: Path) -> dict[str, bytes]:
    return {str(one.relative_to(folder)): one.read_bytes() for one in folder.rglob("*") if one.is_file()}


def store(place: Path) -> Path:
    import_logs([str(place / "run.log")], place / "target")
    return place / "target"


def store_with_notes(place: Path) -> str:
    (store(place) / "notes.txt").write_text("mine")
    return "notes.txt"


def store_with_a_file_among_the_events(place: Path) -> str:
    (store(place) / "events" / "mine.parquet").write_text("mine")
    return "events/mine.parquet"


def store_with_a_table_among_the_folds(place: Path) -> str:
    (store(place) / "folds").mkdir()
    (place / "target" / "folds" / "mine.parquet").write_text("mine")
    return "folds/mine.parquet"


def store_with_a_text_in_the_journal(place: Path) -> str:
    (store(place) / "journal").mkdir()
    (place / "target" / "journal" / "main.tex").write_text("mine")
    return "journal/main.tex"


def store_with_a_link(place: Path) -> str:
    (place / "others").mkdir()
    (place / "others" / "mine").write_text("mine")
    (store(place) / "journal").symlink_to(place / "others")
    return "journal"


def folder_that_looks_like_a_store(place: Path) -> str:
    (place / "target").mkdir()
    (place / "target" / "manifest.json").write_text('{"schema": 1, "name": "a web application"}')
    return "manifest.json"


def folder(place: Path) -> str:
    (place / "target").mkdir()
    (place / "target" / "thesis.tex").write_text("mine")
    return "thesis.tex"


def link_to_a_folder(place: Path) -> str:
    (place / "others").mkdir()
    (place / "others" / "mine").write_text("mine")
    (place / "target").symlink_to("others")
    return "is a link"


def link_to_a_store(place: Path) -> str:
    store(place).rename(place / "others")
    (place / "target").symlink_to("others")
    return "is a link"


def file(place: Path) -> str:
    (place / "target").write_text("mine")
    return "is a file"


KINDS: list[Callable[[Path], str]] = [
    store_with_notes, store_with_a_file_among_the_events, store_with_a_table_among_the_folds,
    store_with_a_text_in_the_journal, store_with_a_link, folder_that_looks_like_a_store, folder,
    link_to_a_folder, link_to_a_store, file,
]  # fmt: skip


@pytest.mark.parametrize("verb", STORES)
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_force_replaces_only_stores_without_foreign_files(
    verb: str, kind: Callable[[Path], str], place: Path
) -> None:
    named = kind(place)
    before = content(place)
    done = iodock(place, *STORES[verb])
    assert done.returncode != 0 and named in done.stderr and "Traceback" not in done.stderr
    assert content(place) == before


@pytest.mark.parametrize("verb", STORES)
def test_force_replaces_stores_of_iodock(verb: str, place: Path) -> None:
    store(place)
    before = (place / "target" / "manifest.json").read_bytes()
    assert iodock(place, *STORES[verb]).returncode == 0
    assert (place / "target" / "manifest.json").read_bytes() != before
    assert _native.foreign_in_store(place / "target") == []


@pytest.mark.whole
def test_bundle_replaces_only_archives_of_iodock(place: Path) -> None:
    words = ("bundle", "run.iodock", "--force", "-o", "out.tar.gz")
    for mine in (b"", b"mine", b"\x1f\x8bcut", bytes(1000)):
        (place / "out.tar.gz").write_bytes(mine)
        done = iodock(place, *words)
        assert done.returncode == 1 and "out.tar.gz: is not an archive of iodock bundle" in done.stderr
        assert (place / "out.tar.gz").read_bytes() == mine
    (place / "out.tar.gz").unlink()
    assert iodock(place, *words).returncode == 0 and is_bundle(place / "out.tar.gz")
    assert iodock(place, *words).returncode == 0
    (place / "link").symlink_to("out.tar.gz")
    assert iodock(place, *words[:-1], "link").returncode == 1 and (place / "link").is_symlink()


@pytest.mark.usefixtures("few_rules")
def test_report_replaces_only_reports_of_iodock(place: Path) -> None:
    (place / "page.html").write_text("<p>mine")
    done = iodock(place, "report", "run.iodock", "--force", "-o", "page.html")
    assert done.returncode == 1 and "is not an iodock report" in done.stderr
    assert (place / "page.html").read_text() == "<p>mine"
    assert iodock(place, "report", "run.iodock", "-o", "new.html").returncode == 0
    assert iodock(place, "report", "run.iodock", "--force", "-o", "new.html").returncode == 0


@pytest.mark.whole
def test_cases_with_foreign_files_are_not_replaced(place: Path) -> None:
    words = ("cases", "add", "ours", "--before", "run.iodock", "--after", "run.iodock", "--title", "t")
    assert iodock(place, *words).returncode == 0
    assert iodock(place, *words, "--force").returncode == 0
    (place / "cases" / "ours" / "before.iodock" / "notes.txt").write_text("mine")
    done = iodock(place, *words, "--force")
    assert done.returncode == 1 and "notes.txt" in done.stderr
    assert (place / "cases" / "ours" / "before.iodock" / "notes.txt").read_text() == "mine"


def test_check_ups_overwrite_only_their_own_result_file(tmp_path: Path) -> None:
    plan = Plan("/scratch", "S", 3, 1, 1, "now", [])
    path = tmp_path / "kept"
    for mine in ("mine\n", json.dumps({"format": "another"}) + "\n", ""):
        path.write_text(mine)
        with pytest.raises(IodockError, match="is not replaced"):
            Partial(path).begin(plan)
        assert path.read_text() == mine
    path.unlink()
    for _ in range(2):
        partial = Partial(path)
        partial.begin(plan)
        partial.close(remove=False)
    assert json.loads(path.read_text())["format"] == FORMAT
