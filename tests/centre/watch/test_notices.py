"""Tests notices: iodock sends one when an episode begins and one when it ends, in each recipient's
language."""

from __future__ import annotations

import email
import email.policy
import json
import shutil
import ssl
import subprocess
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from iodock.centre.watch.notices.mail import Mail
from iodock.centre.watch.notices.outbox import Refused, TryAgain
from iodock.centre.watch.notices.recipients import Letter, checked
from iodock.centre.watch.notices.webhook import Webhook
from iodock.shared.errors import RequestError
from iodock.shared.response import Intervention, Notices, Privacy, Recipient
from iodock.shared.text import visible
from made_verdicts import JOB, SECOND, TOLD, Site, suspect, verdict
from notice_sinks import mail_sink, syslog_sink, web_sink

SUGGESTS = Intervention(scheduler="slurm", lustre_version="2.15.3", node_local="$TMPDIR")
EVIL = (
    "x\r\nBcc: victim@example.org\r\n\r\n<script>", "a\nX-Evil: 1", "\u202eevil\u2066", "\x00\x1b[31m",
    "{subject}", "%s", "\u2028line", "x" * 5000, ".\r\n", "=?utf-8?b?QQ==?=",
)  # fmt: skip


def told(folder: Path, **more: Any) -> Site:
    return Site(folder, **{"rules": SUGGESTS, **more})


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    made = told(tmp_path)
    yield made
    made.responder.close()


def phases(site: Site) -> list[tuple[str, str]]:
    return [(letter.recipient, letter.phase) for letter in site.sent]


def test_a_notice_is_sent_at_the_start_and_end_of_an_episode(site: Site) -> None:
    site.intervals(2)
    assert site.sent == []
    site.intervals(50)
    begins = [("operators", "begin"), ("list", "begin"), ("owners", "begin")]
    assert phases(site) == begins
    site.intervals(3, "stall")
    site.intervals(3, "no-samples")
    assert phases(site) == begins
    site.intervals(10, "healthy")
    assert phases(site) == [*begins, ("operators", "end"), ("list", "end"), ("owners", "end")]
    assert "stalled" in site.sent[3].message.text
    site.intervals(4)
    assert len(phases(site)) == 9


@pytest.mark.parametrize("phase", ["begin", "told", "end"])
def test_no_notice_is_repeated_after_a_restart(site: Site, phase: str) -> None:
    site.intervals(3 if phase == "begin" else 10, works=phase != "begin")
    if phase == "end":
        site.intervals(3, "healthy")
    before = len(site.sent)
    site.restart()
    site.intervals(5, "healthy" if phase == "end" else "overload")
    assert len(site.sent) == {"begin": 3, "told": before, "end": before}[phase]
    site.intervals(5, "healthy")
    assert sorted(phases(site)) == sorted(
        (one, two) for one in ("operators", "list", "owners") for two in ("begin", "end")
    )


def test_an_interrupted_notice_is_counted_and_not_sent_again(tmp_path: Path) -> None:
    class Crash(BaseException):
        pass

    def crash(letter: Letter) -> None:
        raise Crash

    site = told(tmp_path, send=crash)
    with pytest.raises(Crash):
        site.intervals(3)
    site.send = None
    site.restart()
    site.intervals(3)
    assert phases(site) == [("list", "begin"), ("owners", "begin")]
    assert site.responder.counts() == {
        "lost: mail: the collector ended while it was being sent": 1, "sent: mail": 2,
    }  # fmt: skip
    site.responder.close()


def test_short_fluctuations_send_no_notice(site: Site) -> None:
    for _ in range(10):
        site.intervals(2)
        site.intervals(3, "healthy")
    assert site.sent == []


def test_one_notice_covers_servers_of_one_file_system(site: Site) -> None:
    for samples in range(1, 6):
        site.wait(10)
        site.hear(*(verdict(site.now, "stall", samples, server=f"oss{n}", kind="object") for n in range(100)))
    assert [letter.phase for letter in site.sent if letter.recipient == "operators"] == ["begin"]
    assert "oss0, oss1" in site.sent[0].message.text and "and 90 more" in site.sent[0].message.text
    site.wait(10)
    site.hear(*(verdict(site.now, "healthy", 5, server=f"oss{n}", kind="object") for n in range(99)))
    assert len(site.sent) == 3
    site.wait(10)
    site.hear(verdict(site.now, "healthy", 5, server="oss99", kind="object"))
    assert [letter.phase for letter in site.sent] == ["begin"] * 3 + ["end"] * 3
    # An episode of a different kind of server is separate.
    site.wait(10)
    site.hear(verdict(site.now, server="mds01"), verdict(site.now, "stall", server="oss1", kind="object"))
    assert len(site.sent) == 12


def test_recipients_get_only_relevant_notices(site: Site) -> None:
    site.intervals(
        6, suspects=(suspect(name="training", nodes=40, job_ids=40), suspect("9", owner=None, share=0.05))
    )
    operators, users, owner = (letter.message for letter in site.sent)
    assert operators.subject == "lfs: metadata server overloaded"
    assert f"- {JOB} (training), alice: 90 % of the requests, confidence 95 %" in operators.text
    assert "- 9, owner unknown: 5" in operators.text
    assert (
        f"scontrol suspend {JOB}" in operators.text and f"jobid={{{JOB} {JOB}:*}} rate=30" in operators.text
    )
    assert "https://monitor.example:9847/actions?lang=en" in operators.text
    assert JOB not in users.text and "alice" not in users.text and "suspects" not in users.facts
    assert site.sent[1].message.subject == "lfs: メタデータサーバが高負荷状態"
    assert "mds01 は、2027-" in users.text
    assert owner.subject == f"Your job {JOB} (training) and lfs"
    assert (
        "The job opens 12,000 files per second." in owner.text
        and "on the node itself ($TMPDIR)" in owner.text
    )
    assert "9" not in owner.text.replace("9,000", "").replace("2027-01-15 08:00:20", "").split("90 %")[0][-5:]
    assert "nrs_tbf" not in owner.text and "scontrol" not in owner.text


def test_owners_are_notified_only_if_certain_and_known(site: Site) -> None:
    site.intervals(
        6, suspects=(suspect(confidence=0.79), suspect("8", owner=None), suspect("7", owner="b@d"))
    )
    assert [letter.recipient for letter in site.sent] == ["operators", "list"]
    site.intervals(2, suspects=(suspect("6", owner="carol"), suspect("5", owner="carol")))
    assert [letter.address for letter in site.sent[2:]] == ["carol@example.org"]


def test_a_site_may_leave_job_names_out_of_notices(tmp_path: Path) -> None:
    site = told(tmp_path, privacy=Privacy(job_names=False, suspects_in_webhooks=False))
    site.intervals(3, suspects=(suspect(name="secret"),))
    assert not any("secret" in repr(letter) for letter in site.sent)
    assert "suspects" not in site.sent[0].message.facts
    site.responder.close()


def test_affected_users_get_notices_in_their_language(tmp_path: Path) -> None:
    notices = Notices(
        to={"users": Recipient("users", "mail", "{user}@example.org")}, languages={"bob": "ja"}, most_users=3
    )
    names = ["bob", "al", "x y", "a@b", "\r\nBcc: x", "carol", "zoe"]
    site = told(tmp_path, notices=notices, sufferers=lambda name: names if name == "lfs" else [])
    site.intervals(3)
    assert [letter.address for letter in site.sent] == [
        "al@example.org",
        "bob@example.org",
        "carol@example.org",
    ]
    assert "高負荷" in site.sent[1].message.subject and "overloaded" in site.sent[0].message.subject
    assert site.responder.counts()["lost: mail: more users are affected than most_users allows"] == 1
    names.clear()
    site.intervals(3, "healthy")
    assert [letter.phase for letter in site.sent[3:]] == ["end"] * 3
    assert "回復" in site.sent[4].message.subject
    site.responder.close()


def test_unknown_affected_users_are_counted(tmp_path: Path) -> None:
    notices = Notices(to={"users": Recipient("users", "mail", "{user}@example.org")})
    site = told(tmp_path, notices=notices, sufferers=lambda name: None)
    site.intervals(3)
    assert site.sent == [] and site.responder.counts() == {
        "lost: mail: it is not known which users are affected": 1
    }
    site.responder.close()


def test_recipients_get_notices_only_for_their_file_systems(tmp_path: Path) -> None:
    notices = Notices(to={
        "a": Recipient("operators", "mail", "a@x", file_systems=("gfs",)),
        "b": Recipient("operators", "mail", "b@x", file_systems=("lfs",)),
    })  # fmt: skip
    site = told(tmp_path, notices=notices)
    site.intervals(3)
    assert [letter.recipient for letter in site.sent] == ["b"]
    site.responder.close()


@pytest.mark.parametrize("name", EVIL, ids=range(len(EVIL)))
def test_hostile_job_names_are_plain_text_in_every_channel(tmp_path: Path, name: str) -> None:
    with mail_sink() as mails, web_sink() as web, syslog_sink(tmp_path / "log") as (place, log):
        notices = Notices(smtp=mails.address, to={
            "mail": Recipient("operators", "mail", "ops@example.org"),
            "hook": Recipient("operators", "webhook", web.url),
            "log": Recipient("operators", "syslog", place),
            "owners": Recipient("owner", "mail", "{user}@example.org"),
        })  # fmt: skip
        site = told(tmp_path / "response", notices=notices, send=_real(notices))
        site.intervals(3, server=name, file_system="l" + name, suspects=(suspect(name, name=name),))
        _, recipients, content = mails.mails[0]
        found = email.message_from_bytes(content, policy=email.policy.default)
        assert recipients == ["ops@example.org"] and found["To"] == "ops@example.org"
        assert found["Bcc"] is None and found["X-Evil"] is None
        assert len(found.get_all("Subject")) == 1 and found["Subject"].startswith("[iodock] l")
        text = found.get_content()
        assert text.replace("\n", "").isprintable() and text.count("Bcc:") == text.count("\\r\\nBcc:")
        assert (visible(name)[:30] in text) and len(text) < 3000
        posted = json.loads(web.posts[0][2])
        assert posted["suspects"][0]["name"].isprintable() and posted["state"] == "overload"
        line = log.recv(65_536).rstrip(b"\0")
        assert b"\n" not in line and len(line) < 1024 and line.startswith(b"<28>iodock: ")
        assert mails.mails[1][1] == ["alice@example.org"]
        site.responder.close()


def _real(notices: Notices) -> Any:
    from iodock.centre.watch.notices.sending import Channels

    return Channels(notices)


def test_mails_of_an_episode_form_one_thread_without_auto_replies(tmp_path: Path) -> None:
    with mail_sink() as mails:
        notices = replace(TOLD, smtp=mails.address, sender="io@hpc.example.org")
        site = told(tmp_path, notices=notices, send=_real(notices))
        site.intervals(3)
        site.intervals(3, "healthy")
        found = [email.message_from_bytes(one[2], policy=email.policy.default) for one in mails.mails]
        assert [one[0] for one in mails.mails] == ["io@hpc.example.org"] * 6
        for begin, end in zip(found[:3], found[3:], strict=True):
            assert end["In-Reply-To"] == begin["Message-ID"] != end["Message-ID"]
            assert begin["Auto-Submitted"] == "auto-generated"
        assert found[1]["Subject"] == "[iodock] lfs: メタデータサーバが高負荷状態"
        assert "回復しました" in found[4].get_content()
        site.responder.close()


def letter(address: str = "ops@example.org", channel: str = "mail") -> Letter:
    from iodock.centre.watch.notices.message import Message

    return Letter(1, "begin", channel, "operators", address, Message("subject", "text\n", {"event": "begin"}))


@pytest.mark.parametrize(
    ("answers", "error"),
    [
        ({"RCPT": "550 no such user"}, Refused),
        ({"RCPT": "450 mailbox busy"}, TryAgain),
        ({"MAIL": "451 later"}, TryAgain),
        ({"MAIL": "553 not you"}, Refused),
        ({"DATA": "554 spam"}, Refused),
        ({"EHLO": "hang"}, TryAgain),
        ({"DATA": "hang"}, TryAgain),
        ({"EHLO": "421 too busy", "HELO": "421 too busy"}, TryAgain),
    ],
    ids=str,
)
def test_answers_of_mail_servers_are_interpreted(answers: dict[str, str], error: type[Exception]) -> None:
    with mail_sink(**answers) as mails:
        with pytest.raises(error):
            Mail(Notices(smtp=mails.address, timeout_s=1))(letter())
        assert mails.mails == []


def test_an_address_that_smuggles_commands_is_refused_before_anything_is_sent() -> None:
    with mail_sink() as mails:
        for address in ("a@x>\r\nRCPT TO:<b@x", "a b@x", "@x", "a@", "a@x,b@x", "{user}@x"):
            with pytest.raises(Refused):
                Mail(Notices(smtp=mails.address))(letter(address))
        assert mails.verbs == []


def test_an_absent_mail_server_is_retried_and_losses_are_counted(tmp_path: Path) -> None:
    notices = replace(TOLD, give_up_s=600, retry_s=10)
    tries: list[int] = []

    def away(one: Letter) -> None:
        tries.append(site.now)
        raise TryAgain("ConnectionRefusedError")

    site = told(tmp_path, notices=notices, send=away)
    site.intervals(3)
    site.intervals(3, "healthy")
    for _ in range(200):
        site.wait(5)
        site.work()
    assert site.responder.counts() == {"lost: mail: ConnectionRefusedError": 6}
    # The collector retries after 10, 20, 40, 80, 160 and 320 s.
    waits = [(two - one) / 1e9 for one, two in pairwise(sorted(set(tries)))]
    assert len(tries) == 6 * 6 and max(tries) - min(tries) < 600e9 and max(waits) > 100
    site.responder.close()


def test_waiting_notices_are_sent_after_a_restart(tmp_path: Path) -> None:
    def away(one: Letter) -> None:
        raise TryAgain("away")

    site = told(tmp_path, send=away)
    site.intervals(3)
    site.send = None
    site.restart()
    site.wait(60)
    site.work()
    assert sorted(one for one, _ in phases(site)) == ["list", "operators", "owners"]
    assert site.responder.counts() == {"sent: mail": 3}
    site.responder.close()


def test_notices_beyond_the_queue_limit_are_dropped_and_counted(tmp_path: Path) -> None:
    site = told(tmp_path, notices=replace(TOLD, most_waiting=2))
    site.intervals(3, works=False)
    assert site.responder.counts() == {"lost: mail: too many notices are waiting": 1}
    site.work()
    assert phases(site) == [("operators", "begin"), ("list", "begin")]
    site.responder.close()


def test_a_hanging_mail_server_does_not_delay_verdicts(tmp_path: Path) -> None:
    with mail_sink(EHLO="hang") as mails:
        notices = replace(TOLD, smtp=mails.address, timeout_s=60)
        site = told(tmp_path, notices=notices, send=_real(notices), now=time.time_ns() - 100 * 10**9)
        with site.responder.running(lambda line: None):
            site.intervals(3, works=False)
            until = time.monotonic() + 30
            while "EHLO" not in mails.verbs and time.monotonic() < until:
                time.sleep(0.02)
            assert "EHLO" in mails.verbs
            for number in range(50):
                site.wait(1)
                site.hear(verdict(site.now, "stall", server=f"mds{number}"), works=False)
            assert len(site.responder.episodes(0)) == 51
            # The collector is still sending the first mail.
            assert site.responder.counts() == {}
            mails.gone.set()
        site.responder.close()


def test_a_webhook_receives_json_with_its_token(tmp_path: Path) -> None:
    token = tmp_path / "hook.token"
    token.write_text("s3cret\n")
    token.chmod(0o644)
    with pytest.raises(RequestError, match="other users may read it"):
        _real(Notices(to={"hook": Recipient("operators", "webhook", "https://x/", token_file=str(token))}))
    token.chmod(0o600)
    with web_sink() as web:
        notices = Notices(
            to={"hook": Recipient("operators", "webhook", f"{web.url}/in", "ja", (), str(token))}
        )
        site = told(tmp_path / "response", notices=notices, send=_real(notices))
        site.intervals(3)
        site.intervals(3, "healthy")
        path, headers, body = web.posts[0]
        assert (path, headers["authorization"], headers["content-type"]) == (
            "/in",
            "Bearer s3cret",
            "application/json",
        )
        told_of = json.loads(body)
        assert (told_of["event"], told_of["file_system"], told_of["servers"]) == ("begin", "lfs", ["mds01"])
        assert told_of["suspects"][0]["job"] == JOB and "メタデータサーバ" in told_of["text"]
        assert [json.loads(one[2])["event"] for one in web.posts] == ["begin", "end"]
        assert len({one[1]["idempotency-key"] for one in web.posts}) == 2
        site.responder.close()


@pytest.mark.parametrize(
    ("status", "error"), [(500, TryAgain), (429, TryAgain), (400, Refused), (404, Refused), (302, Refused)]
)
def test_answers_of_webhooks_are_interpreted(status: int, error: type[Exception]) -> None:
    with web_sink() as web, web_sink() as other:
        web.status, web.location = status, other.url
        with pytest.raises(error, match=str(status)):
            Webhook(Notices(), {"operators": "t"})(letter(web.url, "webhook"))
        assert len(web.posts) == 1 and other.posts == []
    with pytest.raises(TryAgain):
        Webhook(Notices(), {})(letter(web.url, "webhook"))


@pytest.mark.parametrize("way", ["path", "udp"])
def test_a_notice_to_syslog_is_one_line(tmp_path: Path, way: str) -> None:
    with syslog_sink(tmp_path / "log" if way == "path" else None) as (place, log):
        notices = Notices(to={"log": Recipient("operators", "syslog", place)})
        site = told(tmp_path / "response", notices=notices, send=_real(notices))
        site.intervals(3)
        site.intervals(3, "healthy")
        begin, end = log.recv(65_536), log.recv(65_536)
        assert begin.startswith(
            b"<28>iodock: The metadata server mds01 of lfs has been overloaded since 2027-"
        )
        assert f"jobs={JOB} episode=1".encode() in begin
        assert end.startswith(b"<30>iodock: The metadata server mds01 of lfs has recovered.")
        site.responder.close()


@pytest.mark.parametrize(
    ("recipient", "says"),
    [
        (Recipient("operators", "mail", "ops"), "is not a mail address"),
        (Recipient("operators", "mail", "a@x\r\nBcc: b@x"), "is not a mail address"),
        (Recipient("owner", "mail", "ops@example.org"), "has {user} in it"),
        (Recipient("users", "webhook", "https://x/{user}"), "only mail"),
        (Recipient("operators", "webhook", "file:///etc/passwd"), "not an http or https"),
        (Recipient("operators", "webhook", "http://x/\r\nX: y"), "not an http or https"),
        (Recipient("operators", "webhook", "http://hook.example/", token_file="x"), "sent unencrypted"),
        (Recipient("operators", "syslog", "somewhere"), "neither a socket's path"),
    ],
    ids=lambda one: one.address if isinstance(one, Recipient) else "",
)
def test_impossible_addresses_are_refused_at_the_start(recipient: Recipient, says: str) -> None:
    with pytest.raises(RequestError, match=says):
        checked(Notices(to={"one": recipient}))


def test_a_blocked_channel_does_not_delay_the_others(tmp_path: Path) -> None:
    tried: list[str] = []

    def stuck(one: Letter) -> None:
        tried.append(one.channel)
        if one.channel == "mail":
            raise TryAgain("TimeoutError")

    to = {f"a{n}": Recipient("operators", "mail", f"a{n}@x") for n in range(20)}
    notices = Notices(to={**to, "hook": Recipient("operators", "webhook", "http://127.0.0.1/")})
    site = told(tmp_path, notices=notices, send=stuck)
    site.intervals(3)
    assert tried == ["mail", "webhook"]
    site.responder.close()


def test_a_hanging_mail_server_does_not_delay_webhooks(tmp_path: Path) -> None:
    hangs, told_by_hook = threading.Event(), threading.Event()

    def send(one: Letter) -> None:
        (hangs.wait if one.channel == "mail" else told_by_hook.set)()

    to = {
        "mails": Recipient("operators", "mail", "a@x"),
        "hook": Recipient("operators", "webhook", "http://127.0.0.1/"),
    }
    site = told(tmp_path, notices=Notices(to=to), send=send, now=time.time_ns() - 100 * SECOND)
    with site.responder.running(lambda line: None):
        site.intervals(3, works=False)
        assert told_by_hook.wait(20)
        hangs.set()
    site.responder.close()


def test_send_errors_are_reported_and_retried(tmp_path: Path) -> None:
    tried: list[str] = []

    def send(one: Letter) -> None:
        tried.append(one.recipient)
        if len(tried) == 1:
            raise UnicodeError("a fault of ours")

    to = {"one": Recipient("operators", "mail", "a@x")}
    site = told(tmp_path, notices=Notices(to=to), send=send)
    site.intervals(3)
    assert site.responder.waiting() == 1
    site.wait(20)
    site.work()
    assert tried == ["one", "one"] and site.responder.waiting() == 0
    site.responder.close()


def test_an_accepted_mail_is_not_repeated_after_an_error_at_quit() -> None:
    with mail_sink(QUIT="421 too busy") as mails:
        Mail(Notices(smtp=mails.address, timeout_s=1))(letter())
        assert len(mails.mails) == 1


def test_a_subject_of_several_lines_becomes_one_header() -> None:
    evil = replace(letter(), message=replace(letter().message, subject="a\r\nBcc: b@example.org\n\nx"))
    mail = Mail(Notices()).written(evil)
    assert mail["Bcc"] is None and mail["Subject"] == "[iodock] a\\r\\nBcc: b@example.org\\n\\nx"


def test_mail_needs_encryption_and_a_valid_certificate(tmp_path: Path) -> None:
    password = tmp_path / "password"
    password.write_text("s3cret\n")
    password.chmod(0o600)
    with pytest.raises(RequestError, match="sent unencrypted"):
        Mail(Notices(smtp="mail.example.org:25", smtp_user="io", smtp_password_file=str(password)))
    # A server without TLS receives neither password nor mail.
    with mail_sink() as mails:
        for security in ("starttls", "tls"):
            given = Notices(
                smtp=mails.address,
                security=security,
                smtp_user="io",
                smtp_password_file=str(password),
                timeout_s=2,
            )
            with pytest.raises((TryAgain, Refused)):
                Mail(given)(letter())
        assert mails.mails == [] and "AUTH" not in mails.verbs


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    """Creates a self-signed certificate for 127.0.0.1, with the key in the same file."""
    path = tmp_path / "mail.pem"
    words = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-days",
        "1",
        "-subj",
        "/CN=127.0.0.1",
    ]
    more = [
        "-addext",
        "subjectAltName=IP:127.0.0.1",
        "-keyout",
        str(path),
        "-out",
        str(tmp_path / "certificate"),
    ]
    subprocess.run([*words, *more], check=True, capture_output=True, timeout=60)
    path.write_text(path.read_text() + (tmp_path / "certificate").read_text())
    return path


@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl")
@pytest.mark.parametrize("is_trusted", [True, False])
def test_a_login_is_sent_only_over_verified_tls(
    tmp_path: Path, certificate: Path, monkeypatch: pytest.MonkeyPatch, is_trusted: bool
) -> None:
    if is_trusted:
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    password = tmp_path / "password"
    password.write_text("s3cret\n")
    password.chmod(0o600)
    with mail_sink() as mails:
        mails.tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        mails.tls.load_cert_chain(certificate)
        mail = Mail(
            Notices(smtp=mails.address, security="starttls", smtp_user="io", smtp_password_file=str(password))
        )
        if is_trusted:
            mail(letter())
            assert mails.logins == [b"\0io\0s3cret"] and len(mails.mails) == 1
        else:
            with pytest.raises(TryAgain, match="SSLCertVerificationError"):
                mail(letter())
            assert mails.logins == [] and mails.mails == []
