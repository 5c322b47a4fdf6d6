"""A store as a Python caller meets it: questions in, tables out, and charts in a notebook."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Mapping
from types import TracebackType
from typing import Any

import pyarrow as pa

from iodock import analyses
from iodock.analyses.base import request
from iodock.answer import Loss
from iodock.diagnosis import diagnose
from iodock.errors import RequestError
from iodock.findings import Diagnosis
from iodock.language import LANGUAGES, chosen, language_in
from iodock.relations.profile import Profile, tables_in
from iodock.results import Findings, Result
from iodock.settings import Settings
from iodock.store import Store


class Run:
    """An opened store. Use it as a context manager, or leave it to the garbage collector."""

    def __init__(self, store: Store) -> None:
        self.store = store

    def show(self, analysis: str = "summary", **arguments: Any) -> Result:
        """Answers an analysis. ARGUMENTS are its options and the filters, named as on the command line with
        underscores: `by=["file", "call"]`, `top=10`, `file="/scratch/**"`, `kind="all"`, `failed=True`,
        `since=1.5`. Raises RequestError for what it does not know, StoreError and QueryError."""
        found = analyses.find(analysis)
        return Result(found.run(self.store, request(found, arguments)))

    def diagnose(self, settings: Settings | None = None) -> Diagnosis:
        """What is wrong, what it costs and what to change, as data. SETTINGS: the site's, from
        `iodock.settings.load`. Raises RequestError, StoreError and QueryError."""
        return diagnose(self.store, settings)

    def findings(self, language: str | None = None, settings: Settings | None = None) -> Findings:
        """What is worth changing, as `iodock diagnose` says it: in a notebook a table, in a terminal text.
        LANGUAGE: `en` or `ja`; default: that of the locale. Else as `diagnose`."""
        code = chosen(language)
        if code not in LANGUAGES:
            raise RequestError(f"no texts in {code}", f"languages: {', '.join(LANGUAGES)}")
        return Findings(self.diagnose(settings), language_in(code))

    def query(self, sql: str, unsafe: bool = False) -> pa.Table:
        """The answer to SQL over the store's tables (docs/explanation/store.md), its views
        (docs/reference/views.md) and the derived tables (docs/reference/derived.md). It may read the store
        and nothing else; UNSAFE: it may do all that this process may. What the store lacks is in `losses`,
        and in the table's metadata under `iodock`. Raises QueryError."""
        store = self.store.unsafe if unsafe else self.store
        Profile(store).need(tables_in(sql))
        table = store.engine.user_query(sql)
        lost = [dataclasses.asdict(loss) for loss in self.losses]
        said = json.dumps({"losses": lost}, ensure_ascii=False)
        return table.replace_schema_metadata({**(table.schema.metadata or {}), "iodock": said})

    @property
    def losses(self) -> tuple[Loss, ...]:
        """What could not be recorded, read or known, with its cure."""
        return self.store.manifest.losses

    def analyses(self) -> tuple[str, ...]:
        """Names for `show`."""
        return analyses.listed()

    @property
    def manifest(self) -> Mapping[str, Any]:
        """What the store says of itself: manifest.json."""
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


def open(path: str | os.PathLike[str]) -> Run:
    """Opens a store (NAME.iodock). One that a crashed recorder left is finished first. Raises StoreError."""
    return Run(Store.open(path))
