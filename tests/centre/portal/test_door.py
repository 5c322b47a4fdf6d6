"""Tests who may push, and which data the collector accepts."""

from __future__ import annotations

import http.client
import json
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from batches import Part, frame
from collector_site import post, serving
from in_process import iodock
from iodock.centre.monitor.access import Access, Role, Visitor, add_token, read_tokens
from iodock.centre.portal import door
from iodock.centre.portal.keeper import sent_of
from iodock.shared.errors import RequestError

NOW = time.time_ns()
PUSH = frame(1, [Part(NOW)])


def tokens(folder: Path) -> tuple[Path, dict[str, str]]:
    path = folder / "tokens.toml"
    secrets = {
        role.value: add_token(path, role.value, role, "alice" if role is Role.USER else "") for role in Role
    }
    return path, secrets


def test_only_agents_may_push(tmp_path: Path) -> None:
    path, secrets = tokens(tmp_path)
    with serving(tmp_path / "store", "--tokens", path) as (url, _):
        assert post(url, PUSH)[0] == 401
        assert post(url, PUSH, Authorization="Bearer wrong")[0] == 401
        assert post(url, PUSH, Authorization=f"Basic {secrets['agent']}")[0] == 401
        assert post(url, PUSH, Authorization=f"Bearer {secrets['user']}")[0] == 403
        assert post(url, PUSH, Authorization=f"Bearer {secrets['operator']}")[0] == 403
        # The collector has stored none of the refused pushes above.
        assert post(url, PUSH, Authorization=f"Bearer {secrets['agent']}") == (200, {"kept": 1, "full": True})
        # A repeated batch counts once.
        assert post(url, PUSH, Authorization=f"Bearer {secrets['agent']}") == (200, {"kept": 1, "full": True})


def test_invalid_pushes_get_an_answer_and_do_not_affect_others(tmp_path: Path) -> None:
    with serving(tmp_path / "store") as (url, _):
        assert post(url, b"hello") == (400, {"error": "not a push of samples: not a batch of samples"})
        assert post(url, PUSH + b"rest")[0] == 400
        # The collector has stored the complete frame before the invalid rest.
        assert post(url, PUSH)[1]["kept"] == 1
        assert asked(url, "GET", "/api/v1/samples")[0] == 405
        in_pieces = {"Transfer-Encoding": "chunked", "Content-Type": door.TYPE}
        assert asked(url, "POST", "/api/v1/samples", in_pieces, b"0\r\n\r\n")[0] == 411
        too_long = {"Content-Length": str(door.LONGEST_BYTES + 1), "Content-Type": door.TYPE}
        assert asked(url, "POST", "/api/v1/samples", too_long)[0] == 413
        assert asked(url, "POST", "/api/v1/samples", {**too_long, "Content-Length": "9" * 30})[0] in (
            400,
            411,
            413,
        )
        # A page in a browser can send this content type without a preflight request.
        assert (
            asked(url, "POST", "/api/v1/samples", {"Content-Length": "0", "Content-Type": "text/plain"})[0]
            == 415
        )
        assert asked(url, "GET", "/../../etc/passwd")[0] == 404
        assert asked(url, "GET", "/healthz")[0] == 200


HOUR = 3600 * 1_000_000_000


def test_a_push_is_answered_with_the_collectors_time(tmp_path: Path) -> None:
    kept = frame(1, [Part(NOW - 24 * HOUR)])
    with serving(tmp_path / "store") as (url, _):
        status, answer = post(url, kept, **{"Iodock-Time": str(time.time_ns() - 24 * HOUR)})
        why = '"oss01": its clock is wrong, about 24 hours behind the collector\'s'
        assert (status, answer["error"]) == (400, why)
        for said in ("now", "", "9" * 400):
            status, answer = post(url, kept, **{"Iodock-Time": said})
            assert (status, answer["error"]) == (400, "iodock-time is not in ns since the epoch")
        # The collector has stored none of these. It accepts batches from yesterday once the clock is right.
        assert post(url, kept, **{"Iodock-Time": str(time.time_ns())}) == (200, {"kept": 1, "full": True})


@pytest.mark.parametrize("said", ["", "-", "now", "1e18", "1.5", "0x10", "\u0663", "\u00b2", "1" * 21])
def test_an_invalid_time_gives_an_error(said: str) -> None:
    with pytest.raises(ValueError, match="not in ns since the epoch"):
        sent_of(said)


def test_times_beyond_64_bits_are_refused() -> None:
    assert (sent_of(None), sent_of("0"), sent_of("-5")) == (None, 0, -5)
    assert (sent_of("9" * 20), sent_of("-" + "9" * 19)) == ((1 << 63) - 1, -(1 << 63))


def asked(
    url: str, method: str, path: str, headers: dict[str, str] | None = None, body: bytes = b""
) -> tuple[int, bytes]:
    """Sends a request with exactly these headers."""
    connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=20)
    connection.putrequest(method, path, skip_host=bool(headers and "Host" in headers))
    for name, value in (headers or {}).items():
        connection.putheader(name, value)
    connection.endheaders()
    connection.send(body)
    answer = connection.getresponse()
    status, content = answer.status, answer.read()
    connection.close()
    return status, content


def test_unsent_large_pushes_do_not_block_others(tmp_path: Path) -> None:
    with serving(tmp_path / "store") as (url, _):
        waiting = []
        for _ in range(40):
            connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=20)
            connection.putrequest("POST", "/api/v1/samples")
            connection.putheader("Content-Type", door.TYPE)
            connection.putheader("Content-Length", str(door.LONGEST_BYTES))
            connection.endheaders(b"I")
            waiting.append(connection)
        assert post(url, PUSH)[0] == 200
        for connection in waiting:
            connection.close()


def test_requests_with_a_foreign_host_name_are_refused(tmp_path: Path) -> None:
    """A page can make a browser on this machine send requests, by a host name that resolves to 127.0.0.1."""
    with serving(tmp_path / "store") as (url, _):
        assert asked(url, "GET", "/healthz", {"Host": "evil.example"})[0] == 400
        assert asked(url, "GET", "/healthz", {"Host": "localhost:9847"})[0] == 200


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (["--listen", "0.0.0.0:0"], "users must be authenticated"),
        (["--listen", "localhost:0"], "not an address and port"),
        (["--listen", "127.0.0.1:99999"], "not an address and port"),
        (["--listen", "192.0.2.1:0", "--tokens", "tokens.toml"], "sent unencrypted"),
        (["--tls-cert", "a.pem"], "its key"),
        (["--tokens", "missing.toml"], "No such file"),
        (["--operator", "root"], "a user of a proxy"),
        (["--tls-cert", "tokens.toml", "--tls-key", "tokens.toml"], "PEM"),
    ],
)
def test_settings_without_authentication_are_refused(tmp_path: Path, options: list[str], why: str) -> None:
    tokens(tmp_path)
    done = iodock("monitor", "serve", "--store", "store", *options, cwd=tmp_path)
    assert done.returncode == 2, done.stderr
    assert why in done.stderr
    assert "Traceback" not in done.stderr


def test_tokens_are_kept_as_hashes_and_only_their_owner_changes_them(tmp_path: Path) -> None:
    path, secrets = tokens(tmp_path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert not any(secret in path.read_text() for secret in secrets.values())
    assert [token.role for token in read_tokens(path)] == list(Role)
    path.chmod(0o640)
    assert len(read_tokens(path)) == len(Role)
    path.chmod(0o620)
    with pytest.raises(RequestError, match="other users may change it"):
        read_tokens(path)


@pytest.mark.parametrize(
    "content",
    ["", "x = 1", "token = []", "[[token]]\nname = 1", "not toml",
     '[[token]]\nname = "a"\nrole = "king"\nsha256 = "00"',
     f'[[token]]\nname = "a"\nrole = "user"\nsha256 = "{"0" * 64}"',
     f'[[token]]\nname = "a"\nrole = "agent"\nsha256 = "{"0" * 63}g"'],
)  # fmt: skip
def test_a_damaged_token_file_gives_an_error(tmp_path: Path, content: str) -> None:
    path = tmp_path / "tokens.toml"
    path.write_text(content)
    path.chmod(0o600)
    with pytest.raises(RequestError, match=r"tokens\.toml"):
        read_tokens(path)


def test_names_of_tokens_may_contain_any_character(tmp_path: Path) -> None:
    path = tmp_path / "tokens.toml"
    name = 'a"\n[[token]]\nrole = "operator"\\\x7f𠮷'
    add_token(path, name, Role.AGENT)
    assert [(token.name, token.role) for token in read_tokens(path)] == [(name, Role.AGENT)]


def test_user_headers_are_accepted_only_from_the_proxy() -> None:
    access = Access(proxies=frozenset({"10.0.0.1"}), operators=frozenset({"root"}))
    header = {"x-remote-user": "alice"}
    assert access.visitor(header, "10.0.0.1") == Visitor(Role.USER, "alice")
    assert access.visitor({"x-remote-user": "root"}, "10.0.0.1") == Visitor(Role.OPERATOR, "root")
    assert access.visitor(header, "10.0.0.2") is None
    assert access.visitor({}, "10.0.0.1") is None
    assert not access.may_push(access.visitor(header, "10.0.0.1"))


def test_the_command_prints_a_valid_token(tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "iodock",
        "monitor",
        "token",
        "--tokens",
        "t.toml",
        "--role",
        "agent",
        "--name",
        "n",
    ]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=30, check=True)
    secret = done.stdout.strip()
    access = Access(read_tokens(tmp_path / "t.toml"))
    assert access.may_push(access.visitor({"authorization": f"Bearer {secret}"}, "192.0.2.7"))
    assert json.dumps(secret) not in (tmp_path / "t.toml").read_text()
