//! Calls of interfaces above the system calls, such as MPI-IO. Programs make system calls inside them.

use crate::{shown, Direction, Text, NONE, UNKNOWN};

/// A function of an I/O interface, such as MPI-IO.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InterfaceSpec {
    pub name: &'static str,
    pub interface: &'static str,
    /// Whether all processes that opened the file together must make the call.
    pub is_collective: bool,
    /// Direction of the bytes. Of a split collective call, only the beginning has a direction. The end completes
    /// the transfer.
    pub direction: Direction,
    pub effect: InterfaceEffect,
    /// Layer of the interface, as in `enum layer` of iodock-preload. Higher layers call lower ones and have
    /// smaller numbers: NetCDF calls HDF5, and HDF5 calls MPI-IO.
    pub layer: u8,
}

/// The effect of a call on the files that the interface has open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InterfaceEffect {
    Nothing,
    Open,
    Close,
    /// The call sets a view: it defines which bytes of the file the later offsets refer to.
    View,
    /// The call opens an object inside a file: a data set, a group or an attribute.
    Part,
}

/// The interface of calls on streams. Calls that made no system call are summed up instead of having a row
/// each.
pub const STDIO: &str = "stdio";
const STDIO_LAYER: u8 = 4;
const MPI_IO: &str = "MPI-IO";
const MPI_LAYER: u8 = 3;
const HDF5: &str = "HDF5";
const HDF5_LAYER: u8 = 2;
const NETCDF: &str = "NetCDF";
const NETCDF_LAYER: u8 = 1;
const PNETCDF: &str = "PnetCDF";
const PNETCDF_LAYER: u8 = 2;

const fn call(name: &'static str, is_collective: bool, direction: Direction) -> InterfaceSpec {
    let effect = InterfaceEffect::Nothing;
    InterfaceSpec { name, interface: MPI_IO, is_collective, direction, effect, layer: MPI_LAYER }
}

const fn read(name: &'static str) -> InterfaceSpec {
    call(name, false, Direction::Read)
}

const fn write(name: &'static str) -> InterfaceSpec {
    call(name, false, Direction::Write)
}

const fn read_all(name: &'static str) -> InterfaceSpec {
    call(name, true, Direction::Read)
}

const fn write_all(name: &'static str) -> InterfaceSpec {
    call(name, true, Direction::Write)
}

const fn other(name: &'static str) -> InterfaceSpec {
    call(name, false, Direction::Neither)
}

const fn together(name: &'static str, effect: InterfaceEffect) -> InterfaceSpec {
    InterfaceSpec { effect, ..call(name, true, Direction::Neither) }
}

/// Describes a function of HDF5. Whether a transfer is collective is a property of the transfer, so it is
/// unknown here.
const fn hdf5(name: &'static str, direction: Direction, effect: InterfaceEffect) -> InterfaceSpec {
    InterfaceSpec { name, interface: HDF5, is_collective: false, direction, effect, layer: HDF5_LAYER }
}

const fn hdf5_read(name: &'static str) -> InterfaceSpec {
    hdf5(name, Direction::Read, InterfaceEffect::Nothing)
}

const fn hdf5_write(name: &'static str) -> InterfaceSpec {
    hdf5(name, Direction::Write, InterfaceEffect::Nothing)
}

const fn hdf5_other(name: &'static str, effect: InterfaceEffect) -> InterfaceSpec {
    hdf5(name, Direction::Neither, effect)
}

/// Describes a function of NetCDF-C. Whether a transfer is collective is a property of the variable, so it is
/// unknown here.
const fn netcdf(name: &'static str, direction: Direction, effect: InterfaceEffect) -> InterfaceSpec {
    InterfaceSpec { name, interface: NETCDF, is_collective: false, direction, effect, layer: NETCDF_LAYER }
}

const fn netcdf_read(name: &'static str) -> InterfaceSpec {
    netcdf(name, Direction::Read, InterfaceEffect::Nothing)
}

const fn netcdf_write(name: &'static str) -> InterfaceSpec {
    netcdf(name, Direction::Write, InterfaceEffect::Nothing)
}

const fn netcdf_other(name: &'static str, effect: InterfaceEffect) -> InterfaceSpec {
    netcdf(name, Direction::Neither, effect)
}

const fn stdio(name: &'static str, direction: Direction, effect: InterfaceEffect) -> InterfaceSpec {
    InterfaceSpec { name, interface: STDIO, is_collective: false, direction, effect, layer: STDIO_LAYER }
}

const fn stdio_read(name: &'static str) -> InterfaceSpec {
    stdio(name, Direction::Read, InterfaceEffect::Nothing)
}

const fn stdio_write(name: &'static str) -> InterfaceSpec {
    stdio(name, Direction::Write, InterfaceEffect::Nothing)
}

const fn stdio_other(name: &'static str) -> InterfaceSpec {
    stdio(name, Direction::Neither, InterfaceEffect::Nothing)
}

const fn stdio_open(name: &'static str) -> InterfaceSpec {
    stdio(name, Direction::Neither, InterfaceEffect::Open)
}

const fn stdio_close(name: &'static str) -> InterfaceSpec {
    stdio(name, Direction::Neither, InterfaceEffect::Close)
}

/// Makes an entry for the function without a suffix and one for each variant by the type of elements in memory
/// (`_text`, `_schar`, ...), in the order of `EACH_TYPE_OF_NETCDF` in `interfaces/layers.h`.
macro_rules! of_each_type {
    ($call:ident, $($name:literal),+) => { of_each_type!(@ $call, [$($name),+], []) };
    (@ $call:ident, [], [$($made:expr),*]) => { &[$($made),*] };
    (@ $call:ident, [$name:literal $(, $rest:literal)*], [$($made:expr),*]) => {
        of_each_type!(@ $call, [$($rest),*], [
            $($made,)* $call($name), $call(concat!($name, "_text")), $call(concat!($name, "_schar")),
            $call(concat!($name, "_uchar")), $call(concat!($name, "_ubyte")), $call(concat!($name, "_short")),
            $call(concat!($name, "_ushort")), $call(concat!($name, "_int")), $call(concat!($name, "_uint")),
            $call(concat!($name, "_long")), $call(concat!($name, "_longlong")), $call(concat!($name, "_ulonglong")),
            $call(concat!($name, "_float")), $call(concat!($name, "_double")), $call(concat!($name, "_string"))
        ])
    };
}

const fn pnetcdf(
    name: &'static str,
    is_collective: bool,
    direction: Direction,
    effect: InterfaceEffect,
) -> InterfaceSpec {
    InterfaceSpec { name, interface: PNETCDF, is_collective, direction, effect, layer: PNETCDF_LAYER }
}

const fn pnetcdf_read(name: &'static str) -> InterfaceSpec {
    pnetcdf(name, false, Direction::Read, InterfaceEffect::Nothing)
}

const fn pnetcdf_write(name: &'static str) -> InterfaceSpec {
    pnetcdf(name, false, Direction::Write, InterfaceEffect::Nothing)
}

const fn pnetcdf_read_all(name: &'static str) -> InterfaceSpec {
    pnetcdf(name, true, Direction::Read, InterfaceEffect::Nothing)
}

const fn pnetcdf_write_all(name: &'static str) -> InterfaceSpec {
    pnetcdf(name, true, Direction::Write, InterfaceEffect::Nothing)
}

const fn pnetcdf_other(name: &'static str, is_collective: bool, effect: InterfaceEffect) -> InterfaceSpec {
    pnetcdf(name, is_collective, Direction::Neither, effect)
}

/// Makes one entry for each shape and type, in the order of `EACH_TYPE_OF_PNETCDF` in `interfaces/layers.h`.
macro_rules! of_each_shape {
    ($call:ident, $suffix:literal, $name:literal, $($shape:literal),+) => {
        of_each_shape!(@ $call, $suffix, [$(concat!($name, $shape)),+], [])
    };
    (@ $call:ident, $suffix:literal, [], [$($made:expr),*]) => { &[$($made),*] };
    (@ $call:ident, $suffix:literal, [$name:expr $(, $rest:expr)*], [$($made:expr),*]) => {
        of_each_shape!(@ $call, $suffix, [$($rest),*], [
            $($made,)* $call(concat!($name, $suffix)), $call(concat!($name, "_text", $suffix)),
            $call(concat!($name, "_schar", $suffix)), $call(concat!($name, "_uchar", $suffix)),
            $call(concat!($name, "_short", $suffix)), $call(concat!($name, "_ushort", $suffix)),
            $call(concat!($name, "_int", $suffix)), $call(concat!($name, "_uint", $suffix)),
            $call(concat!($name, "_long", $suffix)), $call(concat!($name, "_longlong", $suffix)),
            $call(concat!($name, "_ulonglong", $suffix)), $call(concat!($name, "_float", $suffix)),
            $call(concat!($name, "_double", $suffix))
        ])
    };
}

/// All interface calls in the order of their numbers, which `interfaces/calls.h` and `interfaces/layers.h` of
/// iodock-preload define.
pub static INTERFACE_CALLS: [InterfaceSpec; count(&PARTS)] = joined(&PARTS);

const PARTS: [&[InterfaceSpec]; 20] = [
    &CALLS_OF_MPI_IO_AND_HDF5,
    &CALLS_OF_NETCDF,
    of_each_type!(netcdf_read, "nc_get_var", "nc_get_var1", "nc_get_vara", "nc_get_vars", "nc_get_varm"),
    of_each_type!(netcdf_write, "nc_put_var", "nc_put_var1", "nc_put_vara", "nc_put_vars", "nc_put_varm"),
    of_each_type!(netcdf_read, "nc_get_att"),
    of_each_type!(netcdf_write, "nc_put_att"),
    &CALLS_OF_PNETCDF,
    of_each_shape!(pnetcdf_read, "", "ncmpi_get_var", "", "1", "a", "s", "m", "n"),
    of_each_shape!(pnetcdf_read_all, "_all", "ncmpi_get_var", "", "1", "a", "s", "m", "n"),
    of_each_shape!(pnetcdf_write, "", "ncmpi_put_var", "", "1", "a", "s", "m", "n"),
    of_each_shape!(pnetcdf_write_all, "_all", "ncmpi_put_var", "", "1", "a", "s", "m", "n"),
    of_each_shape!(pnetcdf_read, "", "ncmpi_iget_var", "", "1", "a", "s", "m", "n"),
    of_each_shape!(pnetcdf_write, "", "ncmpi_iput_var", "", "1", "a", "s", "m", "n"),
    of_each_shape!(pnetcdf_write, "", "ncmpi_bput_var", "", "1", "a", "s", "m", "n"),
    of_each_shape!(pnetcdf_read, "", "ncmpi_mget_var", "", "1", "a", "s", "m"),
    of_each_shape!(pnetcdf_read_all, "_all", "ncmpi_mget_var", "", "1", "a", "s", "m"),
    of_each_shape!(pnetcdf_write, "", "ncmpi_mput_var", "", "1", "a", "s", "m"),
    of_each_shape!(pnetcdf_write_all, "_all", "ncmpi_mput_var", "", "1", "a", "s", "m"),
    &[
        pnetcdf_read("ncmpi_get_vard"),
        pnetcdf_read_all("ncmpi_get_vard_all"),
        pnetcdf_write("ncmpi_put_vard"),
        pnetcdf_write_all("ncmpi_put_vard_all"),
    ],
    &CALLS_OF_STDIO,
];

const fn count(parts: &[&[InterfaceSpec]]) -> usize {
    let (mut at, mut all) = (0, 0);
    while at < parts.len() {
        all += parts[at].len();
        at += 1;
    }
    all
}

const fn joined<const COUNT: usize>(parts: &[&[InterfaceSpec]]) -> [InterfaceSpec; COUNT] {
    let mut all = [other(""); COUNT];
    let (mut part, mut at, mut place) = (0, 0, 0);
    while place < COUNT {
        if at == parts[part].len() {
            (part, at) = (part + 1, 0);
            continue;
        }
        all[place] = parts[part][at];
        (at, place) = (at + 1, place + 1);
    }
    all
}

const CALLS_OF_STDIO: [InterfaceSpec; 43] = [
    stdio_read("fread"),
    stdio_write("fwrite"),
    stdio_read("fgetc"),
    stdio_read("getc"),
    stdio_read("getchar"),
    stdio_write("fputc"),
    stdio_write("putc"),
    stdio_write("putchar"),
    stdio_read("fgets"),
    stdio_write("fputs"),
    stdio_write("puts"),
    stdio_read("getline"),
    stdio_read("getdelim"),
    stdio_open("fopen"),
    stdio_open("fdopen"),
    stdio_open("freopen"),
    stdio_open("tmpfile"),
    stdio_open("popen"),
    stdio_close("fclose"),
    stdio_close("pclose"),
    stdio_other("fflush"),
    stdio_write("fprintf"),
    stdio_write("vfprintf"),
    stdio_write("printf"),
    stdio_write("vprintf"),
    stdio_read("fscanf"),
    stdio_read("vfscanf"),
    stdio_read("scanf"),
    stdio_read("vscanf"),
    stdio_other("ungetc"),
    stdio_other("fseek"),
    stdio_other("fseeko"),
    stdio_other("ftell"),
    stdio_other("ftello"),
    stdio_other("rewind"),
    stdio_other("fgetpos"),
    stdio_other("fsetpos"),
    stdio_other("setvbuf"),
    stdio_other("setbuf"),
    stdio_other("setbuffer"),
    stdio_other("setlinebuf"),
    stdio_read("__uflow"),
    stdio_write("__overflow"),
];

const CALLS_OF_NETCDF: [InterfaceSpec; 18] = [
    netcdf_other("nc_create", InterfaceEffect::Open),
    netcdf_other("nc__create", InterfaceEffect::Open),
    netcdf_other("nc_create_par", InterfaceEffect::Open),
    netcdf_other("nc_create_par_fortran", InterfaceEffect::Open),
    netcdf_other("nc_open", InterfaceEffect::Open),
    netcdf_other("nc__open", InterfaceEffect::Open),
    netcdf_other("nc_open_par", InterfaceEffect::Open),
    netcdf_other("nc_open_par_fortran", InterfaceEffect::Open),
    netcdf_other("nc_create_mem", InterfaceEffect::Open),
    netcdf_other("nc_open_mem", InterfaceEffect::Open),
    netcdf_other("nc_open_memio", InterfaceEffect::Open),
    netcdf_other("nc_close", InterfaceEffect::Close),
    netcdf_other("nc_close_memio", InterfaceEffect::Close),
    netcdf_other("nc_abort", InterfaceEffect::Close),
    netcdf_other("nc_enddef", InterfaceEffect::Nothing),
    netcdf_other("nc__enddef", InterfaceEffect::Nothing),
    netcdf_other("nc_redef", InterfaceEffect::Nothing),
    netcdf_other("nc_sync", InterfaceEffect::Nothing),
];

const CALLS_OF_PNETCDF: [InterfaceSpec; 14] = [
    pnetcdf_other("ncmpi_create", true, InterfaceEffect::Open),
    pnetcdf_other("ncmpi_open", true, InterfaceEffect::Open),
    pnetcdf_other("ncmpi_close", true, InterfaceEffect::Close),
    pnetcdf_other("ncmpi_abort", true, InterfaceEffect::Close),
    pnetcdf_other("ncmpi_enddef", true, InterfaceEffect::Nothing),
    pnetcdf_other("ncmpi__enddef", true, InterfaceEffect::Nothing),
    pnetcdf_other("ncmpi_redef", true, InterfaceEffect::Nothing),
    pnetcdf_other("ncmpi_sync", true, InterfaceEffect::Nothing),
    pnetcdf_other("ncmpi_sync_numrecs", true, InterfaceEffect::Nothing),
    pnetcdf_other("ncmpi_flush", true, InterfaceEffect::Nothing),
    pnetcdf_other("ncmpi_begin_indep_data", true, InterfaceEffect::Nothing),
    pnetcdf_other("ncmpi_end_indep_data", true, InterfaceEffect::Nothing),
    pnetcdf_other("ncmpi_wait", false, InterfaceEffect::Nothing),
    pnetcdf_other("ncmpi_wait_all", true, InterfaceEffect::Nothing),
];

const CALLS_OF_MPI_IO_AND_HDF5: [InterfaceSpec; 88] = [
    together("MPI_File_open", InterfaceEffect::Open),
    together("MPI_File_close", InterfaceEffect::Close),
    together("MPI_File_set_view", InterfaceEffect::View),
    together("MPI_File_set_size", InterfaceEffect::Nothing),
    together("MPI_File_preallocate", InterfaceEffect::Nothing),
    other("MPI_File_get_size"),
    together("MPI_File_sync", InterfaceEffect::Nothing),
    together("MPI_File_set_atomicity", InterfaceEffect::Nothing),
    together("MPI_File_set_info", InterfaceEffect::Nothing),
    other("MPI_File_seek"),
    together("MPI_File_seek_shared", InterfaceEffect::Nothing),
    read("MPI_File_read"),
    write("MPI_File_write"),
    read_all("MPI_File_read_all"),
    write_all("MPI_File_write_all"),
    read("MPI_File_read_at"),
    write("MPI_File_write_at"),
    read_all("MPI_File_read_at_all"),
    write_all("MPI_File_write_at_all"),
    read("MPI_File_read_shared"),
    write("MPI_File_write_shared"),
    read_all("MPI_File_read_ordered"),
    write_all("MPI_File_write_ordered"),
    read("MPI_File_iread"),
    write("MPI_File_iwrite"),
    read_all("MPI_File_iread_all"),
    write_all("MPI_File_iwrite_all"),
    read("MPI_File_iread_at"),
    write("MPI_File_iwrite_at"),
    read_all("MPI_File_iread_at_all"),
    write_all("MPI_File_iwrite_at_all"),
    read("MPI_File_iread_shared"),
    write("MPI_File_iwrite_shared"),
    read_all("MPI_File_read_all_begin"),
    write_all("MPI_File_write_all_begin"),
    together("MPI_File_read_all_end", InterfaceEffect::Nothing),
    together("MPI_File_write_all_end", InterfaceEffect::Nothing),
    read_all("MPI_File_read_at_all_begin"),
    write_all("MPI_File_write_at_all_begin"),
    together("MPI_File_read_at_all_end", InterfaceEffect::Nothing),
    together("MPI_File_write_at_all_end", InterfaceEffect::Nothing),
    read_all("MPI_File_read_ordered_begin"),
    write_all("MPI_File_write_ordered_begin"),
    together("MPI_File_read_ordered_end", InterfaceEffect::Nothing),
    together("MPI_File_write_ordered_end", InterfaceEffect::Nothing),
    hdf5_other("H5Fcreate", InterfaceEffect::Open),
    hdf5_other("H5Fopen", InterfaceEffect::Open),
    hdf5_other("H5Fclose", InterfaceEffect::Close),
    hdf5_other("H5Fflush", InterfaceEffect::Nothing),
    hdf5_other("H5Dcreate1", InterfaceEffect::Part),
    hdf5_other("H5Dcreate2", InterfaceEffect::Part),
    hdf5_other("H5Dcreate_anon", InterfaceEffect::Part),
    hdf5_other("H5Dopen1", InterfaceEffect::Part),
    hdf5_other("H5Dopen2", InterfaceEffect::Part),
    hdf5_other("H5Oopen", InterfaceEffect::Part),
    hdf5_other("H5Oopen_by_idx", InterfaceEffect::Part),
    hdf5_other("H5Oopen_by_addr", InterfaceEffect::Part),
    hdf5_other("H5Oopen_by_token", InterfaceEffect::Part),
    hdf5_other("H5Rdereference1", InterfaceEffect::Part),
    hdf5_other("H5Rdereference2", InterfaceEffect::Part),
    hdf5_other("H5Ropen_object", InterfaceEffect::Part),
    hdf5_read("H5Dread"),
    hdf5_write("H5Dwrite"),
    hdf5_read("H5Dread_multi"),
    hdf5_write("H5Dwrite_multi"),
    hdf5_read("H5Dread_chunk"),
    hdf5_read("H5Dread_chunk1"),
    hdf5_read("H5Dread_chunk2"),
    hdf5_write("H5Dwrite_chunk"),
    hdf5_other("H5Dset_extent", InterfaceEffect::Nothing),
    hdf5_other("H5Dflush", InterfaceEffect::Nothing),
    hdf5_other("H5Dclose", InterfaceEffect::Close),
    hdf5_other("H5Acreate1", InterfaceEffect::Part),
    hdf5_other("H5Acreate2", InterfaceEffect::Part),
    hdf5_other("H5Acreate_by_name", InterfaceEffect::Part),
    hdf5_other("H5Aopen", InterfaceEffect::Part),
    hdf5_other("H5Aopen_by_name", InterfaceEffect::Part),
    hdf5_other("H5Aopen_by_idx", InterfaceEffect::Part),
    hdf5_read("H5Aread"),
    hdf5_write("H5Awrite"),
    hdf5_other("H5Aclose", InterfaceEffect::Close),
    hdf5_other("H5Gcreate1", InterfaceEffect::Part),
    hdf5_other("H5Gcreate2", InterfaceEffect::Part),
    hdf5_other("H5Gcreate_anon", InterfaceEffect::Part),
    hdf5_other("H5Gopen1", InterfaceEffect::Part),
    hdf5_other("H5Gopen2", InterfaceEffect::Part),
    hdf5_other("H5Gclose", InterfaceEffect::Close),
    hdf5_other("H5Idec_ref", InterfaceEffect::Nothing),
];

/// The part of an interface call that a record shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InterfacePart {
    Begins,
    Ends,
    /// A hint of the file that the call has opened. The record's name holds the key, the requested value and
    /// the value in use, separated by control characters (31).
    Hint,
    /// A number of calls on a stream that made no system call.
    Counts,
}

/// A record of a task that enters or leaves a call of an interface. Only the call and the time are known at
/// the beginning. Fields that are not known are [`UNKNOWN`].
#[derive(Clone, Copy, Debug)]
pub struct InterfaceRecord {
    pub tid: u32,
    pub time: i64,
    pub part: InterfacePart,
    /// Index in [`INTERFACE_CALLS`].
    pub call: u16,
    /// At the end of a call: its result, where 0 means success. At the beginning: the layer of the call that
    /// contains it, [`UNKNOWN`] for none.
    pub result: i64,
    /// Number by which the program knows the file.
    pub handle: i64,
    /// Bytes requested. For a view: the size of its elementary type.
    pub bytes: i64,
    /// Offset argument, in elementary types of the view. For a call that sets a view: the beginning of the
    /// view, in bytes.
    pub offset: i64,
    /// For a call that sets a view: whether the view has no gaps, so that its offsets can be converted to
    /// offsets in the file.
    pub is_plain_view: bool,
    /// Number by which the program knows a variable of the file (NetCDF).
    pub variable: i64,
    /// For a successful open: the file's name. For an object in a file: the file's name and the text that
    /// [`DatasetRow::of`] parses. For the first call on a variable: the text that [`DatasetRow::of`] parses.
    pub name: Text,
    /// Descriptor of a stream. Known at the beginning of a call on a stream, at the end of a call that opens
    /// a stream, and for counts.
    pub descriptor: i64,
    /// For counts: the number of calls.
    pub calls: i64,
}

impl InterfaceRecord {
    pub fn spec(&self) -> &'static InterfaceSpec {
        &INTERFACE_CALLS[self.call as usize]
    }
}

/// A hint of a file that was opened. `asked` is `None` if the program did not set the hint; `taken` is `None`
/// if the library does not use it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HintRow {
    /// Id of the interface call that opened the file.
    pub call: u32,
    pub key: String,
    pub asked: Option<String>,
    pub taken: Option<String>,
}

impl HintRow {
    /// Parses the text of an [`InterfacePart::Hint`]; `None` if it has no key.
    pub fn of(call: u32, text: &[u8]) -> Option<HintRow> {
        let mut parts = text.split(|&byte| byte == 31).map(|part| shown(part).into_owned());
        let key = parts.next().filter(|key| !key.is_empty())?;
        let mut value = || parts.next().filter(|value| !value.is_empty());
        Some(HintRow { call, key, asked: value(), taken: value() })
    }
}

/// A data set that was opened, or a variable that was used for the first time. Fields that are unknown or do
/// not apply are `None`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DatasetRow {
    /// Id of the interface call that opened the data set.
    pub call: u32,
    pub handle: u32,
    pub file: u32,
    pub name: String,
    pub layout: Option<String>,
    pub element_bytes: Option<i64>,
    /// Number of elements in each dimension, such as `1000x200`.
    pub extent: Option<String>,
    pub chunk: Option<String>,
    pub chunk_bytes: Option<i64>,
    pub filters: Option<String>,
}

impl DatasetRow {
    /// Parses the name in the file, layout, bytes of an element, extent, chunk and filters, which are
    /// separated by control characters (31).
    pub fn of(call: u32, handle: u32, file: u32, text: &[u8]) -> DatasetRow {
        let mut parts = text.split(|&byte| byte == 31).map(|part| shown(part).into_owned());
        let mut part = || parts.next().filter(|part| !part.is_empty());
        let (name, layout) = (part().unwrap_or_default(), part());
        let element_bytes = part().and_then(|bytes| bytes.parse().ok()).filter(|&bytes: &i64| bytes > 0);
        let (extent, chunk, filters) = (part(), part(), part());
        let chunk_bytes = chunk.as_deref().zip(element_bytes).and_then(|(chunk, bytes)| {
            chunk.split('x').try_fold(bytes, |all, side| all.checked_mul(side.parse().ok()?))
        });
        DatasetRow { call, handle, file, name, layout, element_bytes, extent, chunk, chunk_bytes, filters }
    }
}

/// A finished interface call as the store keeps it. Unknown fields are [`UNKNOWN`] or [`NONE`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InterfaceRow {
    pub id: u32,
    /// Id of the higher-layer interface call that made this call.
    pub parent: u32,
    pub utid: u32,
    pub call: u16,
    pub file: u32,
    /// Number of one open of a file or data set by one process.
    pub handle: u32,
    pub start: i64,
    /// Time of the return; [`UNKNOWN`] if the call never returned.
    pub end: i64,
    pub result: i64,
    pub bytes: i64,
    /// Offset in the file, bytes.
    pub offset: i64,
    /// Number of calls that the row represents.
    pub calls: i64,
    /// Whether the row sums up calls that made no system call. Their individual times are unknown.
    pub is_sum: bool,
}

impl InterfaceRow {
    pub fn new(id: u32, parent: u32, utid: u32, call: u16, start: i64) -> InterfaceRow {
        let (file, handle) = (NONE, NONE);
        let (end, result, bytes, offset) = (UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN);
        let (calls, is_sum) = (1, false);
        InterfaceRow {
            id,
            parent,
            utid,
            call,
            file,
            handle,
            start,
            end,
            result,
            bytes,
            offset,
            calls,
            is_sum,
        }
    }

    pub fn spec(&self) -> &'static InterfaceSpec {
        &INTERFACE_CALLS[self.call as usize]
    }
}
