"""Formats a file system's card as text: in full for the terminal, and in a few lines for /etc/motd."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from io import StringIO
from typing import TYPE_CHECKING

from iodock.file_system.health.card import Card
from iodock.file_system.health.commands import Stripes
from iodock.file_system.health.quotas import KINDS as OWNERS
from iodock.file_system.health.quotas import Allowance, Grace, Quota
from iodock.shared.language import N_, Language
from iodock.shared.lines import print_sentence
from iodock.shared.sentences import say, value_text
from iodock.shared.settings import FileSystem
from iodock.shared.text import visible
from iodock.shared.units import BYTES, COUNT, share_text

if TYPE_CHECKING:
    from rich.console import Console

FILE_WIDTH = 100
KINDS = {"local": N_("local"), "network": N_("over the network"), "parallel": N_("parallel")}
SECTIONS = {
    "system": N_("File system"),
    "options": N_("Mount options"),
    "caches": N_("Caches and queues"),
    "typical": N_("Typical values of this site"),
    "remarks": N_("Worth knowing"),
}
TYPICAL = {
    "link_bytes_per_s": N_("limit of the link or device"),
    "read_bytes_per_s": N_("reading, one stream of large requests"),
    "write_bytes_per_s": N_("writing, one stream of large requests"),
    "small_read_per_s": N_("reads of 4 KiB per second, one process"),
    "small_write_per_s": N_("4 KiB writes per second, one process"),
    "metadata_per_s": N_("metadata calls per second, one process"),
    "read_knee_bytes": N_("reads below this size are slower, one stream"),
    "write_knee_bytes": N_("writes below this size are slower, one stream"),
    "stat_knee_processes": N_("number of processes beyond which metadata calls become slower"),
    "stripe_count": N_("targets that store a file"),
}
NOT_KNOWN_OPTION = N_("not known to iodock")


def card_text(card: Card, text: Language, on_terminal: bool) -> str:
    """Formats the whole card as text."""
    from rich.console import Console

    shape = Console()
    styled = on_terminal and shape.is_terminal
    into = StringIO()
    console = Console(
        file=into, width=shape.width if styled else FILE_WIDTH, force_terminal=styled, highlight=False
    )
    print_sentence(console, visible(card.folder), "bold")
    _print_pairs(list(facts(card, text)), console)
    for name, pairs in sections(card, text):
        console.print()
        print_sentence(console, text.gettext(SECTIONS[name]), "bold")
        _print_pairs(pairs, console)
    if card.remarks:
        console.print()
        print_sentence(console, text.gettext(SECTIONS["remarks"]), "bold")
        for one in card.remarks:
            print_sentence(console, say(one, text), indent=2)
    return "".join(f"{line.rstrip()}\n" for line in into.getvalue().splitlines())


def sections(card: Card, text: Language) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """Yields the name of each section after the first one, with its pairs of name and description."""
    yield (
        "options",
        [
            (
                _option(one.name, one.value),
                text.gettext(NOT_KNOWN_OPTION if one.meaning is None else one.meaning),
            )
            for one in card.options
        ],
    )
    if card.caches:
        pairs = [(f"{one.name} = {visible(one.value)}", text.gettext(one.meaning)) for one in card.caches]
        yield "caches", pairs
    if card.typical is not None and (pairs := list(typical_pairs(card.typical, text))):
        yield "typical", pairs


def facts(card: Card, text: Language) -> Iterator[tuple[str, str]]:
    """Yields the first section, which describes the type, mount, space and quotas, as pairs of label and
    value."""
    mount = card.mount
    yield text.gettext(N_("mounted at")), visible(mount.point)
    yield text.gettext(N_("type")), f"{visible(mount.fs_type)}, {text.gettext(KINDS[card.kind])}"
    yield text.gettext(N_("device or server")), visible(mount.source)
    if card.servers:
        yield text.gettext(N_("servers")), text.listed(visible(one) for one in card.servers)
    if card.space is None:
        yield text.gettext(N_("space")), text.gettext(N_("the server did not answer in time"))
    else:
        yield from _space(card, text)
    if card.stripes is not None:
        yield text.gettext(N_("stripes")), stripes_words(card.stripes, text)
    yield from _quotas(card, text)


def _quotas(card: Card, text: Language) -> Iterator[tuple[str, str]]:
    name = text.gettext(N_("quota"))
    said = [] if card.quotas is None else [quota_words(one, text) for one in card.quotas.known]
    said += [] if card.quotas is None else [say(one, text) for one in card.quotas.unknown]
    yield from ((name, words) for words in said or [text.gettext(N_("unknown (no quota tool reports one)"))])


def _space(card: Card, text: Language) -> Iterator[tuple[str, str]]:
    space = card.space
    assert space is not None
    free, size = BYTES.text(space.free_bytes), BYTES.text(space.size_bytes)
    yield text.gettext(N_("space")), text.gettext(N_("{free} free of {size}"), free=free, size=size)
    if space.inodes:
        counts = {"free": f"{space.free_inodes:,}", "size": f"{space.inodes:,}"}
        yield text.gettext(N_("inodes")), text.gettext(N_("{free} free of {size}"), **counts)
    yield text.gettext(N_("block size")), BYTES.text(space.block_bytes)
    longest = text.gettext(N_("{count} bytes"), count=f"{space.name_bytes:,}")
    yield text.gettext(N_("longest name")), longest


def stripes_words(stripes: Stripes, text: Language) -> str:
    """Describes stripes, such as `targets: 4, with 1 MiB on each in turn`."""
    size = BYTES.text(stripes.size_bytes)
    if stripes.count == -1:
        return text.gettext(N_("all targets, with {size} on each in turn"), size=size)
    return text.gettext(N_("targets: {count}, with {size} on each in turn"), count=stripes.count, size=size)


def quota_words(quota: Quota, text: Language) -> str:
    """Describes a quota: the used amount and the limit, of bytes and of files."""
    return text.gettext(
        N_("{kind} {owner}: {used} used, {limit}; files: {files}, {files_limit}"),
        kind=text.gettext(OWNERS[quota.kind]),
        owner=visible(quota.owner),
        used=_used(quota.bytes, BYTES.text, text),
        limit=_limit(quota.bytes, BYTES.text, text),
        files=_used(quota.files, COUNT.text, text),
        files_limit=_limit(quota.files, COUNT.text, text),
    )


def _used(of: Allowance, shown: Callable[[float], str], text: Language) -> str:
    if of.used is None:
        return text.gettext(N_("unknown"))
    used = shown(of.used)
    return used if of.is_exact else text.gettext(N_("{used} (uncertain)"), used=used)


def _limit(of: Allowance, shown: Callable[[float], str], text: Language) -> str:
    said = text.gettext(N_("no limit"))
    if of.hard is not None:
        said = text.gettext(N_("limit {limit}"), limit=shown(of.hard))
    if of.soft is not None and of.soft != of.hard:
        soft = text.gettext(N_("soft limit {limit}"), limit=shown(of.soft))
        said = soft if of.hard is None else f"{soft}, {said}"
    graces = {
        Grace.RUNNING: N_("exceeded, within the grace period"),
        Grace.OVER: N_("exceeded beyond the grace period"),
    }
    return said if of.grace is Grace.NONE else f"{said} ({text.gettext(graces[of.grace])})"


def typical_pairs(typical: FileSystem, text: Language) -> Iterator[tuple[str, str]]:
    """Yields a pair (value, description) for each value in the site's settings."""
    for name, words in TYPICAL.items():
        value = getattr(typical, name)
        if value is not None:
            # Names with `_per_s` and without `bytes` are counts. `value_text` would format them as durations.
            said = value_text(name, value) if "bytes" in name else COUNT.text(value)
            yield said, text.gettext(words)


def _option(name: str, value: str | None) -> str:
    return visible(name if value is None else f"{name}={value}")


def _print_pairs(pairs: list[tuple[str, str]], console: Console) -> None:
    from rich.cells import cell_len

    from iodock.shared.lines import wrapped

    width = min(max((cell_len(name) for name, _ in pairs), default=0), console.width // 3)
    for name, words in pairs:
        first, *rest = wrapped(words, max(20, console.width - width - 4))
        gap = " " * (width - cell_len(name) + 2)
        lines = (
            [f"  {name}{gap}{first}"]
            if cell_len(name) <= width
            else [f"  {name}", f"  {'':{width}}  {first}"]
        )
        for line in [*lines, *(f"  {'':{width}}  {one}" for one in rest)]:
            console.print(line, markup=False, highlight=False, emoji=False, soft_wrap=True)


def card_motd(card: Card, text: Language) -> str:
    """Returns the text that users see at login. It has a line about the type and space, a line for each
    typical value of the site, and a line for each warning."""
    mount, space = card.mount, card.space
    parts = [f"{visible(mount.fs_type)}, {text.gettext(KINDS[card.kind])}"]
    if space is not None and space.size_bytes:
        share = share_text(space.free_bytes / space.size_bytes)
        size = BYTES.text(space.size_bytes)
        parts.append(text.gettext(N_("{size}, {share} free"), size=size, share=share))
    if card.stripes is not None:
        parts.append(stripes_words(card.stripes, text))
    lines = [f"{visible(mount.point)}: {'; '.join(parts)}"]
    if card.typical is not None:
        lines += [f"  {value}: {words}" for value, words in typical_pairs(card.typical, text)]
    lines += [f"  {say(one, text)}" for one in card.remarks]
    return "".join(f"{line}\n" for line in lines)
