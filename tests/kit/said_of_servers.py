"""Returns the sentences of a diagnosis about the servers."""

from __future__ import annotations

from alongside_site import opened
from diagnosing import of_rule, only_rules
from iodock.cli.servers import servers_of
from iodock.program.diagnosis import diagnose
from iodock.program.findings import Diagnosis
from iodock.shared.language import language_in
from iodock.shared.sentences import say
from iodock.shared.settings import Settings


def said(run: str, settings: Settings, language: str = "en") -> tuple[str, str]:
    """Returns the sentences about the call that hung, and those about the whole run."""
    found = diagnosed(run, settings)
    text = language_in(language)
    (hung,) = of_rule(found, "slow-call")
    assert hung.message.values["when"] == "2026-03-02 12:08:20.010048" or "behind" in run
    return " ".join(say(one, text) for one in hung.meanwhile), " ".join(
        say(one, text) for one in found.remarks
    )


def diagnosed(run: str, settings: Settings) -> Diagnosis:
    """Diagnoses slow calls only, with the servers that the settings name."""
    with opened(run) as store, only_rules("slow-call"):
        return diagnose(store, settings, servers_of(store, settings))
