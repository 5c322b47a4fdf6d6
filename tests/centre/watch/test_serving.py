"""Tests `iodock monitor serve` with a configured response: where it stores the response's state, and what it
does if it cannot write there."""

from __future__ import annotations

import subprocess
import urllib.request
from pathlib import Path

import pytest

from collector_site import IODOCK, serving
from in_process import printed
from iodock.centre.monitor.collector import Collector
from portal_past import Past


def test_the_response_folder_is_next_to_the_store_or_configured(tmp_path: Path) -> None:
    with serving(tmp_path / "store"):
        assert (tmp_path / "store.response" / "response.db").is_file()
    with serving(tmp_path / "store", "--response", tmp_path / "elsewhere"):
        assert (tmp_path / "elsewhere" / "response.db").is_file()
    assert not (tmp_path / "store" / "response.db").exists()


def test_a_collector_without_a_response_folder_continues(tmp_path: Path) -> None:
    (tmp_path / "store.response").write_text("a file")
    with serving(tmp_path / "store") as (url, _):
        assert url.startswith("http")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('[notices.to.ops]\naddress = "ops@example.org"\n', "store.response"),
        ('[response]\nmode = "act"\n', 'mode = "act" needs a scheduler'),
        ('[response]\nmode = "act"\nscheduler = "pjm"\n', "pjm has no suspend"),
        ('[notices.to.ops]\naddress = "nobody"\n', "is not a mail address"),
        ('[notices.to.ops]\naddress = "a@b"\n[notices]\nsmtp = "mail"\n', "'mail' is not HOST:PORT"),
        ('[notices.to.x]\nby = "webhook"\naddress = "https://x/"\ntoken_file = "/no/such"\n', "/no/such"),
    ],
)
def test_invalid_response_settings_prevent_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, says: str
) -> None:
    (tmp_path / "store.response").write_text("a file")
    settings = tmp_path / "settings.toml"
    settings.write_text(text)
    monkeypatch.setenv("IODOCK_SETTINGS", str(settings))
    words = ["monitor", "serve", "--store", str(tmp_path / "store"), "--listen", "127.0.0.1:0"]
    done = subprocess.run([*IODOCK, *words], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode != 0 and says in done.stderr and "Traceback" not in done.stderr


def test_job_names_are_left_out_if_disabled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    collector = Collector(tmp_path / "store")
    past = Past(collector)
    past.run("100", "secret-project", 1, 600)
    past.push()
    del collector, past._collector
    words = ("monitor", "heavy", "--store", tmp_path / "store", "--format", "csv")
    assert "secret-project" in printed(*words)
    settings = tmp_path / "settings.toml"
    settings.write_text("[privacy]\njob_names = false\n")
    monkeypatch.setenv("IODOCK_SETTINGS", str(settings))
    assert "secret-project" not in printed(*words) and "100," in printed(*words)
    with serving(tmp_path / "store") as (url, _):
        page = urllib.request.urlopen(f"{url}/heavy", timeout=30).read().decode()
        assert "/jobs/100" in page and "secret-project" not in page
