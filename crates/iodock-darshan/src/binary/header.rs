//! The header of a log, which contains the positions of its regions. It is the only part that is never
//! compressed.

use crate::{ByteOrder, Fault, Module};

/// The compression of the regions of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    Zlib,
    Bzip2,
    None,
}

/// Position of a compressed region in the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    pub at: u64,
    pub bytes: u64,
}

impl Span {
    pub fn end(self) -> u64 {
        self.at.saturating_add(self.bytes)
    }
}

#[derive(Clone, Debug)]
pub struct Header {
    /// Version of the format as the log states it, such as `3.41`.
    pub version: String,
    pub minor: u32,
    pub order: ByteOrder,
    pub compression: Compression,
    /// Size of the header in this version, bytes.
    pub bytes: u64,
    pub names: Span,
    /// Sections of the modules, indexed by module number.
    pub modules: [Section; Module::ROOM],
}

/// The information in the header about a module.
#[derive(Clone, Copy, Debug, Default)]
pub struct Section {
    pub span: Span,
    pub version: u32,
    /// Whether Darshan ran out of memory for the module's records.
    pub is_partial: bool,
}

const MAGIC: u64 = 6_567_223;
/// Minor numbers of the existing format versions: those of Darshan 3.0, 3.1, 3.2.0, 3.2.1 to 3.4.0, and
/// later.
const KNOWN: [u32; 5] = [0, 10, 20, 21, 41];
/// Minor number of the version that introduced 64 modules and nanoseconds.
const WIDE: u32 = 41;
const MODULES_BEFORE_WIDE: usize = 16;
/// Minor number of the version that introduced the module H5D.
const WITH_DATA_SETS: u32 = 20;

/// Largest size of a header, bytes.
pub const LONGEST: usize = 8 + 8 + 8 + 8 + 16 + Module::ROOM * 20;

impl Header {
    pub fn has_lengths_of_names(&self) -> bool {
        self.minor < 10
    }

    pub fn has_nanoseconds(&self) -> bool {
        self.minor >= WIDE
    }

    pub fn is_known(&self) -> bool {
        KNOWN.contains(&self.minor)
    }

    /// Parses the first bytes of a file: [`LONGEST`] of them, or the whole file if it is shorter.
    pub fn read(bytes: &[u8]) -> Result<Header, Fault> {
        let (version, minor) = version(bytes)?;
        let is_wide = minor >= WIDE;
        let order = order(bytes)?;
        let cut = Fault::HeaderCut;
        let compression = match *bytes.get(16).ok_or(cut)? {
            0 => Compression::Zlib,
            1 => Compression::Bzip2,
            2 => Compression::None,
            other => return Err(Fault::UnknownCompression(other)),
        };
        let places = places(bytes, order, is_wide).ok_or(Fault::HeaderCut)?;
        let mut header = Header { version, minor, order, compression, ..places };
        if minor < WITH_DATA_SETS {
            header.insert(Module::H5D);
        }
        if !is_wide {
            header.insert(Module::PNETCDF_VAR);
        }
        Ok(header)
    }

    /// Inserts an empty section for a module that the log's version did not have. Numbers of later modules
    /// were lower by one in that version.
    fn insert(&mut self, module: Module) {
        let at = usize::from(module.0);
        self.modules[at..].rotate_right(1);
        self.modules[at] = Section::default();
    }
}

/// Returns the version's text and its minor number.
fn version(bytes: &[u8]) -> Result<(String, u32), Fault> {
    if bytes.is_empty() {
        return Err(Fault::Empty);
    }
    let text = bytes.get(..8).ok_or(Fault::NotDarshan)?;
    let text = &text[..text.iter().position(|&byte| byte == 0).unwrap_or(8)];
    let text = std::str::from_utf8(text).map_err(|_| Fault::NotDarshan)?;
    let (major, minor) = text.split_once('.').ok_or(Fault::NotDarshan)?;
    match (major.parse::<u32>(), minor.parse::<u32>()) {
        (Ok(3), Ok(minor)) => Ok((text.into(), minor)),
        (Ok(1 | 2), Ok(_)) => Err(Fault::OldFormat(text.into())),
        _ => Err(Fault::NotDarshan),
    }
}

fn order(bytes: &[u8]) -> Result<ByteOrder, Fault> {
    let both = [ByteOrder::Little, ByteOrder::Big];
    if bytes.len() < 16 {
        return Err(Fault::HeaderCut);
    }
    both.into_iter().find(|order| order.u64(bytes, 8) == Some(MAGIC)).ok_or(Fault::HeaderDamaged)
}

/// Parses those parts of the header whose position depends on the number of modules. Returns `None` if the
/// header is cut off.
fn places(bytes: &[u8], order: ByteOrder, is_wide: bool) -> Option<Header> {
    let (room, partial, mut at) = if is_wide {
        (Module::ROOM, order.u64(bytes, 24)?, 32)
    } else {
        (MODULES_BEFORE_WIDE, u64::from(order.u32(bytes, 20)?), 24)
    };
    let mut span = || {
        at += 16;
        Some(Span { at: order.u64(bytes, at - 16)?, bytes: order.u64(bytes, at - 8)? })
    };
    let names = span()?;
    let mut modules = [Section::default(); Module::ROOM];
    for (number, section) in modules.iter_mut().enumerate().take(room) {
        section.span = span()?;
        section.is_partial = partial >> number & 1 == 1;
    }
    for (number, section) in modules.iter_mut().enumerate().take(room) {
        section.version = order.u32(bytes, at + 4 * number)?;
    }
    Some(Header {
        version: String::new(),
        minor: 0,
        order,
        compression: Compression::None,
        bytes: (at + 4 * room) as u64,
        names,
        modules,
    })
}
