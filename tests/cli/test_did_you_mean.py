"""Tests errors about unknown names, which suggest a similar name."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from recorded import IODOCK, run

LOG = """100 1700000000.000000 openat(AT_FDCWD, "/data/a", O_RDONLY) = 3 <0.000010>
100 1700000000.000100 read(3, ""..., 4096) = 4096 <0.000010>
100 1700000000.000200 close(3) = 0 <0.000010>
"""

MEANT = [
    (["recrod", "x"], "no such command: recrod", "did you mean record", 2),
    (["show", "summry", "STORE"], "no such analysis: summry", "did you mean summary", 2),
    (["show", "summary", "STORE", "--by", "fille"], "no such key: fille", "did you mean file", 2),
    (["show", "summary", "STORE", "--call", "opnat"], "no such call: opnat", "did you mean openat", 2),
    (
        ["show", "summary", "STORE", "--call", "family:opn"],
        "no such family of calls: opn",
        "did you mean open",
        2,
    ),
    (["explain", "smal-requests"], "no topic is called smal-requests", "did you mean small-requests", 2),
    (["query", "STORE", "SELECT cal FROM calls_seen"], 'column "cal" not found', "did you mean call", 1),
    (["query", "STORE", "SELECT * FROM cals_seen"], "cals_seen does not exist", "did you mean calls_seen", 1),
    (
        ["show", "summary", "STORE", "-o", "x.foo"],
        "x.foo: no format has the ending foo",
        "endings: table, csv",
        2,
    ),
    (["report", "STORE", "-o", "x.csv"], "x.csv: a report is one HTML page", "-o NAME.html", 2),
    (
        ["record", "--backend", "ptrac", "--", "true"],
        "no such value of --backend: ptrac",
        "did you mean ptrace",
        2,
    ),
    (["record", "--backend=foo", "--", "true"], "no such value of --backend: foo", "choose one of auto, ", 2),
    (["record", "--page-faults", "nevr", "true"], "of --page-faults: nevr", "did you mean never", 2),
    (["import", "run.log", "--format", "stracee"], "of --format: stracee", "did you mean strace", 2),
    (["show", "summary", "STORE", "--format", "jsn"], "of --format: jsn", "did you mean json", 2),
    (["diff", "STORE", "STORE", "--by", "patern"], "of --by: patern", "did you mean pattern", 2),
    (["diff", "STORE", "STORE", "--per", "fils"], "--per fils: not a unit", "did you mean files", 2),
    (["diff", "STORE"], "there is only one store", "iodock diff BEFORE AFTER", 2),
    (["report", "STORE", "--lang", "jp"], "of --lang: jp", "choose one of en, ja", 2),
    (["show", "summary", "STORE", "--formt", "csv"], "no such option: --formt", "did you mean --format", 2),
    (["show", "files", "STORE", "--by", "pattern"], "no such option: --by", "iodock show summary has it", 2),
    (["show", "STORE"], "no such analysis: ", "it is a store: iodock show summary ", 2),
    (["STORE"], "no such command: ", "it is a store: iodock diagnose ", 2),
    (["diagnose", "run"], "run: no such store", "did you mean run.iodock", 1),
    (["diagnose", "rum.iodock"], "rum.iodock: no such store", "did you mean run.iodock", 1),
    (["diagnose", "x"], "x: no such store", "create one with iodock import LOG or iodock record CMD", 1),
    (["cases", "run", "open-clos"], "no such case: open-clos", "did you mean open-close", 2),
    (["health", "run", "--tests", "metadat", "."], "no such test: metadat", "did you mean metadata", 2),
    (["bench", "show", "run.log", "--from", "ioor"], "no such benchmark: ioor", "did you mean ior", 2),
    (["ratio", "run.log", "--from", "sact"], "no such format: sact", "did you mean sacct", 2),
    (["volume", "STORE"], "volume runs a program, and ", "it is a store: iodock show volume ", 2),
    (["record", "STORE"], "can't be executed", "this is a store: iodock diagnose", 126),
]


@pytest.mark.parametrize("arguments, said, hint, status", MEANT, ids=[" ".join(one[0]) for one in MEANT])
def test_a_misspelt_word_gets_a_suggestion(
    tmp_path: Path, arguments: list[str], said: str, hint: str, status: int
) -> None:
    (tmp_path / "run.log").write_text(LOG)
    assert run([*IODOCK, "import", "run.log", "-q"], tmp_path).returncode == 0
    store = os.fspath(tmp_path / "run.iodock")
    done = run([*IODOCK, *(one.replace("STORE", store) for one in arguments)], tmp_path)
    assert done.returncode == status
    error, advice = done.stderr.splitlines()
    assert error.startswith("error: ") and said in error
    assert advice.startswith("hint: ") and hint in advice
    assert not (tmp_path / "x.foo").exists() and not (tmp_path / "x.csv").exists()


def test_the_known_back_ends_equal_those_of_the_recorder(tmp_path: Path) -> None:
    from iodock.program.recording import BACKENDS, PAGE_FAULTS, RecordRefused, record

    with pytest.raises(RecordRefused) as refused:
        record(["true"], os.fspath(tmp_path / "run.iodock"), backend="foo")
    assert refused.value.hint == f"choose auto or {', '.join(BACKENDS[1:])}"
    with pytest.raises(ValueError) as wrong:
        record(["true"], os.fspath(tmp_path / "run.iodock"), page_faults="foo")
    assert str(wrong.value) == f"page_faults is one of {', '.join(PAGE_FAULTS)}"


def test_words_of_all_tables_are_explained() -> None:
    from iodock.centre.views import top_text
    from iodock.program.reference import explanations
    from iodock.program.views import diff_words
    from iodock.shared import labels

    known = {one.name for one in explanations()}
    sureness = {word for word in diff_words.SURENESS.values() if word}
    assert {*diff_words.TOTALS.values(), *sureness, *diff_words.MATCHED.values()} <= known
    assert set(labels.PARTS.values()) <= known
    assert {*top_text._COLUMNS.values(), *list(top_text._NAMES.values())[:4]} <= known


@pytest.mark.parametrize("heading", ["outside I/O", "I/O 以外", "clear", "read/s", "spread", "before"])
def test_headings_of_other_tables_are_explained(tmp_path: Path, heading: str) -> None:
    done = run([*IODOCK, "explain", heading], tmp_path)
    assert done.returncode == 0, done.stderr
    assert "iodock diff" in done.stdout or "iodock health" in done.stdout or "iodock monitor" in done.stdout


@pytest.mark.parametrize("heading", ["shortest", "最短"])
def test_headings_of_tables_are_explained(tmp_path: Path, heading: str) -> None:
    done = run([*IODOCK, "explain", heading], tmp_path)
    assert done.returncode == 0 and done.stdout.startswith("min_time_ns  (column of ")
