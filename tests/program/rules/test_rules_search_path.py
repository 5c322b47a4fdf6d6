"""Search paths of many folders: named with their variable, whichever program's loader looks."""

from __future__ import annotations

from pathlib import Path

import pytest

from metadata_log import FIRST, Trace, diagnosed, of_rule

FOLDERS = 150


def loads(log: Trace, pid: int, names: list[str], took_us: int) -> None:
    """What the loader does: each library in each folder, and where it is at last."""
    for name in names:
        for number in range(FOLDERS):
            log.open_missing(f"/apps/p{number}/lib/{name}", took_us, pid=pid)
        log.open(f"/lib/x86_64-linux-gnu/{name}", flags="O_RDONLY|O_CLOEXEC", pid=pid)
        log.close(pid=pid)


def runs(program: str, times: int, names: list[str], folder: Path, took_us: int = 20) -> Path:
    log = Trace()
    for number in range(times):
        pid = FIRST + 1 + number
        log.start(pid, program)
        loads(log, pid, names, took_us)
        log.end(pid)
        log.clocks[FIRST] = log.clocks[pid]
    return log.imported(folder, wall_us=1)


@pytest.mark.parametrize("program", ["/bin/ls", "/usr/bin/gcc", "/home/me/tiny"])
def test_a_loaders_long_path_is_found_in_any_program(tmp_path: Path, program: str) -> None:
    names = ["libselinux.so.1", "libc.so.6"]
    diagnosis = diagnosed(runs(program, 6, names, tmp_path))
    (found,) = of_rule(diagnosis, "failed-open-storm")
    assert diagnosis.worth_changing == (found,)
    values = found.message.values
    assert (values["variable"], values["folders"], values["never"]) == ("LD_LIBRARY_PATH", FOLDERS, FOLDERS)
    assert values["count"] == 6 * len(names) * FOLDERS
    assert found.files[0].startswith("/apps/p")
    assert found.advice[0].message.values == {"variable": "LD_LIBRARY_PATH"}


def test_the_path_is_named_beside_the_storm_of_processes_that_search_it(tmp_path: Path) -> None:
    diagnosis = diagnosed(runs("/home/me/tiny", 60, ["libm.so.6"], tmp_path))
    assert {"failed-open-storm", "process-storm"} <= {one.rule for one in diagnosis.worth_changing}


@pytest.mark.parametrize("name", ["libmesh.so", "mesh.h", "README"])
def test_what_a_tool_looks_for_itself_is_its_work(tmp_path: Path, name: str) -> None:
    assert not of_rule(diagnosed(runs("/usr/bin/ld", 6, [name], tmp_path)), "failed-open-storm")
