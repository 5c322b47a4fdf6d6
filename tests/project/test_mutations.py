"""Passes a hundred randomly damaged inputs to readers; `make test-mutations` tries thousands."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

import mutated
from mutated_readers import TARGETS, Seen
from mutations import MUTATIONS, Mutated, Mutation

pytestmark = pytest.mark.whole


def test_readers_handle_damaged_inputs() -> None:
    tried = list(mutated.outcomes(seed=7, numbers=range(100)))
    assert sorted(one.number for one in tried) == list(range(100))
    assert [one for one in tried if one.wrong] == []


def test_a_mutation_follows_from_its_seed_and_number() -> None:
    first, again, other = (mutated.case(seed, 5, "bench") for seed in (1, 1, 2))
    assert first == again
    assert first[3].content != other[3].content


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda one: one.__name__)
def test_mutations_accept_any_input(mutation: Mutation) -> None:
    for content in (b"", b"\n", b"12 bytes of it", b"a 1\nb 2\nc 3\n"):
        for seed in range(8):
            assert isinstance(mutation(Random(seed), content, b"other"), Mutated)


def test_misbehaviour_of_a_reader_is_detected() -> None:
    (target,) = [one for one in TARGETS if one.name == "import"]
    outcome = mutated.Outcome(0, "import", "x", "bit_flips")
    whole = Seen(0, "", 10, {"cut-lines": 1})

    def wrong(seen: Seen, may_shrink: bool = False, unreadable: int = 0) -> str:
        return mutated._wrong(target, Mutated(b"", may_shrink, unreadable), whole, seen, outcome)

    assert wrong(Seen(0, "", 10, {"cut-lines": 1})) == ""
    assert wrong(Seen(1, "error: run.log:3: it is damaged")) == ""
    assert "no loss" in wrong(Seen(0, "", 9, {"cut-lines": 1}))
    assert wrong(Seen(0, "", 9, {"cut-lines": 1}), may_shrink=True) == ""
    assert wrong(Seen(0, "", 9, {"cut-lines": 2})) == ""
    assert "2 lines are unreadable" in wrong(Seen(0, "", 10, {"cut-lines": 2}), unreadable=2)
    assert "panicked" in wrong(Seen(1, "thread 'main' panicked at src/x.rs"))
    assert "has a bug" in wrong(Seen(1, "error: iodock has a bug: KeyError: 1"))
    assert "without an error" in wrong(Seen(1, ""))
    assert "status -11" in wrong(Seen(-11, "error: "))
    assert wrong(Seen(1, "", bug="KeyError: 'x'")) == "KeyError: 'x'"
    outcome.peak_bytes = 2 << 30
    assert "took 2,048 MiB" in wrong(Seen(0, "", 10))


WORKER = """
import json, sys, time
for line in sys.stdin:
    number = int(line)
    if number == 1:
        sys.exit(9)
    if number == 2:
        time.sleep(600)
    print(json.dumps({"number": number, "target": "x", "sample": "x", "mutation": "x"}), flush=True)
"""


def test_an_ended_or_hanging_worker_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "worker.py"
    program.write_text(WORKER)
    monkeypatch.setattr(mutated, "__file__", str(program))
    monkeypatch.setattr(mutated, "PATIENCE_S", 3)
    found = {one.number: one.wrong for one in mutated.outcomes(1, range(5))}
    assert found == {0: "", 1: "its process ended with status 9", 2: "no end within 3 s", 3: "", 4: ""}
