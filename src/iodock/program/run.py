"""Opens a store for Python programs. Its methods return tables, charts and findings."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

import pyarrow as pa

from iodock.program import analyses
from iodock.program.analyses.base import request
from iodock.program.analyses.machine import with_servers
from iodock.program.diagnosis import diagnose
from iodock.program.findings import Diagnosis
from iodock.program.relations.profile import Profile, tables_in
from iodock.program.results import Findings, Page, Result
from iodock.program.store import Store
from iodock.program.views.counters import counters_html
from iodock.program.views.report import report_html
from iodock.program.views.report.target import check_target, write_page
from iodock.shared.answer import Loss
from iodock.shared.errors import RequestError
from iodock.shared.language import LANGUAGES, Language, language_in
from iodock.shared.locales import chosen
from iodock.shared.meanwhile import Servers
from iodock.shared.settings import Settings, load

servers_of: Callable[[Store, Settings], Servers | None] = lambda store, site: None  # noqa: E731
"""Returns the source of the file servers' state during the run. The package's `open` sets it."""


class Run:
    """An opened store. Use it as a context manager, or leave closing to the garbage collector."""

    def __init__(self, store: Store) -> None:
        self.store = store

    def show(self, analysis: str = "summary", **arguments: Any) -> Result:
        """Runs an analysis. ARGUMENTS are its options and the filters, named as on the command line with
        underscores: `by=["file", "call"]`, `top=10`, `file="/scratch/**"`, `kind="all"`, `failed=True`,
        `since=1.5`. Raises RequestError for unknown arguments, StoreError and QueryError."""
        if not isinstance(analysis, str):
            raise RequestError(f"no such analysis: {analysis!r}", f"analyses: {', '.join(self.analyses())}")
        found = analyses.find(analysis)
        answer = found.run(self.store, request(found, arguments))
        servers = servers_of(self.store, load()) if analysis == "machine" else None
        return Result(with_servers(answer, servers, _language(None)) if servers else answer)

    def diagnose(self, settings: Settings | None = None) -> Diagnosis:
        """Returns the diagnosis as data: problems, their cost and the changes to make. SETTINGS: the site's,
        from `iodock.load_settings`. If they name a monitor's store, it is queried for the state of the file
        servers during the run, for half a second at most. Raises RequestError, StoreError and QueryError."""
        return self._diagnosed(settings)[0]

    def _diagnosed(self, settings: Settings | None) -> tuple[Diagnosis, Servers | None]:
        site = load() if settings is None else settings
        servers = servers_of(self.store, site) if isinstance(site, Settings) else None
        return diagnose(self.store, site, servers), servers

    def findings(self, language: str | None = None, settings: Settings | None = None) -> Findings:
        """Returns the findings of `iodock diagnose`, which appear as a table in a notebook and as text in a
        terminal. LANGUAGE: `en` or `ja`; default: that of the locale. The rest is as in `diagnose`."""
        text = _language(language)
        return Findings(self.diagnose(settings), text)

    def report(
        self,
        path: str | os.PathLike[str] | None = None,
        language: str | None = None,
        settings: Settings | None = None,
        source: bool = False,
    ) -> Page:
        """Writes the whole check-up as one HTML page, as `iodock report` does. Returns its path, which shows
        the page in a notebook. PATH: default NAME.html in the current folder; an earlier report there is
        replaced, any other file is not. SOURCE: include the lines of source around those that findings name.
        Raises RequestError, IodockError, StoreError and QueryError."""
        target = Path(path or f"{self.store.name.removesuffix('.iodock')}.html")
        text = _language(language)
        check_target(target)
        found, servers = self._diagnosed(settings)
        if self.store.manifest.profiles_only:
            write_page(counters_html(self.store, text.code, found), target)
        else:
            write_page(report_html(self.store, text.code, found, servers, source), target)
        return Page(target)

    def query(self, sql: str, unsafe: bool = False) -> pa.Table:
        """Runs SQL on the store's tables (docs/explanation/store.md), its views (docs/reference/views.md) and
        the derived tables (docs/reference/derived.md). The query can read the store and nothing else; UNSAFE:
        it can do everything that this process may do. Returns a plain Arrow table, whose `to_pandas` needs
        pandas. Data that the store lacks is in `losses`, and in the table's metadata under `iodock`. Raises
        QueryError."""
        store = self.store.unsafe if unsafe else self.store
        Profile(store).need(tables_in(sql))
        table = store.engine.user_query(sql)
        lost = [dataclasses.asdict(loss) for loss in self.losses]
        said = json.dumps({"losses": lost}, ensure_ascii=False)
        return table.replace_schema_metadata({**(table.schema.metadata or {}), "iodock": said})

    @property
    def losses(self) -> tuple[Loss, ...]:
        """Data that could not be recorded, read or known, with what to do about it."""
        return self.store.manifest.losses

    def analyses(self) -> tuple[str, ...]:
        """Names of analyses that `show` accepts."""
        return analyses.listed()

    @property
    def manifest(self) -> Mapping[str, Any]:
        """The store's description of itself, from manifest.json."""
        return self.store.manifest.raw

    def close(self) -> None:
        """Frees the engine's memory."""
        self.store.close()

    def __enter__(self) -> Run:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<iodock run {self.store.path}>"


def _language(code: str | None) -> Language:
    wanted = chosen(code)
    if wanted not in LANGUAGES:
        raise RequestError(f"{wanted} has no texts", f"languages: {', '.join(LANGUAGES)}")
    return language_in(wanted)


def open(path: str | os.PathLike[str]) -> Run:
    """Opens a store (NAME.iodock). If its recorder crashed, the store is completed first. If its recording is
    in progress, the data that was flushed so far is read. Raises StoreError."""
    return Run(Store.open(path))
