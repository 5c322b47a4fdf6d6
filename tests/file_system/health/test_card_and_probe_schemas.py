"""Tests the JSON of file system cards and probes: real output fits the schemas in docs/reference, and other
documents do not."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from in_process import printed
from iodock.file_system.health.card import Cache, Card, Space, kind, options_of, remarks_of, servers_of
from iodock.file_system.health.commands import Stripes
from iodock.file_system.health.mounts import mounts
from iodock.file_system.health.quotas import Allowance, Grace, Quota, Quotas
from iodock.file_system.probe.history import History, Trouble
from iodock.file_system.probe.judge import DAY_NS, judge
from iodock.file_system.probe.operations import Operation
from iodock.file_system.probe.records import Kind, Mark, Outcome
from iodock.file_system.probe.store import Losses
from iodock.file_system.views.card_json import card_json
from iodock.file_system.views.probe_json import probe_json
from iodock.shared.language import language_in
from iodock.shared.message import Message
from iodock.shared.settings import FileSystem
from made_probes import START, hours_of, made_up
from mount_tables import MOUNTINFO
from places import ROOT
from recorded import IODOCK, run

REFERENCE = ROOT / "docs" / "reference"
CARD, PROBE = (
    json.loads((REFERENCE / f"{name}.schema.json").read_text()) for name in ("file-system-card", "probe")
)


def cards() -> Iterator[Card]:
    """Yields cards of file systems of several centres: with all information, and with as little as
    possible."""
    typical = FileSystem("parallel", *(7 for _ in range(len(fields(FileSystem)) - 3)), "/p", "lfs")  # type: ignore[arg-type]
    quotas = Quotas(
        (
            Quota("user", "me", Allowance(9, 5, 20, Grace.RUNNING), Allowance(1, None, None)),
            Quota(
                "fileset", "work", Allowance(9, 5, None, Grace.OVER), Allowance(1, None, 7, is_exact=False)
            ),
        ),
        (Message("not known"),),
    )
    space = Space(1000, 5, 1000, 5, 4096, 255)
    for mount in mounts(MOUNTINFO):
        bare = Card("/x", "h", 1, mount, kind(mount, None), (), (), None, None, None, (), None, ())
        yield bare
        yield replace(
            bare, servers=servers_of(mount), options=options_of(mount), space=space,
            stripes=Stripes(-1, 1 << 20, "flash"), quotas=quotas, typical=typical,
            caches=(Cache("read_ahead", "4 KiB", "read ahead"),),
            remarks=tuple(remarks_of(mount, space, Stripes(-1, 1), quotas)),
        )  # fmt: skip


def card_documents() -> Iterator[dict[str, Any]]:
    for one in cards():
        yield json.loads(card_json(one, language_in("ja")))


def probe_document() -> dict[str, Any]:
    """Returns a document with probe histories that contain every possible finding."""
    text = language_in("en")
    watches = [
        made_up(1, 7, lambda at: 1.6 if 9 <= hours_of(at) < 17 else 1.0),
        made_up(2, 10, lambda at: 1.0 if at < 6.5 * DAY_NS else 1.5),
        made_up(3, 10, lambda at: 1.0 + at / (10 * DAY_NS)),
        made_up(4, 1),
    ]
    watches[3].troubles += [
        Trouble(START + DAY_NS // 2, Operation.CREATE, Outcome(Kind.NO_ANSWER, 30_000_000_000)),
        Trouble(START + DAY_NS // 4, Operation.FSYNC, Outcome(Kind.FAILED, 5, "EIO")),
    ]
    watches[3].found = {"free_bytes": 1, "free_inodes": 2}
    marks = (Mark(START + 5 * DAY_NS, "changed"),)
    known = History(tuple(watches), marks, Losses(1, 2), 3)
    found: dict[str, Any] = json.loads(probe_json(known, judge(known, START + 10 * DAY_NS), text))
    return found


PROBED = probe_document()


@pytest.mark.parametrize("schema", [CARD, PROBE])
def test_the_json_schemas_are_valid(schema: dict[str, Any]) -> None:
    jsonschema.Draft202012Validator.check_schema(schema)


def test_file_system_cards_fit_the_schema() -> None:
    for document in card_documents():
        jsonschema.validate(document, CARD)
    names = [one.name for one in fields(FileSystem)]
    assert sorted(CARD["properties"]["typical"]["properties"]) == sorted(names)
    # The document contains every field, so the schema is tested on each.
    assert sorted(document["typical"]) == sorted(names)


def test_the_card_of_this_machine_fits_the_schema(tmp_path: Path) -> None:
    document = json.loads(printed("fs", tmp_path, "--format", "json"))
    jsonschema.validate(document, CARD)
    assert document["schema"] == CARD["$id"] and document["space"]["size_bytes"] > 0


def test_probe_results_fit_the_schema() -> None:
    jsonschema.validate(PROBED, PROBE)
    for part in ("operations", "episodes", "daily", "changes", "drifts", "marks", "found", "remarks"):
        assert any(one[part] for one in PROBED["watches"]), part


def test_a_probe_result_of_this_machine_fits_the_schema(tmp_path: Path) -> None:
    store = tmp_path / "s.probe"
    probe = [*IODOCK, "probe"]
    run([*probe, "run", tmp_path, "--rounds", "2", "--every", "1s", "-q", "-o", store], tmp_path)
    run([*probe, "run", "--command", "exit 3", "--rounds", "1", "-q", "-o", store], tmp_path)
    printed("probe", "mark", store, "changed")
    document = json.loads(printed("probe", "show", store, "--format", "json"))
    jsonschema.validate(document, PROBE)
    assert {one["is_command"]: one["rounds"] for one in document["watches"]} == {False: 2, True: 1}
    assert document["schema"] == PROBE["$id"]


def objects(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yields the paths of objects in a document; of a list, only those in its first element."""
    if isinstance(value, dict):
        yield path
        for name, one in value.items():
            yield from objects(one, (*path, name))
    elif isinstance(value, list) and value:
        yield from objects(value[0], (*path, 0))


@pytest.mark.parametrize(
    ("document", "schema"), [(list(card_documents())[-1], CARD), (PROBED, PROBE)], ids=["card", "probe"]
)
def test_documents_with_unknown_keys_do_not_fit_the_schema(
    document: dict[str, Any], schema: dict[str, Any]
) -> None:
    check = jsonschema.Draft202012Validator(schema).is_valid
    assert check(document)
    for path in objects(document):
        strange = copy.deepcopy(document)
        at(strange, path)["strange"] = []
        assert not check(strange), path
    for name in document:
        assert not check({key: value for key, value in document.items() if key != name}), name


def at(value: Any, path: tuple[Any, ...]) -> Any:
    for part in path:
        value = value[part]
    return value
