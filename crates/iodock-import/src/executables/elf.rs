//! Reads from an ELF file the libraries that it needs directly, and its programming languages.

use object::elf::{FileHeader32, FileHeader64, DT_NEEDED, PT_INTERP};
use object::read::elf::{FileHeader, ProgramHeader, SectionHeader};
use object::read::{ReadCache, ReadRef};
use object::{Endianness, FileKind};
use std::cell::Cell;
use std::fs::File;
use std::ops::Range;

/// Largest number of bytes read from a file. Symbol names, the largest part that is read, normally need less.
/// Of a larger file only this many bytes count.
const MOST_BYTES: u64 = 32 << 20;
const MOST_LIBRARIES: usize = 512;

#[derive(Debug, Default, PartialEq, Eq)]
pub struct Elf {
    /// Names in the DT_NEEDED entries, in order.
    pub libraries: Vec<Vec<u8>>,
    /// Any of `C`, `C++`, `Fortran`, `Go`, `Rust`; empty if not known.
    pub languages: Vec<&'static str>,
}

/// Run-time libraries that only a language's own compiler links, by language.
const RUN_TIMES: [(&str, &[&str]); 2] = [
    (
        "Fortran",
        &["libgfortran.", "libifcore", "libifport", "libflang", "libfortran_rt", "libpgf90", "libfj90"],
    ),
    ("C++", &["libstdc++.", "libc++."]),
];
/// Symbol names that show a language in a program that contains its run-time library statically.
const NAMES: [(&str, &[&[u8]]); 2] = [
    ("Fortran", &[b"_gfortran_set_args", b"for_rtl_init_", b"_FortranAProgramStart"]),
    ("C++", &[b"__cxa_throw", b"_ZSt4cout", b"_ZNSt3__14coutE", b"_ZSt9terminatev"]),
];

/// Reads an ELF file. Returns `None` for other files, and for ELF files that cannot be parsed.
pub fn read(file: File) -> Option<Elf> {
    let (cache, left) = (ReadCache::new(file), Cell::new(MOST_BYTES));
    let data = Bounded { cache: &cache, left: &left };
    match FileKind::parse(data).ok()? {
        FileKind::Elf64 => parsed::<FileHeader64<Endianness>>(data),
        FileKind::Elf32 => parsed::<FileHeader32<Endianness>>(data),
        _ => None,
    }
}

fn parsed<H: FileHeader<Endian = Endianness>>(data: Bounded) -> Option<Elf> {
    let header = H::parse(data).ok()?;
    let endian = header.endian().ok()?;
    let segments = header.program_headers(endian, data).ok()?;
    let is_dynamic = segments.iter().any(|segment| segment.p_type(endian) == PT_INTERP);
    let sections = header.sections(endian, data).ok()?;
    let table = sections.dynamic_table(endian, data).ok();
    let needed = table.iter().flat_map(|table| table.iter().map(move |entry| (table, entry)));
    let needed = needed.filter(|(_, entry)| entry.tag == DT_NEEDED).take(MOST_LIBRARIES);
    let libraries: Vec<Vec<u8>> =
        needed.filter_map(|(table, entry)| table.string(entry).ok()).map(<[u8]>::to_vec).collect();
    let part = |name: &str| -> &[u8] {
        let section = sections.section_by_name(endian, name.as_bytes());
        section.and_then(|(_, section)| section.data(endian, data).ok()).unwrap_or_default()
    };
    let mut elf = Elf { languages: Vec::new(), libraries };
    if sections.section_by_name(endian, b".go.buildinfo").is_some() {
        elf.languages = vec!["Go"];
    } else if holds(part(".comment"), b"rustc version") {
        elf.languages = vec!["Rust"];
    } else {
        elf.languages = by_run_time(&elf.libraries);
        if elf.languages.is_empty() {
            elf.languages = by_names(part(".strtab"));
        }
        // If the file shows no other language, but has a dynamic section or symbols, it is a C program.
        if elf.languages.is_empty() && (is_dynamic || !part(".strtab").is_empty()) {
            elf.languages = vec!["C"];
        }
    }
    Some(elf)
}

fn by_run_time(libraries: &[Vec<u8>]) -> Vec<&'static str> {
    let has = |name: &&str| libraries.iter().any(|library| library.starts_with(name.as_bytes()));
    RUN_TIMES.iter().filter(|(_, names)| names.iter().any(has)).map(|&(language, _)| language).collect()
}

fn by_names(texts: &[u8]) -> Vec<&'static str> {
    let has = |name: &&[u8]| holds(texts, name);
    NAMES.iter().filter(|(_, names)| names.iter().any(has)).map(|&(language, _)| language).collect()
}

fn holds(text: &[u8], wanted: &[u8]) -> bool {
    memchr::memmem::find(text, wanted).is_some()
}

/// A file of which at most a limited number of bytes is read, whatever sizes its headers claim.
#[derive(Clone, Copy)]
struct Bounded<'a> {
    cache: &'a ReadCache<File>,
    left: &'a Cell<u64>,
}

impl Bounded<'_> {
    fn take(self, size: u64) -> Result<(), ()> {
        self.left.set(self.left.get().checked_sub(size).ok_or(())?);
        Ok(())
    }
}

/// Largest number of bytes that are read to find the end of one text, such as a symbol name.
const TEXT_BYTES: u64 = 4096;

impl<'a> ReadRef<'a> for Bounded<'a> {
    fn len(self) -> Result<u64, ()> {
        self.cache.len()
    }

    fn read_bytes_at(self, offset: u64, size: u64) -> Result<&'a [u8], ()> {
        self.take(size)?;
        self.cache.read_bytes_at(offset, size)
    }

    fn read_bytes_at_until(self, range: Range<u64>, delimiter: u8) -> Result<&'a [u8], ()> {
        self.take(TEXT_BYTES.min(range.end.saturating_sub(range.start)))?;
        self.cache.read_bytes_at_until(range, delimiter)
    }
}
