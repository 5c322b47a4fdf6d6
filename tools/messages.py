"""Updates the catalogues under `src/iodock/locale/` with the texts of the code, and compiles them.

`make messages` updates every .po file, compiles it, and lists the texts without a translation; `make setup`
and `make wheel` only compile. A .po file contains no dates and no source lines, so that it changes only when
a text does.
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from io import BytesIO
from pathlib import Path

import message_texts
from babel.messages.catalog import Catalog, Message
from babel.messages.extract import extract_from_file
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po, write_po

from iodock.program.casebook.case import TEXTS as CASE_TEXTS

SOURCE = Path(__file__).parent.parent / "src" / "iodock"
LOCALE = SOURCE / "locale"
KEYWORDS = {"N_": None, "gettext": None, "ngettext": (1, 2)}
LANGUAGES = ("ja",)
_NOISE = re.compile(
    rb'^"(Project|Report|POT-Creation|PO-Revision|Generated|Last-Translator|Language-Team)[\w-]*: .*\n',
    re.MULTILINE,
)
_HEADER = "Texts of iodock: translate `msgstr`, keep the {places}; terms are in docs/explanation/terms.md."


def sources() -> list[tuple[str, Path]]:
    """Returns (language of the source, file) of every file that may contain texts, sorted."""
    scripts = sorted((SOURCE / "shared" / "pages" / "assets" / "js").glob("*.js"))
    cases = sorted((SOURCE / "program" / "casebook" / "cases").glob("*/case.toml"))
    # The programs of cases are not part of iodock.
    own = SOURCE / "program" / "casebook" / "cases"
    code = [path for path in sorted(SOURCE.rglob("*.py")) if own not in path.parents]
    return [
        *(("python", path) for path in code),
        *(("javascript", path) for path in scripts),
        *(("case", path) for path in cases),
        *(("jinja2", path) for path in sorted((SOURCE / "centre" / "portal" / "templates").glob("*.html"))),
    ]


def texts_of(kind: str, path: Path) -> Iterator[str | tuple[str, str]]:
    """Yields the texts that a file marks: a text, or (singular, plural)."""
    if kind == "python":
        yield from python_texts(ast.parse(path.read_text(encoding="utf-8")))
        return
    if kind == "case":
        written = tomllib.loads(path.read_text(encoding="utf-8"))
        yield from (str(written[key]) for key in CASE_TEXTS if key in written)
        return
    for _, text, _, _ in extract_from_file(kind, path, KEYWORDS):
        yield (text[0], text[1]) if isinstance(text, tuple) else text


def python_texts(tree: ast.AST) -> Iterator[str | tuple[str, str]]:
    """Yields the texts in calls of KEYWORDS. Each is a literal or an `A if ... else B` of literals. Babel's
    own reader is not used: it would take the `"name"` of `gettext(WORDS["name"])` as a text, and join A and
    B."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or called(node) not in KEYWORDS or not node.args:
            continue
        if called(node) != "ngettext":
            yield from given(node.args[0])
        elif len(pair := [text for part in node.args[:2] for text in given(part)]) == 2:
            yield pair[0], pair[1]


def given(node: ast.expr) -> list[str]:
    """Returns the literal texts that an expression can evaluate to; empty if it has other parts."""
    if isinstance(node, ast.IfExp):
        return given(node.body) + given(node.orelse)
    return (
        [node.value] if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value else []
    )


def called(node: ast.Call) -> str:
    """Returns the name of the function or method that a call calls."""
    return getattr(node.func, "attr", None) or getattr(node.func, "id", "")


def cures() -> list[str]:
    """Returns the hint for each kind of loss. These texts are in the Rust code."""
    from iodock import _native

    return [cure for _, cure in _native.known_losses()]


def template() -> Catalog:
    """Returns a catalogue with every text of the code, untranslated."""
    catalog = Catalog(project="iodock", charset="utf-8")
    for text in every_text():
        catalog.add(text)
    return catalog


@cache
def every_text() -> tuple[str | tuple[str, str], ...]:
    """Returns the marked texts, the hints for losses, and the unmarked texts. Reading all files takes
    seconds."""
    marked = (text for kind, path in sources() for text in texts_of(kind, path))
    return (*marked, *cures(), *unmarked())


@cache
def unmarked() -> tuple[str, ...]:
    """Returns the texts that are translated when they are shown: helps, meanings, errors, notes."""
    crates = SOURCE.parent.parent / "crates"
    return (
        *message_texts.helps(),
        *message_texts.meanings(),
        *message_texts.messages(SOURCE),
        *message_texts.native(crates),
    )


def po_file(language: str) -> Path:
    return LOCALE / language / "LC_MESSAGES" / "iodock.po"


def read(language: str) -> Catalog:
    """Reads a language's catalogue from its file; empty if there is none."""
    if not po_file(language).exists():
        return Catalog(locale=language, project="iodock", charset="utf-8")
    with po_file(language).open("rb") as file:
        return read_po(file, locale=language, abort_invalid=True)


def updated(language: str, texts: Catalog) -> Catalog:
    """Returns the language's catalogue with the texts of the code. New and changed texts are empty, and texts
    that the code no longer has are removed."""
    catalog = read(language)
    catalog.update(texts, no_fuzzy_matching=True, update_creation_date=False)
    catalog.obsolete.clear()
    catalog.fuzzy = False
    catalog.header_comment = f"# {_HEADER}"
    return catalog


def content(catalog: Catalog) -> bytes:
    """Returns the content of a .po file, sorted by text."""
    written = BytesIO()
    write_po(written, catalog, width=100, no_location=True, sort_output=True)
    return _NOISE.sub(b"", written.getvalue())


def write(language: str, catalog: Catalog) -> None:
    po_file(language).parent.mkdir(parents=True, exist_ok=True)
    po_file(language).write_bytes(content(catalog))


def compile_catalogue(language: str) -> None:
    """Writes the .mo file that the program reads, next to the .po file. Leaves out fuzzy texts."""
    with po_file(language).with_suffix(".mo").open("wb") as file:
        write_mo(file, read(language))


def untranslated(catalog: Catalog) -> list[Message]:
    """Returns the messages without a checked translation."""
    return [message for message in catalog if message.id and (message.fuzzy or not all(forms(message)))]


def forms(message: Message) -> list[str]:
    """Returns the translation's forms: one, or as many as its language has plurals."""
    return [message.string] if isinstance(message.string, str) else list(message.string)


def main(arguments: list[str]) -> None:
    texts = None if "--compile" in arguments else template()
    for language in LANGUAGES:
        if texts is not None:
            write(language, updated(language, texts))
        compile_catalogue(language)
        missing = untranslated(read(language))
        if texts is not None:
            print(f"{po_file(language).relative_to(SOURCE.parent.parent)}: {len(missing)} texts to translate")
            for message in missing:
                print(f"  {'fuzzy' if message.fuzzy else 'new'}: {message.id}")


if __name__ == "__main__":
    main(sys.argv[1:])
