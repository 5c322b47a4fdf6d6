"""Finds the English texts of the code that are not marked by `N_`: helps, meanings of names, errors and
notes.

`Language.told` translates these texts when they are shown, by finding their template again. An f-string gives
a template with a placeholder for each value: `f"{path}: no such folder"` is "{path}: no such folder".
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Container, Iterator
from itertools import chain
from pathlib import Path

import click

_CALLS = re.compile(
    r"(Error|Refused|Missing\w*|BadParameter|ProgressBar|CannotDraw|UnknownChart"
    r"|^Explanation|^_?unknown|^_?say\w*|^meant|^_*Finding|^_refuse\w*)$"
)
"""Calls with texts that users read."""
_NAMES = re.compile(
    r"(^|_)(message|hint|hints|follows|found|note|notes|why(_\w+)?|title|reason|reasons|otherwise|cure|cures|warning|warnings"
    r"|sentence|remark|remarks|problem|problems|elsewhere|advice|missing|doubts?)$",
    re.IGNORECASE,
)
"""Variables, arguments and functions that hold such texts."""
_PREFIX = re.compile(r"^(note|error|warning|hint): ")
_WORD = re.compile(r"[A-Za-z]{2,}")
_CODE = re.compile(r"\b(SELECT|FROM|WHERE|JOIN|UNION|VARCHAR|BIGINT|AND|PARTITION)\b|\bIN \(|^\w\.\w+ [<>=]")


def is_text(text: str) -> bool:
    """Returns whether TEXT is for a person: several words, and no SQL."""
    words = len(_WORD.findall(_PLACES.sub("", text)))
    return " " in text.strip() and words >= (1 if "{" in text else 2) and not _CODE.search(text)


_PLACES = re.compile(r"{\w+}")


def composed(tree: ast.AST) -> Iterator[str]:
    """Yields the templates of the errors, hints and notes of a module."""
    constants = {
        target.id: node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for node in ast.walk(tree):
        for part in _parts(node):
            given = constants.get(part.id, part) if isinstance(part, ast.Name) else part
            yield from filter(is_text, map(_without_prefix, templates(given)))


def _without_prefix(text: str) -> str:
    return _PREFIX.sub("", text)


def _parts(node: ast.AST) -> list[ast.expr]:
    """Returns the expressions in NODE that are messages."""
    if isinstance(node, ast.Call):
        name = getattr(node.func, "attr", None) or getattr(node.func, "id", "")
        owner = node.func.value if isinstance(node.func, ast.Attribute) else None
        owned = getattr(owner, "attr", None) or getattr(owner, "id", "")
        if _CALLS.search(name) or (name in ("append", "add", "extend") and _NAMES.search(owned)):
            return [*node.args, *(one.value for one in node.keywords)]
        named = [one.value for one in node.keywords if one.arg and _NAMES.search(one.arg)]
        return [*named, *(node.args if _NAMES.search(name) else [])]
    if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign | ast.NamedExpr):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        names = [name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)]
        return [node.value] if node.value and any(_NAMES.search(name) for name in names) else []
    if isinstance(node, ast.Dict):
        keyed = zip(node.keys, node.values, strict=True)
        return [to for key, to in keyed if isinstance(key, ast.Constant) and _NAMES.search(str(key.value))]
    if isinstance(node, ast.FunctionDef) and _NAMES.search(node.name):
        inner = ast.walk(node)
        return [
            one.value for one in inner if isinstance(one, ast.Return | ast.Yield) and one.value is not None
        ]
    return []


def templates(node: ast.expr) -> Iterator[str]:
    """Yields the templates of all texts that an expression can evaluate to."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, ast.JoinedStr):
        yield template(node)
    elif isinstance(node, ast.IfExp):
        yield from chain(templates(node.body), templates(node.orelse))
    elif isinstance(node, ast.Tuple | ast.List | ast.BoolOp):
        for one in node.values if isinstance(node, ast.BoolOp) else node.elts:
            yield from templates(one)
    elif isinstance(node, ast.Dict):
        for value in node.values:
            yield from templates(value)
    elif isinstance(node, ast.BinOp):
        yield from chain(templates(node.left), templates(node.right))


def template(node: ast.JoinedStr) -> str:
    """Returns the template of an f-string: `f"{a.b}: {c!r}"` is "{b}: {c}"."""
    made, used = "", dict[str, int]()
    for part in node.values:
        if isinstance(part, ast.Constant):
            made += str(part.value)
        elif isinstance(part, ast.FormattedValue):
            name = _place(part.value)
            used[name] = used.get(name, 0) + 1
            made += f"{{{name}}}" if used[name] == 1 else f"{{{name}{used[name]}}}"
    return made


_OF = ("join", "len", "str", "visible", "quote", "number_text")


def _place(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr.lstrip("_")
    if isinstance(node, ast.Name):
        return node.id.lstrip("_") or "value"
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        name = str(node.slice.value)
        return name if name.isidentifier() else "value"
    if isinstance(node, ast.Call):
        name = getattr(node.func, "attr", None) or getattr(node.func, "id", "value")
        return _place(node.args[0]) if name in _OF and node.args else _place(node.func)
    return "value"


def helps() -> Iterator[str]:
    """Yields the helps of all commands and options, one paragraph each."""
    from iodock.cli import application
    from iodock.cli.registry import VERBS

    yield from (short for _, short in VERBS.values())
    root = application()
    for command in commands(root, click.Context(root, info_name="iodock")):
        yield from paragraphs(command.help or "")
        if command.short_help:
            yield command.short_help
        yield from (one.help for one in command.params if isinstance(one, click.Option) and one.help)


def commands(command: click.Command, context: click.Context) -> Iterator[click.Command]:
    """Yields COMMAND and all its subcommands."""
    yield command
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            if inner is not None:
                yield from commands(inner, click.Context(inner, info_name=name, parent=context))


def paragraphs(text: str) -> Iterator[str]:
    """Yields the paragraphs of a help, in one line each."""
    for paragraph in inspect.cleandoc(text).split("\n\n"):
        if paragraph.strip() and not paragraph.startswith("\b"):
            yield " ".join(paragraph.split())


def meanings() -> Iterator[str]:
    """Yields the texts of `iodock explain`, and the titles and headings of analyses."""
    from iodock.program import analyses, reference, rules
    from iodock.program.reference import explanations, rule_page, thresholds

    for one in explanations():
        if one.group not in ("rules", "calls", "families of calls"):
            yield from (line.strip() for line in one.text.splitlines() if is_text(line))
    yield from dict.fromkeys(one.group for one in explanations())
    yield from dict.fromkeys(one.what for one in explanations() if " column of " not in f" {one.what}")
    for rule in rules.every():
        yield from (heading for heading, _ in rule_page(rule) if heading)
        yield from (one.doc for one in thresholds(rule))
        yield from (need.value for need in rule.needs)
    for analysis in analyses.every():
        yield analysis.title
        yield from (column.heading for column in analysis.columns)
    yield from composed(ast.parse(inspect.getsource(reference)))


def messages(folder: Path) -> Iterator[str]:
    """Yields the templates of the errors, hints and notes below FOLDER."""
    for path in sorted(folder.rglob("*.py")):
        if not {"cases", "simulation"} & set(path.parts):
            tree = ast.parse(path.read_text(encoding="utf-8"))
            yield from chain(composed(tree), named(tree))
            yield from (one for one in _literals(tree) if _is_plain(one) or one in _MORE)


def named(tree: ast.AST) -> Iterator[str]:
    """Yields titles of answers and headings of columns. Some analyses have different ones for a store of
    counters."""
    for node in ast.walk(tree):
        name = called_name(node)
        if name == "answered" and isinstance(node, ast.Call):
            yield from chain.from_iterable(map(templates, node.args[1:2]))
        elif name == "Column" and isinstance(node, ast.Call) and node.args:
            own = [one.value for one in node.keywords if one.arg == "own_heading"] or node.args[6:7]
            for heading in own or node.args[:1]:
                yield from (
                    text if own else heading_of(text) for text in templates(heading) if "{" not in text
                )


def heading_of(name: str) -> str:
    """Returns the heading of a column that has no explicit heading."""
    from iodock.shared.answer import Column

    return Column(name, "str", None, "key", "").heading


def called_name(node: ast.AST) -> str:
    """Returns the name of the function that a call calls; empty for other nodes."""
    called = node.func if isinstance(node, ast.Call) else None
    return str(getattr(called, "attr", None) or getattr(called, "id", ""))


_MORE = frozenset(
    (
        "a number from 0 on",
        "a whole number from 0 on",
        "a number above 0",
        "true or false",
        "a text in quotes",
        "a share from 0 to 1",
        "a date, no duration",
        "a settings file",
        "a file that describes a sweep, a workload or a case",
        "a file of tokens",
        "a token or a password",
        "a list of addresses",
        "a benchmark's result",
        "the results of an interrupted check-up",
        "counters of a storage array",
        "readings of sar",
        "times that can't be read piece by piece",
        "a store's manifest",
        "a monitor store's catalogue",
        "a month of probes of one host",
        "a note of iodock",
        "a server's answer",
        "a command's output",
        "is it the right server?",
        "is this the right file?",
        "give the right file",
        "it says nothing",
        "failed or succeeded",
        "an unknown number of",
        "a line without its time: check [time] of the map",
        "a value before the first time: print date +%s before each snmpwalk",
        "a line that is neither a time nor OID = TYPE: VALUE",
        "{cells} cells under {names} columns",
        "the quota of {kind} {owner}",
        "{text}: is no number",
        "is not finite",
        "is not known",
        "should be a table",
        "[{at}] should be a number",
        "no such folder",
        "IOR stopped before any result: {said}",
        "IOR's output ends before any result",
        "IOR may not sync through {api}",
        "read by another node than wrote it",
        "{at}: a JSON document of fio is damaged or cut, so left out",
        "more than {MOST_DAMAGED} places begin like JSON, but are none",
        "keep fio's JSON apart from other output",
        "terse lines don't say which: {HINT}",
        "measurements without a protocol",
        "run iozone without -N",
        "was not run",
        "none was planned",
        "{names} in turn; {test}, 1 process",
        "{test}, {operation}, 1 process: below at most {share}",
        "counters don't tell {noun}",
        "the lower peak, at {left}, is too high for I/O (jobs that leave cores unused?)",
        "{error}; episodes of servers are not kept: --response DIR names a folder",
        "process {pid} has ended",
        "only some of {TESTS}",
        "the server answers {status}",
        "the server answers {smtp_code}",
        "the server answers {code}",
        "pulling has ended: {error}",
        "a mistake in iodock: {error}",
        "no connection after {CONNECT_S} s",
        "no answer after {ANSWER_S} s",
        "no answer after {span}",
        "still waits after {span}",
        "not here after {PATIENCE_S} s",
    )
)
"""Texts and parts of texts that none of the rules above recognizes."""


_RUST_TEXT = re.compile(r'(b?)"((?:[^"\\]|\\.)*)"')
_RUST_HINT = re.compile(r'(?:\b(?:hint|message)(?::| =) (?:Some\()?(?:format!\()?)(b?)"((?:[^"\\]|\\.)*)"')
_RUST_PLACE = re.compile(r"{(\w*)[^{}]*}")


def native(crates: Path) -> Iterator[str]:
    """Yields templates of the errors of the Rust crates: the texts of every `error.rs` and of the files that
    refuse a recording or an import, and the hints of all files."""
    whole = {
        *crates.glob("*/src/**/error.rs"),
        *(crates / "iodock-formats" / "src" / name for name in ("sniff.rs", "input.rs")),
        *(path for path in crates.glob("iodock-record/src/**/*.rs") if "Refusal::new" in path.read_text()),
    }
    for path in sorted(crates.glob("*/src/**/*.rs")):
        code = path.read_text().split("#[cfg(test)]")[0]
        lines = (line for line in code.splitlines(True) if not line.lstrip().startswith("//"))
        joined = re.sub(r"\\\n\s*", "", "".join(lines))
        found = _RUST_TEXT.findall(joined) if path in whole else _RUST_HINT.findall(joined)
        for prefix, text in found:
            made = _numbered(text.replace('\\"', '"'))
            if not prefix and is_text(made) and not made.startswith("message "):
                yield made


def _numbered(text: str) -> str:
    """Gives a name to each placeholder without a name."""
    count = iter(range(1, 100))
    return _RUST_PLACE.sub(lambda place: f"{{{place[1] or f'value{next(count)}'}}}", text)


def outside(folder: Path, known: Container[str]) -> dict[str, list[str]]:
    """Returns the texts of at least three words that are not KNOWN, by top-level package. Users may still see
    them in English. Commands to type do not count."""
    found: dict[str, list[str]] = {}
    for path in sorted(folder.rglob("*.py")):
        parts = path.relative_to(folder).parts
        if not {"cases", "simulation"} & set(parts):
            texts = _literals(ast.parse(path.read_text(encoding="utf-8")))
            found.setdefault(parts[0], []).extend(
                text for text in texts if text not in known and not text.startswith("iodock ")
            )
    return found


def _literals(tree: ast.AST) -> Iterator[str]:
    """Yields the texts of a module, without docstrings and parts of f-strings."""
    inner = {
        id(part)
        for node in ast.walk(tree)
        for part in (node.values if isinstance(node, ast.JoinedStr) else [getattr(node, "value", None)])
        if isinstance(node, ast.JoinedStr | ast.Expr)
    }
    marked = (node for node in ast.walk(tree) if isinstance(node, ast.Call) and _is_marked(node))
    inner |= {id(part) for node in marked for part in ast.walk(node)}
    for node in ast.walk(tree):
        if id(node) not in inner and isinstance(node, ast.Constant | ast.JoinedStr):
            yield from (_without_prefix(one) for one in templates(node) if _is_sentence(one))


def _is_marked(node: ast.Call) -> bool:
    return (getattr(node.func, "attr", None) or getattr(node.func, "id", "")) in ("N_", "gettext", "ngettext")


def _is_sentence(text: str) -> bool:
    return (
        is_text(text) and len(_WORD.findall(_PLACES.sub("", text))) >= 3 and "_" not in _PLACES.sub("", text)
    )


_PLAIN = re.compile(r"[A-Za-z0-9{}`' ,.;:()<>/+-]+")
_PROSE = re.compile(r" (is|are|was|were|has|have|be|not|no|it|that|which|of|a|the|with|in|to|and|or) ")


def _is_plain(text: str) -> bool:
    """Returns whether TEXT is prose rather than a command, an expression, a form of a log or a query."""
    own = _PLACES.sub("", text)
    return bool(
        _PLAIN.fullmatch(text)
        and _PROSE.search(own)
        and len(_WORD.findall(own)) >= 4
        and not text.startswith(("iodock ", "-", "(", "<", "'"))
        and not re.search(r"[A-Z]{3,} |::|\(\)|/>", own)
    )


def print_outside() -> None:
    """Prints the texts that are not translated, by top-level package: `python tools/message_texts.py`."""
    import messages

    catalog = messages.read("ja")
    known = {text for one in catalog if one.id for text in ((one.id,) if isinstance(one.id, str) else one.id)}
    for wing, texts in outside(messages.SOURCE, known).items():
        print(f"{wing}: {len(texts)}", *(f"  {text!r}" for text in texts), sep="\n")


if __name__ == "__main__":
    print_outside()
