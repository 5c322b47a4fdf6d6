"""Tests remarks: each kind is found at the right point in 95 of 100 noisy results, and none in noise alone.

The shapes come from published check-ups with remarks by people, such as: levels off at 100 processes,
directory stat degrades beyond 50, directory removal peaks only at 5."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pytest

from iodock.file_system.health.measurements import Cache, Limit, Load, Measurements, Protocol, Remark
from iodock.file_system.health.remarks import find
from iodock.file_system.health.remarks.noise import f_tail, incomplete_beta, t_limit, t_tails
from iodock.file_system.views.remarks_text import none_text, remark_text
from iodock.shared.language import language_in
from synthetic_curves import DOUBLED, MIB, PROCESSES, SIZES, Made, Shape, made

RUNS = 100
ENOUGH = 95
NOISE = 0.05


def values(*several: float, at: tuple[int, ...] = PROCESSES) -> Shape:
    """Returns a curve with one value for each number of processes, in MiB/s or 2**20 operations per
    second."""
    known = dict(zip(at, several, strict=True))
    return lambda processes, size: known[processes] * MIB


def sizes(*several: float) -> Shape:
    known = dict(zip(SIZES, several, strict=True))
    return lambda processes, size: known[size] * MIB


@dataclass(frozen=True)
class Case:
    """Operations with a known shape, and the remark that iodock must find."""

    name: str
    operations: tuple[Made, ...]
    kind: str
    at: dict[str, Any]
    repeats: int = 3
    limits: tuple[Limit, ...] = ()


def files(operation: str, shape: Shape, processes: tuple[int, ...] = PROCESSES) -> Made:
    return Made(operation, shape, processes, (None,), "metadata")


CASES = (
    Case(
        "knee at 50",
        (Made("write", values(20, 100, 200, 1000, 1000, 1000)),),
        "levels-off",
        {"processes": 50},
    ),
    Case(
        "knee at 100", (files("file-create", values(2, 9, 16, 40, 62, 63)),), "levels-off", {"processes": 100}
    ),
    Case(
        "knee among doubled numbers",
        (Made("write", values(1, 2, 4, 8, 8, 8, 8, at=DOUBLED), DOUBLED),),
        "levels-off",
        {"processes": 8},
    ),
    Case(
        "knee of a read at all sizes",
        (Made("read", lambda p, s: MIB * min(p, 10), sizes=SIZES, cache=Cache.UNKNOWN),),
        "levels-off",
        {"processes": 10},
    ),
    Case(
        "falls from level",
        (files("directory-stat", values(10, 10, 10, 10, 6, 4)),),
        "degrades",
        {"processes": 50},
    ),
    Case(
        "falls from a top",
        (files("directory-stat", values(1, 4, 8, 20, 14, 9)),),
        "degrades",
        {"processes": 50},
    ),
    Case(
        "falls at the end", (files("file-stat", values(1, 4, 8, 20, 20, 13)),), "degrades", {"processes": 100}
    ),
    Case(
        "large requests collapse",
        (Made("read", sizes(50, 200, 900, 900, 300), (8,), SIZES),),
        "degrades",
        {"size_bytes": 16 * MIB, "processes": 8},
    ),
    Case(
        "good from 1 MiB",
        (Made("write", sizes(50, 200, 900, 950, 950), (8,), SIZES),),
        *(
            "good-only-above-size",
            {"size_bytes": MIB},
        ),
    ),
    Case(
        "good from 64 KiB, whatever the processes",
        (Made("write", lambda p, s: p**0.5 * MIB * (40 if s < 65536 else 200), (1, 5, 10, 50), SIZES),),
        "good-only-above-size",
        {"size_bytes": 65536, "processes": [1, 5, 10, 50]},
    ),
    Case(
        "good at the largest only",
        (Made("write", sizes(50, 50, 50, 50, 200), (8,), SIZES),),
        *(
            "good-only-above-size",
            {"size_bytes": SIZES[-1]},
        ),
    ),
    Case(
        "peak at 5",
        (files("directory-remove", values(10, 25, 10, 10, 10, 10)),),
        *(
            "peaks-only-at",
            {"processes": 5},
        ),
    ),
    Case(
        "peak on a rising curve",
        (files("file-stat", values(5, 6, 30, 8, 9, 10)),),
        *(
            "peaks-only-at",
            {"processes": 10},
        ),
    ),
    Case(
        "server and client cache",
        (
            Made("write", values(70, 60, 50, 30, 20, 10)),
            Made("read", values(100, 480, 900, 4000, 9000, 30000), cache=Cache.UNKNOWN),
        ),
        "write-falls-read-grows",
        {"processes": [1, 500]},
    ),
    Case(
        "in proportion",
        (files("file-stat", lambda p, s: 900.0 * p),),
        "in-proportion",
        {"processes": [1, 500]},
    ),
    Case(
        "independent of size",
        (Made("write", lambda p, s: MIB * min(p, 50), sizes=SIZES),),
        "independent-of-size",
        {"size_bytes": [SIZES[0], SIZES[-1]]},
    ),
    Case(
        "at 60 % of the link",
        (Made("write", values(20, 60, 70, 70, 70, 70)),),
        "link-limit",
        {"operation": "write"},
        limits=(Limit("1 Gbit Ethernet", 70 * MIB / 0.6),),
    ),
    Case(
        "grows with size to the end",
        (
            Made(
                "write", lambda p, s: MIB * {SIZES[1]: 64, SIZES[2]: 517, SIZES[3]: 973}[s], (1,), SIZES[1:4]
            ),
        ),
        "grows-throughout",
        {"size_bytes": [SIZES[1], SIZES[3]], "processes": 1},
    ),
    Case(
        "grows between two sizes",
        (Made("write", lambda p, s: MIB * {SIZES[0]: 64, SIZES[2]: 973}[s], (1,), (SIZES[0], SIZES[2])),),
        "grows-throughout",
        {"size_bytes": [SIZES[0], SIZES[2]]},
    ),
    Case(
        "falls with size to the end",
        (
            Made(
                "write", lambda p, s: MIB * {SIZES[1]: 973, SIZES[2]: 517, SIZES[3]: 64}[s], (1,), SIZES[1:4]
            ),
        ),
        "falls-throughout",
        {"size_bytes": [SIZES[1], SIZES[3]]},
    ),
    Case(
        "grows slowly with processes to the end",
        (files("file-stat", values(10, 20, 28, 60, 85, 190)),),
        "grows-throughout",
        {"processes": [1, 500]},
    ),
    Case(
        "a wide hole",
        (Made("write", lambda p, s: MIB * (60 if s in SIZES[1:3] else 110), (1,), SIZES[:4]),),
        "varies",
        {"operation": "write"},
    ),
    Case("a hole", (Made("write", values(100, 400, 350, 150, 360, 370)),), "apart", {"processes": 50}),
    Case(
        "a hole in a grid",
        (Made("write", lambda p, s: (0.5 if (p, s) == (10, MIB) else 1) * MIB * min(p, 50), sizes=SIZES),),
        "apart",
        {"processes": 10, "size_bytes": MIB},
    ),
    Case(
        "a tower in a grid",
        (Made("write", lambda p, s: (2.2 if (p, s) == (10, MIB) else 1) * MIB, sizes=SIZES),),
        "apart",
        {"processes": 10, "size_bytes": MIB},
    ),
)


def right(remark: Remark, case: Case) -> bool:
    return remark.kind == case.kind and all(remark.at.get(name) == value for name, value in case.at.items())


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_each_kind_of_remark_is_found_at_its_point(case: Case) -> None:
    found = [find(made(case.operations, NOISE, seed, case.repeats, case.limits)) for seed in range(RUNS)]
    hits = sum(any(right(remark, case) for remark in remarks) for remarks in found)
    assert hits >= ENOUGH, (
        hits,
        [remarks for remarks in found if not any(right(one, case) for one in remarks)][:3],
    )
    # The same kind of remark at another point would be wrong.
    wrong = sum(any(one.kind == case.kind and not right(one, case) for one in remarks) for remarks in found)
    assert wrong <= RUNS - ENOUGH


def test_every_kind_of_remark_is_tested() -> None:
    from iodock.file_system.health.remarks.sentences import Kind

    of_the_whole = {"unstable", "page-cache", "other-load"}
    assert {case.kind for case in CASES} | of_the_whole == set(Kind)


def test_an_unstable_measurement_is_found() -> None:
    """The repeats of one cell differ by tens of percent, and those of all others are stable. Each cell has
    five repeats."""
    hits = 0
    for seed in range(RUNS):
        quiet = made([Made("write", lambda p, s: MIB * 100, sizes=SIZES)], NOISE, seed, 5)
        wild = made([Made("write", lambda p, s: MIB * 100, (10,))], 0.5, seed + RUNS, 5).cells[0]
        mixed = [wild if (cell.processes, cell.size_bytes) == (10, MIB) else cell for cell in quiet.cells]
        remarks = find(replace(quiet, cells=tuple(mixed)))
        at = [(one.at["processes"], one.at["size_bytes"]) for one in remarks if one.kind == "unstable"]
        hits += at == [(10, MIB)]
    assert hits >= ENOUGH


FLAT = {
    "a curve": (Made("write", lambda p, s: MIB * 100),),
    "a curve over sizes": (Made("write", lambda p, s: MIB * 100, (8,), SIZES),),
    "many numbers of processes": (files("file-stat", lambda p, s: 5e4, DOUBLED),),
    "a whole check-up": (
        Made("write", lambda p, s: MIB * 100, sizes=SIZES[:3]),
        Made("read", lambda p, s: MIB * 200, sizes=SIZES[:3], cache=Cache.UNKNOWN),
        files("file-create", lambda p, s: 1e4),
        files("file-remove", lambda p, s: 2e4),
    ),
}


@pytest.mark.parametrize("noise", [0.02, 0.1, 0.3])
@pytest.mark.parametrize("name", FLAT)
def test_noise_alone_gives_no_remark(name: str, noise: float) -> None:
    silent = sum(not find(made(FLAT[name], noise, seed)) for seed in range(RUNS))
    assert silent >= ENOUGH


def test_differences_within_the_spread_give_no_remark() -> None:
    """The same curve gives a remark if its repeats agree, and none if they differ by more than the curve
    changes."""
    curve = [Made("write", values(100, 130, 160, 160, 160, 160))]
    said = [sum(bool(find(made(curve, noise, seed))) for seed in range(40)) for noise in (0.02, 0.4)]
    assert said[0] == 40
    assert said[1] <= 4


def three_sizes(noise: float = 0.02, repeats: int = 3, cache: Cache | None = None) -> Measurements:
    rates = {SIZES[1]: 64, SIZES[2]: 517, SIZES[3]: 973}
    return made(
        [Made("write", lambda p, s: MIB * rates[s], (1,), SIZES[1:4], cache=cache)], noise, 1, repeats
    )


def test_a_remark_on_growth_names_both_ends() -> None:
    (found,) = find(three_sizes(0.001))
    said = remark_text(found, language_in("en"))
    assert "grows with the request size throughout (64 KiB: 64 MiB/s, 16 MiB: 97" in said
    assert said.endswith("larger requests may be faster still")


def test_growth_is_found_along_settings_and_nodes() -> None:
    """The setting can be any number that varies, such as files, threads or queue depth."""
    several = []
    for name, at in (("files", "variant"), ("io_depth", "variant"), ("nodes", "nodes")):
        cells = []
        for value, factor in ((1, 1.0), (4, 2.0), (16, 4.5)):
            one = made([Made("write", lambda p, s, f=factor: MIB * 100 * f, (16,))], 0.03, value).cells[0]  # type: ignore[misc]
            changed = (
                {"variant": {name: str(value)}}
                if at == "variant"
                else {"nodes": value, "processes": 4 * value}
            )
            cells.append(replace(one, **changed))  # type: ignore[arg-type]
        found = [
            one for one in find(Measurements(Protocol(), tuple(cells))) if one.kind == "grows-throughout"
        ]
        several.append([one.message.values.get("setting") for one in found])
    assert several[0] == ["files"] and several[1] == ["io depth"] and "nodes" in several[2]


def test_similar_curves_of_several_processes_give_one_remark() -> None:
    rates = {SIZES[1]: 64, SIZES[2]: 517, SIZES[3]: 973}
    found = find(made([Made("write", lambda p, s: MIB * rates[s] * p, (1, 2), SIZES[1:4])], 0.02, 1))
    grows = [
        one
        for one in found
        if one.kind == "grows-throughout" and one.at["size_bytes"] == [SIZES[1], SIZES[3]]
    ]
    assert len(grows) == 1 and grows[0].at["processes"] == [1, 2]
    assert "times): larger" in remark_text(grows[0], language_in("en"))


def test_a_result_without_remarks_is_not_called_good() -> None:
    """The sentence says what iodock compared and what it did not test."""
    flat = made([Made("write", lambda p, s: MIB * 100, (1, 4), SIZES[:3])], 0.03, 4)
    assert find(flat) == ()
    said = none_text(flat, language_in("en"))
    for words in (
        "write, 4 KiB, 64 KiB, 1 MiB, processes 1, 4, repeats 3",
        "30 %",
        "Not tested: ",
        "other load",
    ):
        assert words in said, said
    assert "nothing changes" not in said
    once = none_text(three_sizes(repeats=1), language_in("en"))
    assert "nothing could be compared" in once and "measured only once: 3 of 3" in once
    unknown = none_text(
        made([Made("read", lambda p, s: MIB, (1, 4), cache=Cache.UNKNOWN)], 0.03, 4), language_in("en")
    )
    assert "unknown cache state: 2" in unknown and "request size: only one size" in unknown
    assert "検証していない" in none_text(flat, language_in("ja"))


def test_writes_to_the_page_cache_give_no_remark_on_the_disk() -> None:
    limits = (Limit("disk", 1000 * MIB),)
    cached = replace(three_sizes(cache=Cache.PAGE_CACHE), protocol=Protocol(limits=limits))
    kinds = {one.kind for one in find(cached)}
    assert "page-cache" in kinds and "link-limit" not in kinds
    for one in find(cached):
        assert "into the page cache" in remark_text(one, language_in("en"))
    assert "link-limit" in {
        one.kind for one in find(replace(three_sizes(), protocol=Protocol(limits=limits)))
    }


def test_other_load_gives_one_remark() -> None:
    measured = three_sizes()
    load = Load(load_average=9.0, others_cpu_share=0.4, steal_share=None)
    cells = (replace(measured.cells[0], load=load), *measured.cells[1:])
    (found,) = (one for one in find(replace(measured, cells=cells)) if one.kind == "other-load")
    said = remark_text(found, language_in("en"))
    assert "1 of 3 cells" in said and "40 %" in said
    quiet = (replace(measured.cells[0], load=Load(9.0, 0.02, 0.0)), *measured.cells[1:])
    assert "other-load" not in {one.kind for one in find(replace(measured, cells=quiet))}


def test_measurements_without_repeats_give_no_remarks() -> None:
    assert find(made([Made("write", values(1, 10, 100, 100, 100, 100))], 0.0, 1, repeats=1)) == ()
    assert find(Measurements(made([], 0.1, 1).protocol, ())) == ()


def test_the_evidence_of_a_remark_has_the_curve_and_its_spread() -> None:
    remark = find(made([Made("write", values(20, 100, 200, 1000, 1000, 1000))], 0.03, 1))[0]
    assert remark.evidence["at"] == list(PROCESSES)
    assert isinstance(remark.evidence["values"], list) and len(remark.evidence["values"]) == len(PROCESSES)
    assert 0.01 < float(str(remark.evidence["spread_share"])) < 0.06


def test_remarks_are_written_in_both_languages() -> None:
    remark = find(made([Made("write", values(20, 100, 200, 1000, 1000, 1000))], 0.01, 1))[0]
    english = remark_text(remark, language_in("en"))
    assert english.startswith("large transfer, write, 1 MiB: levels off at 50 processes: ")
    japanese = remark_text(remark, language_in("ja"))
    assert "大規模データ転送" in japanese and "50" in japanese and "頭打ち" in japanese


def test_distribution_tails_equal_published_tables() -> None:
    """The values are from tables of Student's t (two-sided 5 %) and of F (upper 5 %)."""
    assert [round(t_limit(0.05, degrees), 3) for degrees in (1, 4, 10, 30)] == [12.706, 2.776, 2.228, 2.042]
    assert t_tails(2.228, 10) == pytest.approx(0.05, abs=1e-4)
    assert f_tail(4.103, 2, 10) == pytest.approx(0.05, abs=1e-4)
    assert f_tail(3.326, 5, 10) == pytest.approx(0.05, abs=1e-4)
    assert incomplete_beta(2.0, 3.0, 0.4) == pytest.approx(0.5248, abs=1e-9)
