"""What a store is called where -o does not say, and what the terminal says of what it lacks."""

from __future__ import annotations

import io
from pathlib import Path

from rich.console import Console

from iodock.language import language_in
from iodock.views.losses import print_losses
from recorded import IODOCK, live, run

LOG = "1 1700000000.000000 close(3) = 0 <0.000001>\n"


def test_force_replaces_the_store_of_that_name(tmp_path: Path) -> None:
    (tmp_path / "run.strace").write_text(LOG)
    for arguments in ((), (), ("--force",), ("--force",)):
        assert run([*IODOCK, "import", "--quiet", *arguments, "run.strace"], tmp_path).returncode == 0
    assert sorted(path.name for path in tmp_path.glob("*.iodock")) == ["run-2.iodock", "run.iodock"]


@live
def test_force_replaces_the_recording_of_that_name(tmp_path: Path) -> None:
    for arguments in ((), ("--force",)):
        assert run([*IODOCK, "record", "--quiet", *arguments, "--", "true"], tmp_path).returncode == 0
    assert [path.name for path in tmp_path.glob("*.iodock")] == ["true.iodock"]


def said(losses: list[tuple[str, int, str]]) -> list[str]:
    console = Console(file=io.StringIO(), width=200)
    print_losses(losses, console, language_in("en"))
    assert isinstance(console.file, io.StringIO)
    return [line for line in console.file.getvalue().splitlines() if line]


def test_what_hides_calls_is_never_left_out() -> None:
    small = [
        (name, 1, "a cure") for name in ("unknown-parent", "mapped-contents", "before-load", "cut-lines")
    ]
    hiding = [(name, 1, "a cure") for name in ("unreached-programs", "own-system-calls", "foreign-calls")]
    lines = said([*small, *hiding])
    assert [line.split()[3].rstrip(":") for line in lines[:-1]] == [
        "cut-lines",
        *(name for name, *_ in hiding),
    ]
    assert lines[-1].startswith("3 more losses")
    assert len(said(small)) == 4


def test_starts_that_were_not_seen_come_before_what_hides_no_calls() -> None:
    losses = [(name, 1, "a cure") for name in ("unknown-parent", "mapped-contents", "unknown-offsets")]
    lines = said([*losses, ("before-load", 9, "a cure"), ("own-system-calls", 1, "a cure")])
    assert [line.split()[3].rstrip(":") for line in lines[:3]] == [
        "own-system-calls", "before-load", "unknown-parent"
    ]  # fmt: skip
    assert lines[3].startswith("2 more losses")
