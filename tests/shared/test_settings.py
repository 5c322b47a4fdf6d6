"""Tests a site's settings: values replace defaults, and iodock reports unusable ones with their file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from iodock.shared.errors import RequestError
from iodock.shared.settings import VARIABLE, Settings, load


@dataclass(frozen=True)
class Thresholds:
    least: int = 3
    share: float = 0.5
    careful: bool = False


def written(folder: Path, text: str) -> Path:
    path = folder / "site.toml"
    path.write_text(text)
    return path


def test_missing_settings_have_defaults(tmp_path: Path) -> None:
    found = load(written(tmp_path, "[severity]\nhigh = 0.5\n"))
    assert (found.severity.high, found.severity.medium, found.severity.low) == (0.5, 0.05, 0.01)
    assert found.ratio.io_below == Settings().ratio.io_below


def test_file_system_settings_are_found_by_mount_point(tmp_path: Path) -> None:
    text = (
        '[file_systems."/home"]\nkind = "network"\nlink_bytes_per_s = 125_000_000\nstat_knee_processes = 50\n'
    )
    system = load(written(tmp_path, text)).file_system("/home")
    assert system is not None
    assert (system.kind, system.link_bytes_per_s, system.stat_knee_processes) == ("network", 125_000_000, 50)
    assert load(written(tmp_path, text)).file_system("/other") is None


def test_thresholds_of_a_rule_are_read(tmp_path: Path) -> None:
    found = load(written(tmp_path, "[rules.some-rule]\nleast = 7\nshare = 1\ncareful = true\n"))
    assert found.of_rule("some-rule", Thresholds) == Thresholds(7, 1, True)
    assert found.of_rule("another", Thresholds) == Thresholds()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[severty]\nhigh = 1\n", "section [severty]"),
        ("[severity]\nhihg = 1\n", "[severity] hihg"),
        ('[severity]\nhigh = "much"\n', "high = 'much'"),
        ("[severity]\nhigh = -1\n", "high = -1"),
        ('[file_systems."/home"]\nkind = "tape"\n', "kind = 'tape'"),
        ('[file_systems."/home"]\nstat_knee_processes = 1.5\n', "stat_knee_processes"),
        ('[file_systems."/home"]\nkind = "tape"\n', "is not local, network, parallel"),
        ("[severity]\nhigh = -1\n", "is not a number from 0 on"),
        ("[severity]\nhigh = 0.02\nlow = 0.1\n", "[severity] medium = 0.05 is below low = 0.1"),
        ("[severity]\nhigh = 0.01\n", "[severity] high = 0.01 is below medium = 0.05"),
        ("[ratio]\nio_below = 0.9\n", "[ratio] compute_above = 0.8 is below io_below = 0.9"),
        ("[severity]\nhigh = 50\n", "high = 50 is not a share from 0 to 1"),
        ("[severity]\nhigh = nan\n", "high = nan is not a number from 0 on"),
        ("[ratio]\ncompute_above = 80\n", "compute_above = 80 is not a share from 0 to 1"),
        ('[file_systems."/home"]\nread_bytes_per_s = inf\n', '[file_systems."/home"] read_bytes_per_s = inf'),
        ('[file_systems."/home"]\nmetadata_per_s = nan\n', "metadata_per_s = nan"),
        ('[file_systems."/home"]\nstripe_count = 0\n', "stripe_count = 0 is not a number above 0"),
        ('[file_systems."home"]\nstripe_count = 2\n', '[file_systems."home"] is not a mount point'),
        ('[file_systems."/a"]\nstripe_count = 2\n[file_systems."/a/"]\n', "is given twice"),
        ("severity = 3\n", "severity"),
        ("rules = 3\n", "rules = 3 is not a section"),
        ("rules = []\n", "rules = [] is not a section"),
        ("[rules]\nsmall-requests = 3\n", "small-requests"),
        ("[severity\n", "is not TOML"),
        ("[states]\nsamples = 0\n", "above 0"),
        ("[states]\ncpu_share = 1.5\n", "share from 0 to 1"),
        ('[states]\nscheduler = "cron"\n', "slurm"),
        ("[monitor]\nqueue = 100\n", "[monitor] is no longer used"),
    ],
)
def test_unusable_settings_are_named(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(RequestError) as caught:
        load(written(tmp_path, text))
    assert says in str(caught.value) and "site.toml" in str(caught.value)


def test_an_invalid_threshold_is_named(tmp_path: Path) -> None:
    found = load(written(tmp_path, "[rules.some-rule]\nleats = 7\n"))
    with pytest.raises(RequestError) as caught:
        found.of_rule("some-rule", Thresholds)
    assert caught.value.hint == "did you mean least"


@pytest.mark.parametrize("value", ["50", "nan", "inf"])
def test_a_threshold_that_is_a_share_is_at_most_1(tmp_path: Path, value: str) -> None:
    found = load(written(tmp_path, f"[rules.some-rule]\nleast_share = {value}\n"))

    @dataclass(frozen=True)
    class Limits:
        least_share: float = 0.5

    with pytest.raises(RequestError, match=r"site\.toml: \[rules\.some-rule\] least_share = "):
        found.of_rule("some-rule", Limits)


@pytest.mark.parametrize(("given", "mount"), [("/dev/shm/", "/dev/shm"), ("//home", "/home"), ("/", "/")])
def test_mount_points_may_be_escaped_like_in_the_kernels_tables(
    tmp_path: Path, given: str, mount: str
) -> None:
    found = load(written(tmp_path, f'[file_systems."{given}"]\nstripe_count = 4\n'))
    system = found.file_system(mount)
    assert system is not None and system.stripe_count == 4


def test_a_missing_settings_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match=r"nowhere\.toml"):
        load(tmp_path / "nowhere.toml")


def test_the_environment_variable_names_a_settings_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, str(written(tmp_path, "[ratio]\nio_below = 0.2\n")))
    assert load().ratio.io_below == 0.2


def test_settings_of_the_response_to_unwell_servers_are_read(tmp_path: Path) -> None:
    text = """
[response]
mode = "ask"
scheduler = "slurm"
states = ["stall"]
protected_users = ["root", "backup"]
least_confidence = 1
[notices]
smtp = "mail:25"
[notices.to.ops]
who = "operators"
by = "webhook"
address = "https://hook.example/"
file_systems = ["lfs"]
[notices.languages]
alice = "ja"
[privacy]
suspects_days = 30
"""
    found = load(written(tmp_path, text))
    assert (found.response.mode, found.response.states, found.response.action) == (
        "ask",
        ("stall",),
        "suspend",
    )
    assert found.response.protected_users == ("root", "backup")
    assert found.notices.to["ops"].file_systems == ("lfs",) and found.notices.languages == {"alice": "ja"}
    assert found.privacy.suspects_days == 30 and Settings().response.mode == "suggest"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('[response]\nmode = "always"\n', "mode = 'always' is not suggest, ask, act"),
        ('[response]\nstates = ["busy"]\n', "is not a list, each overload, stall"),
        ('[response]\nstates = "stall"\n', "is not a list"),
        ("[response]\nprotected_users = [0]\n", "is not a list, each a text in quotes"),
        ("[response]\nleast_confidence = 1.5\n", "is not a share from 0 to 1"),
        ("[response]\nmost_an_hour = -1\n", "most_an_hour = -1"),
        ('[notices.to.ops]\nby = "pigeon"\n', "[notices.to.ops] by = 'pigeon'"),
        ("[notices.to]\nops = 1\n", "[notices.to.ops] is not a section"),
        ('[notices.languages]\nalice = "fr"\n', "[notices.languages] alice = 'fr' is not en, ja"),
        ("[notices]\nto = 1\n", "is not a section"),
        ("[privacy]\nforever = true\n", "[privacy] forever"),
    ],
)
def test_invalid_response_settings_are_named(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(RequestError) as error:
        load(written(tmp_path, text))
    assert says in str(error.value)
