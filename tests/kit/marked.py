"""Compiles C programs in which comments such as `/* HERE lseek */` mark the lines that make calls, and looks
for these lines in recorded stacks."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from iodock.program.store import Store

C = r"""
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int data;
static inline __attribute__((always_inline)) void put(int file) {
    write(file, "abc", 3); /* HERE write */
}
static __attribute__((noinline)) void seek_back(int file) {
    lseek(file, 0, SEEK_SET); /* HERE lseek */
    data++;
}
static void *work(void *unused) {
    char buffer[8];
    for (int i = 0; i < 20; i++) {
        pread(data ? 3 : 4, buffer, 3, 0); /* HERE pread64 */
    }
    return unused;
}
int main(int count, char **arguments) {
    pthread_t thread;
    FILE *lines;
    int file = open(arguments[1], O_RDWR | O_CREAT, 0644); /* HERE openat */
    for (int i = 0; i < 20; i++) {
        put(file);
        seek_back(file);
    }
    ftruncate(file, 9); /* HERE ftruncate */
    pthread_create(&thread, 0, work, 0);
    pthread_join(thread, 0);
    lines = fdopen(dup(file), "w");
    for (int i = 0; i < 20; i++)
        fsync(fileno(lines)), data += count; /* HERE fsync */
    return 0;
}
"""
CPLUSPLUS = r"""
#include <fstream>
#include <string>

struct Log {
    std::ofstream out;
    void line(int number) {
        out << "step " << number << std::endl; /* HERE write */
    }
};
int main(int, char **arguments) {
    Log log{std::ofstream(arguments[1])};
    for (int i = 0; i < 20; i++)
        log.line(i);
    std::ifstream in(arguments[1]);
    std::string word;
    long sum = 0;
    while (in >> word)
        sum += in.tellg(); /* HERE lseek */
    return sum == 0;
}
"""
FORTRAN = r"""
program marked
  implicit none
  character(len=200) :: name
  real(8) :: field(200000)
  integer :: i
  call get_command_argument(1, name)
  field = 1
  open(10, file=trim(name)//'.formatted')
  do i = 1, 20
    call line(10, i)
  end do
  close(10)
  open(11, file=trim(name)//'.unformatted', form='unformatted')
  do i = 1, 20
    write(11) field ! HERE unformatted
  end do
  close(11)
  open(12, file=trim(name)//'.direct', access='direct', form='unformatted', recl=80000)
  do i = 20, 1, -1
    write(12, rec=i) field(1:10000) ! HERE direct
  end do
  close(12)
contains
  subroutine line(unit, number)
    integer, intent(in) :: unit, number
    write(unit, '(a, i6)') 'step', number
    flush(unit) ! HERE formatted
  end subroutine
end program
"""


def marks(source: str) -> dict[str, int]:
    """Returns the line number of each marked call."""
    found = {}
    for number, line in enumerate(source.splitlines(), 1):
        if mark := re.search(r"HERE (\w+)", line):
            found[mark[1]] = number
    return found


def built(folder: Path, source: str, *options: str, name: str = "marked.c") -> Path:
    """Compiles SOURCE with these options and returns the program. The source is stored in the same folder."""
    path, program = folder / name, folder / name.replace(".", "-")
    path.write_text(source)
    compiler = "g++" if name.endswith("cc") else "gfortran" if name.endswith("f90") else "gcc"
    command = [
        compiler,
        *options,
        "-o",
        str(program),
        str(path),
        *(["-pthread"] if compiler == "gcc" else []),
    ]
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    return program


def share_in_chain(store: Store, call: str, line: int, name: str = "marked.c") -> float:
    """Returns the share of CALL's events on files of the test whose recorded stack contains the source
    line."""
    (row,) = store.rows(
        f"""WITH chain AS (SELECT DISTINCT t.stack_id FROM stacks t JOIN symbols y ON y.site_id = t.site_id
  WHERE y.line = {line} AND y.file LIKE '%{name}')
SELECT count(*) AS calls, count(c.stack_id) AS found FROM events e JOIN calls n ON n.id = e.call_id
  JOIN files f ON f.file_id = e.file_id LEFT JOIN chain c ON c.stack_id = e.stack_id
WHERE n.name = '{call}' AND f.name LIKE '%/out%'"""
    )
    return float(row["found"] / row["calls"])
