"""Tests sending a job's digest by mail to its owner, through a real SMTP server on the loopback interface."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from email import message_from_bytes
from email.policy import default
from pathlib import Path

import pytest

from iodock.centre.watch.notices.digests import letters
from iodock.shared.errors import RequestError
from iodock.shared.response import Notices, Recipient
from notice_sinks import mail_sink
from portal_past import EVIL, GB, Past
from portal_site import OTHER_ID, Server, portal

SLOW = "100"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with portal(tmp_path_factory.mktemp("mails") / "store") as server:
        past = Past(server.collector)
        for day in range(1, 7):
            past.run(f"10{day}", "ocean", 24.0 * day, 600, GB)
        past.run(SLOW, "ocean", 3, 1860)
        past.run("200", EVIL, 5, 100)
        past.run("301", "ocean", 5, 100, GB, OTHER_ID)
        past.push()
        yield server


def settings(folder: Path, smtp: str, *more: str) -> Path:
    path = folder / "iodock.toml"
    lines = ["[notices]", f'smtp = "{smtp}"', 'sender = "io@hpc.example.org"', "timeout_s = 5", *more]
    lines += ["[notices.to.digests]", 'who = "digest"', 'address = "{user}@users.example.org"']
    path.write_text("\n".join(lines) + "\n")
    return path


def sent(site: Server, path: Path, *words: str, status: int = 0) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "iodock", "monitor", "digest", *words, "--portal", site.url]
    environment = {**os.environ, "HOME": "/nonexistent", "LANG": "C", "IODOCK_SETTINGS": str(path)}
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, env=environment)
    assert done.returncode == status, done.stderr
    return done


def test_the_owner_gets_the_digest_once(site: Server, tmp_path: Path) -> None:
    with mail_sink() as mails:
        path = settings(tmp_path, mails.address)
        done = sent(site, path, SLOW, "--mail", "slower")
        assert done.stdout == "" and "sent to root@users.example.org" in done.stderr
        # The run was as usual, so iodock sends no mail.
        assert "no mail is sent" in sent(site, path, "106", "--mail", "slower").stderr
        sent(site, path, "106", "--mail", "always")
    assert [(sender, to) for sender, to, _ in mails.mails] == [
        ("io@hpc.example.org", ["root@users.example.org"])
    ] * 2
    mail = message_from_bytes(mails.mails[0][2], policy=default)
    assert mail["Subject"] == "[iodock] Job 100 (ocean) of root: 3.1 times slower than usual"
    assert "Earlier runs of the job: " in mail.get_content() and mail["Auto-Submitted"] == "auto-generated"


def test_the_digest_is_in_the_owners_language(site: Server, tmp_path: Path) -> None:
    with mail_sink() as mails:
        more = ("[notices.languages]", 'root = "ja"')
        sent(site, settings(tmp_path, mails.address, *more), SLOW, "--mail", "always")
    mail = message_from_bytes(mails.mails[0][2], policy=default)
    assert "通常の 3.1 倍の時間" in mail["Subject"] and "過去の実行" in mail.get_content()


def test_a_hostile_name_is_plain_text_in_the_mail(site: Server, tmp_path: Path) -> None:
    with mail_sink() as mails:
        sent(site, settings(tmp_path, mails.address), "200", "--mail", "always")
    ((_, to, content),) = mails.mails
    mail = message_from_bytes(content, policy=default)
    assert to == ["root@users.example.org"] and "\x1b" not in mail["Subject"]
    assert mail.keys().count("Subject") == 1 and "<script>" in mail["Subject"]


def test_mail_that_can_not_be_sent_is_reported(site: Server, tmp_path: Path) -> None:
    # If the owner has no login name, iodock sends no mail.
    with mail_sink(RCPT="550 no") as mails:
        path = settings(tmp_path, mails.address)
        assert "is not a login name" in sent(site, path, "301", "--mail", "always", status=2).stderr
        assert "the server answers 550" in sent(site, path, SLOW, "--mail", "always", status=1).stderr
        assert mails.mails == []
    away = settings(tmp_path, "127.0.0.1:9")
    assert "not sent" in sent(site, away, SLOW, "--mail", "always", status=1).stderr
    assert "can't be combined with" in sent(site, path, SLOW, "--mail", "always", "--json", status=2).stderr
    path.write_text("")
    assert "the settings have no address" in sent(site, path, SLOW, "--mail", "always", status=2).stderr


@pytest.mark.parametrize("owner", ["a@evil.example", "a b", "a\nRCPT TO:<x@y>", "-x", "{user}", "1000", ""])
def test_a_user_name_cannot_become_another_mail_address(owner: str) -> None:
    notices = Notices(to={"digests": Recipient("digest", "mail", "{user}@users.example.org")})
    with pytest.raises(RequestError):
        letters(notices, "1@20260101T000000Z", [owner], lambda code: "iodock: Job 1\n")
    (letter,) = letters(notices, "1@x", ["alice"], lambda code: "iodock: Job 1\n")
    assert letter.address == "alice@users.example.org"
