//! Translates an offset in a binary to function, source file and line.
//!
//! A [`Module`] is one program or library with its debug information. The debug information is in the file
//! itself, or in a file next to it or below `/usr/lib/debug`, found by build id or by `.gnu_debuglink`.
//! Addresses are offsets in the file, as in `/proc/PID/maps` and in logs of tracers.

mod debug_files;

pub use debug_files::DebugFolders;

use addr2line::Loader;
use object::read::elf::{FileHeader, ProgramHeader};
use object::read::ReadCache;
use object::{elf, Object, ObjectSymbol};
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// A function that contains the offset, and the source line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SourcePlace {
    /// Name of the function, in the notation of its programming language.
    pub function: Option<String>,
    pub file: Option<String>,
    pub line: Option<u32>,
}

/// A part of a module that is loaded into memory.
struct Segment {
    in_file: Range<u64>,
    address: u64,
}

/// A program or library file.
pub struct Module {
    /// Build id in hexadecimal; `None` if the file has none.
    pub build_id: Option<String>,
    segments: Vec<Segment>,
    /// Start addresses and names of the functions, for checking a name that a tracer reported.
    functions: Vec<(u64, String)>,
    symbols: Loader,
    /// Loader of a separate file with the debug information, if there is one.
    debug: Option<Loader>,
    has_debug: bool,
    file: File,
}

/// Largest size of a file that is read, bytes.
const MOST_BYTES: u64 = 8 << 30;

impl Module {
    /// Opens a module. Returns `None` if there is no such file, or it is not a 64-bit program or library.
    pub fn open(path: &Path, folders: &DebugFolders) -> Option<Module> {
        let file = File::open(path).ok()?;
        let metadata = file.metadata().ok()?;
        if !metadata.is_file() || metadata.len() > MOST_BYTES {
            return None;
        }
        let cache = ReadCache::new(file);
        let parsed = object::File::parse(&cache).ok()?;
        let build_id = parsed.build_id().ok().flatten().map(hexadecimal);
        let has_debug = parsed.section_by_name(".debug_info").is_some();
        let functions = functions_of(&parsed);
        let debug = if has_debug {
            None
        } else {
            folders.find(path, &parsed).and_then(|path| Loader::new(path).ok())
        };
        let segments = segments_of(&cache)?;
        let symbols = Loader::new(path).ok()?;
        let file = File::open(path).ok()?;
        Some(Module { build_id, segments, functions, symbols, debug, has_debug, file })
    }

    /// Returns whether there is any debug information.
    pub fn has_lines(&self) -> bool {
        self.has_debug || self.debug.is_some()
    }

    /// Returns whether a call instruction ends at this offset, as is the case at each return address. Returns
    /// true on processors whose instructions this function does not know.
    pub fn is_behind_call(&self, offset: u64) -> bool {
        let mut code = [0; LONGEST_CALL];
        let start = offset.checked_sub(LONGEST_CALL as u64);
        if start.is_none_or(|start| self.file.read_exact_at(&mut code, start).is_err()) {
            return false;
        }
        !cfg!(target_arch = "x86_64") || ends_in_call(&code)
    }

    /// Converts an offset in the file to an address in the module's memory.
    fn address(&self, offset: u64) -> Option<u64> {
        let segment = self.segments.iter().find(|segment| segment.in_file.contains(&offset))?;
        segment.address.checked_add(offset - segment.in_file.start)
    }

    /// Returns whether a function with this name begins `before` bytes before the offset. If so, a tracer
    /// that reported this read the same version of the file.
    pub fn has_function(&self, name: &str, before: u64, offset: u64) -> bool {
        let Some(begin) = self.address(offset).and_then(|address| address.checked_sub(before)) else {
            return false;
        };
        let from = self.functions.partition_point(|(at, _)| *at < begin);
        let named = self.functions[from..].iter().take_while(|(at, _)| *at == begin);
        named
            .map(|(_, function)| function)
            .any(|function| function == name || addr2line::demangle_auto(function.into(), None) == name)
    }

    /// Returns the functions to which a call at this return address returns: inlined functions from the
    /// innermost, then the compiled function. Empty if nothing is known.
    pub fn places(&self, offset: u64) -> Vec<SourcePlace> {
        // The call instruction itself is before the return address.
        let Some(address) = self.address(offset).and_then(|address| address.checked_sub(1)) else {
            return Vec::new();
        };
        let mut found = places_in(self.debug.as_ref().unwrap_or(&self.symbols), address);
        let unnamed = found.last().is_none_or(|outermost| outermost.function.is_none());
        let symbol = || {
            [self.debug.as_ref(), Some(&self.symbols)]
                .into_iter()
                .flatten()
                .find_map(|one| one.find_symbol(address))
        };
        if let Some(symbol) = unnamed.then(symbol).flatten() {
            let function = Some(addr2line::demangle_auto(symbol.into(), None).into_owned());
            match found.last_mut() {
                Some(outermost) => outermost.function = function,
                None => found.push(SourcePlace { function, ..SourcePlace::default() }),
            }
        }
        found
    }
}

fn places_in(loader: &Loader, address: u64) -> Vec<SourcePlace> {
    let Ok(mut frames) = loader.find_frames(address) else { return Vec::new() };
    let mut found = Vec::new();
    while let Ok(Some(frame)) = frames.next() {
        let function =
            frame.function.as_ref().and_then(|function| Some(function.demangle().ok()?.into_owned()));
        let location = frame.location.as_ref();
        found.push(SourcePlace {
            function,
            file: location.and_then(|location| location.file).map(str::to_string),
            // Line 0 marks code that the compiler generated.
            line: location.and_then(|location| location.line).filter(|&line| line > 0),
        });
    }
    found
}

const LONGEST_CALL: usize = 7;

/// Returns whether x86-64 code ends in a call: `call rel32`, `call r/m64` with any of its lengths, or
/// `syscall`.
fn ends_in_call(code: &[u8; LONGEST_CALL]) -> bool {
    let from_end = |length: usize| &code[LONGEST_CALL - length..];
    let is_indirect = |length: usize| {
        let bytes = from_end(length);
        bytes[0] == 0xff && bytes[1] >> 3 & 7 == 2
    };
    from_end(5)[0] == 0xe8 || (2..=LONGEST_CALL).any(is_indirect) || from_end(2) == [0x0f, 0x05]
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn functions_of<'data>(parsed: &object::File<'data, &'data ReadCache<File>>) -> Vec<(u64, String)> {
    let all = parsed.symbols().chain(parsed.dynamic_symbols());
    let mut functions: Vec<(u64, String)> = all
        .filter(|symbol| symbol.is_definition())
        .filter_map(|symbol| Some((symbol.address(), symbol.name().ok()?.to_string())))
        .collect();
    functions.sort();
    functions
}

fn segments_of(cache: &ReadCache<File>) -> Option<Vec<Segment>> {
    let header = elf::FileHeader64::<object::Endianness>::parse(cache).ok()?;
    let endian = header.endian().ok()?;
    let loaded = header.program_headers(endian, cache).ok()?.iter();
    let loaded = loaded.filter(|segment| segment.p_type(endian) == elf::PT_LOAD);
    Some(
        loaded
            .map(|segment| {
                let start = segment.p_offset(endian);
                let in_file = start..start.saturating_add(segment.p_filesz(endian));
                Segment { in_file, address: segment.p_vaddr(endian) }
            })
            .collect(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_found_by_its_return_address() {
        let calls: [&[u8]; 6] = [
            &[0xe8, 1, 2, 3, 4],
            &[0xff, 0xd0],
            &[0x41, 0xff, 0x54, 0x24, 0x08],
            &[0xff, 0x15, 1, 2, 3, 4],
            &[0xff, 0x94, 0x24, 1, 2, 3, 4],
            &[0x0f, 0x05],
        ];
        let others: [&[u8]; 4] = [&[0x90], &[0xe9, 1, 2, 3, 4], &[0xff, 0xe0], &[0x48, 0x89, 0xe5]];
        let ends = |code: &[u8]| {
            let mut padded = [0x90; LONGEST_CALL];
            padded[LONGEST_CALL - code.len()..].copy_from_slice(code);
            ends_in_call(&padded)
        };
        assert!(calls.iter().all(|code| ends(code)));
        assert!(!others.iter().any(|code| ends(code)));
    }
}
