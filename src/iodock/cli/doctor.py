"""Implements `iodock doctor`, which reports what this machine allows and what follows for recordings."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from iodock.cli.options import examples, json_too, quiet
from iodock.cli.spoken import language
from iodock.shared.language import N_
from iodock.shared.lines import wrapped
from iodock.shared.tables.table import terminal_width
from iodock.shared.text import cells

if TYPE_CHECKING:
    from iodock.program.doctor import Finding
    from iodock.shared.language import Language

WORDS = (
    N_("good"),
    N_("limited"),
    N_("blocked"),
    N_("unknown"),
    N_("kernel"),
    N_("space"),
    N_("tools"),
    N_("no ptrace_scope (no Yama)"),
    N_("with CAP_SYS_PTRACE"),
    N_("with CAP_PERFMON"),
    N_("with CAP_BPF and CAP_PERFMON"),
    N_("no CAP_BPF and CAP_PERFMON"),
    N_("with kernel type information"),
    N_("no kernel type information"),
    N_("here {size} GiB free"),
    N_("temporary {size} GiB free"),
)
"""Texts of which findings are composed. They are listed for translation."""


@click.command(epilog=examples(("iodock doctor", "iodock doctor --format json")))
@json_too
@click.option(
    "--format", "form", type=click.Choice(("table", "json")), default="table", help=("output format")
)
@quiet
def command(form: str, quiet: bool) -> int:
    """Report what this machine allows (ptrace, perf, BPF, kernel, file systems) and what follows from it.
    Exit status 1 if programs can't be recorded here."""
    from iodock.program.doctor import examine

    findings = examine()
    if form == "json":
        import json

        json.dump([finding.as_dict() for finding in findings], sys.stdout, indent=1)
        sys.stdout.write("\n")
    else:
        _print(findings, language())
    return 0 if all(finding.state != "blocked" for finding in findings) else 1


def _print(findings: list[Finding], text: Language) -> None:
    topics = [text.told(one.topic) for one in findings]
    marks = [one.mark if text.code == "en" else text.gettext(one.state) for one in findings]
    widths = max(map(cells, marks)), max(map(cells, topics))
    for finding, mark, topic in zip(findings, marks, topics, strict=True):
        found = text.listed(text.told(part) for part in finding.found.split(", "))
        click.echo(f"{_padded(mark, widths[0])}  {_padded(topic, widths[1])}  {found}")
        if finding.follows:
            _print_below(text.told(finding.follows), sum(widths) + 4)


def _print_below(sentence: str, indent: int) -> None:
    width = terminal_width()
    for line in [sentence] if width is None else wrapped(sentence, max(20, width - indent)):
        click.echo(" " * indent + line)


def _padded(text: str, width: int) -> str:
    return text + " " * (width - cells(text))
