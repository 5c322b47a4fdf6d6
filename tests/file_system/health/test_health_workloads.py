"""Tests workloads of a check-up from files, in iodock's own format and in Filebench's."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from health_places import contents, health, measured, place_among_others
from iodock.file_system.health import workload
from iodock.file_system.health.classes import Choice
from iodock.shared.errors import RequestError


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return place_among_others(tmp_path)


WORKLOAD = """
files = 20
sizes = ["4k", "100k"]
operations = 300
processes = [2]
[weights]
create = 1
write = 1
append = 1
read = 4
delete = 1
stat = 2
"""


def test_a_workload_is_read_from_a_file(place: Path) -> None:
    before = contents(place)
    file = place.parent / "mixture.toml"
    file.write_text(WORKLOAD)
    found = measured(place, "--workload", file)
    assert contents(place) == before
    counts = {cell["operation"]: cell["latency_ns"]["count"] for cell in found["cells"]}
    operations = ("create", "write", "append", "read", "delete", "stat")
    assert set(counts) == {"all", *operations}
    assert counts["all"] == sum(counts[name] for name in operations) == 300 * 2 * 3
    # Four of ten operations are reads, within five standard deviations.
    assert abs(counts["read"] - 720) < 5 * 21
    labels = {cell["operation"]: cell["cache"] for cell in found["cells"]}
    assert labels["read"] == "unknown" and labels["stat"] is None


FILEBENCH = """
set $dir=/tmp
set $nfiles=120
set $filesize=cvar(type=cvar-gamma,parameters=mean:16384;gamma:1.5)   # a comment
set $nthreads=3
define fileset name=small,path=$dir,size=1k,entries=4
define fileset name=mail,path=$dir,size=$filesize,entries=$nfiles,dirwidth=20,prealloc=80
define process name=mailer,instances=1
{
  thread name=mailerthread,memsize=10m,instances=$nthreads
  {
    flowop deletefile name=deletefile1,filesetname=mail
    flowop createfile name=createfile2,filesetname=mail,fd=1
    flowop writewholefile name=write2,srcfd=1,fd=1,iosize=64k
    flowop fsync name=fsyncfile2,fd=1
    flowop closefile name=closefile2,fd=1
    flowop openfile name=openfile3,filesetname=mail,fd=1
    flowop readwholefile name=readfile3,fd=1,iosize=1m
    flowop appendfilerand name=appendfilerand3,iosize=4k,fd=1
    flowop closefile name=closefile3,fd=1
    flowop statfile name=stat4,filesetname=mail
    flowop readwholefile name=readfile4,fd=1,iosize=1m
  }
}
echo  "Mail personality successfully loaded"
run 2
"""


def test_a_filebench_file_becomes_a_mixed_workload(place: Path) -> None:
    file = place.parent / "mail.f"
    file.write_text(FILEBENCH)
    (cell,) = workload.cells(file, Choice())
    pattern = cell.pattern
    assert (cell.processes, cell.limit_s, dict(cell.variant)) == (3, 2.0, {"workload": "mail"})
    assert pattern["weights"] == {"create": 3, "write": 0, "append": 3, "read": 6, "delete": 3, "stat": 3}
    assert (pattern["files"], pattern["append_bytes"], pattern["request_bytes"]) == (40, 4096, 1 << 20)
    assert pattern["sync"] is True
    sizes = pattern["sizes_bytes"]
    # The standard deviation of the gamma distribution is 0.82 of its mean, and so 0.14 for the mean of 32
    # samples.
    assert len(sizes) == 32 and abs(sum(sizes) / 32 - 16384) < 3 * 0.15 * 16384
    before = contents(place)
    found = measured(place, "--workload", file)
    assert contents(place) == before
    assert {one["operation"] for one in found["cells"]} == {
        "all",
        "create",
        "append",
        "read",
        "delete",
        "stat",
    }


COMPOSITE = """
set $nfiles=100
set $total=$nfiles * 4
set $written = randvar(type=tabular, min=1k, round=1k, randtable =
{{ 30,   1k,    3k},
 {10,   9k,   15k}
})
define randvar name=$size, type=tabular, min=1k, randtable =
{{ 1, 2k, 2k},
 { 1, 4k, 4k}}
define fileset name=many,
    path=/tmp,
    entries=$total,
    size=$size
define flowop name=renew, $which
{
  flowop deletefile name=a,filesetname=$which
  flowop createfile name=b,filesetname=$which,fd=1
  flowop appendfile name=c,iosize=$written,fd=1
}
define process name=p,instances=2
{
  thread name=t,memsize=1m,instances=1
  {
    flowop renew name=r,iters=3,$which=many
    flowop delay name=d,value=1
  }
}
run 3
"""


def test_variables_and_composites_of_filebench_are_read(tmp_path: Path) -> None:
    file = tmp_path / "composite.f"
    file.write_text(COMPOSITE)
    (cell,) = workload.cells(file, Choice())
    pattern = cell.pattern
    assert pattern["weights"] == {"create": 1, "write": 0, "append": 1, "read": 0, "delete": 1, "stat": 0}
    assert (cell.processes, pattern["files"], pattern["sizes_bytes"]) == (2, 200, [3072])
    # The mean size is (30 x 2k + 10 x 12k) / 40.
    assert pattern["append_bytes"] == 4608


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("  flowop read name=r,random,iosize=4k", "wrong.f:2: read: can't be part"),
        ("define fileset name=a,entries=$many", "wrong.f:2: $many was not set"),
        ("define fileset name=a,entries=lots", "wrong.f:2: 'lots': is no number"),
        ("frobnicate 3", "wrong.f:2: frobnicate: is an unknown command"),
        ("run 60", "wrong.f: no operation was found"),
    ],
)
def test_errors_in_filebench_files_name_the_line(tmp_path: Path, line: str, words: str) -> None:
    file = tmp_path / "wrong.f"
    file.write_text(f"# first\n{line}\n")
    with pytest.raises(RequestError, match=re.escape(words)):
        workload.cells(file, Choice())


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("files = 0\n[weights]\nread = 1", "files should be a whole number"),
        ("weigths = 1", "weigths is not known"),
        ("files = 3", "weights is missing"),
        ("[weights]\nread = 0", "none is above 0"),
        ("[weights]\nreed = 1", "weights.reed is not known"),
        ('sizes = ["4x"]\n[weights]\nread = 1', "sizes should be a size"),
        ("files = [", "Invalid"),
    ],
)
def test_errors_in_workloads_name_the_field(place: Path, text: str, words: str) -> None:
    file = place.parent / "wrong.toml"
    file.write_text(text)
    done = health("run", place, "--workload", file)
    assert done.returncode == 2 and words in done.stderr and "wrong.toml" in done.stderr
