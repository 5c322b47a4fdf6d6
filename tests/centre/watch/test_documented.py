"""Tests that every setting of the response is in the how-to with its default, and that every reason has its
sentence."""

from __future__ import annotations

import dataclasses
import re
import tomllib

import pytest

from iodock.centre.watch.acting import WHY
from iodock.centre.watch.schedulers import SCHEDULERS
from iodock.shared.response import Intervention, Notices, Privacy, Recipient
from iodock.shared.settings import load
from places import ROOT, SOURCE

PAGE = (ROOT / "docs/how-to/server-notices.md").read_text()
BLOCKS = [tomllib.loads(block) for block in re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)]
EXAMPLES = ("portal", "sender", "lustre_version", "node_local", "prefix", "scheduler")
"""These have no useful default."""


@pytest.mark.parametrize(
    ("section", "kind"), [("notices", Notices), ("response", Intervention), ("privacy", Privacy)]
)
def test_every_setting_is_documented_with_its_default(section: str, kind: type) -> None:
    written = next(block[section] for block in BLOCKS if section in block)
    for field in dataclasses.fields(kind):
        assert field.name in written, field.name
        if field.name not in (*EXAMPLES, "to", "languages"):
            default = list(field.default) if isinstance(field.default, tuple) else field.default
            assert written[field.name] == default, field.name
    assert set(written) == {field.name for field in dataclasses.fields(kind)}


def test_all_options_of_recipients_are_documented() -> None:
    shown = [one for block in BLOCKS for one in block.get("notices", {}).get("to", {}).values()]
    assert {name for one in shown for name in one} == {field.name for field in dataclasses.fields(Recipient)}
    assert {one["who"] for one in shown} == {"operators", "users", "owner"}
    assert {one["by"] for one in shown} == {"mail", "webhook", "syslog"}


def test_the_documented_example_is_accepted(tmp_path: object) -> None:
    from pathlib import Path

    path = Path(str(tmp_path)) / "settings.toml"
    path.write_text("\n".join(re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)))
    assert load(path).response.scheduler == "slurm"


def test_every_scheduler_is_documented() -> None:
    for name in SCHEDULERS:
        assert f"{name}" in PAGE


def test_every_reason_has_a_sentence_on_the_page() -> None:
    """The page would show a key that the code uses but the page does not define as empty."""
    folder = SOURCE / "centre" / "watch"
    used: set[str] = set()
    for path in (folder / "actions.py", folder / "acting.py", folder / "deciding.py"):
        used |= set(re.findall(r'"([a-z]+-[a-z-]+)"', path.read_text()))
    events = {"about-to-act", "about-to-undo", "command-failed", "scheduler-failed", "no-samples"}
    assert used - events <= set(WHY)
