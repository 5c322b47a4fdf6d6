"""Tests the marks of faulty lines in labelled programs: no mark is missing, and which lines count as
right."""

from __future__ import annotations

import sys

from places import ROOT

sys.path.insert(0, str(ROOT / "benches"))
sys.path.insert(0, str(ROOT / "tools"))

from line_truth import DEVELOPMENT, faulty_runs, marks_of, named, source_of


def test_each_fault_of_a_labelled_program_has_a_marked_line() -> None:
    sets = sorted(path.parent for path in DEVELOPMENT.glob("*/labels.toml"))
    faults = marked = 0
    for sources in sets:
        marks = marks_of(sources)
        for label in faulty_runs(sources):
            source = source_of(label, sources)
            assert source
            for rule in label.faults:
                faults += 1
                marked += any(name == source.name for name, _ in marks.get(rule, ()))
    assert faults == marked > 400


def test_a_location_is_right_if_its_line_is_marked_with_the_rule() -> None:
    sources = DEVELOPMENT / "data"
    (label,) = (one for one in faulty_runs(sources) if one.name == "lines-endl")
    ((_, line),) = marks_of(sources)["small-requests"] & {("lines.cpp", n) for n in range(99)}

    def found(line: int, severity: str = "high", caller: int | None = None) -> list[tuple[bool, bool]]:
        called_from = caller and {"place": f"lines.cpp:{caller}", "file": "/x/lines.cpp", "line": caller}
        place = {"place": "x", "file": "/x/lines.cpp", "line": line, "called_from": called_from}
        finding = {"rule": "small-requests", "severity": severity, "locations": [place]}
        return [(one.is_right, one.is_right_with_caller) for one in named(label, sources, [finding])]

    assert (found(line), found(line + 1), found(line, "note")) == ([(True, True)], [(False, False)], [])
    assert (found(line + 1, caller=line), found(line, caller=1)) == ([(False, True)], [(True, True)])
