"""Tests results with values of unexpected types, with deep or long values, and with lines that only few
versions write."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from iodock.file_system.health import measurements_json, readers
from iodock.file_system.health.measurements import MeasurementError, Measurements, Unit
from iodock.shared.bounded.documents import DocumentError, from_toml, next_json
from iodock.shared.errors import IodockError
from places import ROOT

FIXTURES = ROOT / "fixtures" / "bench"
JSON = [
    "fio-2.json",
    "fio-3.33-numjobs.json",
    "fio-3.33-sections.json",
    "ior-4.0.0.json",
    "ior-4.1dev-v.json",
]
ODD: tuple[Any, ...] = (None, True, [], {}, ["x"], {"a": {"b": 1}}, "x", "", -1, 10**400, 1e308)


def read(folder: Path, text: str, name: str = "out.txt") -> Measurements:
    path = folder / name
    path.write_text(text)
    return readers.read(path)


def stands(folder: Path, text: str) -> None:
    try:
        measured = read(folder, text)
    except IodockError as error:
        assert error.hint
    else:
        measurements_json.text_of(measured)


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yields each container inside VALUE with each of its keys."""
    if isinstance(value, (dict, list)):
        for key in list(value) if isinstance(value, dict) else range(len(value)):
            yield value, key
            yield from places(value[key])


@pytest.mark.parametrize("name", [*JSON, "elb.json", "iodock"])
def test_values_of_unexpected_types_break_no_reader(tmp_path: Path, name: str) -> None:
    if name == "iodock":
        text = measurements_json.text_of(readers.read(FIXTURES / "fio-3.33-numjobs.json"))
    else:
        text = (FIXTURES / name).read_text()
    document, _ = json.JSONDecoder().raw_decode(text[text.index("{") :])
    chance = random.Random(11)
    found = list(places(document))
    for container, key in chance.sample(found, min(len(found), 60)):
        kept = container[key]
        for odd in chance.sample(ODD, 4):
            container[key] = odd
            stands(tmp_path, json.dumps(document))
        container[key] = kept


@pytest.mark.parametrize(
    "job",
    [
        {"jobname": ["x"]},
        {"groupid": {"a": 1}},
        {"hostname": {"a": 1}, "port": [1]},
        {"job options": {"bs": ["4k"], "rw": {"a": 1}, "numjobs": []}},
        {"error": [1]},
    ],
    ids=lambda job: next(iter(job)),
)
def test_fio_values_of_unexpected_types_are_counted(tmp_path: Path, job: dict[str, Any]) -> None:
    done = {"io_bytes": 4096, "bw_bytes": 12, "runtime": 1}
    documents = {"fio version": "fio-3.3", "jobs": [{"jobname": "x", "groupid": 0, "write": done, **job}]}
    [cell] = read(tmp_path, json.dumps(documents)).cells
    assert cell.value == 12
    documents["jobs"][0]["write"]["bw_bytes"] = True
    with pytest.raises(MeasurementError, match="no number"):
        read(tmp_path, json.dumps(documents))


def test_json_documents_are_read_the_same_in_parts_of_any_size() -> None:
    values = [
        '"a\\ud83d\\ude00b"',
        "-12.5e-3",
        "true",
        '"long text without an end so far"',
        "[1, -Infinity]",
        "{}",
    ]
    for length in range(4040, 4110):
        for value in values:
            text = f'{{"pad": "{"x" * (length - 20)}", "v": {value}, "w": 1}} {{"next": 1}}'
            found, end = next_json(f"ab{text}", 2)
            assert found == json.loads(text[: end - 2]) and text[end - 2 :] == ' {"next": 1}'


def test_error_lines_are_counted_from_the_beginning_of_the_file() -> None:
    with pytest.raises(DocumentError) as raised:
        next_json('\n\n{"a": 1,\n"b": x}', 2)
    assert (raised.value.line, raised.value.reason) == (2, "is not complete JSON: Expecting value")


def test_lines_that_only_resemble_json_are_refused(tmp_path: Path) -> None:
    with pytest.raises(MeasurementError, match="more than 10,000 places begin like JSON"):
        read(tmp_path, '"fio version" "jobs"\n' + "{\n" * 200_000)


def test_many_json_documents_are_read_with_their_lines(tmp_path: Path) -> None:
    job = {"jobname": "j", "elapsed": 1, "write": {"io_bytes": 9000, "bw_bytes": 9000, "runtime": 1}}
    text = "\n".join(
        json.dumps(
            {"fio version": "fio-3.3", "timestamp": 1795000000 + 10 * at, "jobs": [{**job, "groupid": at}]}
        )
        for at in range(5000)
    )
    cells = read(tmp_path, text).cells
    assert len(cells) == 1 and len(cells[0].values) == 5000
    damaged = text.replace('"elapsed": 1, "write"', '"elapsed": , "write"', 1) + "\n{"
    notes = read(tmp_path, damaged).protocol.notes
    assert any("out.txt:1: a JSON document of fio is damaged" in note for note in notes)


@pytest.mark.parametrize(
    "key",
    ["a.a", "a . a", "'a'.a", '"a"."b"', "[1.1"],
)
def test_long_dotted_keys_are_refused_before_parsing(key: str) -> None:
    part = key.lstrip("[")
    for count in (60, 100_000):
        text = f"[{'.'.join([part] * count)}]\n"
        with pytest.raises(DocumentError, match="nested too deeply"):
            from_toml(text)
    assert from_toml("a.b.c = 1\nhosts = '" + "n1.example.org, " * 1000 + "'\n")["a"] == {"b": {"c": 1}}
    assert from_toml("x = [" + "1.5, " * 5000 + "]\n")["x"][0] == 1.5


def test_json_on_one_long_line_is_read_completely(tmp_path: Path) -> None:
    document = json.loads((FIXTURES / "fio-3.33.json").read_text())
    text = json.dumps(document)
    assert len(text) > 8192
    assert not any("left out" in note for note in read(tmp_path, text).protocol.notes)


def test_json_that_is_nested_too_deeply_is_reported(tmp_path: Path) -> None:
    deep = '{"a":' * 20_000 + "1" + "}" * 20_000
    for text in (
        f'{{"fio version": "fio-3.3", "jobs": [{deep}]}}',
        f'{{"phase_type": "WRITE", "config": {deep}}}',
        f'{{"schema": "iodock-measurements-1", "protocol": {deep}, "cells": []}}',
    ):
        with pytest.raises(MeasurementError, match="is nested too deeply") as raised:
            read(tmp_path, text, "deep.json")
        assert raised.value.hint and "numbers" not in raised.value.hint


IO500 = """IO500 version io500-sc22_v2 (extended)
[RESULT]       ior-easy-write        1.081234 GiB/s : time 361.234 seconds
[      ]            timestamp        0.000000 kIOPS : time 0.001 seconds
[      ]  ior-rnd4K-easy-read        0.134469 GiB/s : time 30.157 seconds
[RESULT]                 find      578.934 kIOPS  : time  14.13 seconds
[SCORE ] Bandwidth 0.123457 GiB/s : IOPS 4.567890 kiops : TOTAL 0.750878
[SCOREX] Bandwidth 0.130000 GiB/s : IOPS 4.600000 kiops : TOTAL 0.773305
"""


def test_io500_phases_without_a_score_are_read(tmp_path: Path) -> None:
    """The lines are as the extended mode of IO500 writes them, combined by hand."""
    measured = read(tmp_path, IO500)
    found = {(one.test, one.operation, one.variant.get("score")): one.value for one in measured.cells}
    assert found["io500-ior-rnd4K-easy", "read", None] == pytest.approx(0.134469 * (1 << 30))
    assert found["io500-find", "find", None] == pytest.approx(578_934)
    assert (found["io500-score", "total", None], found["io500-score", "total", "extended"]) == (
        0.750878,
        0.773305,
    )
    assert len(measured.cells) == 9
    assert measured.protocol.notes == ("phases that are not part of the score: ior-rnd4K-easy-read",)


ELBENCHO = """ISO DATE start: 2026-08-12T14:21:31-0400
COMMAND LINE: "elbencho" "-w" "-t" "8" "-b" "1m" "--direct" "/mnt/x"

OPERATION   RESULT TYPE         FIRST DONE   LAST DONE
=========== ================    ==========   =========
WRITE       Elapsed time     :    1m0.243s    1m0.256s
            IOPS             :        2531        2551
            Throughput MiB/s :        2531        2551
            Total MiB        :      152476      153720
---
ISO DATE end  : 2026-08-12T14:22:32-0400
"""


def test_elbencho_dates_of_start_and_end_are_read(tmp_path: Path) -> None:
    """The input was written by hand from elbencho's own output code."""
    measured = read(tmp_path, ELBENCHO)
    [cell] = measured.cells
    assert (cell.operation, cell.processes, cell.size_bytes, cell.unit) == (
        "write",
        8,
        1 << 20,
        Unit.BYTES_PER_S,
    )
    assert measured.protocol.started == "2026-08-12T14:21:31-0400"
    assert (measured.protocol.target, measured.protocol.notes) == ("/mnt/x", ())
