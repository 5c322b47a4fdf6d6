"""What the rules say of a store."""

from __future__ import annotations

from pathlib import Path

from iodock.program.diagnosis import diagnose
from iodock.program.findings import Diagnosis, Finding
from iodock.program.store import Store
from iodock.shared.settings import Settings


def diagnosed(path: Path, settings: Settings | None = None) -> Diagnosis:
    """What the rules say, with our defaults unless told otherwise."""
    with Store.open(path) as store:
        return diagnose(store, settings or Settings())


def of_rule(diagnosis: Diagnosis, rule: str) -> list[Finding]:
    """The findings of one rule."""
    return [one for one in diagnosis.findings if one.rule == rule]


def blamed(diagnosis: Diagnosis) -> list[str]:
    """The rules whose findings are worth a change, the largest first."""
    return [one.rule for one in diagnosis.worth_changing]
