//! Makes names absolute and normalises them as text. It follows no links and accesses no files.

/// Writes `path`, relative to the directory `base`, into `out` without `.`, `..` and doubled slashes. Without
/// a base, a relative path stays relative and keeps leading `..`. After a chroot, `root` is the directory
/// that `/` means.
pub fn resolve(out: &mut Vec<u8>, base: Option<&[u8]>, root: Option<&[u8]>, path: &[u8]) {
    out.clear();
    let mut floor = 0;
    if path.first() == Some(&b'/') {
        if let Some(root) = root.filter(|&root| root != b"/") {
            out.extend_from_slice(root);
            floor = out.len();
        } else if is_plain(path) {
            out.extend_from_slice(path);
            return;
        }
        out.push(b'/');
    } else if let Some(base) = base.filter(|&base| base != b".") {
        out.extend_from_slice(base);
    }
    for part in path.split(|&byte| byte == b'/') {
        add_part(out, floor, part);
    }
    finish(out, floor);
}

/// Returns whether the path needs no change, which is the usual case.
fn is_plain(path: &[u8]) -> bool {
    let mut after_slash = false;
    for &byte in path {
        if after_slash && (byte == b'/' || byte == b'.') {
            return false;
        }
        after_slash = byte == b'/';
    }
    path.len() == 1 || !after_slash
}

fn add_part(out: &mut Vec<u8>, floor: usize, part: &[u8]) {
    match part {
        b"" | b"." => {}
        b".." => remove_part(out, floor),
        _ => {
            if !out.is_empty() && out.last() != Some(&b'/') {
                out.push(b'/');
            }
            out.extend_from_slice(part);
        }
    }
}

fn remove_part(out: &mut Vec<u8>, floor: usize) {
    let kept = &out[floor..];
    let cut = match kept.iter().rposition(|&byte| byte == b'/') {
        // `..` in the root directory is the root directory itself.
        Some(0) => 1,
        Some(at) if &kept[at + 1..] == b".." => return add_parent(out),
        Some(at) => at,
        None if kept.is_empty() || kept == b".." => return add_parent(out),
        None => 0,
    };
    out.truncate(floor + cut);
}

fn add_parent(out: &mut Vec<u8>) {
    if !out.is_empty() {
        out.push(b'/');
    }
    out.extend_from_slice(b"..");
}

fn finish(out: &mut Vec<u8>, floor: usize) {
    if out.is_empty() {
        out.push(b'.');
    } else if floor > 0 && out.len() == floor + 1 && out[floor] == b'/' {
        out.truncate(floor);
    }
}

/// The parsed text that a source prints after a descriptor (strace `-y`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Note<'a> {
    Path {
        name: &'a [u8],
        device: bool,
    },
    /// An object without a path, such as `pipe:[123]`, `TCP:[...]` or `anon_inode:[eventfd]`.
    Other(&'a [u8]),
    Nothing,
}

impl<'a> Note<'a> {
    /// Parses the text between the brackets after a descriptor.
    pub fn of(text: &'a [u8]) -> Note<'a> {
        let text = text.strip_suffix(b"(deleted)").unwrap_or(text).trim_ascii_end();
        if text.first() != Some(&b'/') {
            return if text.is_empty() { Note::Nothing } else { Note::Other(text) };
        }
        for mark in [&b"<char "[..], b"<block "] {
            if text.ends_with(b">") {
                if let Some(at) = find_last(text, mark) {
                    return Note::Path { name: &text[..at], device: true };
                }
            }
        }
        Note::Path { name: text, device: false }
    }
}

fn find_last(text: &[u8], mark: &[u8]) -> Option<usize> {
    text.windows(mark.len()).rposition(|window| window == mark)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolved(base: Option<&str>, root: Option<&str>, path: &str) -> String {
        let mut out = Vec::new();
        resolve(&mut out, base.map(str::as_bytes), root.map(str::as_bytes), path.as_bytes());
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn absolute_names_are_normalised() {
        for (path, name) in [
            ("/a/b", "/a/b"),
            ("/", "/"),
            ("//", "/"),
            ("/a/", "/a"),
            ("/a//b/./c/..", "/a/b"),
            ("/..", "/"),
            ("/../a", "/a"),
            ("/.hidden", "/.hidden"),
            ("/a/..", "/"),
            ("/a/...", "/a/..."),
        ] {
            assert_eq!(resolved(Some("/w"), None, path), name, "{path}");
        }
    }

    #[test]
    fn relative_names_are_resolved() {
        for (base, path, name) in [
            (Some("/w/x"), "a", "/w/x/a"),
            (Some("/w/x"), "../a", "/w/a"),
            (Some("/w"), "../../a", "/a"),
            (Some("/"), "a", "/a"),
            (Some("/w"), ".", "/w"),
            (None, "a/../b", "b"),
            (None, "..", ".."),
            (None, "../../a", "../../a"),
            (None, "a/..", "."),
            (None, "./a", "a"),
            (Some("sub"), "a", "sub/a"),
            (Some("sub"), "../..", ".."),
            (Some("."), "a", "a"),
            (Some("../b"), "..", ".."),
        ] {
            assert_eq!(resolved(base, None, path), name, "{base:?} {path}");
        }
    }

    #[test]
    fn names_below_another_root_are_resolved() {
        for (path, name) in
            [("/a", "/jail/a"), ("/", "/jail"), ("/../../a", "/jail/a"), ("//a/../..", "/jail")]
        {
            assert_eq!(resolved(Some("/jail/w"), Some("/jail"), path), name, "{path}");
        }
        assert_eq!(resolved(Some("/jail/w"), Some("/jail"), "a"), "/jail/w/a");
    }

    #[test]
    fn descriptor_notes_of_strace_are_read() {
        assert_eq!(Note::of(b"/dev/null<char 1:3>"), Note::Path { name: b"/dev/null", device: true });
        assert_eq!(Note::of(b"/tmp/x (deleted)"), Note::Path { name: b"/tmp/x", device: false });
        assert_eq!(Note::of(b"/memfd:zoo>(deleted)"), Note::Path { name: b"/memfd:zoo>", device: false });
        assert_eq!(Note::of(b"pipe:[123]"), Note::Other(b"pipe:[123]"));
        assert_eq!(Note::of(b""), Note::Nothing);
    }
}
