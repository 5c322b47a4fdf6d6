"""Tests which rates of other benchmarks come from memory, judged by the options in their outputs.

The outputs are the fixtures with other options, as the benchmarks write them, and small ones written by hand
from IOR's parse_options.c, iozone.c and fio's HOWTO."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from iodock.file_system.health import readers
from iodock.file_system.health.measurements import Cache
from iodock.file_system.health.readers import caching
from places import ROOT

FIXTURES = ROOT / "fixtures" / "bench"


def written(path: Path) -> set[Cache | None]:
    return {cell.cache for cell in readers.read(path).cells if cell.operation == "write"}


@pytest.mark.parametrize(
    ("options", "label"),
    [
        ("-w -r -t 1m", Cache.PAGE_CACHE),
        ("-w -r -e", None),
        ("-wre -t1m", None),
        ("-w -Y", None),
        ("-w -B", None),
        ("-w --posix.odirect", None),
        ("-w -O useO_DIRECT=1", None),
        ("-w -o /data/e", Cache.PAGE_CACHE),
        ("-w -o/data/Be", Cache.PAGE_CACHE),
        ("-f script", Cache.UNKNOWN),
    ],
)
def test_caching_of_an_ior_write_follows_from_its_command(
    tmp_path: Path, options: str, label: Cache | None
) -> None:
    text = (FIXTURES / "ior-4.1dev-posix.txt").read_text()
    text = re.sub(r"(Command line\s*: ).*", lambda found: f"{found[1]}ior {options}", text)
    (tmp_path / "ior.txt").write_text(text)
    assert written(tmp_path / "ior.txt") == {label}


@pytest.mark.parametrize(
    ("api", "options", "label"),
    [
        ("MPIIO", "-e", None),
        ("MPIIO", "-B", Cache.PAGE_CACHE),
        ("HDF5-1.10.4 (Parallel)", "-w", Cache.PAGE_CACHE),
        ("HDF5-1.10.4 (Parallel)", "-e", Cache.UNKNOWN),
        ("NCMPI (version 1.0)", "-w", Cache.PAGE_CACHE),
        ("DFS", "-w", Cache.UNKNOWN),
        ("S3", "-e", Cache.UNKNOWN),
    ],
)
def test_caching_of_an_ior_write_follows_from_its_interface(
    api: str, options: str, label: Cache | None
) -> None:
    settings = {"api": api}
    assert caching.of_ior_write(["ior", options], settings)[0] is label


def test_caching_of_an_ior_json_result_needs_no_command(tmp_path: Path) -> None:
    text = (FIXTURES / "ior-4.1dev.json").read_text()
    for value, label in ((0, Cache.PAGE_CACHE), (1, None)):
        changed = re.sub(r'"fsync": \d', f'"fsync": {value}', text)
        changed = re.sub(r'("Command line": )"[^"]*"', r'\1"ior -f script"', changed)
        (tmp_path / "ior.json").write_text(changed)
        assert written(tmp_path / "ior.json") == {label}


def test_caching_of_an_ior_csv_result_is_unknown(tmp_path: Path) -> None:
    assert written(FIXTURES / "ior-4.1dev.csv") == {Cache.UNKNOWN}


@pytest.mark.parametrize(
    ("options", "label"),
    [
        ({"rw": "write"}, Cache.PAGE_CACHE),
        ({"rw": "write", "direct": "1"}, None),
        ({"rw": "write", "buffered": "0"}, None),
        ({"rw": "write", "end_fsync": "1"}, None),
        ({"rw": "write", "fsync": "32"}, None),
        ({"rw": "write", "fdatasync": "1"}, None),
        ({"rw": "write", "sync": "dsync"}, None),
        ({"rw": "write", "sync": "none"}, Cache.PAGE_CACHE),
        ({"rw": "write", "fsync": "0", "end_fsync": "0"}, Cache.PAGE_CACHE),
        ({"rw": "write", "ioengine": "mmap"}, Cache.PAGE_CACHE),
        ({"rw": "write", "ioengine": "rbd"}, Cache.UNKNOWN),
        ({}, Cache.UNKNOWN),
    ],
)
def test_caching_of_a_fio_write_follows_from_its_options(
    tmp_path: Path, options: dict[str, str], label: Cache | None
) -> None:
    done = {"io_bytes": 1 << 20, "bw_bytes": 1 << 20, "runtime": 1000}
    job = {"jobname": "a", "groupid": 0, "error": 0, "job options": options, "write": done}
    (tmp_path / "fio.json").write_text(json.dumps({"fio version": "fio-3.33", "jobs": [job]}))
    assert written(tmp_path / "fio.json") == {label}


@pytest.mark.parametrize(
    ("options", "label"),
    [
        ("-a", Cache.PAGE_CACHE),
        ("-a -e", None),
        ("-aeI", None),
        ("-a -o", None),
        ("-a -+D", None),
        ("-a -c", Cache.PAGE_CACHE),
        ("-a -f e", Cache.PAGE_CACHE),
        ("-a -fIe", Cache.PAGE_CACHE),
    ],
)
def test_caching_of_an_iozone_write_follows_from_its_command(
    tmp_path: Path, options: str, label: Cache | None
) -> None:
    text = (FIXTURES / "iozone-auto.txt").read_text()
    text = re.sub(r"(Command line used: ).*", lambda found: f"{found[1]}iozone {options}", text)
    (tmp_path / "iozone.txt").write_text(text)
    assert written(tmp_path / "iozone.txt") == {label}


def test_caching_of_an_elbencho_write_follows_from_its_options() -> None:
    assert caching.of_elbencho("write", False, ["elbencho", "-w"], "dir")[0] is Cache.PAGE_CACHE
    assert caching.of_elbencho("write", False, ["elbencho", "-w", "--sync"], "dir")[0] is Cache.PAGE_CACHE
    assert caching.of_elbencho("write", True, ["elbencho", "-w"], "dir")[0] is None
    assert caching.of_elbencho("write", False, ["elbencho", "--s3endpoints=x"], "dir")[0] is Cache.UNKNOWN
    assert caching.of_elbencho("write", False, [], None)[0] is Cache.UNKNOWN
    assert written(FIXTURES / "elb.csv") | written(FIXTURES / "elb.json") == {Cache.PAGE_CACHE}
