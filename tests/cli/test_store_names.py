"""Tests the name of a store if -o is not given."""

from __future__ import annotations

from pathlib import Path

import pytest

from in_process import printed
from recorded import IODOCK, live, run

LOG = "1 1700000000.000000 close(3) = 0 <0.000001>\n"


@pytest.mark.whole
def test_force_replaces_an_imported_store_of_the_same_name(tmp_path: Path) -> None:
    (tmp_path / "run.strace").write_text(LOG)
    for arguments in ((), (), ("--force",), ("--force",)):
        assert run([*IODOCK, "import", "--quiet", *arguments, "run.strace"], tmp_path).returncode == 0
    assert sorted(path.name for path in tmp_path.glob("*.iodock")) == ["run-2.iodock", "run.iodock"]


@live
def test_force_replaces_a_recording_of_the_same_name(tmp_path: Path) -> None:
    for arguments in ((), ("--force",)):
        assert run([*IODOCK, "record", "--quiet", *arguments, "--", "true"], tmp_path).returncode == 0
    assert [path.name for path in tmp_path.glob("*.iodock")] == ["true.iodock"]


def test_a_store_name_is_printed_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "ann_a\nb_id1.strace").write_text(LOG)
    monkeypatch.chdir(tmp_path)
    assert printed("import", "--quiet", "ann_a\nb_id1.strace") == "ann_a_b_id1.iodock\n"
    assert (tmp_path / "ann_a_b_id1.iodock").is_dir()
    # A name that the user gives is used unchanged.
    assert printed("import", "--quiet", "ann_a\nb_id1.strace", "-o", "my\nown.iodock") == "my\nown.iodock\n"
