//! Parses the parts of an ELF file (x86-64, 64 bit, little endian) that the search for call sites needs.

/// A section of code: its address relative to the load address, and its bytes.
pub struct Code<'a> {
    pub address: u64,
    pub bytes: &'a [u8],
}

/// An executable segment: its offset in the file, and its address relative to the load address.
pub struct Segment {
    pub offset: u64,
    pub address: u64,
    /// Size of the segment in the file.
    pub bytes: u64,
}

#[derive(Default)]
pub struct Elf<'a> {
    pub build_id: &'a [u8],
    pub code: Vec<Code<'a>>,
    pub segments: Vec<Segment>,
    /// Path of the dynamic linker. Static programs have none, and do not load the preloaded library.
    pub interpreter: Option<&'a [u8]>,
    /// Whether Go's compiler has built the file: such programs make system calls without libc, even if they
    /// use one.
    pub is_go: bool,
}

const X86_64: u16 = 62;
const SEGMENT_LOAD: u32 = 1;
const SEGMENT_INTERPRETER: u32 = 3;
const SEGMENT_NOTE: u32 = 4;
const SECTION_CODE: u32 = 1;
const FLAG_EXECUTABLE: u64 = 4;
const SEGMENT_EXECUTABLE: u32 = 1;
const NOTE_BUILD_ID: u32 = 3;
const NOTE_GO_BUILD_ID: u32 = 4;

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at.checked_add(4)?)?.try_into().ok()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at.checked_add(8)?)?.try_into().ok()?))
}

fn slice(bytes: &[u8], at: u64, length: u64) -> Option<&[u8]> {
    bytes.get(at as usize..at.checked_add(length)? as usize)
}

/// Parses `file`; `None` if it is not an ELF file for x86-64.
pub fn parse(file: &[u8]) -> Option<Elf<'_>> {
    if file.get(..6)? != b"\x7fELF\x02\x01" || u16_at(file, 18)? != X86_64 {
        return None;
    }
    let code = code_sections(file).unwrap_or_default();
    let mut elf = Elf { code, ..Elf::default() };
    let (at, count) = (u64_at(file, 32)? as usize, u16_at(file, 56)? as usize);
    for index in 0..count {
        let at = at.checked_add(index * 56)?;
        let (offset, length) = (u64_at(file, at + 8)?, u64_at(file, at + 32)?);
        match u32_at(file, at)? {
            SEGMENT_NOTE => {
                let notes = slice(file, offset, length).unwrap_or_default();
                elf.build_id = note(notes, b"GNU\0", NOTE_BUILD_ID).unwrap_or(elf.build_id);
                elf.is_go |= note(notes, b"Go\0\0", NOTE_GO_BUILD_ID).is_some();
            }
            SEGMENT_LOAD if u32_at(file, at + 4)? & SEGMENT_EXECUTABLE != 0 => {
                elf.segments.push(Segment { offset, address: u64_at(file, at + 16)?, bytes: length });
            }
            SEGMENT_INTERPRETER => elf.interpreter = slice(file, offset, length),
            _ => {}
        }
    }
    Some(elf)
}

/// Returns the content of the note with this vendor and type.
fn note<'a>(mut notes: &'a [u8], maker: &[u8], wanted: u32) -> Option<&'a [u8]> {
    loop {
        let (name, length, kind) = (u32_at(notes, 0)?, u32_at(notes, 4)?, u32_at(notes, 8)?);
        let start = 12 + (name as usize).next_multiple_of(4);
        if kind == wanted && notes.get(12..start)? == maker {
            return notes.get(start..start.checked_add(length as usize)?);
        }
        notes = notes.get(start.checked_add((length as usize).next_multiple_of(4))?..)?;
    }
}

/// Returns the sections with code. A segment would also include data tables between them.
fn code_sections(file: &[u8]) -> Option<Vec<Code<'_>>> {
    let (at, size, count) =
        (u64_at(file, 40)? as usize, u16_at(file, 58)? as usize, u16_at(file, 60)? as usize);
    let mut found = Vec::new();
    for index in 0..count {
        let at = at.checked_add(index * size)?;
        if u32_at(file, at + 4)? != SECTION_CODE || u64_at(file, at + 8)? & FLAG_EXECUTABLE == 0 {
            continue;
        }
        let bytes = slice(file, u64_at(file, at + 24)?, u64_at(file, at + 32)?)?;
        found.push(Code { address: u64_at(file, at + 16)?, bytes });
    }
    Some(found)
}
