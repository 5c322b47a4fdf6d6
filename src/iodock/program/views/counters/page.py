"""Renders a store of counters as one HTML page, which loads nothing and needs no script. It looks like the
report."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from importlib import metadata, resources
from pathlib import PurePosixPath
from typing import Any

from iodock.program.findings import Diagnosis
from iodock.program.store import Store
from iodock.program.views.counters.data import Counters, Row, counters_of
from iodock.program.views.counters.heat import heat_figure
from iodock.program.views.counters.tables import Bar, table
from iodock.program.views.overview import command_line
from iodock.program.views.report.findings import findings_body
from iodock.shared.language import N_, Language, language_in
from iodock.shared.pages.markup import Markup, join, tag
from iodock.shared.pages.sheet import Page, document, joined
from iodock.shared.sentences import say
from iodock.shared.text import shorten, visible
from iodock.shared.units import BYTES, NANOSECONDS, share_text

_SECTIONS = {
    "glance": N_("At a glance"),
    "findings": N_("What to change"),
    "interfaces": N_("Interfaces"),
    "sizes": N_("Sizes"),
    "files": N_("Files"),
    "ranks": N_("Single ranks"),
    "time": N_("Over time"),
    "unseen": N_("Not seen"),
}
_JUDGED = N_(
    "Counters do not show single calls, so some rules can't be checked: no findings does not mean "
    "that the I/O is fine."
)
_INTERFACES_LEAD = N_(
    "The same bytes are counted in each interface that they pass: MPI-IO, HDF5 and PnetCDF are layers "
    "above POSIX. Times are sums over all ranks."
)
_SIZES_LEAD = N_(
    "Number of reads and writes of each size, in the bins of the source. The bars are logarithmic."
)
_FILES_LEAD = N_("The files that took most time, all ranks together.")
_RANKS_LEAD = N_(
    "Files that were counted for all ranks together are not divided among ranks: for each the table "
    "shows its fastest and slowest rank."
)
_OF_RANKS = ("rank", "interface", "count", "total_time_ns", "read_bytes", "written_bytes")
_NO_RANKS = N_("The counters do not show single ranks.")
_NO_HEAT = N_(
    "There is no heatmap, so counters do not show when bytes were transferred. Darshan 3.4.0 and later "
    "write one."
)
_NO_LIGHT_HEAT = N_("A light recording does not show when bytes were moved: record without --light.")
_UNSIZED = N_(
    "The sizes of accesses by {interface} are unknown: it transferred bytes, but the source "
    "does not count their sizes."
)
_NO_LOSS = N_("Nothing is known to be missing from these counters.")


def counters_html(store: Store, language: str, diagnosis: Diagnosis) -> str:
    """Renders the HTML document. Raises ValueError for a language without texts, StoreError and
    QueryError."""
    text = language_in(language)
    shown = counters_of(store)
    name = command_line(store) or store.name
    style = joined("css") + (resources.files(__package__) / "page.css").read_text(encoding="utf-8")
    links = (tag("li", tag("a", text.gettext(word), href=f"#{key}")) for key, word in _SECTIONS.items())
    made = text.gettext(N_("Created by {writer}."), writer=f"iodock {metadata.version('iodock')}")
    page = Page(
        title=join(shorten(text.gettext(N_("I/O counters: {name}"), name=name), 120)),
        header=_header(name, text),
        navigation=join(*links),
        body=join(*_sections(shown, diagnosis, text)),
        footer=tag("p", made),
        style=style,
    )
    return document(page, text)


def _header(name: str, text: Language) -> Markup:
    shown = tag("bdi", shorten(name, 200), class_="command", title=visible(name), translate="no")
    return join(tag("p", text.gettext(N_("I/O counters")), class_="kicker"), tag("h1", shown))


def _sections(shown: Counters, diagnosis: Diagnosis, text: Language) -> tuple[Markup, ...]:
    return (
        _section("glance", text, *_glance(shown, text)),
        _section("findings", text, *_findings(diagnosis, text)),
        _section("interfaces", text, _interfaces(shown, text), lead=_INTERFACES_LEAD),
        _section("sizes", text, *_sizes(shown, text), lead=_SIZES_LEAD),
        _section("files", text, _files(shown, text), lead=_FILES_LEAD),
        _section("ranks", text, *_ranks(shown, text), lead=_RANKS_LEAD),
        _section("time", text, heat_figure(shown.heat, text) if shown.heat else _no_heat(shown.store, text)),
        _section("unseen", text, *_unseen(shown, text)),
    )


def _no_heat(store: Store, text: Language) -> Markup:
    return _empty(_NO_LIGHT_HEAT if store.manifest.is_light else _NO_HEAT, text)


def _section(name: str, text: Language, *children: Markup | None, lead: str = "") -> Markup:
    there = [child for child in children if child is not None]
    said = tag("p", text.gettext(lead), class_="note") if lead and there else None
    nothing = None if there else _empty(N_("Nothing to show."), text)
    heading = tag("h2", text.gettext(_SECTIONS[name]), id=f"{name}-title")
    return tag("section", heading, said, *there, nothing, id=name, aria_labelledby=f"{name}-title")


def _empty(sentence: str, text: Language) -> Markup:
    return tag("p", text.gettext(sentence), class_="empty")


def _glance(shown: Counters, text: Language) -> tuple[Markup | None, ...]:
    facts = [(word, value) for word, value in _facts(shown.store, shown.totals) if value not in (None, "")]
    pairs = [tag("div", tag("dt", text.gettext(word)), tag("dd", str(value))) for word, value in facts]
    return (tag("dl", *pairs, class_="facts"),)


def _findings(diagnosis: Diagnosis, text: Language) -> tuple[Markup, ...]:
    headline = tag("p", say(diagnosis.verdict.text, text), class_="lead")
    return headline, findings_body(diagnosis, text), tag("p", text.gettext(_JUDGED), class_="note")


def _facts(store: Store, totals: Any) -> Sequence[tuple[str, str | None]]:
    manifest = store.manifest
    logs = (manifest.raw.get("captured") or {}).get("logs") or ()
    share = totals.get("mean_rank_share")
    return (
        (N_("Log"), ", ".join(PurePosixPath(str(one)).name for one in logs)),
        (N_("Job"), manifest.source.get("job")),
        (N_("Started"), _moment(manifest.first_ts)),
        (N_("Run time"), None if manifest.wall_ns is None else NANOSECONDS.text(manifest.wall_ns)),
        (N_("Processes"), _number(manifest.raw.get("ranks"))),
        (N_("Files"), _number(totals.get("files"))),
        (N_("Read by POSIX and stdio"), _bytes(totals.get("read_bytes"))),
        (N_("Written by POSIX and stdio"), _bytes(totals.get("written_bytes"))),
        (N_("Mean time of a rank in I/O"), _time(totals.get("mean_rank_time_ns"))),
        (N_("of the run time"), None if share is None else share_text(share)),
    )


def _moment(ns: int | None) -> str | None:
    if ns is None:
        return None
    try:
        return datetime.fromtimestamp(ns / 1e9, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (ValueError, OverflowError, OSError):
        return None  # A damaged time stamp may be outside of the calendar.


def _number(value: int | None) -> str | None:
    return None if value is None else f"{value:,}"


def _bytes(value: int | None) -> str | None:
    return None if value is None else BYTES.text(value)


def _time(value: float | None) -> str | None:
    return None if value is None else NANOSECONDS.text(value)


def _moved(row: Row) -> float:
    return float((row["read_bytes"] or 0) + (row["written_bytes"] or 0))


def _interfaces(shown: Counters, text: Language) -> Markup | None:
    names = ("interface", "count", "read_bytes", "written_bytes", "total_time_ns")
    note = text.gettext(N_("Bars: bytes read and written."))
    return table(
        text.gettext(N_("Volume of each interface")), names, shown.interfaces, text, Bar(_moved), note
    )


def _sizes(shown: Counters, text: Language) -> list[Markup | None]:
    names = ("direction", "lower_bytes", "upper_bytes", "count")
    bar = Bar(lambda row: float(row["count"]), logarithmic=True, kind=lambda row: str(row["direction"]))
    interfaces = dict.fromkeys(row["interface"] for row in shown.sizes)
    return [
        table(
            text.gettext(N_("Sizes of {interface}"), interface=interface),
            names,
            [row for row in shown.sizes if row["interface"] == interface],
            text,
            bar,
        )
        for interface in interfaces
    ]


def _files(shown: Counters, text: Language) -> Markup | None:
    names = ("file", "interface", "ranks", "count", "total_time_ns", "read_bytes", "written_bytes", "fs_type")
    of = text.gettext(N_("{n} of {of}"), n=f"{len(shown.files):,}", of=f"{shown.files_of:,}")
    bar = Bar(lambda row: row["total_time_ns"])
    return table(text.gettext(N_("Files and interfaces by time")), names, shown.files, text, bar, of)


def _ranks(shown: Counters, text: Language) -> tuple[Markup | None, ...]:
    times = ("fastest_rank", "fastest_time_ns", "fastest_bytes", "slowest_rank", "slowest_time_ns")
    names = ("file", "interface", "ranks", *times, "slowest_bytes", "variance_time_s2")
    title = text.gettext(N_("Fastest and slowest rank of shared files"))
    shared = table(title, names, shown.shared, text)
    of = text.gettext(N_("{n} of {of}"), n=f"{len(shown.ranks):,}", of=f"{shown.ranks_of:,}")
    title = text.gettext(N_("Ranks with most and least time in their own files"))
    own = table(title, _OF_RANKS, shown.ranks, text, Bar(lambda row: row["total_time_ns"]), of)
    return (shared, own) if shared or own else (_empty(_NO_RANKS, text),)


def _unseen(shown: Counters, text: Language) -> tuple[Markup | None, ...]:
    items = [
        tag(
            "li",
            tag("span", f"{loss.count:,}", class_="count"),
            " ",
            tag("code", loss.name),
            tag("span", text.gettext(loss.cure), class_="cure"),
        )
        for loss in shown.store.manifest.losses
    ]
    notes = [tag("p", text.gettext(note), class_="note") for note in shown.store.manifest.notes]
    notes += [
        tag("p", text.gettext(_UNSIZED, interface=interface), class_="note") for interface in shown.unsized
    ]
    lost = tag("ul", *items, class_="losses") if items else _empty(_NO_LOSS, text)
    return (lost, *notes)
