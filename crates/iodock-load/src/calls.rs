//! Makes the system calls on a worker's files, and builds the files' names.

use crate::shared::Record;
use crate::{cache, folders};
use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

/// Reason why a worker ended early.
#[derive(Debug, PartialEq, Eq)]
pub enum Ended {
    /// The engine requested a stop.
    Stopped,
    /// A system call failed: errno and purpose.
    Failed(i32, &'static str),
}

/// Returns the error of the last system call.
pub fn failed(what: &'static str) -> Ended {
    Ended::Failed(io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO), what)
}

/// Converts an error of the standard library.
pub fn failed_of(error: &io::Error, what: &'static str) -> Ended {
    Ended::Failed(error.raw_os_error().unwrap_or(libc::EIO), what)
}

/// Builds a numbered name such as `f17` as a C string.
pub fn numbered(letter: u8, number: u64) -> CString {
    CString::new(format!("{}{number}", letter as char)).expect("no NUL")
}

/// Builds numbered file names without allocation, for loops that are measured.
pub struct Name {
    bytes: [u8; 24],
    start: usize,
}

impl Name {
    pub fn new() -> Self {
        Name { bytes: [0; 24], start: 23 }
    }

    #[inline]
    pub fn set(&mut self, letter: u8, mut number: u64) -> &CStr {
        // The last byte is NUL and stays unchanged.
        let mut at = 22;
        loop {
            self.bytes[at] = b'0' + (number % 10) as u8;
            number /= 10;
            at -= 1;
            if number == 0 {
                break;
            }
        }
        self.bytes[at] = letter;
        self.start = at;
        CStr::from_bytes_until_nul(&self.bytes[self.start..]).unwrap_or(c"")
    }
}

impl Default for Name {
    fn default() -> Self {
        Name::new()
    }
}

/// Opens a file in a worker's folder. `what` says in an error which operation failed.
#[inline]
pub fn open(folder: RawFd, name: &CStr, flags: i32, what: &'static str) -> Result<OwnedFd, Ended> {
    folders::open_at(folder, name, flags).map_err(|error| failed_of(&error, what))
}

/// Writes all of `bytes` at `offset`.
#[inline]
pub fn write_all(fd: RawFd, mut bytes: &[u8], mut offset: u64) -> Result<(), Ended> {
    while !bytes.is_empty() {
        // SAFETY: the slice is readable for its whole length.
        let done = unsafe { libc::pwrite(fd, bytes.as_ptr().cast(), bytes.len(), offset as libc::off_t) };
        match done {
            -1 if io::Error::last_os_error().kind() == io::ErrorKind::Interrupted => {}
            -1 => return Err(failed("write")),
            // pwrite wrote nothing but reported no error. This is unexpected and must not be repeated
            // forever.
            0 => return Err(Ended::Failed(libc::ENOSPC, "write")),
            done => {
                bytes = &bytes[done as usize..];
                offset += done as u64;
            }
        }
    }
    Ok(())
}

/// Reads up to `buffer.len()` bytes at `offset`. It returns fewer only at the end of the file.
#[inline]
pub fn read_full(fd: RawFd, buffer: &mut [u8], offset: u64) -> Result<usize, Ended> {
    let mut filled = 0;
    while filled < buffer.len() {
        let rest = &mut buffer[filled..];
        let place = (offset + filled as u64) as libc::off_t;
        // SAFETY: the slice is writable for its whole length.
        match unsafe { libc::pread(fd, rest.as_mut_ptr().cast(), rest.len(), place) } {
            -1 if io::Error::last_os_error().kind() == io::ErrorKind::Interrupted => {}
            -1 => return Err(failed("read")),
            0 => break,
            done => filled += done as usize,
        }
    }
    Ok(filled)
}

pub fn sync(fd: &OwnedFd) -> Result<(), Ended> {
    // SAFETY: the descriptor is open.
    if unsafe { libc::fsync(fd.as_raw_fd()) } != 0 {
        return Err(failed("fsync"));
    }
    Ok(())
}

/// Closes a file and checks the result, because some file systems report a lack of space only then.
pub fn close(fd: OwnedFd) -> Result<(), Ended> {
    // SAFETY: the function owns the descriptor and does not use it again.
    if unsafe { libc::close(std::os::fd::IntoRawFd::into_raw_fd(fd)) } != 0 {
        return Err(failed("close"));
    }
    Ok(())
}

pub fn unlink(folder: RawFd, name: &CStr) -> Result<(), Ended> {
    // SAFETY: the descriptor is open, and the name is a C string.
    if unsafe { libc::unlinkat(folder, name.as_ptr(), 0) } != 0 {
        return Err(failed("unlink"));
    }
    Ok(())
}

/// Returns the size of an open file.
pub fn size_of_file(fd: &OwnedFd) -> Result<u64, Ended> {
    folders::status_of(fd.as_raw_fd())
        .map(|status| status.st_size as u64)
        .map_err(|error| failed_of(&error, "fstat"))
}

/// Counts the cached pages of a file and adds them to `record`. With `forget`, drops the file from the cache
/// first.
pub fn look_at_cache(fd: &OwnedFd, length: u64, forget: bool, record: &mut Record) {
    let look = if forget { cache::drop_and_look } else { cache::look };
    let pages = look(fd.as_raw_fd(), length);
    record.pages.looked_at += pages.looked_at;
    record.pages.in_memory += pages.in_memory;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_names_are_numbered() {
        let mut name = Name::new();
        for number in [0, 7, 10, 99, 1_234_567_890, u64::MAX / 100] {
            assert_eq!(name.set(b'f', number).to_bytes(), format!("f{number}").as_bytes());
            assert_eq!(numbered(b'f', number).as_bytes(), format!("f{number}").as_bytes());
        }
    }
}
