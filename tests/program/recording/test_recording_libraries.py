"""Tests the source lines of calls that libraries make: they must be the marked lines of the programs that use
the libraries."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from in_process import shown
from iodock.program.store import Store
from recorded import MPIRUN, live, needs_gcc, needs_mpi, record

pytestmark = live
SHARED = r"""
#include <unistd.h>
int put(int file) {
    int wrote = 0;
    for (int i = 0; i < 20; i++)
        wrote += write(file, "abc", 3); // HERE
    return wrote;
}
"""
USES_SHARED = r"""
#include <fcntl.h>
int put(int file);
int main(int count, char **arguments) {
    int file = open(arguments[1], O_RDWR | O_CREAT, 0644); // HERE
    return put(file) != 60 * (count - 1);
}
"""
RUST = r"""
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};

#[inline(never)]
fn step(out: &mut File, number: u32) -> std::io::Result<()> {
    out.write_all(&number.to_le_bytes())?; // HERE
    Ok(())
}

fn main() -> std::io::Result<()> {
    let name = std::env::args().nth(1).unwrap();
    let mut out = File::options().read(true).write(true).create(true).open(&name)?; // HERE
    for number in 0..20 {
        step(&mut out, number)?;
        out.seek(SeekFrom::Start(0))?; // HERE
    }
    let mut text = Vec::new();
    out.read_to_end(&mut text)?; // HERE
    println!("{}", text.len());
    Ok(())
}
"""
MPI = r"""
#include <mpi.h>
int main(int count, char **arguments) {
    static double field[1000];
    int rank;
    MPI_File out;
    MPI_Init(&count, &arguments);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_File_open(MPI_COMM_WORLD, arguments[1], MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &out); // HERE
    for (int step = 0; step < 20; step++)
        MPI_File_write_at_all(out, (step * 4 + rank) * 8000, field, 1000, MPI_DOUBLE, // HERE
                              MPI_STATUS_IGNORE);
    MPI_File_read_at(out, rank * 8000, field, 1000, MPI_DOUBLE, MPI_STATUS_IGNORE); // HERE
    MPI_File_close(&out); // HERE
    MPI_Finalize();
    return 0;
}
"""
HDF5 = r"""
#include <hdf5.h>
int main(int count, char **arguments) {
    static double field[100000];
    hsize_t size[1] = {100000};
    hid_t file = H5Fcreate(arguments[count - 1], H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT); // HERE
    hid_t space = H5Screate_simple(1, size, NULL);
    for (int step = 0; step < 20; step++) {
        char name[20];
        snprintf(name, sizeof name, "step%d", step);
        hid_t set = H5Dcreate2(file, name, H5T_NATIVE_DOUBLE, space, // HERE
                               H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
        H5Dwrite(set, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, field); // HERE
        H5Dclose(set); // HERE
    }
    H5Sclose(space);
    return H5Fclose(file); // HERE
}
"""
NUMPY = r"""
import sys
import numpy
name = sys.argv[1]
field = numpy.arange(100000.0)

def save(number):
    numpy.save(f"{name}-{number}.npy", field)  # HERE

for number in range(20):
    save(number)
    field += numpy.load(f"{name}-{number}.npy")  # HERE
    field.tofile(f"{name}.raw")  # HERE
    numpy.fromfile(f"{name}.raw", count=1000)  # HERE
numpy.savetxt(f"{name}.txt", field[:2000])  # HERE
print(numpy.loadtxt(f"{name}.txt").size)  # HERE
"""
PANDAS = r"""
import sys
import pandas
name = sys.argv[1]
table = pandas.DataFrame({"x": range(5000), "y": 0.5})
for number in range(10):
    table.to_csv(f"{name}.csv")  # HERE
    table = pandas.read_csv(f"{name}.csv", index_col=0)  # HERE
    table.to_pickle(f"{name}.pickle")  # HERE
    pandas.read_pickle(f"{name}.pickle")  # HERE
"""
H5PY = r"""
import sys
import h5py
import numpy
name = sys.argv[1]
field = numpy.arange(100000.0)

def steps(file):
    for number in range(20):
        yield file.create_dataset(f"step{number}", data=field)  # HERE

with h5py.File(f"{name}.h5", "w") as file:  # HERE
    for made in steps(file):
        made.attrs["unit"] = "K"  # HERE
    total = sum(float(file[f"step{number}"][:10].sum()) for number in range(20))  # HERE
    file.flush()  # HERE
print(total)
"""
SUBPROCESS = r"""
import subprocess
import sys
import threading
name = sys.argv[1]

def lines(file):
    for number in range(50):
        file.write(b"%d\n" % number)  # HERE
        yield number

def work(number):
    with open(f"{name}-{number}", "wb", buffering=0) as file:  # HERE
        for _ in lines(file):
            pass
    with open(f"{name}-{number}") as file:  # HERE
        subprocess.run(["cat"], stdin=file, check=True, stdout=subprocess.DEVNULL)

threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""


def own_calls(store: Path, program: str, file: str) -> tuple[int, int]:
    """Counts the calls of these processes on files `out*`, and those that have a marked line in their
    stack."""
    lines = [n for n, line in enumerate(Path(file).read_text().splitlines(), 1) if "HERE" in line]
    marked = f"y.line IN ({', '.join(map(str, lines))}) AND y.file LIKE '%{Path(file).name}'"
    with Store.open(store) as opened:
        (row,) = opened.rows(f"""WITH chain AS (SELECT DISTINCT t.stack_id FROM stacks t
    JOIN symbols y ON y.site_id = t.site_id WHERE {marked})
SELECT count(*) AS calls, count(c.stack_id) AS found FROM events e JOIN files f ON f.file_id = e.file_id
  LEFT JOIN chain c ON c.stack_id = e.stack_id
WHERE regexp_matches(f.name, '/out[^/]*$') AND e.utid IN (SELECT utid FROM processes
  WHERE upid IN (SELECT p.upid FROM processes p JOIN commands c ON c.utid = p.utid WHERE {program}))""")
    return int(row["calls"]), int(row["found"])


def recorded(folder: Path, *command: object, options: tuple[str, ...] = (), **more: object) -> Path:
    done = record(folder, *options, "--backend", "rewrite", "--stacks", "all", "--", *command, **more)
    assert done.returncode == 0, done.stderr
    return folder / "run.iodock"


def compiled(folder: Path, source: str, name: str, *command: str) -> Path:
    (folder / name).write_text(source)
    program = folder / "program"
    command = (*command, "-o", str(program), str(folder / name))
    built = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120)
    if built.returncode:
        pytest.skip(f"cannot be compiled here: {built.stderr[:200]}")
    return program


@needs_gcc
def test_calls_of_an_own_shared_library_have_its_line(tmp_path: Path) -> None:
    (tmp_path / "shared.c").write_text(SHARED)
    library = ["gcc", "-g", "-O2", "-shared", "-fPIC", "-o", tmp_path / "libshared.so", tmp_path / "shared.c"]
    subprocess.run(library, check=True, timeout=120)
    link = [f"-L{tmp_path}", f"-Wl,-rpath,{tmp_path}"]
    program = compiled(
        tmp_path, USES_SHARED, "uses.c", "gcc", "-g", "-O2", *link, "-Wl,--no-as-needed", "-lshared"
    )
    store = recorded(tmp_path, program, tmp_path / "out")
    calls = {
        row["line"]: row["count"]
        for row in shown(store, "summary", "--by", "line", "--file", "*/out")["rows"]
    }
    assert calls == {"uses.c:5": 1, "shared.c:6": 20}


@pytest.mark.skipif(shutil.which("rustc") is None, reason="needs rustc")
@pytest.mark.whole
def test_calls_of_a_rust_program_have_its_line(tmp_path: Path) -> None:
    program = compiled(tmp_path, RUST, "marked.rs", "rustc", "-g", "-O")
    store = recorded(tmp_path, program, tmp_path / "out")
    calls, found = own_calls(store, "c.path LIKE '%/program'", str(tmp_path / "marked.rs"))
    # The program closes the file at the end of `main`, where the value is dropped; this line is not marked.
    assert (calls - found <= 1) and calls >= 43


@needs_mpi
@pytest.mark.whole
def test_calls_of_mpi_io_have_the_line_of_the_program(tmp_path: Path) -> None:
    program = compiled(tmp_path, MPI, "marked.c", "mpicc", "-g", "-O2")
    store = recorded(tmp_path, *MPIRUN, program, tmp_path / "out")
    calls, found = own_calls(store, "c.path LIKE '%/program'", str(tmp_path / "marked.c"))
    assert found >= 0.99 * calls and calls >= 30


@pytest.mark.skipif(shutil.which("h5cc") is None, reason="needs h5cc")
@pytest.mark.whole
def test_calls_of_hdf5_have_the_line_of_the_program(tmp_path: Path) -> None:
    program = compiled(tmp_path, HDF5, "marked.c", "h5cc", "-g", "-O2")
    store = recorded(tmp_path, program, tmp_path / "out.h5")
    calls, found = own_calls(store, "c.path LIKE '%/program'", str(tmp_path / "marked.c"))
    assert found >= 0.99 * calls and calls >= 20


@functools.cache
def python_with(module: str) -> str | None:
    """Returns an interpreter that has the module: this one, or the one that IODOCK_TEST_PYTHON names."""
    for python in (sys.executable, os.environ.get("IODOCK_TEST_PYTHON", "")):
        asked = f"import {module}, sys; sys.exit(sys.version_info < (3, 11))"
        if python and not subprocess.run([python, "-c", asked], capture_output=True, timeout=60).returncode:
            return python
    return None


@pytest.mark.whole
@pytest.mark.parametrize(
    ("module", "source"),
    [("subprocess", SUBPROCESS), ("numpy", NUMPY), ("pandas", PANDAS), ("h5py", H5PY)],
    ids=["subprocess", "numpy", "pandas", "h5py"],
)
def test_calls_of_python_packages_have_the_line_of_the_program(
    tmp_path: Path, module: str, source: str
) -> None:
    python = python_with(module)
    if python is None:
        pytest.skip(f"no Python with {module} (IODOCK_TEST_PYTHON names one)")
    (tmp_path / "marked.py").write_text(source)
    store = recorded(tmp_path, python, tmp_path / "marked.py", tmp_path / "out")
    calls, found = own_calls(store, "c.path LIKE '%python%'", str(tmp_path / "marked.py"))
    assert found >= 0.99 * calls and calls >= 50


@pytest.mark.parametrize("shell", ["sh", "bash"])
def test_calls_of_a_shell_loop_have_the_command(tmp_path: Path, shell: str) -> None:
    """The recorder cannot read line numbers in the process of a shell, so it records the shell's command
    instead."""
    if not shutil.which(shell):
        pytest.skip(f"no {shell}")
    script = "for n in 1 2 3 4 5; do cat in | wc -c; echo $n >> out; done\n"
    (tmp_path / "loop.sh").write_text(script)
    (tmp_path / "in").write_text("abc")
    store = recorded(tmp_path, shell, "loop.sh")
    with Store.open(store) as opened:
        rows = opened.rows("""SELECT regexp_extract(c.path, '[^/]*$') AS program, f.name LIKE '%/in' AS reads,
  count(*) AS calls
FROM events e JOIN calls n ON n.id = e.call_id JOIN files f ON f.file_id = e.file_id
  JOIN commands c ON c.utid = e.utid
WHERE n.name IN ('read', 'write') AND e.bytes > 0 AND (f.name LIKE '%/in' OR f.name LIKE '%/out')
GROUP BY ALL""")
    found = {(row["program"], row["reads"]): row["calls"] for row in rows}
    assert found.pop(("cat", True)) == 5
    assert sum(found.values()) == 5 and {program for program, _ in found} <= {"sh", "bash", "dash"}
