"""Replaces mpirun, ior and mdtest: prints their output for the given arguments.

`fake_benchmark.py -n P PROGRAM ARGUMENT...`: the launcher's number of processes, then the program's command
line. The environment selects failures: FAKE_FAIL_ONCE names a file that the first run creates before it
fails; FAKE_SLEEP makes the program sleep; each run appends a line to the file FAKE_LOG.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

HINT = "IOR_HINT__MPI__romio_cb_write"
IOR = """\
IOR-4.1.0+dev: MPI Coordinated Test of Parallel I/O
Began               : Sat Nov 21 02:52:29 2026
Command line        : {line}
Machine             : Linux node001
TestID              : 0

Options: 
api                 : {api}
test filename       : {file}
access              : {access}
type                : {kind}
segments            : 1
nodes               : 1
tasks               : {processes}
clients per node    : {processes}
repetitions         : 1
xfersize            : {transfer} bytes
blocksize           : 4 MiB

Results: 

access    bw(MiB/s)  block(KiB) xfer(KiB)  open(s)    wr/rd(s)   close(s)   total(s)   iter
------    ---------  ---------- ---------  --------   --------   --------   --------   ----
write     {rate:.2f}    4096      64.00    0.000014   0.033838   0.014165   0.033860   0   
"""  # noqa: W291
MDTEST = """\
-- started at 11/21/2026 02:52:36 --

mdtest-4.1.0+dev was launched with {processes} total task(s) on 1 node(s)
Command line used: {line}
{processes} tasks

SUMMARY rate (in ops/sec): (of 1 iterations)
   Operation                     Max            Min           Mean        Std Dev
   ---------                     ---            ---           ----        -------
   File creation              {rate:.3f}     {rate:.3f}     {rate:.3f}          0.000
-- finished at 11/21/2026 02:52:37 --
"""


def value(words: list[str], name: str) -> str:
    return words[words.index(name) + 1]


def main(arguments: list[str]) -> int:
    processes, program, words = int(arguments[1]), arguments[2], arguments[3:]
    target = Path(value(words, "-o")) if program.endswith("ior") else Path(value(words, "-d")) / "files"
    target.write_text("left behind")
    with Path(os.environ["FAKE_LOG"]).open("a") as log:
        log.write(f"{' '.join(arguments)} {os.environ.get(HINT, '')}\n")
    time.sleep(float(os.environ.get("FAKE_SLEEP", "0")))
    once = os.environ.get("FAKE_FAIL_ONCE")
    if once and not Path(once).exists():
        Path(once).touch()
        print("ior ERROR: open64() failed, errno 28, No space left on device (aiori-POSIX.c:500)")
        return 1
    noise = 1 + 0.01 * (time.time_ns() // 1000 % 5)
    line = " ".join([program, *words])
    if program.endswith("mdtest"):
        print(MDTEST.format(processes=processes, line=line, rate=1000 * processes * noise))
        return 0
    transfer = int(value(words, "-t").replace("k", "")) * 1024
    said = {
        "line": line,
        "api": value(words, "-a"),
        "file": target,
        "access": "file-per-process" if "-F" in words else "single-shared-file",
        "kind": "collective" if "-c" in words else "independent",
        "processes": processes,
        "transfer": transfer,
        "rate": min(processes, 4) * 100 * noise,
    }
    print(IOR.format(**said))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
