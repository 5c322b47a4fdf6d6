"""Tests the gain of a finding: one number determines the ranking, and the headlines agree with it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from diagnosing import diagnosed, of_rule
from iodock.program.diagnosis import diagnose
from iodock.program.findings import Gain, Severity
from iodock.program.rules import gains
from iodock.program.rules.base import Pieces
from iodock.program.store import Store
from iodock.program.views.diagnosis_json import diagnosis_json
from iodock.program.views.diagnosis_text import diagnosis_text
from iodock.program.views.diagnosis_words import gain_text, headline, range_text
from iodock.program.views.report.run import report_html
from iodock.program.views.verdict import Overview, Part, wall_parts, whole_ns
from iodock.shared.errors import RequestError
from iodock.shared.language import LANGUAGES, language_in
from made_rules import SECOND, candidate, findings, made_store, only, rule
from metadata_log import Trace

ENGLISH = language_in("en")


def changed(store: Path, **captured: object) -> Path:
    manifest = json.loads((store / "manifest.json").read_text())
    manifest["captured"] |= captured
    (store / "manifest.json").write_text(json.dumps(manifest))
    return store


@pytest.mark.parametrize(
    ("low", "high", "said"),
    [
        (0.296, 0.889, "0.3 to 0.88 s"),
        (0.658, 1.739, "0.66 to 1.7 s"),
        (0.0127, 0.0381, "13 to 38 ms"),
        (0.0, 0.5, "0 to 500 ms"),
        (2.0, 2.0, "2 s"),
        (1234.0, 2468.0, "1,200 to 2,400 s"),
    ],
)
def test_a_range_of_savings_has_one_unit_and_is_not_rounded_up(low: float, high: float, said: str) -> None:
    found = range_text(Gain(low, high), ENGLISH)
    assert found in (said, said.replace("0.3 to 0.88 s", "300 to 880 ms"))


def test_the_text_states_a_saving_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = findings(made_store(tmp_path), monkeypatch, rule("a-rule", candidate()))
    assert gain_text(only(found), ENGLISH) == "This saves about 1.5 to 3 s of 10 s."
    shown = diagnosis_text(found, ENGLISH, False)
    assert "Cost" not in shown and "expected gain" not in shown
    assert shown.splitlines()[1] == "This saves about 1.5 to 3 s of 10 s."


def test_all_findings_together_save_no_more_than_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = made_store(tmp_path, 9.0)
    many = [
        rule(f"{name}-rule", candidate(time_ns=None, wall_seconds=wall, gain=(0.5, 1.0)))
        for name, wall in (("a", 9.0), ("b", 5.0), ("c", 1.0))
    ]
    found = findings(store, monkeypatch, *many)
    ends = [one.gain for one in found.findings if one.gain is not None]
    assert sum(one.high_seconds for one in ends) == pytest.approx(10.0)
    assert all(0 < one.high_seconds <= 3 * one.low_seconds for one in ends)
    assert [one.rule for one in found.findings] == ["a-rule", "b-rule", "c-rule"]
    assert found.verdict.gain is not None
    assert found.verdict.gain.high_seconds == pytest.approx(10.0)


def test_io_findings_save_no_more_than_the_io_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = made_store(tmp_path, 4.0)
    many = [rule(f"{name}-rule", candidate(gain=(0.6, 1.0))) for name in "abc"]
    found = findings(store, monkeypatch, *many)
    assert sum(one.gain.high_seconds for one in found.findings if one.gain) == pytest.approx(4.0)


def test_the_severity_follows_from_the_reduced_saving(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = made_store(tmp_path, 0.2)
    found = only(findings(store, monkeypatch, rule("a-rule", candidate(gain=(0.6, 1.0)))))
    assert found.gain is not None and found.gain.high_seconds == pytest.approx(0.2)
    assert found.severity is Severity.LOW


def test_savings_outside_calls_may_exceed_the_time_in_calls(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = made_store(tmp_path, 0.2)
    found = only(findings(store, monkeypatch, rule("a-rule", candidate(gain=(0.6, 1.0), work_ns=3 * SECOND))))
    assert found.gain is not None and found.gain.high_seconds == pytest.approx(3.0)
    assert found.severity is Severity.HIGH


def test_uncertain_savings_are_reduced_first() -> None:
    one, other = gains.within([Gain(0.5, 0.95), Gain(0.3, 0.5)], 1.0)
    assert one is not None and other is not None
    assert (one.low_seconds, other.low_seconds) == (0.5, 0.3)
    assert one.high_seconds + other.high_seconds == pytest.approx(1.0)


def test_findings_are_sorted_by_saving_and_not_by_cost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    waiting = candidate(time_ns=None, wall_seconds=6.0, goes_seconds=0.3)
    found = findings(made_store(tmp_path), monkeypatch, rule("a-wait", waiting), rule("files", candidate()))
    assert [(one.rule, one.severity) for one in found.findings] == [
        ("files", Severity.HIGH),
        ("a-wait", Severity.LOW),
    ]


def opened_again(log: Trace, inside_us: int, between_us: int) -> None:
    for _ in range(500):
        log.open("/data/table.csv", took_us=10, flags="O_WRONLY|O_APPEND")
        log.pause(inside_us)
        log.write(100, 10)
        log.close(10)
        log.pause(between_us)


@pytest.mark.parametrize(
    ("inside_us", "between_us", "low", "high"),
    [(200, 1, 0.05, 0.13), (1, 200, 0.01, 0.035), (200, 200, 0.06, 0.24)],
    ids=["the library's", "the program's", "either"],
)
def test_the_saving_includes_the_work_for_each_piece(
    inside_us: int, between_us: int, low: float, high: float, tmp_path: Path
) -> None:
    log = Trace()
    opened_again(log, inside_us, between_us)
    (found,) = of_rule(diagnosed(log.imported(tmp_path, 1)), "open-close-loop")
    assert found.gain is not None
    assert low <= found.gain.low_seconds and found.gain.high_seconds <= high
    assert found.gain.high_seconds <= 3 * found.gain.low_seconds * 1.001
    assert found.gain.high_seconds <= (found.cost_seconds or 0) + found.work_seconds + 1e-9


def test_savings_exclude_computing_between_pieces(tmp_path: Path) -> None:
    log = Trace()
    log.open("/data/out", flags="O_WRONLY|O_CREAT")
    for _ in range(5000):
        log.write(16, 3)
        log.pause(400)
    for one in diagnosed(log.imported(tmp_path, 1)).findings:
        assert one.gain is None or one.gain.high_seconds <= 5000 * (3 + 1) * 1e-6


@pytest.mark.parametrize("code", LANGUAGES)
@pytest.mark.parametrize("worth", [True, False])
@pytest.mark.parametrize(
    "captured",
    [{"exit_status": 3}, {"exit_status": None, "exit_signal": "SIGSEGV"}],
    ids=["status", "signal"],
)
def test_a_failed_program_is_not_called_efficient(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    captured: dict[str, object],
    worth: bool,
    code: str,
) -> None:
    store = changed(made_store(tmp_path), **captured)
    found = findings(store, monkeypatch, *([rule("a-rule", candidate())] if worth else []))
    first, second, *_ = headline(found.verdict, language_in(code))
    assert str(captured.get("exit_signal") or 3) in first and "{" not in first + second
    if code == "en":
        assert "covers the run until then" in first and "is efficient" not in second and "fine" not in second


def test_every_view_has_the_same_headline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    storm = candidate(time_ns=None, wall_seconds=3.5, gain=(0.6, 1.0))
    store = made_store(tmp_path, 0.3)
    found = findings(store, monkeypatch, rule("a-storm", storm))
    said = headline(found.verdict, ENGLISH)
    assert "fine" not in said[0] and "takes longer" in said[0]
    assert json.loads(diagnosis_json(found, ENGLISH))["verdict"]["text"] == " ".join(said)
    with Store.open(store) as opened:
        page = report_html(opened, diagnosis=found)
    assert re.findall(r'<p class="headline">(.*?)</p>', page) == said
    assert "I/O is fine" not in page and "little to gain" not in page


def test_the_bar_shows_the_share_in_the_headline() -> None:
    parts = [Part("data", 6 * SECOND, 10), Part("metadata", 2 * SECOND, 10), Part("waiting", 20 * SECOND, 10)]
    overview = Overview(10 * SECOND, 4 * SECOND, 3 * SECOND, 30, 0, 0, 0, True, parts=parts)
    walls = wall_parts(overview)
    assert walls == {"data": 3 * SECOND, "metadata": SECOND, "waiting": 3 * SECOND}
    assert whole_ns(overview) == 10 * SECOND
    assert overview.io_share == 0.4


def test_unknown_files_give_no_saving_of_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nameless = candidate(files=(), pieces=Pieces.OPENS)
    assert only(findings(made_store(tmp_path), monkeypatch, rule("a-rule", nameless))).work_seconds == 0


def test_a_run_that_only_starts_a_program_has_no_io(tmp_path: Path) -> None:
    """The log is that of `iodock record -- true`."""
    log = Trace()
    log.call('execve("/usr/bin/true", ["true"], 0x7f /* 9 vars */)')
    verdict = diagnosed(log.imported(tmp_path, durations=False)).verdict
    assert verdict.text.text == "No file I/O was seen in this run."


def test_settings_of_a_wrong_type_are_refused_with_the_right_one(tmp_path: Path) -> None:
    log = Trace()
    log.open("/data/a")
    with (
        Store.open(log.imported(tmp_path)) as store,
        pytest.raises(RequestError, match="load_settings, not 'x'"),
    ):
        diagnose(store, "x")  # type: ignore[arg-type]
