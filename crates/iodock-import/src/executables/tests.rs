use super::*;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

/// A folder that is removed at the end of its test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("iodock-executables-{}-{name}", std::process::id()));
        fs::create_dir_all(&path).expect("a folder");
        Folder(path)
    }

    fn file(&self, name: &str, content: &[u8]) -> PathBuf {
        let path = self.0.join(name);
        fs::write(&path, content).expect("a file");
        path
    }

    /// Compiles a source text and returns the path of the program; `None` if the compiler is missing.
    fn compiled(&self, compiler: &str, source: (&str, &str), options: &[&str]) -> Option<PathBuf> {
        let (source, program) = (self.file(source.0, source.1.as_bytes()), self.0.join("program"));
        let made = Command::new(compiler).arg(source).arg("-o").arg(&program).args(options).output().ok()?;
        made.status.success().then_some(program)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn row_of(path: &Path) -> Option<ExecutableRow> {
    row(path.as_os_str().as_bytes())
}

const C: (&str, &str) = ("a.c", "int main(void) { return 0; }\n");
const CPP: (&str, &str) = ("a.cc", "#include <iostream>\nint main() { std::cout << 1 << std::endl; }\n");
const FORTRAN: (&str, &str) = ("a.f90", "program a\n  print *, 1\nend program a\n");

#[test]
fn the_language_follows_from_the_programs_own_libraries() {
    let cases = [
        ("gcc", C, &[][..], &["C"][..]),
        ("g++", CPP, &[], &["C++"]),
        ("gfortran", FORTRAN, &[], &["Fortran"]),
        ("g++", CPP, &["-static-libstdc++", "-static-libgcc"], &["C++"]),
        ("g++", CPP, &["-static"], &["C++"]),
        ("gfortran", FORTRAN, &["-static"], &["Fortran"]),
        ("gcc", C, &["-static"], &["C"]),
        ("gcc", C, &["-static", "-s"], &[]),
        ("g++", CPP, &["-s"], &["C++"]),
    ];
    for (number, (compiler, source, options, languages)) in cases.into_iter().enumerate() {
        let folder = Folder::new(&format!("made-{number}"));
        let Some(program) = folder.compiled(compiler, source, options) else { continue };
        let row = row_of(&program).expect("a row");
        assert_eq!(
            (row.kind, row.languages),
            ("elf", languages.iter().map(ToString::to_string).collect()),
            "{compiler} {options:?}"
        );
        let is_static = options.contains(&"-static");
        assert_eq!(row.libraries.iter().any(|name| name.starts_with("libc.so")), !is_static, "{options:?}");
    }
}

#[test]
fn rust_programs_are_recognised_by_their_comment_section() {
    let own = std::env::current_exe().expect("this test");
    assert_eq!(row_of(&own).expect("a row").languages, ["Rust"]);
}

#[test]
fn indirect_libraries_do_not_determine_the_language() {
    let folder = Folder::new("indirect");
    let source = "#include <string>\nextern \"C\" int size() { return (int)std::string(\"abc\").size(); }\n";
    let library = folder.file("size.cc", source.as_bytes());
    let mut compiler = Command::new("g++");
    compiler.args(["-shared", "-fPIC"]).arg(&library).arg("-o").arg(folder.0.join("libsize.so"));
    let Ok(true) = compiler.output().map(|made| made.status.success()) else { return };
    let at = format!("-L{}", folder.0.display());
    let options = [at.as_str(), "-lsize", "-Wl,-rpath,$ORIGIN"];
    let user = ("user.c", "int size(void);\nint main(void) { return size() - 3; }\n");
    let program = folder.compiled("gcc", user, &options).expect("a program");
    let row = row_of(&program).expect("a row");
    assert_eq!(row.languages, ["C"]);
    assert!(row.libraries.contains(&"libsize.so".to_string()), "{row:?}");
}

#[test]
fn the_language_of_a_script_is_its_interpreters() {
    let folder = Folder::new("script");
    let path = folder.file("run", b"#! /usr/bin/env python3\nprint(1)\n");
    let link = folder.0.join("link");
    std::os::unix::fs::symlink(&path, &link).expect("a link");
    let row = row_of(&link).expect("a row");
    assert_eq!((row.kind, row.interpreter.as_deref()), ("script", Some("/usr/bin/env python3")));
    assert_eq!(row.real_path, fs::canonicalize(&path).ok().map(|path| path.display().to_string()));
    let long = folder.file("long", &[&b"#!"[..], &vec![b'x'; 100_000]].concat());
    assert_eq!(row_of(&long).and_then(|row| row.interpreter).map(|line| line.len()), Some(HEAD_BYTES - 2));
    assert_eq!(row_of(&folder.file("empty", b"")).map(|row| row.kind), Some("other"));
}

#[test]
fn paths_that_are_not_files_are_left_out() {
    let folder = Folder::new("none");
    let pipe = folder.0.join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().expect("mkfifo").success());
    for path in
        [pipe.as_path(), &folder.0, &folder.0.join("gone"), Path::new("/proc/self/exe"), Path::new("a")]
    {
        assert_eq!(row_of(path), None, "{}", path.display());
    }
}

#[test]
fn damaged_programs_are_read_as_far_as_possible() {
    let folder = Folder::new("damaged");
    let own = fs::read(std::env::current_exe().expect("this test")).expect("its bytes");
    let good = &own[..own.len().min(1 << 20)];
    for length in [0, 4, 5, 16, 40, 63, 64, 100, 1000, 5000, good.len()] {
        let path = folder.file("cut", &good[..length]);
        let row = row_of(&path).expect("a row");
        assert_eq!(row.kind, if length < 4 { "other" } else { "elf" });
    }
    // Each field of the header in turn gets its largest value.
    let Some(program) = folder.compiled("gcc", C, &[]) else { return };
    let bytes = fs::read(program).expect("its bytes");
    for at in 16..64 {
        for size in [1, 2, 8] {
            let mut broken = bytes.clone();
            broken[at..at + size].fill(0xff);
            assert_eq!(row_of(&folder.file("broken", &broken)).map(|row| row.kind), Some("elf"));
        }
    }
    // Each size, offset and link of a section in turn gets its largest value.
    let table = u64::from_le_bytes(bytes[40..48].try_into().expect("8 bytes")) as usize;
    for at in (table..bytes.len() - 8).step_by(8) {
        let mut broken = bytes.clone();
        broken[at..at + 8].fill(0xff);
        assert_eq!(row_of(&folder.file("broken", &broken)).map(|row| row.kind), Some("elf"));
    }
}

#[test]
fn a_huge_sparse_file_is_not_read_completely() {
    let folder = Folder::new("huge");
    let Some(program) = folder.compiled("gcc", C, &["-static"]) else { return };
    let mut bytes = fs::read(&program).expect("its bytes");
    let table = u64::from_le_bytes(bytes[40..48].try_into().expect("8 bytes")) as usize;
    let count = (bytes.len() - table) / 64;
    // All sections claim a length of 1 TiB, and so does the file.
    for section in 0..count {
        let at = table + section * 64 + 32;
        bytes[at..at + 8].copy_from_slice(&(1u64 << 40).to_le_bytes());
    }
    let path = folder.file("huge", &bytes);
    let grown = fs::OpenOptions::new().write(true).open(&path).and_then(|file| file.set_len(1 << 41));
    if grown.is_ok() {
        assert!(row_of(&path).expect("a row").languages.is_empty());
    }
}
