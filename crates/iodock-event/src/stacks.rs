//! Where in a program a call was made: stacks of frames, and the places in code that they name.
//!
//! A source hands over a stack as bytes ([`push_frame`]): frames innermost first, each as six texts that end with NUL.
//! Equal stacks are equal bytes, so a store has each of them once ([`Stacks`]).

/// Fields of a frame, each behind the other, with a NUL behind each.
const FIELDS: usize = 6;

/// One frame of a stack as a source shows it. Empty texts and `None` are not known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Frame<'a> {
    /// The file that the code is mapped from; of an interpreted frame empty.
    pub module: &'a [u8],
    /// Where in that file the call returns to, bytes.
    pub offset: Option<u64>,
    pub function: &'a [u8],
    /// How far behind the function's begin that is, bytes.
    pub function_offset: Option<u64>,
    /// The source file.
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

/// The frames of a stack's bytes, innermost first.
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

/// A place in code that calls come from.
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

    /// Whether the code belongs to an installed library or program, according to its path.
    pub fn is_installed(&self) -> bool {
        is_installed(if self.module.is_empty() { &self.file } else { &self.module })
    }
}

/// Folders of what a system or an administrator installs.
const INSTALLED: [&[u8]; 8] =
    [b"/usr/", b"/lib/", b"/lib32/", b"/lib64/", b"/libx32/", b"/bin/", b"/sbin/", b"/nix/store/"];
/// Folders of what a package manager of a language installs.
const PACKAGES: [&[u8]; 5] =
    [b"/site-packages/", b"/dist-packages/", b"/lib/python3.", b"/bin/python3.", b"/libpython3."];

/// Source of Python without a file that the user has written; other such code is made by packages.
const TYPED: [&[u8]; 5] = [b"<stdin>", b"<string>", b"<console>", b"<ipython-input", b"<python-input"];

/// Does a file of code, or of source, belong to a system's or an installed library? What has no place in the file system
/// (`[vdso]`) is the kernel's.
pub fn is_installed(path: &[u8]) -> bool {
    path.starts_with(b"[")
        || (path.starts_with(b"<") && !TYPED.iter().any(|name| path.starts_with(name)))
        || INSTALLED.iter().any(|folder| path.starts_with(folder))
        || PACKAGES.iter().any(|folder| has(path, folder))
}

fn has(path: &[u8], part: &[u8]) -> bool {
    path.windows(part.len()).any(|piece| piece == part)
}

/// Is it a shared library, by its name? Of what is installed a program comes before its libraries.
fn is_library(path: &[u8]) -> bool {
    let name = path.rsplit(|&byte| byte == b'/').next().unwrap_or(path);
    path.starts_with(b"[") || name.ends_with(b".so") || has(name, b".so.")
}

/// The sites and stacks of a store, each once.
#[derive(Clone, Debug, Default)]
pub struct Stacks {
    /// Index: site id.
    pub sites: Vec<Site>,
    /// Sites of each stack, innermost first. Index: stack id.
    pub stacks: Vec<Box<[u32]>>,
}

impl Stacks {
    /// The site to change in a stack: the innermost one outside of installed libraries; else the innermost
    /// one of an installed program; else the innermost one.
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
