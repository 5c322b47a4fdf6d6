"""Tests the two languages: every text in the code is translated, and translations keep the placeholders."""

from __future__ import annotations

import ast
import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import pytest

import iodock.shared.language
from iodock.program.views.report.page import _assets
from iodock.program.views.report.words import script_words
from iodock.shared.language import LANGUAGES, Language, fill, language_in
from iodock.shared.locales import chosen
from iodock.shared.templates import Templates
from places import ROOT

if TYPE_CHECKING:
    from babel.messages.catalog import Message

MOST_UNTRANSLATED = 106
"""Number of meanings of rule settings. This limit may only be lowered."""
MOST_OUTSIDE = {"centre": 78, "cli": 27, "file_system": 79, "program": 188, "shared": 16}
"""Package -> number of texts of several words that are in no catalogue, including code of queries. These
limits may only be lowered."""
_PLACE = re.compile(r"{(\w+)}")


def _messages() -> ModuleType:
    sys.path.append(str(ROOT / "tools"))
    spec = importlib.util.spec_from_file_location("messages", ROOT / "tools" / "messages.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


tool = _messages()
TRANSLATED = [code for code in LANGUAGES if code != "en"]


def translations(language: str) -> list[Message]:
    """Returns the messages of a catalogue that have a translation."""
    catalog = tool.read(language)
    missing = {message.id for message in tool.untranslated(catalog)}
    return [message for message in catalog if message.id and message.id not in missing]


def english(message: Message) -> str:
    return message.id if isinstance(message.id, str) else message.id[1]


def test_the_tool_writes_a_catalogue_for_every_language() -> None:
    assert list(tool.LANGUAGES) == TRANSLATED


@pytest.mark.parametrize("language", TRANSLATED)
def test_every_text_is_translated(language: str) -> None:
    catalog = tool.read(language)
    missing = {message.id for message in tool.untranslated(catalog)}
    lacking = []
    for kind, path in tool.sources():
        name = path.relative_to(tool.SOURCE).as_posix()
        for text in tool.texts_of(kind, path):
            if catalog.get(text) is None or catalog.get(text).id in missing:
                lacking.append(f"{name}: {text}")
    assert not lacking, "run `make messages`, then translate:\n" + "\n".join(lacking)


@pytest.mark.parametrize("language", TRANSLATED)
def test_every_cure_of_a_loss_is_translated(language: str) -> None:
    text = language_in(language)
    assert not [cure for cure in tool.cures() if text.gettext(cure) == cure]


@pytest.mark.parametrize("language", TRANSLATED)
def test_help_errors_and_notes_are_translated(language: str) -> None:
    missing = {message.id for message in tool.untranslated(tool.read(language))}
    assert len(missing & set(tool.unmarked())) <= MOST_UNTRANSLATED, "run `make messages`, then translate"


def test_few_texts_are_outside_the_catalogue() -> None:
    catalog = tool.read("ja")
    known = {text for one in catalog if one.id for text in ([one.id] if isinstance(one.id, str) else one.id)}
    found = tool.message_texts.outside(tool.SOURCE, known)
    more = {wing: len(texts) for wing, texts in found.items() if len(texts) > MOST_OUTSIDE.get(wing, 0)}
    assert not more, "mark them by N_, or see tools/message_texts.py, which lists them"


def test_templates_of_errors_and_notes_are_found() -> None:
    code = """
raise RequestError(f"{self.path!r}: no such folder", HINT)
HINT = "look at it"
say(f"note: {len(files):,} of {a['count']} are here" if b else "nothing is here")
note = f"{x(y)} {x(z)} is {t:.2f} long"
query = "SELECT a FROM b"
"""
    assert set(tool.message_texts.composed(ast.parse(code))) == {
        "{path}: no such folder",
        "look at it",
        "{files} of {count} are here",
        "nothing is here",
        "{x} {x2} is {t} long",
    }


def test_a_finished_text_finds_its_template() -> None:
    known = Templates(["{path}: no such folder", "{a}: {b}", "{n} of {of} files", "no such folder"])
    assert known.find("a: b: no such folder") == ("{path}: no such folder", {"path": "a: b"})
    assert known.find("3 of 4 files") == ("{n} of {of} files", {"n": "3", "of": "4"})
    # A template that consists of placeholders and punctuation only would match any text, so it must not be
    # used.
    assert known.find("x: y") is None and known.find("no such folder") is None
    assert known.find("3 of files") is None


def test_nested_finished_texts_are_translated() -> None:
    text = language_in("ja")
    assert text.told("run.log: no such folder") == "run.log: ディレクトリがありません"
    assert text.told("not written here") == "not written here"
    assert text.told("a.csv: b: read of the file") == "a.csv: b: read of the file"
    assert language_in("en").told("run.log: no such folder") == "run.log: no such folder"


@pytest.mark.parametrize("language", TRANSLATED)
def test_the_catalogue_is_formatted_as_by_make_messages(language: str, tmp_path: Path) -> None:
    on_disk = tool.po_file(language).read_bytes()
    assert tool.content(tool.updated(language, tool.template())) == on_disk, "run `make messages`"


@pytest.mark.parametrize("language", TRANSLATED)
def test_translations_have_the_placeholders_of_their_text(language: str) -> None:
    wrong = [
        f"{english(message)!r} and {form!r}"
        for message in translations(language)
        for form in tool.forms(message)
        if set(_PLACE.findall(form)) != set(_PLACE.findall(english(message)))
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("language", TRANSLATED)
def test_every_placeholder_is_filled(language: str) -> None:
    for message in translations(language):
        values = dict.fromkeys(_PLACE.findall(english(message)), "x")
        for form in tool.forms(message):
            # Braces that are no placeholders in the English text, as in a line of C, may stay.
            assert fill(form, values).count("{") == fill(english(message), values).count("{"), form


def test_marked_texts_are_complete() -> None:
    """Marked texts must be literals, because the tool does not find texts assembled from pieces or
    f-strings."""
    pieces = (ast.JoinedStr, ast.BinOp, ast.BoolOp)
    for kind, path in tool.sources():
        for node in ast.walk(ast.parse(path.read_text())) if kind == "python" else ():
            if isinstance(node, ast.Call) and tool.called(node) in tool.KEYWORDS and node.args:
                texts = node.args[: 2 if tool.called(node) == "ngettext" else 1]
                assert not [text for text in texts if isinstance(text, pieces)], f"{path}:{node.lineno}"
                assert tool.called(node) != "N_" or isinstance(texts[0], ast.Constant), (
                    f"{path}:{node.lineno}"
                )


def test_only_marked_texts_are_extracted_from_python() -> None:
    code = """
f.gettext("one " "text", no="no"); gettext(WORDS["no"]); N_(x); gettext("x" if a == "no" else "y")
a.b.ngettext("{n} a", "{n} as", len("no")); gettext("")
"""
    assert set(tool.python_texts(ast.parse(code))) == {"one text", "x", "y", ("{n} a", "{n} as")}


def test_the_page_contains_every_text_of_its_script() -> None:
    asked: set[str] = set()
    for kind, path in tool.sources():
        if kind == "javascript":
            asked |= {text if isinstance(text, str) else text[0] for text in tool.texts_of(kind, path)}
    words = script_words(_assets("js"), language_in("en"))
    assert len(asked) > 40
    assert asked == {*words["sentences"], *words["plurals"]}  # type: ignore[misc]


def test_catalogues_contain_no_dates_and_line_numbers() -> None:
    content = tool.content(tool.template()).decode()
    assert "Date:" not in content and "#:" not in content and str(ROOT) not in content
    assert content == tool.content(tool.template()).decode()


def test_the_compiled_catalogue_is_read() -> None:
    text = language_in("ja")
    assert text.code == "ja", "run `make setup`"
    assert text.gettext("Wall time") == "経過時間"
    assert text.ngettext("{n} file", "{n} files", 1) == "1 ファイル"
    assert text.ngettext("{n} file", "{n} files", 1200) == "1,200 ファイル"
    assert text.listed(["a", "b"]) == "a、b"


def test_english_texts_need_no_catalogue() -> None:
    text = language_in("en")
    assert text.gettext("Wall time") == "Wall time"
    assert text.ngettext("{n} file", "{n} files", 1) == "1 file"
    assert text.ngettext("{n} file", "{n} files", 1200) == "1,200 files"
    assert text.listed(["a", "b"]) == "a, b"


@pytest.mark.parametrize("code", LANGUAGES)
def test_the_empty_text_stays_empty(code: str) -> None:
    assert language_in(code).gettext("") == ""


@pytest.fixture
def uncompiled(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Language:
    monkeypatch.setattr(iodock.shared.language, "_catalogue", lambda code: tmp_path / f"{code}.mo")
    return language_in.__wrapped__("ja")


def test_without_a_compiled_catalogue_texts_are_english_with_a_warning(uncompiled: Language) -> None:
    assert (uncompiled.code, uncompiled.gettext("Wall time")) == ("en", "Wall time")


def test_placeholders_in_values_are_not_filled() -> None:
    text = language_in("en")
    assert text.gettext("{call} on {file}", call="{file}", file="a{call}b") == "{file} on a{call}b"
    assert text.gettext("{call} on {file}", call="read") == "read on {file}"
    assert fill("a { b } {", {" b ": 1}) == "a 1 {"


@pytest.mark.parametrize(
    ("environment", "code"),
    [
        ({}, "en"),
        ({"LANG": "ja_JP.UTF-8"}, "ja"),
        ({"LANG": "ja"}, "ja"),
        ({"LANG": "ja_JP@cjk"}, "ja"),
        ({"LANG": "de_DE.UTF-8"}, "en"),
        ({"LANG": "ja_JP.UTF-8", "LC_ALL": "C"}, "en"),
        ({"LANG": "ja_JP.UTF-8", "LC_MESSAGES": "en_US.UTF-8"}, "en"),
        ({"LANG": "C", "LC_MESSAGES": "ja_JP.eucJP", "LC_ALL": ""}, "ja"),
        ({"LANG": "jam_JM"}, "en"),
    ],
)
def test_the_locale_chooses_the_language_unless_the_user_does(environment: dict[str, str], code: str) -> None:
    assert chosen(None, environment) == code
    assert chosen("ja", environment) == "ja" and chosen("en", environment) == "en"


@pytest.mark.parametrize(
    "english",
    [
        "leave --pid out. To see them, record the program",
        "keys: family, class; for others record without --light",
        "see the transferred sizes, without --requested; for more record without --light",
        "a.iodock is named twice among the runs before",
        "the run was over before --since 99, it took 0.481 s",
        "a query may only read the tables of its store: this is a DROP statement",
        "a query may only read the tables of its store: the query may not open other files",
        "none of the 1,234 reads and writes has a known size and a time stamp",
        "run.log: can't open it: No such file or directory",
        "column of summary, errors, in ns",
        "did you mean small-requests or writes",
        "record from outside of the container, or choose --backend rewrite or ptrace",
    ],
)
def test_sentences_that_contain_other_texts_are_translated_completely(english: str) -> None:
    translated = language_in("ja").told(english)
    assert not re.search(r"(?<![\w-])[a-z]{2,} [a-z]{2,} [a-z]{2,}", translated), translated
