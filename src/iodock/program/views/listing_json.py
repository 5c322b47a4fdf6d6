"""Formats explanations and cases as JSON, as docs/reference/json.md describes."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from iodock.program.casebook.case import TEXTS, Case
from iodock.shared.language import Language

if TYPE_CHECKING:
    from iodock.program.reference import Explanation


def explanations_json(explanations: Iterable[Explanation]) -> str:
    """Formats explanations as a JSON document that ends with a line break."""
    return _document("explanations", [asdict(one) for one in explanations])


def cases_json(cases: Iterable[Case], text: Language) -> str:
    """Formats cases as a JSON document that ends with a line break. Sentences are in the language of TEXT."""
    return _document("cases", [_case(case, text) for case in cases])


def _case(case: Case, text: Language) -> dict[str, Any]:
    prose = {name: text.gettext(getattr(case, name)) for name in TEXTS}
    return {"name": case.name, "rules": list(case.rules), **prose, "has_programs": case.before is not None}


def _document(name: str, rows: list[dict[str, Any]]) -> str:
    return json.dumps({"schema": f"iodock-{name}-1", name: rows}, ensure_ascii=False, indent=2) + "\n"
