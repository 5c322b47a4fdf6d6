"""Makes the report of a store: collects its content and renders the page."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from iodock.program.diagnosis import diagnose
from iodock.program.findings import Diagnosis
from iodock.program.relations.mapped import mapped_files
from iodock.program.store import Store
from iodock.program.views.overview import command_line, overview_of
from iodock.program.views.report.ask import Names
from iodock.program.views.report.budget import fit
from iodock.program.views.report.cache import brought
from iodock.program.views.report.maps import mapped
from iodock.program.views.report.model import Limits, page_data
from iodock.program.views.report.page import LossNote, Report, render
from iodock.program.views.report.servers import servers_data
from iodock.program.views.report.source import sources_of
from iodock.program.views.report.times import Axis
from iodock.program.views.report.words import CAPTURED, CLOCKS
from iodock.program.views.verdict import Overview
from iodock.shared.language import N_, Language, language_in
from iodock.shared.meanwhile import Servers
from iodock.shared.units import NANOSECONDS

_MAPPED = "mapped-contents"
_MOST_NAMES = 20
_DAY_NS = 86_400_000_000_000
_UNFINISHED = {
    "cut": N_("This store is an interrupted recording; it contains the calls that were saved before."),
}
"""Sentence about each state that a store may be in."""
_OWN_FILE_SYSTEM = N_(
    "The store was on the measured file system, so the recorder's own writes affect these numbers."
)


def report_html(
    store: Store,
    language: str = "en",
    diagnosis: Diagnosis | None = None,
    servers: Servers | None = None,
    source: bool = False,
) -> str:
    """Renders the report as one HTML document, always below 5 MB. DIAGNOSIS is used if it is given, and
    made otherwise. SERVERS is the source of the servers' curves, which are shown below those of the run.
    SOURCE includes the source lines around those that findings name. Raises StoreError or QueryError if
    the store can't be read, ValueError for a language without texts."""
    report = report_of(store, language, diagnosis=diagnosis, servers=servers)
    if source:
        report = replace(report, sources=sources_of(store, language_in(language)))
    return render(report, language)


def report_of(
    store: Store,
    language: str = "en",
    limits: Limits | None = None,
    diagnosis: Diagnosis | None = None,
    servers: Servers | None = None,
) -> Report:
    """Collects the content of the report, with its texts in one language."""
    text = language_in(language)
    overview = overview_of(store)
    data = page_data(store, overview, limits)
    data["servers"] = servers_data(servers, Axis.of(store, 1), text)
    links = _links(data["names"], overview)
    return Report(
        name=store.name,
        command=command_line(store),
        writer=str(store.manifest.raw.get("writer") or "iodock"),
        made=datetime.now().astimezone().strftime("%Y-%m-%d %H:%M"),
        overview=overview,
        facts=_facts(store, data, overview, text),
        losses=_losses(store),
        data=fit(data),
        remarks=_remarks(store),
        diagnosis=diagnosis or diagnose(store),
        links=links,
        maps=mapped(store),
        brought=brought(store),
    )


def _links(names: list[str], overview: Overview) -> list[int | None]:
    numbers = Names()
    for name in names:
        numbers.number(name)
    return [numbers.number(cost.file) if cost.files == 1 else None for cost in overview.costs]


def _remarks(store: Store) -> list[str]:
    state = store.manifest.state
    remarks = [_UNFINISHED[state]] if state in _UNFINISHED else []
    if (store.manifest.raw.get("recorder") or {}).get("on_measured_file_system"):
        remarks.append(_OWN_FILE_SYSTEM)
    return remarks


def _losses(store: Store) -> list[LossNote]:
    notes = []
    for loss in store.manifest.raw.get("losses") or ():
        if loss.get("count"):
            first = loss.get("first") or {}
            place = (first.get("file"), first.get("line"), first.get("sample"))
            names = mapped_files(store, _MOST_NAMES) if loss["name"] == _MAPPED else ()
            name, count, cure = str(loss["name"]), int(loss["count"]), str(loss.get("cure", ""))
            notes.append(LossNote(name, count, cure, *place, names))
    return sorted(notes, key=lambda note: -note.count)


def _facts(store: Store, data: dict[str, Any], overview: Overview, text: Language) -> list[tuple[str, str]]:
    raw = store.manifest.raw
    captured, host, source = raw.get("captured") or {}, raw.get("host") or {}, store.manifest.source
    how = captured.get("how")
    facts: list[tuple[str, object]] = [
        ("command", command_line(store)),
        ("directory", captured.get("working_directory")),
        ("host", host.get("name")),
        ("kernel", host.get("kernel")),
        ("started", _started(store)),
        ("wall", None if overview.wall_ns is None else NANOSECONDS.text(overview.wall_ns)),
        ("clock", text.gettext(CLOCKS[store.manifest.clock])),
        ("captured", None if how is None else text.gettext(CAPTURED.get(how, str(how)))),
        ("logs", "  ".join(map(str, captured.get("logs") or ()))),
        ("lines", _grouped(source.get("lines"))),
        ("exit", _ended(captured, text)),
        ("processes", _tasks(data["processes"], text)),
        ("ranks", _grouped(raw.get("ranks"))),
        ("hosts", _grouped(len(raw.get("hosts") or ())) if len(raw.get("hosts") or ()) > 1 else None),
        ("calls", _calls(source.get("calls"), overview.calls, data["calls"], text)),
        ("files", _grouped(data["files"]["of"])),
        ("losses", _loss_count(store, text)),
    ]
    return [(key, str(value)) for key, value in facts if value not in (None, "")]


def _tasks(listed: dict[str, Any], text: Language) -> str:
    threads = listed["threads"]
    said = [text.ngettext("{n} process", "{n} processes", listed["of"] - threads)]
    if threads:
        said.append(text.ngettext("{n} further thread", "{n} further threads", threads))
    return text.listed(said)


def _calls(every: Any, io: int, listed: dict[str, Any], text: Language) -> str | None:
    """Formats the number of all calls. If the verdict or the tables count only some of them, the text says
    how many."""
    total = listed["total"]
    named = io if total is None else total[listed["columns"].index("count")]
    if not isinstance(every, int) or not every or every == io == named:
        return _grouped(every)
    said = N_("{all}, of which {io} are I/O, and {named} are on files with a path (these are in the tables)")
    return text.gettext(said, all=f"{every:,}", io=f"{io:,}", named=f"{named:,}")


def _grouped(number: Any) -> str | None:
    return f"{number:,}" if isinstance(number, int) and number else None


def _started(store: Store) -> str | None:
    first = store.manifest.first_ts
    if first is None or store.manifest.clock not in ("epoch", "day"):
        return None
    if store.manifest.clock == "day":
        seconds, rest = divmod(first % _DAY_NS, 1_000_000_000)
        return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}.{rest // 1_000_000:03}"
    try:
        return datetime.fromtimestamp(first / 1e9, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (ValueError, OverflowError, OSError):
        return None  # A damaged time stamp may be outside of the calendar.


def _ended(captured: dict[str, Any], text: Language) -> str | None:
    if captured.get("exit_signal"):
        return text.gettext("killed by {signal}", signal=captured["exit_signal"])
    status = captured.get("exit_status")
    return None if status is None else text.gettext("exit status {status}", status=status)


def _loss_count(store: Store, text: Language) -> str:
    kinds = len(store.manifest.losses)
    if not kinds:
        return text.gettext("nothing is known to be missing")
    return text.ngettext("{n} kind of loss, listed below", "{n} kinds of loss, listed below", kinds)
