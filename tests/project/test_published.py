"""Tests the cases of the SS-ken report: a diagnosis of its tables must reach the conclusions of its
authors."""

from __future__ import annotations

import importlib.util
import sys
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest

from iodock.cli.run import run as run_command
from iodock.program.findings import Diagnosis, Finding, Severity
from iodock.program.run import Run
from iodock.program.store import Store
from iodock.shared.language import language_in
from iodock.shared.sentences import say
from places import ROOT

pytestmark = pytest.mark.whole


@cache
def published() -> ModuleType:
    spec = importlib.util.spec_from_file_location("published", ROOT / "tools" / "published.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules["published"] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("published")


def opened(folder: Path, name: str) -> Run:
    store = folder / f"{name}.iodock"
    if not store.exists():
        log = published().write(name, folder)
        assert run_command(["import", "--quiet", str(log), "-o", str(store)]) == 0
    return Run(Store.open(store))


def diagnosis(folder: Path, name: str) -> Diagnosis:
    with opened(folder, name) as run:
        return run.diagnose()


def one(found: Diagnosis, rule: str) -> Finding:
    (finding, *_) = [finding for finding in found.findings if finding.rule == rule]
    return finding


def changes(found: Diagnosis) -> list[str]:
    return [finding.rule for finding in found.worth_changing]


def test_the_tables_equal_the_published_ones(folder: Path) -> None:
    with opened(folder, "jaxa-cfd.strace") as run:
        rows = {row["call"]: row for row in run.show("summary").to_arrow().to_pylist()}
        files = {
            row["file"]: row["count"]
            for row in run.show("summary", by=["file"], call=["family:stat"]).to_arrow().to_pylist()
        }
    assert rows["write"]["count"] == 1_533
    assert rows["write"]["total_time_ns"] / 1e6 == pytest.approx(52, abs=1)
    assert sorted(files.values()) == [1_533, 1_533, 2_044]
    with opened(folder, "ls-slow.strace") as run:
        (row,) = run.show("summary", call=["lgetxattr"]).to_arrow().to_pylist()
    assert (row["count"], row["failed"], row["max_time_ns"]) == (
        20_712,
        20_712,
        pytest.approx(722_723_000, rel=0.001),
    )
    assert row["total_time_ns"] / 1e9 == pytest.approx(5.545225, abs=0.01)
    with opened(folder, "jaxa-data.strace") as run:
        counts = {row["call"]: row["count"] for row in run.show("summary").to_arrow().to_pylist()}
    assert (counts["lseek"], counts["read"], counts["write"]) == (30_202, 24_704, 1_005)


def test_jaxa_fluid_dynamics_gives_no_finding(folder: Path) -> None:
    found = diagnosis(folder, "jaxa-cfd.strace")
    assert not found.worth_changing
    assert "fine" in say(found.verdict.text, language_in("en"))
    cache_speed = one(found, "cache-speed")
    assert cache_speed.severity is Severity.NOTE


def test_jaxa_data_processing_is_found_to_read_repeatedly(folder: Path) -> None:
    found = diagnosis(folder, "jaxa-data.strace")
    assert changes(found)[0] == "redundant-reads"
    assert one(found, "redundant-reads").evidence["factor"] == pytest.approx(50, rel=0.1)


def test_the_kyoto_script_is_found_to_start_a_process_per_record(folder: Path) -> None:
    found = diagnosis(folder, "kyoto.truss")
    assert "process-storm" in changes(found)
    assert {"bytewise-read", "failed-open-storm"} & {finding.rule for finding in found.findings}


def test_slow_ls_has_failed_attribute_queries_and_a_dated_slow_call(folder: Path) -> None:
    found = diagnosis(folder, "ls-slow.strace")
    # `ls` also queries the size of each file three times, which costs far less.
    assert changes(found)[:2] == ["failed-xattr", "slow-call"]
    assert "17:03" in say(one(found, "slow-call").message, language_in("en"))
    assert one(found, "slow-call").cost_seconds == pytest.approx(0.722723, rel=0.01)


def test_fast_ls_has_no_slow_call(folder: Path) -> None:
    assert "slow-call" not in changes(diagnosis(folder, "ls-fast.strace"))


def test_slow_closes_of_swarp_are_explained_without_a_finding(folder: Path) -> None:
    found = diagnosis(folder, "swarp.strace")
    assert not found.worth_changing
    closes = one(found, "slow-close")
    assert (closes.severity, closes.gain) == (Severity.NOTE, None)


def test_the_slow_call_of_plot5_is_dated(folder: Path) -> None:
    found = diagnosis(folder, "plot5-slow.strace")
    opens = found.worth_changing[0]
    assert (opens.rule, opens.call, opens.files) == ("slow-call", "open", ("plot.cfg",))
    assert "12:08:20" in say(opens.message, language_in("en"))
    assert opens.cost_seconds == pytest.approx(13.936576, rel=0.001)
    assert any(other.call == "close" for other in found.worth_changing[1:])


def test_plot5_on_a_normal_day_has_no_slow_call(folder: Path) -> None:
    assert "slow-call" not in changes(diagnosis(folder, "plot5-usual.strace"))


@pytest.mark.parametrize(("stage", "factor", "seeks"), [("before", 50, 1.5), ("header", 25, 2.0)])
def test_super_kamiokande_has_redundant_reads_and_seeks(
    folder: Path, stage: str, factor: float, seeks: float
) -> None:
    found = diagnosis(folder, f"super-kamiokande-{stage}.strace")
    assert set(changes(found)) == {"redundant-reads", "seek-storm"}
    assert one(found, "redundant-reads").evidence["factor"] == pytest.approx(factor, rel=0.05)
    storm = one(found, "seek-storm").evidence
    assert float(storm["seeks"] or 0) / float(storm["transfers"] or 1) == pytest.approx(seeks, rel=0.05)


def test_super_kamiokande_without_tellg_has_no_seek_storm(folder: Path) -> None:
    assert not diagnosis(folder, "super-kamiokande-after.strace").worth_changing
