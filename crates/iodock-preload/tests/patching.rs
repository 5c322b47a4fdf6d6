//! Tests each way in which jumps to the stub get into a program's libraries.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

mod common;

use common::{compiled, counts, Folder};
use iodock_preload::cache::{Cache, Library};
use iodock_preload::format::DISTANCE;
use iodock_preload::session::{self, Session};
use iodock_preload::texts::Texts;
use std::path::{Path, PathBuf};
use std::process::Command;

struct Mapped {
    start: u64,
    end: u64,
    line: String,
}

/// Runs the program, checks that its calls were recorded, and returns the mappings that it prints.
fn recorded(session: &Session, program: &Path) -> Vec<Mapped> {
    let mut command = Command::new(program);
    command.env("LD_PRELOAD", session.library()).env("IODOCK_SESSION", session.path());
    maps_of(session, command)
}

fn maps_of(session: &Session, mut command: Command) -> Vec<Mapped> {
    let output = command.output().expect("it starts");
    assert!(output.status.success(), "{output:?}");
    assert_eq!(counts(session)["pread64"], 97);
    let text = String::from_utf8(output.stdout).expect("text");
    let number = |text: &str| u64::from_str_radix(text, 16).expect("an address");
    let mapped = |line: &str| {
        let (range, _) = line.split_once(' ')?;
        let (start, end) = range.split_once('-')?;
        Some(Mapped { start: number(start), end: number(end), line: line.into() })
    };
    text.lines().filter_map(mapped).collect()
}

/// Returns the executable mappings of the session's file and of files with patched texts.
fn ours(maps: &[Mapped]) -> Vec<&Mapped> {
    let is_ours = |map: &&Mapped| map.line.ends_with("/session") || map.line.contains("/text-");
    maps.iter().filter(|map| map.line.contains("r-xp")).filter(is_ours).collect()
}

/// Whether a library's patched text is mapped from a file whose path contains `of`.
fn has_text(maps: &[Mapped], of: &str) -> bool {
    let libc = of_libc(maps);
    ours(maps).iter().any(|map| map.start > libc && map.end - map.start > 500_000 && map.line.contains(of))
}

fn of_libc(maps: &[Mapped]) -> u64 {
    maps.iter().find(|map| map.line.contains("/libc")).expect("it has a libc").start
}

#[test]
fn patched_code_and_trampolines_are_mapped() {
    let folder = Folder::new();
    let mut libraries = session::libraries();
    libraries.iter_mut().for_each(|library| library.kept = None);
    let session = Session::create(&folder.0.join("session"), &libraries).expect("a session");
    let maps = recorded(&session, &compiled("maps", &folder));
    let libc = of_libc(&maps);
    assert!(ours(&maps).iter().any(|map| map.start == libc - DISTANCE), "trampolines");
    assert!(has_text(&maps, "/session"), "libc's text");
}

/// Each mapping and each used page costs time in every process.
#[test]
fn the_library_is_mapped_in_few_parts() {
    let folder = Folder::new();
    let session = Session::create(&folder.0.join("session"), &session::libraries()).expect("a session");
    let maps = recorded(&session, &compiled("maps", &folder));
    let library = session.library();
    let name = library.to_str().expect("text");
    let parts: Vec<&Mapped> = maps.iter().filter(|map| map.line.ends_with(name)).collect();
    let access: Vec<&str> = parts.iter().filter_map(|part| part.line.split(' ').nth(1)).collect();
    // GNU ld creates two segments; other linkers keep read-only data in a separate segment.
    assert!(access == ["r-xp", "rw-p"] || access == ["r--p", "r-xp", "rw-p"], "{access:?}");
}

/// Returns libraries whose patched texts are stored in `folder`.
fn libraries_kept_in(folder: &Path) -> Vec<Library> {
    let texts = Texts::at(&folder.join("texts")).expect("a place for code");
    let cache = Cache::at(None).with_texts(Some(texts));
    session::paths().iter().filter_map(|path| cache.library(path)).collect()
}

#[test]
fn cached_patched_code_is_mapped_from_its_file() {
    let folder = Folder::new();
    let libraries = libraries_kept_in(&folder.0);
    let session = Session::create(&folder.0.join("session"), &libraries).expect("a session");
    assert!(has_text(&recorded(&session, &compiled("maps", &folder)), "/texts/text-"));
}

#[test]
fn a_process_writes_the_jumps_if_the_cached_file_is_missing() {
    type Harm = fn(&Path);
    let harms: [(&str, Harm); 4] = [
        ("another", |path| {
            let bytes = std::fs::read(path).expect("a text");
            std::fs::remove_file(path).and_then(|()| std::fs::write(path, bytes)).expect("another file");
        }),
        ("gone", |path| std::fs::remove_file(path).expect("removed")),
        ("cut off", |path| std::fs::write(path, b"too short").expect("written")),
        ("a folder", |path| {
            std::fs::remove_file(path).and_then(|()| std::fs::create_dir(path)).expect("a folder instead");
        }),
    ];
    for (what, harm) in harms {
        let folder = Folder::new();
        let libraries = libraries_kept_in(&folder.0);
        let session = Session::create(&folder.0.join("session"), &libraries).expect("a session");
        for entry in std::fs::read_dir(folder.0.join("texts")).expect("texts") {
            harm(&entry.expect("a text").path());
        }
        let maps = recorded(&session, &compiled("maps", &folder));
        assert!(!ours(&maps).is_empty() && !has_text(&maps, ""), "{what}");
    }
}

#[test]
fn jumps_are_written_if_no_patched_code_is_cached() {
    let folder = Folder::new();
    let mut libraries = session::libraries();
    for library in &mut libraries {
        library.text = None;
        library.kept = None;
    }
    let session = Session::create(&folder.0.join("session"), &libraries).expect("a session");
    let maps = recorded(&session, &compiled("maps", &folder));
    let libc = of_libc(&maps);
    assert!(!ours(&maps).is_empty());
    assert!(ours(&maps).iter().all(|map| map.end < libc), "nothing but trampolines");
}

#[test]
fn another_file_with_the_same_build_id_keeps_its_code() {
    let folder = Folder::new();
    let session = common::session(&folder);
    let libc = session::paths().into_iter().find(|path| path.to_string_lossy().contains("libc."));
    std::fs::copy(libc.expect("a libc"), folder.0.join("libc.so.6")).expect("copied");
    let program = compiled("maps", &folder);
    let output = Command::new(&program)
        .env("LD_PRELOAD", session.library())
        .env("IODOCK_SESSION", session.path())
        .env("LD_LIBRARY_PATH", &folder.0)
        .output()
        .expect("it starts");
    assert!(output.status.success(), "{output:?}");
    assert_eq!(counts(&session)["pread64"], 97);
    let maps = String::from_utf8(output.stdout).expect("text");
    let own = folder.0.join("libc.so.6").display().to_string();
    assert!(maps.lines().any(|line| line.contains("r-xp") && line.ends_with(&own)), "{maps}");
}

#[test]
fn breakpoints_of_a_debugger_are_kept() {
    breakpoints_stay(Command::new("gdb"));
}

#[test]
fn breakpoints_are_kept_on_kernels_that_only_list_pages() {
    let folder = Folder::new();
    let mut command = Command::new(compiled("no_scan", &folder));
    command.arg("gdb");
    breakpoints_stay(command);
}

#[test]
fn patched_code_is_mapped_on_kernels_that_only_list_pages() {
    let folder = Folder::new();
    let session = common::session(&folder);
    let mut command = Command::new(compiled("no_scan", &folder));
    // `env` sets these variables for `maps` only, because no_scan itself installs a filter, and is not
    // recorded after that.
    command.arg("env").arg(format!("LD_PRELOAD={}", session.library().display()));
    command.arg(format!("IODOCK_SESSION={}", session.path().display())).arg(compiled("maps", &folder));
    assert!(has_text(&maps_of(&session, command), ""));
}

fn breakpoints_stay(mut gdb: Command) {
    let folder = Folder::new();
    let session = common::session(&folder);
    let program = compiled("maps", &folder);
    let environment = |name: &str, value: PathBuf| format!("set environment {name} {}", value.display());
    let commands = [
        "set breakpoint pending on".into(),
        "set startup-with-shell off".into(),
        environment("LD_PRELOAD", session.library()),
        environment("IODOCK_SESSION", session.path()),
        "break pread64".into(),
        "run".into(),
        "delete".into(),
        "continue".into(),
    ];
    let commands = commands.iter().flat_map(|command| ["-ex", command]);
    if Command::new("gdb").arg("--version").output().is_err() {
        eprintln!("no gdb here: not tried");
        return;
    }
    let output = gdb.args(["-q", "-batch"]).args(commands).arg(&program).output().expect("it starts");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("Breakpoint 1, "), "{said}{}", String::from_utf8_lossy(&output.stderr));
}

/// Compiles a program with a library of 1.5 GiB, which is mapped below libc.
fn with_a_large_library(folder: &Folder) -> PathBuf {
    let cc = |arguments: &[&str]| {
        let status = Command::new("cc").args(arguments).current_dir(&folder.0).status();
        assert!(status.expect("a C compiler").success(), "{arguments:?}");
    };
    std::fs::write(folder.0.join("big.c"), "char big[1536u << 20];").expect("written");
    cc(&["-shared", "-fPIC", "-o", "libbig.so", "big.c"]);
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/maps.c");
    let source = source.to_str().expect("text");
    let last = ["-Wl,--no-as-needed", "-lc", "-L.", "-lbig", "-Wl,-rpath,$ORIGIN"];
    cc(&[&["-O2", "-DBIG", "-o", "maps", source][..], &last].concat());
    folder.0.join("maps")
}

#[test]
fn trampolines_are_placed_elsewhere_if_their_address_is_taken() {
    let folder = Folder::new();
    let session = common::session(&folder);
    let maps = recorded(&session, &with_a_large_library(&folder));
    let libc = of_libc(&maps);
    let taken = |map: &Mapped| map.start < libc - DISTANCE && map.end > libc - DISTANCE;
    let there = maps.iter().find(|map| taken(map)).expect("the large library's place");
    assert!(!there.line.ends_with("/session"), "{}", there.line);
    assert!(!has_text(&maps, ""));
    let bytes: Vec<u64> = ours(&maps).iter().map(|map| map.end - map.start).collect();
    assert!(
        !bytes.is_empty() && bytes.iter().all(|&bytes| bytes < 500_000),
        "trampolines, and no text of libc's: {bytes:?}"
    );
}
