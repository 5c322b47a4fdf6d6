"""Compares recorded calls of HDF5 and other layers above MPI-IO with the counts and bytes that the program
itself reports."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

from layers import asked, built, counted, outside_the_innermost, pythons_with, recorded, told
from recorded import IODOCK, MPIRUN, live, needs_gcc, record, run

pytestmark = [live, needs_gcc]
RANKS = 4


@pytest.fixture(scope="module", params=["alone", "four ranks"])
def of_hdf5(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Creates a folder with a recording of layers_hdf5, run by one process or by four ranks of Open MPI."""
    folder = tmp_path_factory.mktemp("hdf5")
    if request.param == "alone":
        return recorded(folder, built(folder, "layers_hdf5.c", "hdf5-serial"), folder / "out.h5")
    if not shutil.which("mpirun"):
        pytest.skip("Open MPI is not installed")
    program = built(folder, "layers_hdf5.c", "hdf5-openmpi", "-DPARALLEL", compiler="mpicc.openmpi")
    return recorded(folder, *MPIRUN, program, folder / "out.h5")


def test_recorded_hdf5_calls_are_those_of_the_program(of_hdf5: Path) -> None:
    assert told(of_hdf5, "HDF5") == counted(of_hdf5)
    failed = asked(of_hdf5, "SELECT DISTINCT call FROM interface_calls WHERE result <> 0")
    assert failed == [{"call": "H5Dopen2"}]


def test_mpi_io_calls_belong_to_their_hdf5_call(of_hdf5: Path) -> None:
    counts = asked(
        of_hdf5,
        """SELECT count(*) AS calls, count(*) FILTER (p.interface = 'HDF5' AND p.utid = k.utid
          AND p.ts <= k.ts AND k.end_ts <= p.end_ts AND p.file_id = k.file_id) AS nested
        FROM interface_calls k LEFT JOIN interface_calls p ON p.id = k.parent_id
        WHERE k.interface = 'MPI-IO'""",
    )[0]
    assert counts["calls"] == counts["nested"]
    is_parallel = any("mpirun" in row["path"] for row in asked(of_hdf5, "SELECT path FROM commands"))
    assert (counts["calls"] > 0) == is_parallel


def test_each_system_call_belongs_to_the_innermost_interface_call(of_hdf5: Path) -> None:
    assert outside_the_innermost(of_hdf5, "out.h5") == 0


def test_the_call_sites_behind_a_layer_are_those_of_the_program(of_hdf5: Path) -> None:
    """The recorder's library, which intercepts the calls of layers, must be neither a call site nor part of a
    stack."""
    modules = asked(
        of_hdf5,
        """SELECT DISTINCT parse_filename(s.module) AS module FROM events e
        JOIN sites s ON s.site_id = e.site_id JOIN files f ON f.file_id = e.file_id
        WHERE f.name LIKE '%/out.h5' AND e.bytes > 0""",
    )
    assert modules == [{"module": "layers_hdf5"}]
    assert asked(of_hdf5, "SELECT module FROM sites WHERE module LIKE '%libiodock%'") == []


def test_data_sets_are_recorded_with_their_chunks(of_hdf5: Path) -> None:
    (found,) = asked(
        of_hdf5,
        """SELECT DISTINCT d.name, layout, element_bytes, chunk, chunk_bytes, filters FROM datasets d
        JOIN files f ON f.file_id = d.file_id AND f.name LIKE '%/out.h5'
        JOIN interface_calls k ON k.handle_id = d.handle_id AND k.call = 'H5Dwrite'""",
    )
    assert found == {
        "name": "/fields/heat",
        "layout": "chunked",
        "element_bytes": 8,
        "chunk": "64x64",
        "chunk_bytes": 64 * 64 * 8,
        "filters": None,
    }


def test_show_interfaces_lists_all_layers(of_hdf5: Path) -> None:
    shown = run([*IODOCK, "show", "interfaces", "run.iodock", "--format", "json"], of_hdf5).stdout
    if told(of_hdf5, "MPI-IO"):
        assert "H5Dwrite -> MPI_File_write_at_all -> pwrite" in shown
        assert "requested: H5Dwrite 8 MiB, MPI_File_write_at_all 8 MiB; transferred: 8 MiB" in shown
        assert "requested: H5Dread 4 MiB, MPI_File_read_at 8 MiB; transferred: 8 MiB" in shown
    else:
        assert "H5Dwrite -> pwrite64: 1 of 1 processes" in shown and "requested: H5Dwrite 2 MiB" in shown


def test_the_hdf5_library_in_an_h5py_wheel_is_recorded(tmp_path: Path) -> None:
    python = pythons_with("h5py")[0]
    program = tmp_path / "columns.py"
    program.write_text(
        "import h5py, numpy\n"
        "with h5py.File('out.h5', 'w') as file:\n"
        "    data = file.create_dataset('heat', (128, 128), 'f8', chunks=(32, 32), compression='gzip')\n"
        "    data[...] = numpy.arange(128 * 128).reshape(128, 128)\n"
        "with h5py.File('out.h5') as file:\n"
        "    print(sum(file['heat'][:, column].sum() for column in range(0, 128, 4)))\n"
    )
    recorded(tmp_path, python, program)
    found = told(tmp_path, "HDF5")
    assert found["H5Dwrite"] == (1, 128 * 128 * 8) and found["H5Dread"] == (32, 32 * 128 * 8)
    (data,) = asked(tmp_path, "SELECT DISTINCT name, chunk, filters FROM datasets")
    assert data == {"name": "/heat", "chunk": "32x32", "filters": "deflate"}
    lines = asked(
        tmp_path,
        """SELECT DISTINCT s.line FROM events e JOIN symbols s ON s.site_id = e.site_id
        JOIN files f ON f.file_id = e.file_id WHERE f.name LIKE '%/out.h5' AND e.bytes > 0""",
    )
    assert {"line": 6} in lines and {one["line"] for one in lines} <= {2, 4, 5, 6}


def test_two_hdf5_libraries_in_one_process_are_distinguished(tmp_path: Path) -> None:
    """Each wheel calls its own copy of the HDF5 library. The copies do not know each other's identifiers."""
    python = next((one for one in pythons_with("h5py") if one in pythons_with("netCDF4")), None)
    if not python:
        pytest.skip("no Python here has both")
    program = tmp_path / "both.py"
    program.write_text(
        "import h5py, netCDF4, numpy\n"
        "with h5py.File('one.h5', 'w') as file:\n"
        "    with netCDF4.Dataset('two.nc', 'w') as other:\n"
        "        other.createDimension('x', 1000)\n"
        "        field = other.createVariable('heat', 'f8', ('x',))\n"
        "        mine = file.create_dataset('heat', (500,))\n"
        "        mine[:] = numpy.arange(500.0)\n"
        "        field[:] = numpy.arange(1000.0)\n"
        "    print(file['heat'][3], netCDF4.Dataset('two.nc')['heat'][4])\n"
    )
    plain = run([python, program], tmp_path)
    assert plain.returncode == 0, plain.stderr
    done = record(tmp_path, "--", python, program)
    assert (done.returncode, done.stdout) == (0, plain.stdout), done.stderr
    files = asked(
        tmp_path,
        """SELECT DISTINCT split_part(f.name, '/', -1) AS name FROM interface_calls k
        JOIN files f ON f.file_id = k.file_id WHERE k.call = 'H5Dwrite' AND k.requested_bytes > 0""",
    )
    assert {row["name"] for row in files} == {"one.h5", "two.nc"}


def test_queries_that_would_make_hdf5_read_the_file_are_avoided(tmp_path: Path) -> None:
    program = built(tmp_path, "layers_unasked.c", "hdf5-serial")
    plain = run([program], tmp_path)
    assert plain.stdout == "source opened\n"
    done = record(tmp_path, "--", program)
    assert (done.returncode, done.stdout) == (0, plain.stdout), done.stderr
    calls = asked(
        tmp_path,
        """SELECT k.call, count(e.ts) AS inside, any_value(d.name) AS name
        FROM interface_calls k LEFT JOIN events e ON e.interface_call_id = k.id
        LEFT JOIN datasets d ON d.interface_call_id = k.id
        WHERE k.call IN ('H5Dcreate_anon', 'H5Gcreate_anon', 'H5Dcreate1', 'H5Oopen')
        GROUP BY k.id, k.call ORDER BY k.id""",
    )
    # In an unnamed object, a relative name has no full path, so only names that begin at the root are
    # recorded.
    assert [(row["call"], row["name"]) for row in calls] == [
        ("H5Dcreate_anon", ""),
        ("H5Gcreate_anon", None),
        ("H5Dcreate1", ""),
        ("H5Oopen", ""),
        ("H5Oopen", "/heat"),
    ]
    assert max(row["inside"] for row in calls) < 20


def test_a_module_that_calls_hdf5_can_be_unloaded(tmp_path: Path) -> None:
    built(tmp_path, "layers_unasked.c", "hdf5-serial", "-DPLUGIN", "-shared", "-fPIC")
    program = tmp_path / "twice.py"
    program.write_text(
        "import _ctypes, ctypes\n"
        "for _ in range(2):\n"
        "    plugin = ctypes.CDLL('./layers_unasked')\n"
        "    print(plugin.times())\n"
        "    _ctypes.dlclose(plugin._handle)\n"
    )
    plain = run([sys.executable, program], tmp_path)
    assert plain.stdout == "1\n1\n", plain.stderr
    done = record(tmp_path, "--interfaces", "always", "--", sys.executable, program)
    assert (done.returncode, done.stdout) == (0, plain.stdout), done.stderr
    assert told(tmp_path, "HDF5")["H5Fcreate"] == (2, 0)


def test_a_program_without_hdf5_does_not_get_its_library(tmp_path: Path) -> None:
    environment = {**os.environ, "LD_PRELOAD": ""}
    record(tmp_path, "--", "sh", "-c", "echo $LD_PRELOAD > preloaded", env=environment)
    assert "libiodock_interfaces.so" not in (tmp_path / "preloaded").read_text()


def test_data_sets_opened_by_reference_are_known(tmp_path: Path) -> None:
    recorded(tmp_path, built(tmp_path, "layers_reference.c", "hdf5-serial"))
    found = asked(
        tmp_path,
        """SELECT o.call, d.name, d.chunk, count(k.id) AS writes,
          CAST(sum(k.requested_bytes) AS BIGINT) AS bytes
        FROM datasets d JOIN files f ON f.file_id = d.file_id AND f.name LIKE '%/out.h5'
        JOIN interface_calls o ON o.id = d.interface_call_id
        JOIN interface_calls k ON k.handle_id = d.handle_id AND k.call = 'H5Dwrite'
        GROUP BY ALL ORDER BY ALL""",
    )
    opens = {row["call"]: (row["name"], row["chunk"], row["writes"], row["bytes"]) for row in found}
    assert opens == {
        "H5Oopen_by_addr": ("", "500", 1, 8000),
        "H5Oopen_by_idx": ("/heat", "500", 1, 8000),
        "H5Rdereference2": ("", "500", 1, 8000),
    }
    assert told(tmp_path, "HDF5")["H5Dread_chunk"] == (1, 0)
