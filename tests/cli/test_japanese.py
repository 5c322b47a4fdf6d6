"""Tests the output under a Japanese locale: Japanese, without English sentences, wrapped between words."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from in_process import iodock
from iodock.cli import application, spoken
from iodock.shared.lines import wrapped
from iodock.shared.text import cells
from places import ROOT

JAPANESE = re.compile(r"[ぁ-んァ-ヺ一-鿿]")
SENTENCE = re.compile(r"\b[A-Za-z]+(?: [a-z]{2,}){3,}\b")
"""Four English words in a row, the last three in lower case."""
CODE = re.compile(r"^ *(iodock|mpirun|sudo|sacct|/usr/bin/time|\$|SELECT)\b|`[^`]*`")
JA = {"LC_ALL": "ja_JP.UTF-8", "COLUMNS": "80"}
RATIO = ROOT / "fixtures" / "ratio"


@pytest.fixture(autouse=True)
def nothing_asked() -> Iterator[None]:
    """Resets the language, so that --lang of one test does not affect the next."""
    yield
    spoken.ask(None)


def english(text: str) -> list[str]:
    """Returns the lines of a text that contain an English sentence."""
    lines = (CODE.sub("", line) for line in text.splitlines() if not CODE.match(line))
    return [line for line in lines if SENTENCE.search(line)]


def is_japanese(text: str) -> bool:
    return bool(JAPANESE.search(text)) and not english(text) and "Traceback" not in text


def commands(command: click.Command, context: click.Context) -> Iterator[tuple[click.Command, click.Context]]:
    yield command, context
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None
            yield from commands(inner, inner.context_class(inner, info_name=name, parent=context))


def test_every_help_text_is_in_japanese(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in JA.items():
        monkeypatch.setenv(name, value)
    root = application()
    several = 0
    for command, context in commands(root, root.context_class(root, info_name="iodock")):
        # Examples are code for readers to copy, so they are not translated.
        said = command.get_help(context).split("\n  例:\n")[0]
        several += 1
        assert is_japanese(said), (context.command_path, english(said))
        assert "オプション:" in said and "--lang" in said
    assert several > 50


def test_every_command_takes_a_language() -> None:
    assert is_japanese(iodock("doctor", "--lang", "ja", LC_ALL="C").stdout)
    assert is_japanese(iodock("--lang=ja", "doctor", LC_ALL="C").stdout)
    assert is_japanese(iodock("show", "--help", "--lang", "ja", LC_ALL="C").stdout)
    assert not JAPANESE.search(iodock("doctor", "--lang", "en", **JA).stdout)
    wrong = iodock("doctor", "--lang", "xx", LC_ALL="C").stderr
    assert wrong.startswith("error: no such value of --lang: xx")


def test_options_after_a_recorded_program_belong_to_the_program(tmp_path: Path) -> None:
    done = iodock("record", "--backend", "nope", "--", "true", "--lang", "ja", cwd=tmp_path, LC_ALL="C")
    assert done.stderr.startswith("error: no such value of --backend: nope")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["recrod"], "エラー: コマンド recrod はありません\nヒント: もしかして: record\n"),
        (["show", "summary", "nope"], "エラー: nope: ストアがありません\nヒント: iodock import LOG"),
        (["show", "nope", "x"], "エラー: "),
        (["diagnose"], "エラー: 引数 'STORE' がありません\nヒント: iodock diagnose --help"),
        (["show", "summary", "x", "--top", "y"], "エラー: '--top' の値が正しくありません: 'y' は整数"),
        (["ratio", "nope"], "エラー: "),
        (["ratio", "x", "--threshold", "-1"], "エラー: --threshold には 0 より大きい数値"),
        (["health", "compare", "nope", "nope"], "エラー: "),
        (["probe", "run"], "エラー: オプション '-o' / '--output' がありません"),
        (["monitor", "top", "--store", "nope", "--once"], "エラー: "),
        (["bench", "show", "nope"], "エラー: nope: ファイルまたはディレクトリがありません"),
        (["explain", "nonesuch"], "エラー: nonesuch という名前のものはありません"),
        (["record"], "エラー: コマンド、-p PID"),
        (["volume"], "エラー: コマンド、または -p PID"),
    ],
)
def test_errors_and_hints_are_in_japanese(arguments: list[str], said: str, tmp_path: Path) -> None:
    done = iodock(*arguments, cwd=tmp_path, **JA)
    assert done.returncode in (1, 2) and done.stderr.startswith(said), done.stderr
    assert is_japanese(done.stderr), done.stderr


def test_tables_are_in_japanese(mixed_path: Path) -> None:
    for analysis in ("overview", "summary", "files", "errors", "sizes", "processes"):
        done = iodock("show", analysis, mixed_path, **JA)
        title, heading, *_ = done.stdout.splitlines()
        assert JAPANESE.search(title) and JAPANESE.search(heading), done.stdout
        assert not english(done.stdout + done.stderr), done.stdout + done.stderr


def test_output_for_scripts_is_not_translated(mixed_path: Path) -> None:
    csv = iodock("show", "summary", mixed_path, "--format", "csv", **JA)
    assert csv.stdout == iodock("show", "summary", mixed_path, "--format", "csv", LC_ALL="C").stdout
    for asked in (["show", "summary", mixed_path], ["ratio", RATIO / "gnu-verbose.log"], ["doctor"]):
        spoken_, plain = (iodock(*asked, "--format", "json", **env).stdout for env in (JA, {"LC_ALL": "C"}))
        assert json.loads(spoken_) == json.loads(plain) or asked == ["doctor"]
        assert not JAPANESE.search(spoken_)


def test_the_output_of_ratio_is_in_japanese() -> None:
    done = iodock("ratio", RATIO / "gnu-verbose.log", RATIO / "sacct.txt", **JA)
    assert is_japanese(iodock("ratio", RATIO / "gnu-verbose.log", **JA).stdout), done.stderr
    history = iodock("ratio", "--history", RATIO / "sacct.txt", "--min-real", "0", **JA)
    assert is_japanese(history.stdout + history.stderr), history.stderr


def test_the_output_of_explain_is_in_japanese() -> None:
    for name in ("total_time_ns", "openat", "missing-durations", "losses", "columns", "noise"):
        done = iodock("explain", name, **JA)
        assert is_japanese(done.stdout), english(done.stdout)


def test_the_output_of_doctor_is_in_japanese() -> None:
    assert is_japanese(iodock("doctor", **JA).stdout)


def test_the_check_up_of_a_recording_is_in_japanese(mixed_path: Path) -> None:
    done = iodock("diagnose", mixed_path, **JA)
    assert is_japanese(done.stdout + done.stderr), done.stdout


@pytest.mark.parametrize("width", [20, 40, 60, 80])
def test_japanese_lines_are_broken_between_words(width: int) -> None:
    text = (
        "ファイルシステムの読み込みと書き込みを区別していません「詳細は --help を参照」。ヒストグラムでは"
        "メタデータの呼び出しが 1,200 回です。集団型 I/O を使ってください。"
    )
    lines = wrapped(text, width)
    assert "".join(lines).replace(" ", "") == text.replace(" ", "")
    assert all(cells(line) <= width for line in lines)
    katakana = re.compile(r"[ァ-ヺー]$"), re.compile(r"^[ァ-ヺー]")
    for line, following in itertools.pairwise(lines):
        assert not (katakana[0].search(line) and katakana[1].search(following)), (line, following)
        assert following[0] not in "、。」ー"
        assert not line.endswith(("読み", "書き", "呼び"))
