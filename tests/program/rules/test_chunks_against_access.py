"""Tests `chunks-against-access`, which finds HDF5 chunks that are too small, or moved for a small part of
their data."""

from __future__ import annotations

from pathlib import Path

import pytest

from diagnosing import blamed, diagnosed, of_rule
from interface_calls import with_a_data_set
from iodock.program.findings import Severity
from iodock.program.rules import chunks_against_access
from metadata_log import Trace
from recorded import built, live, needs_gcc, record

KIB, MIB = 1 << 10, 1 << 20
NAME = chunks_against_access.RULE.name


def transfers(folder: Path, count: int, size: int, time_us: int, call: str = "read") -> Path:
    """Imports a run of one second with COUNT transfers of SIZE bytes. The transfers take half of it."""
    log = Trace()
    log.open("/data/heat.h5")
    for _ in range(count):
        (log.read if call == "read" else log.write)(size, time_us)
    log.close()
    return log.imported(folder)


@pytest.mark.parametrize(
    ("requested", "is_found"), [(128 * KIB, True), (256 * KIB, True), (260 * KIB, False)]
)
def test_chunks_transferred_for_a_small_part_are_found(
    requested: int, is_found: bool, tmp_path: Path
) -> None:
    store = with_a_data_set(transfers(tmp_path, 200, 256 * KIB, 1000), 4, requested, 256 * KIB)
    found = of_rule(diagnosed(store), NAME)
    assert bool(found) == is_found
    if is_found:
        (one,) = found
        values = one.message.values
        assert (values["calls"], values["call"]) == (50, "H5Dread")
        assert values["requested_bytes"] == 50 * requested
        assert values["handled_bytes"] == 200 * 256 * KIB
        assert values["factor"] == MIB / requested
        assert values["each_bytes"] == MIB
        assert one.cost_seconds == pytest.approx(0.4 * (1 - requested / MIB))
        assert one.severity is Severity.HIGH


@pytest.mark.parametrize(("filters", "is_found"), [("shuffle,deflate", True), (None, False)])
def test_a_compressed_chunk_counts_with_its_full_size(
    filters: str | None, is_found: bool, tmp_path: Path
) -> None:
    store = with_a_data_set(transfers(tmp_path, 200, 32 * KIB, 1000), 4, 128 * KIB, MIB, filters)
    found = of_rule(diagnosed(store), NAME)
    assert bool(found) == is_found
    if is_found:
        assert found[0].message.values["factor"] == 32
        assert "filters" in found[0].message.text


def test_too_few_calls_give_no_finding(tmp_path: Path) -> None:
    store = with_a_data_set(transfers(tmp_path, 15, MIB, 20_000), 1, KIB, MIB)
    assert not of_rule(diagnosed(store), NAME)


@pytest.mark.parametrize(
    ("each", "size", "is_found"), [(64, 512, True), (63, 512, False), (64, 8 * KIB, False)]
)
def test_calls_that_cause_many_small_requests_are_found(
    each: int, size: int, is_found: bool, tmp_path: Path
) -> None:
    store = with_a_data_set(transfers(tmp_path, 10 * each, size, 50, "write"), each, each * size, size)
    found = of_rule(diagnosed(store), NAME)
    assert bool(found) == is_found
    if is_found:
        values = found[0].message.values
        assert (values["call"], values["calls"], values["requests"]) == ("H5Dwrite", 10, 640)
        assert values["mean_bytes"] == 512
        assert found[0].cost_seconds == pytest.approx(0.064 * (1 - 512 / MIB))


def test_the_chunk_finding_hides_its_symptoms(tmp_path: Path) -> None:
    run = transfers(tmp_path, 4000, 512, 100)
    assert "small-requests" in blamed(diagnosed(run))
    assert blamed(diagnosed(with_a_data_set(run, 100, 51200, 512))) == [NAME]


def test_runs_without_hdf5_give_no_finding(tmp_path: Path) -> None:
    assert not of_rule(diagnosed(transfers(tmp_path, 200, 256 * KIB, 1000)), NAME)


@live
@needs_gcc
@pytest.mark.parametrize(("cache_bytes", "is_found"), [(1000, True), (1 << 20, False)])
def test_a_program_that_follows_the_advice_gives_no_finding(
    cache_bytes: int, is_found: bool, tmp_path: Path
) -> None:
    program = built(tmp_path, "chunks_hdf5.c", "hdf5-serial")
    done = record(tmp_path, "--", program, tmp_path / "heat.h5", cache_bytes)
    assert done.returncode == 0, done.stderr
    found = of_rule(diagnosed(tmp_path / "run.iodock"), NAME)
    assert bool(found) == is_found
    if is_found:
        values = found[0].message.values
        assert (values["calls"], values["call"], values["dataset"]) == (256, "H5Dread", "/heat")
        assert values["requested_bytes"] == 256 * 256 * 8
        assert values["factor"] >= 256
