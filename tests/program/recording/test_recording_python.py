"""Tests the Python lines of recorded calls against marked lines, with every installed version of CPython."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from in_process import shown
from iodock.program.diagnosis import diagnose
from iodock.program.store import Store
from marked import marks, share_in_chain
from marked_python import PYTHON, interpreters
from recorded import live, record

pytestmark = live
READ = [version for version in interpreters() if version >= (3, 11) or version == (0, 0)]
UNREAD = [version for version in interpreters() if (3, 7) <= version < (3, 11)]


def losses_of(store: Path) -> dict[str, int]:
    with Store.open(store) as opened:
        return {loss.name: loss.count or 0 for loss in opened.manifest.losses}


def recorded(folder: Path, python: Path, stacks: str) -> Path:
    (folder / "marked.py").write_text(PYTHON)
    command = [python, folder / "marked.py", folder / "out"]
    alone = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    done = record(folder, "--backend", "rewrite", "--stacks", stacks, "--", *command)
    assert done.returncode == 0 and alone.stdout in done.stdout, done.stderr
    return folder / "run.iodock"


@pytest.mark.parametrize("version", READ, ids=str)
def test_the_marked_lines_of_a_python_program_are_the_call_sites(
    tmp_path: Path, version: tuple[int, int]
) -> None:
    path = recorded(tmp_path, interpreters()[version], "sites")
    with Store.open(path) as store:
        lines = marks(PYTHON)
        shares = {call: share_in_chain(store, call, line, "marked.py") for call, line in lines.items()}
        assert shares == dict.fromkeys(marks(PYTHON), 1.0)
    for call, line in marks(PYTHON).items():
        rows = shown(path, "summary", "--by", "line", "--call", call, "--file", "*/out*")["rows"]
        assert [row["line"] for row in rows] == [f"marked.py:{line}"], call
    # The recorder must not confuse code objects that CPython creates at the addresses of deleted ones.
    made = shown(path, "summary", "--by", "line", "--call", "fchmod")["rows"]
    assert {row["line"]: row["count"] for row in made} == {f"made_{n}.py:{n + 1}": 1 for n in range(20)}
    typed = shown(path, "summary", "--by", "line", "--call", "fchown")["rows"]
    assert {row["line"]: row["count"] for row in typed} == {f"<string>:{n + 31}": 1 for n in range(20)}
    assert "python-frames" not in losses_of(path)


def test_a_finding_names_the_caller_of_a_python_helper(tmp_path: Path) -> None:
    version = next(iter(READ))
    (tmp_path / "helper.py").write_text(
        "import sys\n"
        "def put(file, value):\n"
        "    file.write(value)\n"
        "def save(path):\n"
        "    with open(path, 'wb', buffering=0) as file:\n"
        "        for number in range(3000):\n"
        "            put(file, b'%08d' % number)\n"
        "save(sys.argv[1])\n"
    )
    command = [interpreters()[version], tmp_path / "helper.py", tmp_path / "out"]
    done = record(tmp_path, "--backend", "rewrite", "--stacks", "sites", "--", *command)
    assert done.returncode == 0, done.stderr
    with Store.open(tmp_path / "run.iodock") as store:
        (small,) = [one for one in diagnose(store).findings if one.rule == "small-requests"]
    (put,) = small.locations
    assert put.called_from is not None
    assert (put.place, put.called_from.place, put.called_from.function) == (
        "helper.py:3",
        "helper.py:7",
        "save",
    )


def test_python_frames_precede_those_of_the_interpreter(tmp_path: Path) -> None:
    version = next(iter(READ))
    path = recorded(tmp_path, interpreters()[version], "all")
    for stack in shown(path, "stacks", "--call", "ftruncate", "--file", "*/out")["rows"]:
        names = [frame.split(" ")[0] for frame in stack["frames"]]
        place = names.index("cut")
        assert names[place + 1] == "Handle._run" and "main" in names[place:] and place <= 2
        assert any(name.startswith("_PyEval") or "python" in name for name in names[place:])


@pytest.mark.skipif(not UNREAD, reason="needs a CPython before 3.11")
def test_python_frames_of_unsupported_versions_are_a_named_loss(tmp_path: Path) -> None:
    path = recorded(tmp_path, interpreters()[UNREAD[0]], "sites")
    assert losses_of(path)["python-frames"] == 2
    rows = shown(path, "stacks", "--call", "fsync")["rows"]
    assert rows and all("marked.py" not in frame for row in rows for frame in row["frames"])
