"""Tests verdicts in words: the sentence on every page, and the line in `top`."""

from __future__ import annotations

from dataclasses import replace

import pytest

from iodock.centre.views.verdicts import EVIDENCE, HEADS, health_line, piece, sentence, suspect
from iodock.centre.watch.names import STATES
from iodock.centre.watch.signs import _SHOWN
from iodock.centre.watch.suspects import _TOLD
from iodock.centre.watch.verdict import UNWELL, Evidence, Suspect, Verdict
from iodock.shared.language import language_in

ENGLISH, JAPANESE = language_in("en"), language_in("ja")
NOW = 1_772_438_400_000_000_000
WELL = Verdict("lfs", "mds01", "metadata", "healthy", NOW, NOW, 0.8, 5)
K = Suspect("700", 0.93, 0.9, (), "alice", "shared-dir", 1008)


def test_the_health_line_names_the_worst_state_its_duration_and_the_suspect() -> None:
    stalled = replace(WELL, state="stall", since_ns=NOW - 300 * 10**9, suspects=(K,))
    assert health_line([stalled, WELL], ENGLISH, NOW) == (
        "lfs has stopped responding: mds01, for 5 min · "
        "job 700 (shared-dir) of alice on 1,008 nodes: 93 % of the requests"
    )


@pytest.mark.parametrize(
    ("states", "line"),
    [
        ([], "no servers known"),
        (["healthy"], "1 server, healthy"),
        (["healthy", "healthy"], "2 servers, all healthy"),
        (["busy", "healthy"], "1 server is busy, none is in trouble"),
        (["no-samples", "healthy"], "1 of 2 server sends no samples"),
        (["no-samples", "no-samples"], "2 of 2 servers send no samples"),
    ],
)
def test_the_health_line_does_not_call_silent_servers_healthy(states: list[str], line: str) -> None:
    assert health_line([replace(WELL, state=one) for one in states], ENGLISH, NOW) == line  # type: ignore[arg-type]


def test_every_state_and_observation_is_translated() -> None:
    assert set(HEADS) == set(UNWELL) and set(EVIDENCE) >= {
        name for names in _SHOWN.values() for name in names
    }
    assert set(EVIDENCE) >= set(_TOLD.values())
    for words in (*STATES.values(), *HEADS.values(), *EVIDENCE.values()):
        assert JAPANESE.gettext(words) != words
    for state in UNWELL:
        for kind in ("metadata", "object", "client"):
            verdict = replace(WELL, state=state, kind=kind)  # type: ignore[arg-type]
            told = [sentence(verdict, language) for language in (ENGLISH, JAPANESE)]
            assert "mds01" in told[0] and "mds01" in told[1] and told[0] != told[1]
            assert ("less certain" in told[0]) is (kind == "client")


def test_unknown_values_are_left_out_of_the_health_line() -> None:
    assert piece(Evidence("no-answer", None, None, ""), ENGLISH) == "a probe failed or got no answer"
    assert piece(Evidence("wait", 0.29, None, "s"), ENGLISH) == "wait of a request: 290 ms"
    assert piece(Evidence("array-degraded", None, None, ""), ENGLISH) == "array degraded"
    assert piece(Evidence("own-kind", None, None, ""), ENGLISH) == "own-kind"
    assert suspect(Suspect("7", 0.5, 0.5, ()), ENGLISH) == "job 7: 50 % of the requests"
