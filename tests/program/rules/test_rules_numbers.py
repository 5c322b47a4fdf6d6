"""The numbers in the rules' messages, beside what the store itself says when asked another way."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from iodock.program.findings import Finding
from iodock.program.store import Store
from metadata_log import Trace, diagnosed, of_rule

FILES, EPOCHS, SIZE = 600, 4, 3200


def loads_each_epoch(log: Trace) -> None:
    """Reads each of many files in every epoch, as `numpy.load` does: all, then all but the header."""
    for _ in range(EPOCHS):
        for number in range(FILES):
            log.open(f"/data/img{number:04d}.npy", took_us=50, flags="O_RDONLY")
            log.call(f"fstat(3, {{st_mode=S_IFREG|0644, st_size={SIZE}, ...}})", "0", 5)
            log.read(SIZE, 5)
            log.call("lseek(3, 128, SEEK_SET)", "128", 1)
            log.read(SIZE - 128, 5)
            log.close(20)


def finding_of(log: Callable[[Trace], None], rule: str, folder: Path) -> tuple[Finding, Path]:
    trace = Trace()
    log(trace)
    path = trace.imported(folder)
    (found,) = of_rule(diagnosed(path), rule)
    return found, path


def asked(path: Path, sql: str) -> dict[str, Any]:
    with Store.open(path) as store:
        return store.rows(sql)[0]


def test_tiny_files_are_told_with_all_their_opens_and_their_own_size(tmp_path: Path) -> None:
    found, path = finding_of(loads_each_epoch, "tiny-file-flood", tmp_path)
    truth = asked(
        path,
        """SELECT count(DISTINCT file) AS files, count(*) FILTER (WHERE family = 'open') AS opens,
  count(*) FILTER (WHERE class = 'metadata') AS calls FROM call_ends WHERE file LIKE '/data/%'""",
    )
    assert truth["opens"] == FILES * EPOCHS
    assert found.message.values == pytest.approx({**truth, "mean_bytes": SIZE})


def test_what_is_usual_was_measured_on_that_file(tmp_path: Path) -> None:
    """Figure 4.3.8 of the SS-ken report: plot5's open of plot.cfg of 13.94 s, and the usual one after it."""

    def plot5(log: Trace) -> None:
        for opened, closed in ((13_936_576, 1_939_770), (5_942, 1_514)):
            log.open("plot.cfg", took_us=opened, flags="O_WRONLY|O_CREAT|O_TRUNC")
            log.write(42, 46)
            log.close(closed)
            log.open("all3.dat1", took_us=30, flags="O_RDONLY")
            log.read(32768, 8)
            log.close(10)

    trace = Trace()
    plot5(trace)
    opened, closed = of_rule(diagnosed(trace.imported(tmp_path)), "slow-call")
    assert opened.message.values["usual_ns"] == 5_942_000
    assert closed.message.values["usual_ns"] == 1_514_000
    assert all(any("Open the file once" in one.message.text for one in f.advice) for f in (opened, closed))


def test_a_call_that_is_the_only_one_has_no_usual_time(tmp_path: Path) -> None:
    def hangs(log: Trace) -> None:
        log.open("/data/in", took_us=20, flags="O_RDONLY")
        log.read(4096, 800_000)
        log.close(10)

    found, _ = finding_of(hangs, "slow-call", tmp_path)
    assert "usual_ns" not in found.message.values
