"""Tests that the privacy page describes the program correctly: its settings exist, and its times are the
defaults."""

from __future__ import annotations

import dataclasses
import re

import pytest

from iodock.centre.portal.session import LASTS_S
from iodock.cli.monitor_serve import serve
from iodock.shared.response import Notices, Privacy
from places import ROOT

PAGE = (ROOT / "docs/explanation/privacy.md").read_text()
DAYS = re.compile(r"`(--keep[a-z-]*|[a-z_]+_days)`, (\d+) days?\b")
OPTIONS = {name: option for option in serve.params for name in option.opts}
SETTINGS = {field.name: field for kind in (Privacy, Notices) for field in dataclasses.fields(kind)}


def test_every_setting_on_the_page_exists() -> None:
    named = set(re.findall(r"`(--[a-z-]+)[`= ]", PAGE)) - {"--anonymous", "--operator"}
    assert named and named <= set(OPTIONS)
    named = set(re.findall(r"`([a-z]+(?:_[a-z]+)+)(?: = \w+)?`", PAGE)) - {"job_stats", "jobid_name"}
    assert named and named <= set(SETTINGS), named - set(SETTINGS)


def test_every_privacy_setting_is_on_the_page() -> None:
    for field in dataclasses.fields(Privacy):
        assert f"`{field.name}" in PAGE, field.name


@pytest.mark.parametrize(("name", "days"), sorted(set(DAYS.findall(PAGE))))
def test_retention_times_on_the_page_are_the_defaults(name: str, days: str) -> None:
    default = OPTIONS[name].default if name in OPTIONS else SETTINGS[name].default
    assert default == float(days)


def test_all_retention_times_on_the_page_are_compared() -> None:
    assert len(set(DAYS.findall(PAGE))) == 3 + 5
    assert LASTS_S == 12 * 3600
