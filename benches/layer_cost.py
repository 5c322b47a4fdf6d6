"""Measures the cost of recording calls of MPI-IO, HDF5 and stdio, per call.

    .venv/bin/python benches/layer_cost.py [--runs 5] [--only openmpi,mpich,hdf5,stdio]

Each program makes 100 batches of 1,000 calls of a kind and prints the time of its quickest batch in ns per
call: MPI_File_seek, MPI_File_read_at of 8 bytes (with one pread), H5Dread and H5Dwrite of one number in a
chunk that HDF5 has in its cache (without a system call); for stdio fputc, fwrite of 64 bytes, fprintf, fgetc
and fgets of 16 bytes, with a system call when the buffer of 4 KiB is full or empty. Programs run alone and in
simultaneous recordings (`--interfaces never` and `always`, for stdio `never` and `stdio`), single runs
alternately, in random order. Prints the smallest and the median of each way's runs, and the smallest time
that recording the calls adds to `never`. Kinds whose compiler or library is missing are left out.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

from measure import table
from short_cost import recording

TIMED = r"""
#include <stdio.h>
#include <time.h>
#define BATCHES(name, call) do { \
	double best = 1e12; \
	for (int batch = 0; batch < 100; batch++) { \
		struct timespec from, to; \
		clock_gettime(CLOCK_MONOTONIC, &from); \
		for (int i = 0; i < 1000; i++) \
			call; \
		clock_gettime(CLOCK_MONOTONIC, &to); \
		double took = (to.tv_sec - from.tv_sec) * 1e6 + (to.tv_nsec - from.tv_nsec) / 1e3; \
		best = took < best ? took : best; \
	} \
	printf("%s %f\n", name, best); \
} while (0)
"""
OF_MPI = r"""
#include <mpi.h>
int main(int count, char **given) {
	MPI_File file;
	double values[8] = {0};
	MPI_Init(&count, &given);
	MPI_File_open(MPI_COMM_SELF, given[1], MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
	MPI_File_write_at(file, 0, values, 8, MPI_DOUBLE, MPI_STATUS_IGNORE);
	BATCHES("MPI_File_seek", MPI_File_seek(file, 8, MPI_SEEK_SET));
	BATCHES("MPI_File_read_at", MPI_File_read_at(file, 8, values, 1, MPI_DOUBLE, MPI_STATUS_IGNORE));
	MPI_File_close(&file);
	MPI_Finalize();
}
"""
OF_HDF5 = r"""
#include <hdf5.h>
int main(int count, char **given) {
	hsize_t extent = 4096, chunk = 1024, one = 1, at = 7;
	double value = 1;
	hid_t file = H5Fcreate(given[count - 1], H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
	hid_t how = H5Pcreate(H5P_DATASET_CREATE);
	hid_t space = H5Screate_simple(1, &extent, NULL), memory = H5Screate_simple(1, &one, NULL);
	H5Pset_chunk(how, 1, &chunk);
	hid_t data = H5Dcreate2(file, "heat", H5T_NATIVE_DOUBLE, space, H5P_DEFAULT, how, H5P_DEFAULT);
	H5Sselect_hyperslab(space, H5S_SELECT_SET, &at, NULL, &one, NULL);
	BATCHES("H5Dwrite", H5Dwrite(data, H5T_NATIVE_DOUBLE, memory, space, H5P_DEFAULT, &value));
	BATCHES("H5Dread", H5Dread(data, H5T_NATIVE_DOUBLE, memory, space, H5P_DEFAULT, &value));
	H5Dclose(data);
	H5Fclose(file);
}
"""
OF_STDIO = r"""
static char block[64];
int main(int count, char **given) {
	FILE *output = fopen("/dev/null", "w"), *input;
	BATCHES("fputc", fputc('a', output));
	BATCHES("fwrite", fwrite(block, 1, sizeof(block), output));
	BATCHES("fprintf", fprintf(output, "%d\n", i));
	fclose(output);
	output = fopen(given[1], "w");
	for (int i = 0; i < 300000; i++)
		fputs("fifteen letters\n", output);
	fclose(output);
	input = fopen(given[1], "r");
	BATCHES("fgetc", fgetc(input));
	BATCHES("fgets", fgets(block, sizeof(block), input));
	fclose(input);
}
"""
SOURCES = {"openmpi": OF_MPI, "mpich": OF_MPI, "hdf5": OF_HDF5, "stdio": OF_STDIO}
KINDS = tuple(SOURCES)


def recorder(store: Path, interfaces: str) -> list[str]:
    """Returns the command that records a program with this value of `--interfaces`."""
    options = ["--quiet", "--backend", "rewrite", "--interfaces", interfaces, "-o", str(store)]
    return [sys.executable, "-m", "iodock", "record", *options, "--"]


def built(folder: Path, kind: str) -> list[str] | None:
    """Compiles a program and returns the command that runs it, or `None` if it cannot be compiled here."""
    source, program = folder / f"{kind}.c", folder / kind
    source.write_text(TIMED + SOURCES[kind])
    compiler, flags = "gcc" if kind == "stdio" else f"mpicc.{kind}", list[str]()
    if kind == "hdf5":
        asked = ["pkg-config", "--cflags", "--libs", "hdf5-serial"]
        if not shutil.which("pkg-config"):
            return None
        flags = subprocess.run(asked, capture_output=True, text=True, check=False).stdout.split()
        compiler = "gcc" if flags else ""
    if not shutil.which(compiler):
        return None
    subprocess.run([compiler, "-O2", "-o", program, source, *flags], check=True)
    return [str(program), str(folder / f"{kind}.data")]


def measured(command: list[str], environment: dict[str, str]) -> dict[str, float]:
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, env={**os.environ, **environment})
    pairs = (line.split() for line in done.stdout.decode().splitlines())
    return {name: float(value) for name, value in pairs}


def rows_of(kind: str, found: dict[str, list[dict[str, float]]]) -> list[list[str]]:
    rows = []
    for name in found["alone"][0]:
        times = {way: [one[name] for one in runs] for way, runs in found.items()}
        least = {way: min(values) for way, values in times.items()}
        shown = [f"{least[way]:.0f} ({statistics.median(times[way]):.0f})" for way in times]
        rows.append([kind, name, *shown, f"{least['recorded'] - least['never']:.0f}"])
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=5, help="of each program and way")
    parser.add_argument("--only", default=",".join(KINDS), help="kinds, separated by commas")
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="iodock-bench-", dir="/dev/shm") as folder, ExitStack() as stack:
        scratch = Path(folder)
        commands = {kind: built(scratch, kind) for kind in KINDS if kind in wanted.only.split(",")}
        ways: dict[str, dict[str, str]] = {"alone": {}}
        for way in ("never", "always", "stdio"):
            ways[way] = stack.enter_context(recording(recorder(scratch / f"{way}.iodock", way)))
        rows = []
        for kind, command in commands.items():
            if command is None:
                continue
            taken = ways["stdio" if kind == "stdio" else "always"]
            tried = {"alone": ways["alone"], "never": ways["never"], "recorded": taken}
            found: dict[str, list[dict[str, float]]] = {way: [] for way in tried}
            for number in range(wanted.runs):
                for way in random.Random(number).sample(list(tried), len(tried)):
                    found[way].append(measured(command, tried[way]))
            rows += rows_of(kind, found)
        title = f"{wanted.runs} runs of each in turn: ns a call, smallest (median)"
        table(title, ["kind", "call", "alone", "never", "recorded", "added"], rows)


if __name__ == "__main__":
    main()
