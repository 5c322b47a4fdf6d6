//! Creates and reads the session file. The recorder creates it before the program starts, and every recorded
//! process maps it.

use crate::cache::{Cache, Library};
use crate::counts;
use crate::format::{chunk, header, BIRTHS, CHUNK_MAGIC, HEAD_LEAST, MAGIC, MODULES, VERSION};
use crate::light::{Light, Whole};
use crate::reader;
use crate::shapes::Shapes;
use crate::table::SessionOffsets;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// Size of the part of the file that has chunks. The file is sparse, so only written chunks need space.
pub const FILE_BYTES: u64 = 64 << 30;
const CHUNK_BYTES: u64 = 64 << 10;
const PAGE: u64 = 4096;
/// The library's name in the session's folder.
const LIBRARY_NAME: &str = "libiodock_preload.so";
const INTERFACES_NAME: &str = "libiodock_interfaces.so";
pub(crate) const SESSION_NAME: &str = "session";
/// Largest length of a path in the header, in bytes.
const MOST_PATH: usize = 1023;
/// A unit of time is 2^4 ticks: 4 to 16 ns.
pub(crate) const TIME_SHIFT: u32 = 4;

pub struct Session {
    pub folder: PathBuf,
    pub file: File,
    pub chunks_at: u64,
    pub time_shift: u32,
    /// Distinguishes the session from earlier ones in a folder of the same name.
    pub number: u64,
}

/// What a session records, and how.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    /// If set, processes count their calls instead of recording them (--light).
    pub light: Option<Light>,
    /// MPI ranks whose calls are recorded although others are counted.
    pub whole: Option<Whole>,
    /// Interfaces whose calls are recorded, such as MPI-IO.
    pub interfaces: Layers,
    /// Which stack frames of each call are recorded.
    pub stacks: Stacks,
}

/// Which interfaces above system calls are recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Layers {
    #[default]
    None,
    /// MPI-IO, HDF5, NetCDF and PnetCDF.
    Libraries,
    /// The same libraries, and stdio.
    All,
}

impl Layers {
    fn library(self) -> Option<&'static [u8]> {
        match self {
            Layers::None => None,
            Layers::Libraries => Some(crate::INTERFACES_LIBRARY),
            Layers::All => Some(crate::INTERFACES_STDIO_LIBRARY),
        }
    }
}

/// Which frames of each call are recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stacks {
    #[default]
    Off = 0,
    /// The frames up to the first one of the user's own code (which no package has installed), and its caller
    /// if that is own code, too.
    Sites = 1,
    All = 2,
}

impl Stacks {
    pub const NAMES: [(&'static str, Stacks); 3] =
        [("off", Stacks::Off), ("sites", Stacks::Sites), ("all", Stacks::All)];

    pub fn name(self) -> &'static str {
        Self::NAMES[self as usize].0
    }

    pub fn from_name(name: &str) -> Option<Stacks> {
        Self::NAMES.iter().find(|(known, _)| *known == name).map(|&(_, which)| which)
    }
}

#[cfg(target_arch = "x86_64")]
pub fn ticks() -> u64 {
    // SAFETY: every x86-64 processor has this instruction.
    unsafe { std::arch::x86_64::_rdtsc() }
}

#[cfg(not(target_arch = "x86_64"))]
pub fn ticks() -> u64 {
    0
}

impl Session {
    /// Creates `folder` with the preloaded library and the session file, for programs that use `libraries`.
    pub fn create(folder: &Path, libraries: &[Library]) -> io::Result<Session> {
        Session::create_for(folder, libraries, Wanted::default())
    }

    /// Does the same for a recording with these settings.
    pub fn create_for(
        folder: &Path,
        libraries: &[Library],
        Wanted { light, whole, interfaces, stacks }: Wanted,
    ) -> io::Result<Session> {
        fs::create_dir(folder)?;
        fs::set_permissions(folder, fs::Permissions::from_mode(0o700))?;
        fs::write(folder.join(LIBRARY_NAME), crate::LIBRARY)?;
        if let Some(library) = interfaces.library() {
            fs::write(folder.join(INTERFACES_NAME), library)?;
        }
        let sites_at = header::BYTES as u64;
        let layout = Layout::of(libraries, sites_at);
        let chunks_at = layout.end.next_multiple_of(CHUNK_BYTES);
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true).mode(0o600);
        let file = options.open(folder.join(SESSION_NAME))?;
        // As long as the recorder runs and holds this lock, no other recorder removes the session: see
        // left.rs.
        let _ = file.try_lock();
        file.set_len(FILE_BYTES + light.map_or(0, Light::file_bytes))?;
        let number = ticks() ^ u64::from(std::process::id()) << 40;
        let time_shift = TIME_SHIFT;
        let mut head = vec![0; header::BYTES];
        let mut put = |at: usize, bytes: &[u8]| head[at..at + bytes.len()].copy_from_slice(bytes);
        put(header::MAGIC, &MAGIC.to_le_bytes());
        put(header::VERSION, &VERSION.to_le_bytes());
        put(header::TIME_SHIFT, &time_shift.to_le_bytes());
        put(header::FILE_BYTES, &FILE_BYTES.to_le_bytes());
        put(header::CHUNKS_AT, &chunks_at.to_le_bytes());
        put(header::CHUNK_BYTES, &(CHUNK_BYTES as u32).to_le_bytes());
        put(header::SITES_AT, &sites_at.to_le_bytes());
        put(header::SITES_BYTES, &(layout.modules.len() as u64).to_le_bytes());
        put(header::HEAD_BYTES, &layout.head_bytes.to_le_bytes());
        put(header::NUMBER, &number.to_le_bytes());
        put(header::RECORDER, &std::process::id().to_le_bytes());
        put(header::OWNER, &crate::own::user().to_le_bytes());
        put(header::STACKS, &(stacks as u64).to_le_bytes());
        put(header::COUNTS, &u32::from(counts::are_told()).to_le_bytes());
        put(header::ID_SPACE, &crate::own::id_space().to_le_bytes());
        if let Some(light) = light {
            light.put(FILE_BYTES, &mut put);
        }
        if let Some(whole) = &whole {
            whole.put(&mut put);
        }
        let library = folder.join(LIBRARY_NAME);
        let path = folder.join(SESSION_NAME);
        let texts = libraries.iter().find_map(|library| Some(library.kept.as_ref()?.texts.folder()));
        let texts = texts.unwrap_or(Path::new(""));
        let preloaded = preloaded(folder, interfaces != Layers::None);
        let texts = [
            (header::LIBRARY, library.as_os_str()),
            (header::SESSION, path.as_os_str()),
            (header::TEXTS, texts.as_os_str()),
            (header::PRELOADED, &preloaded),
        ];
        for (at, text) in texts {
            let text = text.as_bytes();
            if text.len() > MOST_PATH {
                return Err(io::Error::new(io::ErrorKind::InvalidInput, "the session's path is too long"));
            }
            put(at, text);
        }
        for (number, shape) in Shapes::of_this_machine().by_number.iter().enumerate() {
            put(header::SHAPES + 8 * number, &shape.bytes());
        }
        file.write_all_at(&layout.modules, sites_at)?;
        for (library, places) in libraries.iter().zip(&layout.places) {
            file.write_all_at(&library.table.trampolines, places.trampolines)?;
            if let Some(text) = library.text.as_ref().filter(|_| places.text > 0) {
                file.write_all_at(&text.image(&library.file, &library.table), places.text)?;
            }
        }
        file.write_all_at(&head, 0)?;
        Ok(Session { folder: folder.into(), file, chunks_at, time_shift, number })
    }

    /// Opens the session that a killed recorder has left in `folder`.
    ///
    /// # Errors
    /// The session does not exist, or its number is not `number`.
    pub fn open(folder: &Path, number: u64) -> io::Result<Session> {
        let file = OpenOptions::new().read(true).write(true).open(folder.join(SESSION_NAME))?;
        let mut head = [0; header::FILE_BYTES + 64];
        file.read_exact_at(&mut head, 0)?;
        let word = |at: usize| u64::from_le_bytes(std::array::from_fn(|i| head[at + i]));
        let version = word(header::VERSION) as u32;
        if word(header::MAGIC) != MAGIC || version != VERSION || word(header::NUMBER) != number {
            return Err(io::Error::new(io::ErrorKind::NotFound, "another session"));
        }
        let time_shift = (word(header::VERSION) >> 32) as u32;
        Ok(Session { folder: folder.into(), file, chunks_at: word(header::CHUNKS_AT), time_shift, number })
    }

    /// Number of chunks that fit into the file.
    pub fn most_chunks(&self) -> u64 {
        (FILE_BYTES - self.chunks_at) / CHUNK_BYTES
    }

    /// Reads the header of chunk `index`, which consists of zeros if it was not written yet.
    pub fn head(&self, index: u64) -> io::Result<[u8; chunk::BYTES]> {
        let mut bytes = [0; chunk::BYTES];
        self.file.read_exact_at(&mut bytes, self.chunks_at + index * CHUNK_BYTES)?;
        Ok(bytes)
    }

    /// Returns the numbers of all chunks that threads have begun.
    ///
    /// # Errors
    /// The file can't be read.
    pub fn numbers(&self) -> io::Result<Vec<u64>> {
        let mut numbers = Vec::new();
        for index in 0..self.counter(header::NEXT_CHUNK)?.min(self.most_chunks()) {
            // An unreadable chunk counts as not begun.
            let head = self.head(index).ok().and_then(|head| reader::head(&head));
            numbers.extend(head.map(|head| head.number(index)));
        }
        Ok(numbers)
    }

    /// Reads the header of the chunk with this number. Returns `None` if its place in the file was not used
    /// yet, or was used again since.
    ///
    /// # Errors
    /// The file can't be read.
    pub fn head_of(&self, number: u64) -> io::Result<Option<reader::Head>> {
        let index = place_of(number);
        Ok(reader::head(&self.head(index)?).filter(|head| head.number(index) == number))
    }

    /// Returns the ids of processes created since birth number `from`, as far as the header still has them,
    /// and the total number of births.
    pub fn births(&self, from: u64) -> io::Result<(Vec<u32>, u64)> {
        let count = self.counter(header::BIRTHS)?;
        if count == from {
            return Ok((Vec::new(), count));
        }
        let mut ring = [0; 4 * BIRTHS];
        self.file.read_exact_at(&mut ring, header::BORN as u64)?;
        let first = from.max(count.saturating_sub(BIRTHS as u64));
        let pid = |at: u64| {
            let at = 4 * (at as usize % BIRTHS);
            u32::from_le_bytes([ring[at], ring[at + 1], ring[at + 2], ring[at + 3]])
        };
        Ok(((first..count).map(pid).filter(|&pid| pid != 0).collect(), count))
    }

    /// Returns the code files other than libc that the programs have loaded.
    pub fn other_modules(&self) -> io::Result<Vec<PathBuf>> {
        let mut bytes = vec![0; MODULES * header::OTHER_BYTES];
        self.file.read_exact_at(&mut bytes, header::OTHERS as u64)?;
        let names = bytes.chunks(header::OTHER_BYTES).filter_map(|other| {
            let name = other[8..].split(|&byte| byte == 0).next().filter(|name| !name.is_empty())?;
            Some(PathBuf::from(OsStr::from_bytes(name)))
        });
        Ok(names.filter(|path| path.parent() != Some(&self.folder)).collect())
    }

    pub fn library(&self) -> PathBuf {
        self.folder.join(LIBRARY_NAME)
    }

    /// Returns the value of LD_PRELOAD for programs of this session.
    pub fn preloaded(&self) -> OsString {
        preloaded(&self.folder, self.folder.join(INTERFACES_NAME).exists())
    }

    pub fn path(&self) -> PathBuf {
        self.folder.join(SESSION_NAME)
    }

    /// Reads the counter at offset `at` of the header.
    pub fn counter(&self, at: usize) -> io::Result<u64> {
        let mut bytes = [0; 8];
        self.file.read_exact_at(&mut bytes, at as u64)?;
        Ok(u64::from_le_bytes(bytes))
    }

    /// Makes running processes stop recording.
    pub fn close(&self) -> io::Result<()> {
        self.file.write_all_at(&1u32.to_le_bytes(), header::CLOSED as u64)
    }

    /// Reads the header and the complete records of chunk `index`; nothing if the chunk was not begun.
    pub fn chunk(&self, index: u64, bytes: &mut Vec<u8>) -> io::Result<()> {
        bytes.clear();
        self.more_of_chunk(index, 0, bytes)
    }

    /// Appends the same data from offset `from` on to `bytes`.
    pub fn more_of_chunk(&self, index: u64, from: usize, bytes: &mut Vec<u8>) -> io::Result<()> {
        let used = used(&self.head(index)?) as usize;
        if used <= from {
            return Ok(());
        }
        let at = self.chunks_at + index * CHUNK_BYTES;
        let start = bytes.len();
        bytes.resize(start + used - from, 0);
        self.file.read_exact_at(&mut bytes[start..], at + from as u64)
    }

    /// Maps the file, to read it without copying. `None` if the address space is too small.
    pub fn map(&self) -> Option<Mapped> {
        let (none, fd) = (std::ptr::null_mut(), self.file.as_raw_fd());
        // SAFETY: the kernel chooses a free address, so the new mapping replaces no other memory.
        let start = unsafe {
            libc::mmap(
                none,
                FILE_BYTES as usize,
                libc::PROT_READ,
                libc::MAP_SHARED | libc::MAP_NORESERVE,
                fd,
                0,
            )
        };
        (start != libc::MAP_FAILED)
            .then_some(Mapped { start: start.cast(), chunks_at: self.chunks_at as usize })
    }

    /// Frees the memory of `count` chunks from `index` on, which were read and get no more data. Adjacent
    /// chunks are freed with one call, because each call makes the kernel search the file's mappings.
    pub fn discard(&self, index: u64, count: u64) {
        let at = (self.chunks_at + index * CHUNK_BYTES) as libc::off_t;
        let bytes = (count * CHUNK_BYTES) as libc::off_t;
        let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
        // SAFETY: the call accesses no memory of ours, and the descriptor is open. If the file system does
        // not support it, the memory is freed when the session is removed.
        unsafe { libc::fallocate(self.file.as_raw_fd(), mode, at, bytes) };
    }
}

/// Returns the value of LD_PRELOAD: the preloaded library, then the library for interfaces, which reports to
/// it.
fn preloaded(folder: &Path, interfaces: bool) -> OsString {
    let mut list = folder.join(LIBRARY_NAME).into_os_string();
    if interfaces {
        list.push(":");
        list.push(folder.join(INTERFACES_NAME));
    }
    list
}

/// Returns the index in the session file of the chunk with this number.
pub fn place_of(number: u64) -> u64 {
    number & u64::from(u32::MAX)
}

fn word(head: &[u8; chunk::BYTES], at: usize) -> u32 {
    u32::from_le_bytes(std::array::from_fn(|i| head[at + i]))
}

/// Returns the number of bytes of a chunk's header and complete records; 0 if the chunk was not begun.
pub fn used(head: &[u8; chunk::BYTES]) -> u32 {
    let is_begun = word(head, chunk::MAGIC) == CHUNK_MAGIC;
    if is_begun {
        word(head, chunk::USED).min(CHUNK_BYTES as u32)
    } else {
        0
    }
}

/// Whether the chunk's process has marked the chunk as complete.
pub fn is_over(head: &[u8; chunk::BYTES]) -> bool {
    used(head) > 0 && word(head, chunk::OVER) != 0
}

/// Layout of the libraries' data in the file: their modules after the header; trampolines and text after the
/// part that every process maps.
struct Layout {
    modules: Vec<u8>,
    head_bytes: u64,
    places: Vec<SessionOffsets>,
    end: u64,
}

impl Layout {
    fn of(libraries: &[Library], sites_at: u64) -> Layout {
        let bytes: usize = libraries.iter().map(|library| library.table.module_bytes()).sum();
        let head_bytes = (sites_at + bytes as u64).next_multiple_of(PAGE).max(HEAD_LEAST);
        let mut end = head_bytes;
        let mut take = |bytes: usize| {
            let at = end;
            end += (bytes as u64).next_multiple_of(PAGE);
            at
        };
        let mut place = |library: &Library| {
            let mut places = SessionOffsets {
                trampolines: take(library.table.trampolines.len()),
                ..SessionOffsets::default()
            };
            if let Some(text) = &library.text {
                match &library.kept {
                    Some(kept) => (places.text_number, places.text_file) = (kept.number, kept.identity),
                    None => places.text = take(text.bytes as usize),
                }
                (places.text_from, places.text_bytes) = (text.from, text.bytes);
                places.file = library.file.identity();
            }
            places
        };
        let places: Vec<SessionOffsets> = libraries.iter().map(&mut place).collect();
        let module = |(library, places): (&Library, &SessionOffsets)| library.table.module(places);
        let modules = libraries.iter().zip(&places).flat_map(module).collect();
        Layout { modules, head_bytes, places, end }
    }
}

/// A mapping of the session file, for reading.
pub struct Mapped {
    start: *const u8,
    chunks_at: usize,
}

// SAFETY: this process only reads the memory, which stays mapped as long as the value exists.
unsafe impl Send for Mapped {}

impl Mapped {
    fn chunk(&self, index: u64) -> *const u8 {
        let at = self.chunks_at + (index * CHUNK_BYTES) as usize;
        assert!(at + CHUNK_BYTES as usize <= FILE_BYTES as usize);
        // SAFETY: the assertion ensures that the address is inside the mapping.
        unsafe { self.start.add(at) }
    }

    /// Reads the header of chunk `index`, word by word in order. The chunk must have been begun: reading from
    /// another one would create its page.
    pub fn head(&self, index: u64) -> [u8; chunk::BYTES] {
        let words = self.chunk(index).cast::<AtomicU32>();
        let mut bytes = [0; chunk::BYTES];
        for (at, word) in bytes.chunks_exact_mut(4).enumerate() {
            // SAFETY: the word is aligned and within the chunk, which begins at a page.
            let value = unsafe { (*words.add(at)).load(Ordering::Acquire) };
            word.copy_from_slice(&value.to_le_bytes());
        }
        bytes
    }

    /// Returns bytes of chunk `index` up to `used`, which [`used`] has returned: no process changes them any
    /// more.
    pub fn bytes(&self, index: u64, from: u32, used: u32) -> &[u8] {
        assert!(from <= used && u64::from(used) <= CHUNK_BYTES);
        let start = self.chunk(index);
        // SAFETY: the assertion ensures that the bytes are within the chunk, and no process changes them any
        // more.
        unsafe { std::slice::from_raw_parts(start.add(from as usize), (used - from) as usize) }
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // SAFETY: the mapping belongs to this value, and no reference to it exists any more.
        unsafe { libc::munmap(self.start.cast_mut().cast(), FILE_BYTES as usize) };
    }
}

/// Returns the paths of this process's libraries that make system calls: libc and the dynamic linker.
///
/// All mappings are searched, not only those with code: if the recorder itself is recorded, the code is
/// mapped from another file.
pub fn paths() -> Vec<PathBuf> {
    // The file's length is not known in advance. With a small buffer there are many reads, and the kernel
    // generates the text for each of them.
    let mut maps = String::with_capacity(64 << 10);
    let _ = File::open("/proc/self/maps").and_then(|mut file| file.read_to_string(&mut maps));
    let mut paths: Vec<&str> = maps
        .lines()
        .filter_map(|line| line.find('/').map(|at| &line[at..]))
        .filter(|path| is_of_libc(path))
        .collect();
    paths.sort_unstable();
    paths.dedup();
    paths.into_iter().map(PathBuf::from).collect()
}

/// Returns the patches for these libraries and for libraries of asynchronous I/O.
pub fn libraries() -> Vec<Library> {
    let cache = Cache::of_user();
    // Unused files are removed first, so that files needed now are created again below.
    cache.remove_unused();
    let libc = paths();
    let beside = asynchronous_beside(&libc);
    libc.iter().chain(&beside).filter_map(|path| cache.library(path)).collect()
}

/// Returns the real paths of the files in which call sites are patched.
pub fn patched() -> Vec<PathBuf> {
    let libc = paths();
    let beside = asynchronous_beside(&libc);
    libc.into_iter().chain(beside).filter_map(|path| fs::canonicalize(path).ok()).collect()
}

/// Returns the libraries for asynchronous I/O in libc's folder, which make calls without libc.
fn asynchronous_beside(libc: &[PathBuf]) -> Vec<PathBuf> {
    const NAMES: [&str; 4] = ["liburing.so.2", "liburing.so.1", "libaio.so.1", "libaio.so.1t64"];
    let is_libc = |path: &&PathBuf| path.file_name().is_some_and(|name| name == "libc.so.6");
    let folder = libc.iter().find(is_libc).and_then(|libc| libc.parent());
    let all = folder.into_iter().flat_map(|folder| NAMES.map(|name| folder.join(name)));
    all.filter(|path| path.exists() && !libc.contains(path)).collect()
}

/// Returns the code files loaded by programs that make system calls without libc, which the recorder does not
/// see.
///
/// # Errors
/// The session can't be read. An unreadable file is skipped.
pub fn with_calls_of_their_own(session: &Session) -> io::Result<Vec<PathBuf>> {
    let cache = Cache::of_user();
    Ok(session.other_modules()?.into_iter().filter(|path| cache.own_calls(path).recorded).collect())
}

/// Whether the file is one of the libraries that make a program's system calls, by their names in glibc and
/// musl.
fn is_of_libc(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or_default();
    ["libc.", "libc-", "ld-", "libpthread", "libaio.", "liburing."]
        .iter()
        .any(|start| name.starts_with(start))
}
