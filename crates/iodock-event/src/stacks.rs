//! Call stacks: lists of frames, and the places in code (sites) that the frames name.
//!
//! A source encodes a stack as bytes ([`push_frame`]): frames from the innermost to the outermost, each as
//! six texts that end with NUL. Equal stacks have equal bytes, so a store keeps each stack once ([`Stacks`]).

/// Number of texts of a frame. Each text ends with NUL.
const FIELDS: usize = 6;

/// One frame of a stack as a source shows it. An empty text or `None` means that the source does not show the
/// value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Frame<'a> {
    /// The file that the code is mapped from; empty for a frame of an interpreted language.
    pub module: &'a [u8],
    /// Return address as an offset in that file, bytes.
    pub offset: Option<u64>,
    pub function: &'a [u8],
    /// Distance of the return address from the beginning of the function, bytes.
    pub function_offset: Option<u64>,
    /// Path of the source file.
    pub file: &'a [u8],
    pub line: Option<u32>,
}

/// Appends a frame to the bytes of a stack.
pub fn push_frame(bytes: &mut Vec<u8>, frame: &Frame<'_>) {
    let number = |bytes: &mut Vec<u8>, value: Option<u64>| {
        if let Some(value) = value {
            bytes.extend_from_slice(value.to_string().as_bytes());
        }
        bytes.push(0);
    };
    let text = |bytes: &mut Vec<u8>, text: &[u8]| {
        bytes.extend(text.iter().filter(|&&byte| byte != 0));
        bytes.push(0);
    };
    text(bytes, frame.module);
    number(bytes, frame.offset);
    text(bytes, frame.function);
    number(bytes, frame.function_offset);
    text(bytes, frame.file);
    number(bytes, frame.line.map(u64::from));
}

/// Returns the frames in a stack's bytes, innermost first.
pub fn frames(bytes: &[u8]) -> impl Iterator<Item = Frame<'_>> {
    let mut fields = bytes.split(|&byte| byte == 0);
    std::iter::from_fn(move || {
        let mut next = [&b""[..]; FIELDS];
        for field in &mut next {
            *field = fields.next()?;
        }
        let [module, offset, function, function_offset, file, line] = next;
        let number = |text: &[u8]| std::str::from_utf8(text).ok()?.parse::<u64>().ok();
        let line = number(line).and_then(|line| u32::try_from(line).ok());
        let (offset, function_offset) = (number(offset), number(function_offset));
        Some(Frame { module, offset, function, function_offset, file, line })
    })
}

/// A place in code from which calls are made.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Site {
    pub module: Box<[u8]>,
    pub offset: Option<u64>,
    pub function: Box<[u8]>,
    pub function_offset: Option<u64>,
    pub file: Box<[u8]>,
    pub line: Option<u32>,
}

impl Site {
    pub fn of(frame: &Frame<'_>) -> Site {
        Site {
            module: frame.module.into(),
            offset: frame.offset,
            function: frame.function.into(),
            function_offset: frame.function_offset,
            file: frame.file.into(),
            line: frame.line,
        }
    }

    /// Returns whether the path of the code shows that it belongs to an installed library or program.
    pub fn is_installed(&self) -> bool {
        is_installed(if self.module.is_empty() { &self.file } else { &self.module })
    }
}

/// Folders into which the system or an administrator installs software.
const INSTALLED: [&[u8]; 8] =
    [b"/usr/", b"/lib/", b"/lib32/", b"/lib64/", b"/libx32/", b"/bin/", b"/sbin/", b"/nix/store/"];
/// Parts of paths below which the package manager of a language installs software.
const PACKAGES: [&[u8]; 5] =
    [b"/site-packages/", b"/dist-packages/", b"/lib/python3.", b"/bin/python3.", b"/libpython3."];

/// Source names that Python gives to code that a user has typed. Other names in angle brackets belong to
/// installed packages.
const TYPED: [&[u8]; 5] = [b"<stdin>", b"<string>", b"<console>", b"<ipython-input", b"<python-input"];

/// Returns whether a code or source file belongs to installed software. Names in square brackets, such as
/// `[vdso]`, are code of the kernel.
pub fn is_installed(path: &[u8]) -> bool {
    path.starts_with(b"[")
        || (path.starts_with(b"<") && !TYPED.iter().any(|name| path.starts_with(name)))
        || INSTALLED.iter().any(|folder| path.starts_with(folder))
        || PACKAGES.iter().any(|folder| has(path, folder))
}

fn has(path: &[u8], part: &[u8]) -> bool {
    path.windows(part.len()).any(|piece| piece == part)
}

/// Returns whether the name is that of a shared library. [`Stacks::to_change`] prefers installed programs to
/// installed libraries.
fn is_library(path: &[u8]) -> bool {
    let name = path.rsplit(|&byte| byte == b'/').next().unwrap_or(path);
    path.starts_with(b"[") || name.ends_with(b".so") || has(name, b".so.")
}

/// The distinct sites and stacks of a store.
#[derive(Clone, Debug, Default)]
pub struct Stacks {
    /// The sites, indexed by site id.
    pub sites: Vec<Site>,
    /// The sites of each stack, innermost first, indexed by stack id.
    pub stacks: Vec<Box<[u32]>>,
}

impl Stacks {
    /// Returns the site that a user would change to alter the call: the innermost site outside installed
    /// software; else the innermost one of an installed program; else the innermost one.
    pub fn to_change(&self, sites: &[u32]) -> u32 {
        let site = |id: &&u32| &self.sites[**id as usize];
        let own = sites.iter().find(|id| !site(id).is_installed());
        let program = || sites.iter().find(|id| !is_library(&site(id).module));
        own.or_else(program).copied().unwrap_or(sites[0])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_decoded_as_encoded() {
        let native =
            |module: &'static [u8], offset| Frame { module, offset: Some(offset), ..Frame::default() };
        let told = Frame {
            function: b"step",
            function_offset: Some(9),
            file: b"a.c",
            line: Some(7),
            ..native(b"/a", 3)
        };
        let all = [told, Frame::default(), native(b"/usr/lib/libc.so.6", u64::MAX)];
        let mut bytes = Vec::new();
        all.iter().for_each(|frame| push_frame(&mut bytes, frame));
        assert_eq!(frames(&bytes).collect::<Vec<_>>(), all);
        assert_eq!(frames(b"cut\0").count(), 0);
    }

    #[test]
    fn installed_code_is_recognised_by_its_folder() {
        assert!(is_installed(b"/home/u/env/lib/python3.11/site-packages/h5py/_hl/files.py"));
        assert!(is_installed(b"/usr/lib/libc.so.6") && is_installed(b"[vdso]"));
        assert!(is_installed(b"<frozen os>") && is_installed(b"<__array_function__ internals>"));
        assert!(!is_installed(b"<string>") && !is_installed(b"<ipython-input-3-1f>"));
        assert!(!is_installed(b"/home/u/libown.so"));
    }
}
