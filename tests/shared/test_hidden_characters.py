"""Tests that one function shows invisible characters in names, and those that change the text direction, as
escapes: in terminals, reports and charts."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import unicodedata
from pathlib import Path

import pytest

from in_process import iodock
from iodock.program.capture import import_logs
from iodock.shared.pages.markup import file_name, join, tag
from iodock.shared.text import visible, visible_lines
from places import SOURCE

IODOCK = [sys.executable, "-m", "iodock"]
DIRECTION = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f\u061c"
UNSEEN = (
    "\u00ad\u034f\u115f\u1160\u17b4\u180b\u180e\u200b\u200c\u200d\u2060\u2061\u2800\u3164\ufe0f\ufeff"
    "\uffa0\U000e0041\U000e0101"
)
HOSTILE = "".join(f"x{letter}" for letter in DIRECTION + UNSEEN)


@pytest.mark.parametrize("letter", [*DIRECTION, *UNSEEN, "\x1b", "\x07", "\n", "\r", "\u2028", "\x85"])
def test_hidden_characters_are_escaped_once(letter: str) -> None:
    shown = visible(f"a{letter}b")
    assert shown.isascii() and shown.startswith("a\\") and shown.endswith("b")
    assert visible(shown) == shown


def test_every_invisible_character_is_escaped() -> None:
    for number in range(sys.maxunicode + 1):
        letter = chr(number)
        kind = unicodedata.category(letter)
        if kind in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"):
            assert visible(letter) != letter, hex(number)


@pytest.mark.parametrize(
    "name", ["file.txt", "日本語\u3000の名前", "naïve", "Ωmega", "e\u0301", "데이터", "🦀"]
)
def test_readable_names_are_unchanged(name: str) -> None:
    assert visible(name) == name


def test_html_contains_no_hidden_character_for_any_input() -> None:
    made = tag("p", HOSTILE, file_name(HOSTILE, 1000), join("a", HOSTILE), title=HOSTILE, data_x=HOSTILE)
    assert not set(DIRECTION + UNSEEN) & set(made)
    assert tag("pre", "one\ntwo\u202e") == "<pre>one\ntwo\\u202e</pre>"
    assert visible_lines("one\ntwo\u202e") == "one\ntwo\\u202e"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Imports a log whose program, arguments, folders and files have names with invisible characters."""
    folder = tmp_path_factory.mktemp("hidden")
    words = f'["{HOSTILE}", "-o", "{HOSTILE}"], 0x7ffd /* 3 vars */'
    lines, at = [f'100 1.0 execve("/bin/{HOSTILE}", {words}) = 0 <0.001>'], 1.1
    for number in range(40):
        name = f"/data/{HOSTILE}/{number}{HOSTILE}"
        lines += [
            f'100 {at:.3f} openat(AT_FDCWD, "{name}", O_RDWR|O_CREAT) = 3 <0.010>',
            f'100 {at + 0.02:.3f} read(3, ""..., 10) = 10 <0.010>',
            f'100 {at + 0.04:.3f} write(3, ""..., 10) = 10 <0.010>',
            f'100 {at + 0.06:.3f} openat(AT_FDCWD, "{name}.gone", O_RDONLY) = -1 ENOENT (gone) <0.010>',
            f"100 {at + 0.08:.3f} close(3) = 0 <0.001>",
        ]
        at += 0.1
    log = folder / "trace.log"
    log.write_text("\n".join(lines) + "\n")
    made = folder / "run.iodock"
    import_logs([str(log)], made)
    return made


def shown(*words: str | Path) -> str:
    done = iodock(*words, COLUMNS="300")
    assert "Traceback" not in done.stderr, done.stderr
    return done.stdout + done.stderr


@pytest.mark.parametrize(
    "words",
    [
        ("show", "summary", "--by", "file"), ("show", "files"), ("show", "processes"), ("show", "errors"),
        ("show", "accesses"), ("diagnose",), ("diagnose", "--lang", "ja"),
    ],
    ids=" ".join,
)  # fmt: skip
def test_terminal_output_contains_no_hidden_characters(store: Path, words: tuple[str, ...]) -> None:
    verb, *rest = words
    said = shown(verb, *(rest[:1] if verb == "show" else []), store, *(rest[1:] if verb == "show" else rest))
    assert not set(DIRECTION + UNSEEN) & set(said)
    assert "\\u202a" in said or verb == "diagnose" or "errors" in words


@pytest.mark.parametrize("form", ["report", "html", "svg"])
def test_reports_and_charts_contain_no_hidden_characters(store: Path, form: str, tmp_path: Path) -> None:
    made = tmp_path / f"made.{'svg' if form == 'svg' else 'html'}"
    if form == "report":
        shown("report", store, "-o", made)
    else:
        shown("show", "summary", store, "--by", "file", "--format", form, "-o", made)
    # Scripts draw text with their own function, which another test compares.
    text = re.sub(r"<script.*?</script>", "", made.read_text(), flags=re.DOTALL)
    assert not set(DIRECTION + UNSEEN) & set(text)
    assert "x\\u202a" in text or form == "html"


@pytest.mark.skipif(shutil.which("node") is None, reason="no node here to run the report's script")
def test_the_script_of_the_report_escapes_alike(tmp_path: Path) -> None:
    letters = [chr(number) for number in range(sys.maxunicode + 1)]
    # The set of assigned characters differs between versions of Unicode.
    letters = [letter for letter in letters if unicodedata.category(letter) not in ("Cn", "Cs")]
    source = (SOURCE / "shared/pages/assets/js/00-dom.js").read_text()
    begin, end = source.index("const UNSAFE_TO_SHOW"), source.index("function shortened")
    (tmp_path / "letters.json").write_text(json.dumps(letters))
    script = (
        f"{source[begin:end]}\nconst fs = require('fs');\n"
        "const letters = JSON.parse(fs.readFileSync('letters.json'));\n"
        "process.stdout.write(JSON.stringify(letters.map(visibleName)));"
    )
    (tmp_path / "script.js").write_text(script)
    done = subprocess.run(
        ["node", "script.js"], cwd=tmp_path, capture_output=True, text=True, check=True, timeout=60
    )
    shown_by_script = json.loads(done.stdout)
    differing = [
        (hex(ord(letter)), one) for letter, one in zip(letters, shown_by_script, strict=True)
        if one != visible(letter)
    ]  # fmt: skip
    # The remaining characters belong to versions of Unicode that are newer than Python's.
    assert [one for one in differing if not one[1].startswith(chr(92))] == []
    assert len(differing) < 40, differing[:10]
