//! Describes the location of the store, and the machine.

use iodock_preload::local_disk::is_local;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

pub fn host_name() -> String {
    trimmed("/proc/sys/kernel/hostname")
}

pub fn kernel() -> String {
    trimmed("/proc/sys/kernel/osrelease")
}

fn trimmed(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default().trim().to_string()
}

fn device(path: &Path) -> Option<u64> {
    // If the folder does not exist yet, its first existing parent is used.
    path.ancestors().find_map(|ancestor| {
        let ancestor = if ancestor.as_os_str().is_empty() { Path::new(".") } else { ancestor };
        fs::metadata(ancestor).ok().map(|status| status.dev())
    })
}

/// Returns whether the recorder writes to the network or parallel file system that the program uses. Local
/// disks do not count, because there no other users are affected.
pub fn on_measured_file_system(store: &Path) -> bool {
    device(store).is_some_and(|store| Some(store) == device(Path::new(".")))
        && !is_local(Path::new(".")).unwrap_or(true)
}

/// Returns a warning if the store is on that file system, with a better place if there is one.
pub fn warnings(store: &Path) -> Vec<String> {
    if !on_measured_file_system(store) {
        return Vec::new();
    }
    let better =
        better_place(store).map_or(String::new(), |place| format!("; -o {} is on another", place.display()));
    vec![format!(
        "the store lies on the network file system that the program works in, so recording adds to its load{better}"
    )]
}

fn better_place(store: &Path) -> Option<PathBuf> {
    let name = store.file_name()?;
    let own = device(store);
    let temporary = std::env::var_os("TMPDIR").map(PathBuf::from);
    temporary
        .into_iter()
        .chain(["/tmp".into(), "/dev/shm".into()])
        .find(|place| place.is_dir() && device(place) != own && !read_only(place))
        .map(|place| place.join(name))
}

fn read_only(place: &Path) -> bool {
    let Ok(text) = std::ffi::CString::new(place.as_os_str().as_encoded_bytes()) else { return true };
    // SAFETY: the path ends with NUL.
    unsafe { libc::access(text.as_ptr(), libc::W_OK) != 0 }
}
