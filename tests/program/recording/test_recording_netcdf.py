"""Compares recorded calls of NetCDF-C and PnetCDF with the counts and bytes that the program itself
reports."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from layers import asked, built, counted, outside_the_innermost, pythons_with, recorded, told
from recorded import IODOCK, MPIRUN, PROGRAMS, live, needs_gcc, record, run

pytestmark = [live, needs_gcc]
FORMATS = ("classic", "netcdf4")


@pytest.fixture(scope="module", params=FORMATS)
def of_netcdf(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Creates a folder with a recording of layers_netcdf, and with the file that the program writes without a
    recorder."""
    folder = tmp_path_factory.mktemp(request.param)
    program = built(folder, "layers_netcdf.c", "netcdf")
    plain = folder / "plain"
    plain.mkdir()
    assert run([program, "out.nc", request.param], plain).returncode == 0
    return recorded(folder, program, "out.nc", request.param)


def is_netcdf4(folder: Path) -> bool:
    return (folder / "out.nc").read_bytes()[1:4] == b"HDF"


def test_recorded_netcdf_calls_are_those_of_the_program(of_netcdf: Path) -> None:
    assert told(of_netcdf, "NetCDF") == counted(of_netcdf)
    failed = asked(of_netcdf, "SELECT call FROM interface_calls WHERE interface = 'NetCDF' AND result <> 0")
    assert sorted(row["call"] for row in failed) == ["nc_get_vara_double", "nc_get_vara_schar", "nc_open"]


def test_the_written_file_is_the_same_as_without_recording(of_netcdf: Path) -> None:
    """NetCDF-4 files contain their creation time, so the test compares the output of ncdump."""
    written, plain = [(folder / "out.nc").read_bytes() for folder in (of_netcdf, of_netcdf / "plain")]
    if not is_netcdf4(of_netcdf):
        assert written == plain
        return
    assert len(written) == len(plain)
    if shutil.which("ncdump"):
        dumps = [run(["ncdump", "out.nc"], folder) for folder in (of_netcdf, of_netcdf / "plain")]
        assert dumps[0].returncode == 0 and dumps[0].stdout == dumps[1].stdout


def test_each_system_call_belongs_to_the_innermost_interface_call(of_netcdf: Path) -> None:
    assert outside_the_innermost(of_netcdf, "out.nc") == 0


def test_hdf5_calls_belong_to_their_netcdf_call(of_netcdf: Path) -> None:
    (counts,) = asked(
        of_netcdf,
        """SELECT count(*) AS calls, count(*) FILTER (p.interface = 'NetCDF' AND p.utid = k.utid
          AND p.ts <= k.ts AND k.end_ts <= p.end_ts AND p.file_id IS NOT DISTINCT FROM k.file_id) AS nested
        FROM interface_calls k LEFT JOIN interface_calls p ON p.id = k.parent_id
        WHERE k.interface = 'HDF5' AND k.result = 0""",
    )
    assert counts["calls"] == counts["nested"]
    assert (counts["calls"] > 0) == is_netcdf4(of_netcdf)


def test_variables_are_recorded_once_per_open(of_netcdf: Path) -> None:
    found = asked(
        of_netcdf,
        """SELECT d.name, d.layout, d.element_bytes, d.extent, d.chunk, d.filters,
          (SELECT count(*) FROM interface_calls c WHERE c.handle_id = d.handle_id) AS calls
        FROM datasets d JOIN interface_calls k ON k.id = d.interface_call_id AND k.interface = 'NetCDF'
        JOIN files f ON f.file_id = d.file_id AND f.name LIKE '%/out.nc' ORDER BY d.interface_call_id""",
    )
    names = [row["name"] for row in found]
    more = ["/more/words", "/more/points"] if is_netcdf4(of_netcdf) else []
    assert names == ["heat", "letters", "series", *more, "series"]
    heat, _, series = found[:3]
    chunked = ("chunked", "16x256", "shuffle,deflate")
    assert (heat["layout"], heat["chunk"], heat["filters"]) == (
        chunked if is_netcdf4(of_netcdf) else ("contiguous", None, None)
    )
    assert (heat["element_bytes"], heat["extent"], series["extent"]) == (8, "64x4096", None)
    # The program accesses the variable whole three times, and in four shapes with thirteen types, each read
    # and written.
    assert heat["calls"] == 2 * (3 + 4 * 13)


def test_show_interfaces_lists_all_layers(of_netcdf: Path) -> None:
    shown = run([*IODOCK, "show", "interfaces", "run.iodock", "--format", "json"], of_netcdf).stdout
    if is_netcdf4(of_netcdf):
        assert "nc_put_var_text -> H5Dwrite -> pwrite64: 1 of 1 processes, 256 KiB each" in shown
        assert "requested: nc_put_var_text 256 KiB, H5Dwrite 256 KiB; transferred: 256 KiB" in shown
    else:
        assert "nc_put_var_double -> read: requested: nc_put_var_double 2 MiB; transferred: 4 MiB" in shown
    grouped = [*IODOCK, "show", "summary", "run.iodock", "--by", "interface", "--format", "csv"]
    interface = "HDF5" if is_netcdf4(of_netcdf) else "NetCDF"
    assert interface in run(grouped, of_netcdf).stdout


def test_the_netcdf_library_in_a_wheel_is_recorded(tmp_path: Path) -> None:
    python = pythons_with("netCDF4")[0]
    program = tmp_path / "columns.py"
    program.write_text(
        "import netCDF4, numpy\n"
        "with netCDF4.Dataset('out.nc', 'w') as file:\n"
        "    file.createDimension('row', 128)\n"
        "    file.createDimension('column', 128)\n"
        "    heat = file.createVariable('heat', 'f8', ('row', 'column'), zlib=True, chunksizes=(32, 32))\n"
        "    heat[:] = numpy.arange(128 * 128).reshape(128, 128)\n"
        "with netCDF4.Dataset('out.nc') as file:\n"
        "    print(sum(file['heat'][:, column].sum() for column in range(0, 128, 4)))\n"
    )
    plain = run([python, program], tmp_path)
    done = record(tmp_path, "--", python, program)
    assert (done.returncode, done.stdout) == (0, plain.stdout), done.stderr
    found = told(tmp_path, "NetCDF")
    assert found["nc_put_vara"] == (1, 128 * 128 * 8) and found["nc_get_vara"] == (32, 32 * 128 * 8)
    names = asked(
        tmp_path,
        """SELECT DISTINCT d.name, d.chunk, d.filters FROM datasets d
        JOIN interface_calls k ON k.id = d.interface_call_id AND k.interface = 'NetCDF'""",
    )
    assert names == [{"name": "heat", "chunk": "32x32", "filters": "shuffle,deflate"}]
    assert outside_the_innermost(tmp_path, "out.nc") == 0


def test_files_in_memory_have_no_name(tmp_path: Path) -> None:
    recorded(tmp_path, built(tmp_path, "layers_memory.c", "netcdf"), "out.nc")
    assert told(tmp_path, "NetCDF") == counted(tmp_path)
    found = asked(
        tmp_path,
        """SELECT DISTINCT f.name FROM interface_calls k JOIN files f ON f.file_id = k.file_id
        WHERE k.interface = 'NetCDF' AND k.call NOT IN ('nc__create', 'nc_close')""",
    )
    assert found == []
    # NetCDF reuses the identifier of a file in memory for a later file with a name.
    named = asked(
        tmp_path,
        """SELECT count(*) AS calls FROM interface_calls k JOIN files f ON f.file_id = k.file_id
        WHERE k.call = 'nc_close' AND f.name LIKE '%/out.nc'""",
    )
    assert named == [{"calls": 1}]


@pytest.fixture(scope="module")
def of_pnetcdf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Creates a folder with a recording of layers_pnetcdf by four ranks, and with the file that the program
    writes without a recorder."""
    if not shutil.which("mpirun.openmpi") or not Path("/usr/include/pnetcdf.h").exists():
        pytest.skip("Open MPI or PnetCDF is not installed")
    folder = tmp_path_factory.mktemp("pnetcdf")
    program = folder / "layers_pnetcdf"
    source = PROGRAMS / "layers_pnetcdf.c"
    subprocess.run(["mpicc.openmpi", "-o", program, source, "-lpnetcdf"], check=True)
    plain = folder / "plain"
    plain.mkdir()
    assert run([*MPIRUN, program, "out.nc"], plain).returncode == 0
    return recorded(folder, *MPIRUN, program, "out.nc")


def test_recorded_pnetcdf_calls_are_those_of_the_program(of_pnetcdf: Path) -> None:
    assert told(of_pnetcdf, "PnetCDF") == counted(of_pnetcdf)
    failed = asked(
        of_pnetcdf, "SELECT DISTINCT call FROM interface_calls WHERE result <> 0 AND parent_id IS NULL"
    )
    assert sorted(row["call"] for row in failed) == ["ncmpi_get_vara_schar_all", "ncmpi_open"]
    assert (of_pnetcdf / "out.nc").read_bytes() == (of_pnetcdf / "plain" / "out.nc").read_bytes()


def test_mpi_io_calls_belong_to_their_pnetcdf_call(of_pnetcdf: Path) -> None:
    (counts,) = asked(
        of_pnetcdf,
        """SELECT count(*) AS calls, count(*) FILTER (p.interface = 'PnetCDF' AND p.utid = k.utid
          AND p.ts <= k.ts AND k.end_ts <= p.end_ts AND p.file_id IS NOT DISTINCT FROM k.file_id) AS nested
        FROM interface_calls k LEFT JOIN interface_calls p ON p.id = k.parent_id
        WHERE k.interface = 'MPI-IO' AND k.result = 0""",
    )
    assert counts["calls"] == counts["nested"] > 0
    assert outside_the_innermost(of_pnetcdf, "out.nc") == 0
    shown = run([*IODOCK, "show", "interfaces", "run.iodock", "--format", "json"], of_pnetcdf).stdout
    assert (
        "ncmpi_put_vara_all -> MPI_File_write_at_all -> pwrite64: requested: ncmpi_put_vara_all 8 MiB"
        in shown
    )


def test_variables_of_pnetcdf_are_recorded_for_each_rank(of_pnetcdf: Path) -> None:
    found = asked(
        of_pnetcdf, "SELECT name, extent, element_bytes, count(*) AS ranks FROM datasets GROUP BY ALL"
    )
    assert {(row["name"], row["extent"], row["element_bytes"], row["ranks"]) for row in found} == {
        ("heat", "256x4096", 8, 4),
        ("letters", "256x4096", 1, 4),
    }
