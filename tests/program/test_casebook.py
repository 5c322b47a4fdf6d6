"""Tests the casebook: every case is complete, its two programs do the same work, and a site's own case
contains no names."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from data_faults import made, page_writes, small_writes
from diagnosing import only_rules
from iodock.cli.run import run as run_command
from iodock.program import rules
from iodock.program.casebook import Case, every, find, names
from iodock.program.casebook.case import OWN_CASES, TEXTS, VARIABLE, read
from iodock.program.casebook.run import Effect, effect, missing, run_case
from iodock.program.diagnosis import diagnose
from iodock.program.store import Store
from iodock.program.views.case_text import case_text, effect_text
from iodock.shared.errors import IodockError, RequestError
from iodock.shared.language import language_in
from iodock.shared.settings import Settings

OWN = [case for case in every() if case.is_own]


@pytest.fixture(autouse=True)
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(VARIABLE, str(tmp_path / "site"))
    return tmp_path / "site"


@pytest.mark.parametrize("case", OWN, ids=lambda case: case.name)
def test_every_case_is_complete(case: Case) -> None:
    assert all(getattr(case, key) for key in TEXTS)
    assert set(case.rules) <= set(rules.names())
    assert case.before and case.after
    for version in (case.before, case.after):
        named = [
            word
            for word in (*version.run, *(version.compile or ()))
            if word.endswith((".c", ".cpp", ".py", ".sh"))
        ]
        assert named and all((case.folder / name).is_file() for name in named)


def test_the_cases_named_by_rules_exist() -> None:
    assert {rule.case for rule in rules.every() if rule.case} <= set(names())


@pytest.mark.whole
@pytest.mark.parametrize("case", OWN, ids=lambda case: case.name)
def test_both_versions_do_the_same_work(case: Case, tmp_path: Path) -> None:
    if missing(case):
        pytest.skip(f"needs {', '.join(missing(case))}")
    told: list[str] = []
    run = run_case(case, tmp_path / "run", 1, lambda what, number, of: told.append(what))
    assert run.outputs[0] == run.outputs[1] != ""
    assert told[-2:] == ["before", "after"]
    found = effect(run, Settings())
    assert set(case.rules) <= {finding.rule for finding in found.gone}
    with Store.open(run.after[0]) as after:
        assert not diagnose(after, Settings()).worth_changing


def test_a_case_can_be_run_from_the_command_line(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    keep = tmp_path / "kept"
    with only_rules("open-close-loop", "small-requests"):
        assert (
            run_command(["cases", "run", "open-close", "--keep", str(keep), "--lang", "en", "--quiet"]) == 0
        )
    said = capfd.readouterr().out
    for part in ("== Before", "== After", "== What changed", "open-close-loop", "a gain of"):
        assert part in said
    assert (keep / "before.iodock" / "manifest.json").is_file()
    assert run_command(["cases", "run", "open-close", "--keep", str(keep)]) == 2


@pytest.mark.usefixtures("few_rules")
def test_a_site_can_add_its_own_case(tmp_path: Path, site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folders = tmp_path / "before", tmp_path / "after"
    for folder in folders:
        folder.mkdir()
    before, after = made(small_writes, folders[0]), made(page_writes, folders[1])
    texts = ["--title", "Our solver", "--why", 'quotes " and \\ and 日本語']
    arguments = [
        "cases",
        "add",
        "our-solver",
        "--before",
        str(before),
        "--after",
        str(after),
        *texts,
    ]
    assert run_command(arguments) == 0
    case = find("our-solver")
    assert (case.title, case.why, case.before) == ("Our solver", 'quotes " and \\ and 日本語', None)
    assert "small-requests" in case.rules
    held = " ".join(path.read_text(errors="replace") for path in site.rglob("manifest.json"))
    assert str(tmp_path) not in held and "/data/out" not in held
    assert run_command(["cases", "run", "our-solver"]) == 0
    assert run_command(arguments) == 1
    assert run_command([*arguments, "--force"]) == 0
    assert run_command(["cases"]) == 0
    assert "our-solver" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["", "../up", "a b", "a/b"])
def test_invalid_case_names_are_refused(name: str, tmp_path: Path) -> None:
    assert run_command(["cases", "add", name, "--before", "x", "--after", "y", "--title", "t"]) == 2


@pytest.mark.parametrize(("name", "title"), [("small-writes", "ours"), ("ours", " "), ("ours", "a\nb")])
def test_used_names_and_empty_titles_are_refused(name: str, title: str) -> None:
    assert run_command(["cases", "add", name, "--before", "x", "--after", "y", "--title", title]) == 2


def test_an_unknown_case_gives_an_error() -> None:
    with pytest.raises(RequestError, match="no such case: nothing"):
        find("nothing")


@pytest.mark.parametrize(
    "content",
    [
        "title = ",
        'see = "x"',
        'title = "x"\nrules = 3',
        '[before]\ncompile = ["cc"]\n[after]\nrun=["x"]\ntitle="x"',
    ],
)
def test_a_damaged_case_is_named(content: str, tmp_path: Path) -> None:
    (tmp_path / "case.toml").write_text(content)
    with pytest.raises(RequestError, match=r"case\.toml"):
        read(tmp_path)


def test_a_damaged_case_hides_no_other_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    for name, content in (("broken", "title = "), ("sound", 'title = "a \\u001b[31m title"')):
        (tmp_path / name).mkdir()
        (tmp_path / name / "case.toml").write_text(content)
    assert run_command(["cases"]) == 0
    shown = capsys.readouterr()
    assert "shell-loop" in shown.out and "sound" in shown.out and "\x1b" not in shown.out
    assert "broken" in shown.err
    with pytest.raises(RequestError, match=r"broken/case\.toml"):
        find("broken")


def test_missing_parts_of_a_case_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(IodockError) as caught:
        run_case(find("ifstream-tellg"), tmp_path / "run", 1, lambda *told: None)
    assert "c++" in str(caught.value) and caught.value.hint == "apt-get install g++"


@pytest.mark.parametrize("code", ["en", "ja"])
def test_case_pages_exist_in_both_languages(code: str) -> None:
    for case in OWN:
        page = case_text(case, language_in(code), 60)
        assert case.name in page and "{" not in page


def test_measured_effects_are_reported_even_if_unexpected() -> None:
    text = language_in("en")
    inside = Effect(2.0, 1.0, 0.5, 1.5, ())
    assert inside.is_inside and inside.gain_seconds == 1.0
    worse = Effect(1.0, 2.0, 0.5, 1.5, (object(),))  # type: ignore[arg-type]
    assert not worse.is_inside and "gain of -1 s" in effect_text(worse, text)
    assert "nothing was worth changing" in effect_text(Effect(1.0, 0.5, 0.0, 0.0, ()), text)
    assert "still there" in effect_text(Effect(1.0, 0.5, 0.0, 0.0, (), remaining=1), text)


def test_every_case_is_part_of_the_package() -> None:
    listed = {path.name for path in OWN_CASES.iterdir() if path.is_dir()}
    assert listed == {case.name for case in OWN}
