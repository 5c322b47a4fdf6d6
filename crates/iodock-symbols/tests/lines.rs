//! Compiles a program with gcc, and checks that offsets in it lead to the right lines of its source.

use iodock_symbols::{DebugFolders, Module};
use object::{Object, ObjectSymbol};
use std::path::{Path, PathBuf};
use std::process::Command;

const SOURCE: &str = "int data;
static inline __attribute__((always_inline)) void inner(void) {
    __asm__ volatile(\".globl here_from\\nhere_from: nop\\n.globl here\\nhere: nop\");
}
__attribute__((noinline)) void step(void) {
    data++;
    inner();
}
int main(void) {
    step();
    return 0;
}
";

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let folder = std::env::temp_dir().join(format!("iodock-symbols-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        Folder(folder)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn run(folder: &Path, command: &[&str]) {
    let done = Command::new(command[0]).args(&command[1..]).current_dir(folder).status().unwrap();
    assert!(done.success(), "{command:?}");
}

/// Compiles the program. Returns its path and the offset in its file just after the first instruction of the
/// inlined function `here`.
fn built(folder: &Folder, options: &[&str]) -> (PathBuf, u64) {
    std::fs::write(folder.0.join("program.c"), SOURCE).unwrap();
    let command = [&["gcc", "-Wl,--build-id", "-o", "program", "program.c"], options].concat();
    run(&folder.0, &command);
    let path = folder.0.join("program");
    let bytes = std::fs::read(&path).unwrap();
    let file = object::File::parse(&*bytes).unwrap();
    let address = file.symbols().find(|symbol| symbol.name() == Ok("here")).unwrap().address();
    let segment = file.segments().find(|segment| {
        use object::ObjectSegment;
        (segment.address()..segment.address() + segment.size()).contains(&address)
    });
    use object::ObjectSegment;
    let segment = segment.unwrap();
    (path, address - segment.address() + segment.file_range().0)
}

fn named(module: &Module, offset: u64) -> Vec<(Option<String>, Option<u32>)> {
    module.places(offset).into_iter().map(|place| (place.function, place.line)).collect()
}

fn some(function: &str, line: u32) -> (Option<String>, Option<u32>) {
    (Some(function.into()), Some(line))
}

#[test]
fn inlined_functions_precede_their_callers() {
    for options in [&["-O2", "-g"][..], &["-O0", "-g", "-gz"], &["-O2", "-g", "-gdwarf-4", "-no-pie"]] {
        let folder = Folder::new("inlined");
        let (path, offset) = built(&folder, options);
        let module = Module::open(&path, &DebugFolders::default()).unwrap();
        assert_eq!(named(&module, offset), [some("inner", 3), some("step", 7)], "{options:?}");
        assert!(module.places(offset)[0].file.as_ref().unwrap().ends_with("/program.c"));
        assert!(module.build_id.is_some());
        assert!(module.places(u64::MAX).is_empty());
    }
}

#[test]
fn separate_debug_information_is_found() {
    let folder = Folder::new("apart");
    let (path, offset) = built(&folder, &["-O2", "-g"]);
    run(&folder.0, &["objcopy", "--only-keep-debug", "program", "program.debug"]);
    run(&folder.0, &["strip", "program"]);
    let stripped = Module::open(&path, &DebugFolders::default()).unwrap();
    assert!(named(&stripped, offset).iter().all(|(_, line)| line.is_none()));
    // Finds the debug information by build id, in a folder of debug information.
    let id = stripped.build_id.clone().unwrap();
    let below = folder.0.join("debug/.build-id").join(&id[..2]);
    std::fs::create_dir_all(&below).unwrap();
    std::fs::rename(folder.0.join("program.debug"), below.join(format!("{}.debug", &id[2..]))).unwrap();
    let folders = DebugFolders::with_system(&[folder.0.join("debug")]);
    let module = Module::open(&path, &folders).unwrap();
    assert_eq!(named(&module, offset), [some("inner", 3), some("step", 7)]);
}

#[test]
fn functions_named_by_a_tracer_are_used() {
    let folder = Folder::new("named");
    let (path, offset) = built(&folder, &["-O2"]);
    let module = Module::open(&path, &DebugFolders::default()).unwrap();
    assert!(module.has_function("here", 0, offset) && module.has_function("here_from", 1, offset));
    assert!(!module.has_function("here_from", 0, offset) && !module.has_function("step", 1, offset));
}

#[test]
fn a_file_that_is_not_a_program_has_no_symbols() {
    let folder = Folder::new("none");
    std::fs::write(folder.0.join("text"), "\x7fELF is not all of it").unwrap();
    for name in ["text", "missing", "."] {
        assert!(Module::open(&folder.0.join(name), &DebugFolders::default()).is_none(), "{name}");
    }
}
