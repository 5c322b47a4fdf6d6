"""Tests the check-up in the terminal: its content, and that it fits the width."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from rich.cells import cell_len
from rich.console import Console

from iodock.program.findings import Advice, Diagnosis, Finding, Gain, Severity, Verdict
from iodock.program.views.checkup import Checkup, Line, TopList, print_checkup
from iodock.shared.language import LANGUAGES
from iodock.shared.lines import wrapped
from iodock.shared.message import Message
from iodock.shared.text import visible
from report_samples import HOSTILE, SAMPLES, overview


def checkup(names: list[str]) -> Checkup:
    lines = [Line(name, 120_000, 3, 3_200_000_000, 14_300_000_000) for name in names]
    calls = [
        Line("read", 120_000, 0, 3_200_000_000, 14_300_000_000),
        Line("openat", 12_000, 3_000, 900_000_000, None),
    ]
    return Checkup("my run.iodock", overview(names=names), TopList(calls, 7), TopList(lines, 318_169))


def printed(shown: Checkup, width: int = 100, language: str = "en") -> str:
    stream = io.StringIO()
    print_checkup(shown, Console(file=stream, width=width), language)
    return stream.getvalue()


def test_the_check_up_has_verdict_costs_and_next_step() -> None:
    text = printed(checkup(["/data/mesh.h5", "/etc/solver.conf"]))
    lines = text.splitlines()
    assert lines[0] == "37 % of the run was spent in I/O."
    assert "2 of 318,169 files shown" in text
    commands = [line.split("  ")[1] for line in lines if line.startswith("  iodock")]
    assert commands == ["iodock diagnose 'my run.iodock'", "iodock report 'my run.iodock'"]


def finding(rule: str, severity: Severity = Severity.HIGH) -> Finding:
    advice = tuple(Advice(language, Message("Keep it open, " * 8 + "always.")) for language in ("C", "any"))
    return Finding(
        rule=rule, severity=severity, confidence=0.9, cost_seconds=2.0, cost_share=0.2, node_hours=None,
        gain=Gain(1.0, 1.5), title=Message(f"Title of {rule}"), message=Message("What was seen."),
        files=("/data/a.dat", "/data/b.dat"), file_count=7, call=None, evidence={}, query="", advice=advice,
        fine_when=Message("Never."), case=None,
    )  # fmt: skip


def diagnosed(*findings: Finding) -> Checkup:
    worth = [one for one in findings if one.severity is not Severity.NOTE]
    headline = Message("I/O took {io_share} of the run. Things worth changing: {things}.",
                       {"io_share": 0.37, "things": len(worth)})  # fmt: skip
    if not worth:
        headline = Message(
            "I/O took {io_share} of the run and is efficient: nothing worth changing.", {"io_share": 0.94}
        )
    verdict = Verdict(12.0, 4.4, 0.37, 1.4, 0, True, headline)
    step = Message("Next: make the first change, record again, and compare with iodock diff BEFORE AFTER.")
    return replace(
        checkup(["/data/mesh.h5", "/etc/solver.conf"]),
        diagnosis=Diagnosis("run", verdict, findings, (), (), step),
        losses=[("before-load", 39, "a cure"), ("mapped-contents", 13, "a cure")],
    )


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_check_up_fits_one_screen_and_ends_with_findings(language: str) -> None:
    notes = [finding(f"note-{number}", Severity.NOTE) for number in range(2)]
    text = printed(diagnosed(*(finding(f"rule-{number}") for number in range(5)), *notes), 80, language)
    assert len(text.splitlines()) <= 28, text
    assert [f"{number}. Title of rule-{number - 1}" in text for number in (1, 2, 3, 4)] == [True] * 3 + [
        False
    ]
    assert text.count("-> C: Keep it open") == 3 and "What was seen" not in text and "-> Keep" not in text
    if language == "en":
        assert text.startswith("I/O took 37 % of the run. Things worth changing: 5.\n")
        assert "   /data/a.dat and 6 more\n" in text
        assert "\n2 more findings, 2 notes: iodock diagnose 'my run.iodock'\n" in text
        assert "\nnot seen: mapped-contents 13 (iodock explain mapped-contents)\n" in text


def test_efficient_io_is_stated_first_with_numbers() -> None:
    text = printed(diagnosed(), 80)
    lines = text.splitlines()
    assert lines[0] == "I/O took 94 % of the run and is efficient: nothing worth changing."
    assert "dominates" not in text and lines[1].startswith("4.4 s of 12 s in calls on files")
    assert "iodock diagnose" not in text and "  iodock show summary 'my run.iodock'" in text
    assert len(lines) <= 25, text


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("width", [40, 60, 80, 200])
def test_the_check_up_fits_the_terminal_for_any_names(width: int, language: str) -> None:
    lines = printed(checkup(HOSTILE), width, language).splitlines()
    commands = {index for index, line in enumerate(lines) if line.startswith("  iodock")}
    tables_and_words = [
        line for index, line in enumerate(lines) if index not in commands and index - 1 not in commands
    ]
    assert max(cell_len(line) for line in tables_and_words) <= width


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("width", [40, 60, 80])
def test_no_column_of_the_check_up_is_truncated(width: int, language: str) -> None:
    shown = checkup(["/data/mesh.h5"])
    last = "13.3 GiB" if width > 50 else "120,000"
    rows = [line for line in printed(shown, width, language).splitlines() if line.startswith("read ")]
    assert [row.rstrip().endswith(last) for row in rows[-1:]] == [True]


@pytest.mark.parametrize("width", [2, 7, 20, 40, 200])
def test_wrapped_lines_fit_and_lose_no_text(width: int) -> None:
    for text in (*HOSTILE, "最長 3.79 ms、「23 %」 は、 1 つのスレッド:", "", "a  b"):
        text = visible(text)
        lines = wrapped(text, width)
        assert "".join("".join(lines).split()) == "".join(text.split())
        assert max(map(cell_len, lines)) <= width


def test_japanese_lines_break_at_permitted_places() -> None:
    text = "経過時間 12 s のうち 4.4 s の間、少なくとも 1 つのスレッドが実行していました。"
    lines = wrapped(text, 30)
    assert lines == ["経過時間 12 s のうち 4.4 s の", "間、少なくとも 1 つの", "スレッドが実行していました。"]


def test_hostile_names_cannot_write_escape_sequences() -> None:
    assert "\x1b" not in printed(checkup(HOSTILE)) and "\u202e" not in printed(checkup(HOSTILE))


def test_without_durations_the_check_up_counts_calls_and_names_the_remedy() -> None:
    shown = checkup(["/data/a"])
    lines = TopList([replace(line, time_ns=None) for line in shown.calls.lines], 7)
    text = printed(replace(shown, overview=overview(durations=False), calls=lines))
    assert (
        "no call has a duration" in text
        and "re-run strace with -T" in text
        and "Calls on files by number" in text
    )


@pytest.mark.parametrize("name", SAMPLES)
def test_every_kind_of_run_gets_a_verdict(name: str) -> None:
    empty = TopList([], 0)
    assert printed(Checkup("x.iodock", SAMPLES[name]().overview, empty, empty)).strip()
