"""Collects all names that have a documented meaning from their declarations, for `iodock explain` and for the
generated reference."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import itertools
import textwrap
from dataclasses import dataclass
from typing import Any

from iodock import _native
from iodock.program import analyses, rules
from iodock.program.ratio.record import CURES
from iodock.program.relations.derived import DERIVED
from iodock.program.relations.keys import KEYS
from iodock.program.rules.base import Need, Rule
from iodock.program.store import TABLES, VIEWS
from iodock.shared.headings import GROUPS

_CLASSES = {
    "data": "transfers bytes: read, write, send, recv, sendfile and similar calls",
    "metadata": "about files rather than their contents: open, close, stat, rename, mkdir, readdir, ...",
    "seek": "changes a file position: lseek",
    "sync": "waits until data is on its device: fsync, fdatasync, sync, ...",
    "map": "maps memory: mmap, munmap, mprotect, ...; reads and writes through a mapping are not calls",
    "other": "all other calls: processes, signals, waiting, memory, ...",
}


@dataclass(frozen=True, slots=True)
class Explanation:
    """Holds one name and its meaning."""

    name: str
    group: str
    """Heading under which it is listed."""
    what: str
    """What the name stands for, such as `column of summary, ns`."""
    text: str


def explanations() -> list[Explanation]:
    """Returns all names with their meaning, in the order of their groups."""
    return [
        *_rules(),
        *_columns(),
        *_keys(),
        *_stored(),
        *_seen(),
        *_derived(),
        *_calls(),
        *_losses(),
        *_words(),
    ]


def rule_page(rule: Rule) -> list[tuple[str, str]]:
    """Returns the manual page of a rule in English, as pairs of a heading and its text."""
    advice = [(one.heading, one.message.text) for one in rule.advice]
    return [
        ("What it looks for", rule.looks_for),
        ("Why it hurts", rule.why),
        ("What to do", "\n".join(f"{language}: {text}" if language else text for language, text in advice)),
        ("When it is fine", rule.fine_when),
        (
            "Conditions under which it is not reported",
            "\n".join(need.value for need in dict.fromkeys(_needs(rule))),
        ),
        ("Settings", "\n".join(f"{one.name} = {one.default}: {one.doc}" for one in thresholds(rule))),
    ]


def _needs(rule: Rule) -> tuple[Need, ...]:
    """Returns the data that a rule needs from calls and from counters."""
    return (*rule.needs, *((Need.EVENTS,) if rule.counters is None else rule.counters_need))


@dataclass(frozen=True, slots=True)
class Threshold:
    """Describes one setting of a rule."""

    name: str
    default: object
    doc: str


def thresholds(rule: Rule) -> list[Threshold]:
    """Returns a rule's settings. The meaning of each is the text below its field in the source."""
    docs = _field_docs(rule.settings)
    fields = dataclasses.fields(rule.settings)
    return [Threshold(one.name, one.default, docs.get(one.name, "")) for one in fields]


def _field_docs(kind: type[Any]) -> dict[str, str]:
    """Returns the text below each field of a class. Python does not keep these texts, so they are read from
    the source."""
    (body,) = ast.parse(textwrap.dedent(inspect.getsource(kind))).body
    assert isinstance(body, ast.ClassDef)
    docs: dict[str, str] = {}
    for before, after in itertools.pairwise(body.body):
        if not (isinstance(before, ast.AnnAssign) and isinstance(before.target, ast.Name)):
            continue
        if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
            docs[before.target.id] = " ".join(str(after.value.value).split())
    return docs


def _rules() -> list[Explanation]:
    found = []
    for rule in rules.every():
        lines = [rule.title]
        for heading, text in rule_page(rule):
            if text:
                lines += ["", f"  {heading}", *(f"    {line}" for line in text.split("\n"))]
        found.append(Explanation(rule.name, "rules", "rule", "\n".join(lines)))
    return found


def _words() -> list[Explanation]:
    return [
        Explanation(word, group, what, text)
        for group, (words, what) in GROUPS.items()
        for word, text in words.items()
    ]


def _derived() -> list[Explanation]:
    return [
        Explanation(name, "derived columns", f"column of the derived table {table}", doc)
        for table, derived in DERIVED.items()
        for name, doc in derived.columns.items()
    ]


def _columns() -> list[Explanation]:
    seen: dict[tuple[str, str, str | None], list[str]] = {}
    for analysis in analyses.every():
        for column in analysis.columns:
            seen.setdefault((column.name, column.doc, column.unit), []).append(analysis.name)
    return [
        Explanation(
            name,
            "columns",
            f"column of {', '.join(where)}, in {unit}" if unit else f"column of {', '.join(where)}",
            doc,
        )
        for (name, doc, unit), where in seen.items()
    ]


def _keys() -> list[Explanation]:
    return [Explanation(key.name, "keys", "key, for --by", key.doc) for key in KEYS.values()]


def _stored() -> list[Explanation]:
    return [
        Explanation(
            column.name, "stored columns", f"stored column of {table.name}, {column.type}", column.doc
        )
        for table in TABLES
        for column in table.columns
    ]


def _seen() -> list[Explanation]:
    return [
        Explanation(column.name, "columns of views", f"column of the view {view.name}", column.doc)
        for view in VIEWS
        for column in view.columns
    ]


def _calls() -> list[Explanation]:
    entries = [
        Explanation(name, "classes of calls", "class of calls", text) for name, text in _CLASSES.items()
    ]
    families: dict[str, list[str]] = {}
    for name, family, kind in _native.known_calls():
        if not name:
            continue
        families.setdefault(family, []).append(name)
        note = f"belongs to family {family} and class {kind}: {_CLASSES[kind]}"
        reason = f"manual: man 2 {name}"
        entries.append(Explanation(name, "calls", "system call", f"{note}\n  {reason}"))
    for family, names in families.items():
        if len(names) > 1:
            entries.append(Explanation(family, "families of calls", "family of calls", ", ".join(names)))
    return entries


def _losses() -> list[Explanation]:
    known = [*_native.known_losses(), *CURES.items()]
    return [Explanation(name, "losses", "loss", cure) for name, cure in known]
