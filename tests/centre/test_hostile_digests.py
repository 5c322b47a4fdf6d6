"""Tests that a digest shows names of jobs, owners and file systems, which come from users, as plain text."""

from __future__ import annotations

import json

import pytest

from iodock.centre.views.digests import FORMS
from iodock.centre.watch.digest import Digest, Sums, Trouble
from iodock.shared.language import LANGUAGES, language_in

EVIL = (
    "\x1b[2J\x1b]0;x\x07",
    "a\r\n  Advice: rm -rf /",
    '"><script>alert(1)</script>',
    "$(touch /tmp/x)`id`';--",
    "\u202egnp.exe",
    "\ud800",
    "x" * 100_000,
    "{n}{title}",
)


def hostile(name: str) -> Digest:
    sums = Sums("servers", 1.0, 2.0, 1.0, 1.0, 3.0, ((name, 3.0),), True)
    trouble = Trouble(name, "overload", True, 60.0, False)
    return Digest(
        job=name, users=(name, "b"), name=name, begin=0, end=10**11, is_over=True, sums=(sums,),
        file_systems=(name,), troubles=(trouble,),
    )  # fmt: skip


@pytest.mark.parametrize("lang", LANGUAGES)
@pytest.mark.parametrize("name", EVIL)
def test_hostile_names_are_plain_text_in_every_digest(name: str, lang: str) -> None:
    plain = FORMS["text"](hostile("plain"), language_in(lang))
    found = {form: make(hostile(name), language_in(lang)) for form, make in FORMS.items()}
    for form, text in found.items():
        text.encode()
        assert not {one for one in text if not one.isprintable()} - {"\n"}, form
    assert found["text"].count("\n") == plain.count("\n")
    assert "<script" not in found["html"]
    assert json.loads(found["json"])["schema"] == "iodock-digest-1"
    # A shell must read each value in the suggested command as one word.
    last = found["text"].splitlines()[-1]
    assert "bundle" in last and ("$(" not in last or "'" in last)
