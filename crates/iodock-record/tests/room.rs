//! Tests the behaviour if there is no space for the buffers of `rewrite`. Each test needs root, because it
//! mounts its own file systems. Otherwise it prints that it was skipped.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

use iodock_record::backends::reason::Reason;
use iodock_record::{record, ProgramExit, RecordError, RecordOptions, RecordOutcome};
use std::ffi::CString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{env, fs, io, ptr, thread};

const SHARED: &str = "/dev/shm";

/// Runs `work` on a thread with its own mounts, which its threads and programs share.
fn with_own_mounts(work: impl FnOnce() + Send) {
    thread::scope(|scope| {
        scope.spawn(|| match leave_mounts() {
            Ok(()) => work(),
            Err(error) => eprintln!("skipped: no mounts of our own: {error}"),
        });
    });
}

fn leave_mounts() -> io::Result<()> {
    // SAFETY: only this thread's view of the file systems changes, and the text ends with NUL.
    let done = unsafe {
        libc::unshare(libc::CLONE_NEWNS) == 0
            && libc::mount(
                ptr::null(),
                c"/".as_ptr(),
                ptr::null(),
                libc::MS_REC | libc::MS_PRIVATE,
                ptr::null(),
            ) == 0
    };
    done.then_some(()).ok_or_else(io::Error::last_os_error)
}

fn mount_memory(at: &Path, flags: libc::c_ulong, options: &str) {
    let text = |text: &str| CString::new(text).expect("no zeros");
    let (at, options) = (text(at.to_str().expect("text")), text(options));
    let memory = c"tmpfs".as_ptr();
    // SAFETY: all texts end with NUL.
    let mounted = unsafe { libc::mount(memory, at.as_ptr(), memory, flags, options.as_ptr().cast()) };
    assert_eq!(mounted, 0, "{}", io::Error::last_os_error());
}

fn record_by(backend: &str, store: &Path) -> Result<RecordOutcome, RecordError> {
    let mut options = RecordOptions::new(vec!["true".into()], store.into());
    options.backend = backend.into();
    record(&options, Arc::default())
}

/// A store that is removed when this value is dropped.
struct Store(PathBuf);

impl Store {
    fn new(name: &str) -> Store {
        Store(env::temp_dir().join(format!("iodock-room-{name}-{}.iodock", std::process::id())))
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn names(folder: &str) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("a folder").flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

/// Checks that `auto` uses another back end for this reason, and that `rewrite` is refused with a message
/// that contains these words.
fn goes_without(name: &str, reason: Reason, words: &str) {
    let store = Store::new(name);
    let before = names(SHARED);
    let refused = record_by("rewrite", &store.0).expect_err("no room");
    assert!(matches!(refused, RecordError::Refused(_)) && refused.to_string().contains(words), "{refused}");
    assert!(!store.0.exists());
    let outcome = record_by("auto", &store.0).expect("recorded");
    assert!(matches!(outcome.backend, "bpf" | "ptrace"), "{outcome:?}");
    assert_eq!((outcome.reason, outcome.exit), (reason, ProgramExit::Code(0)));
    assert_eq!(names(SHARED), before);
}

#[test]
fn a_full_shared_memory_is_reported_before_the_program_starts() {
    with_own_mounts(|| {
        mount_memory(Path::new(SHARED), 0, "size=64k");
        goes_without("full", Reason::NoBuffers, "the shared buffers can't be made");
    });
}

#[test]
fn a_shared_memory_with_few_inodes_is_handled() {
    for files in ["nr_inodes=1", "nr_inodes=2", "nr_inodes=3"] {
        with_own_mounts(|| {
            mount_memory(Path::new(SHARED), 0, files);
            let reason = if files == "nr_inodes=1" { Reason::Machine } else { Reason::NoBuffers };
            goes_without("files", reason, "the shared buffers can't be made");
        });
    }
}

#[test]
fn folders_mounted_noexec_are_not_used() {
    with_own_mounts(|| {
        for place in [Path::new(SHARED), &env::temp_dir()] {
            mount_memory(place, libc::MS_NOEXEC, "");
        }
        goes_without("noexec", Reason::Machine, "hold programs");
    });
}
