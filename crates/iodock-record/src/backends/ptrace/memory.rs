//! Reads a stopped program's memory.

use super::request;
use std::ptr;

const PAGE: u64 = 4096;
/// Largest number of pages in one read.
const PAGES_AT_ONCE: usize = 16;
/// Length in bytes of the longest path that the kernel accepts.
const PATH_MAX: usize = 4096;
/// Number of bytes that are read first. Most paths are shorter.
const FIRST_PIECE: usize = 256;

/// Fills `into` with the memory at `address`. Returns `false` if a part of it can't be read.
#[inline]
pub fn read_exact(tid: u32, address: u64, into: &mut [u8]) -> bool {
    read_some(tid, address, into) == into.len()
}

/// Reads up to the first unreadable page. Returns the number of bytes.
#[inline]
pub fn read_some(tid: u32, address: u64, into: &mut [u8]) -> usize {
    let mut done = 0;
    while done < into.len() {
        let at = address.wrapping_add(done as u64);
        // The kernel transfers each piece completely or not at all, so pieces end at page boundaries.
        let piece = usize::min(into.len() - done, (PAGE - at % PAGE) as usize);
        if !read_piece(tid, at, &mut into[done..done + piece]) {
            break;
        }
        done += piece;
    }
    done
}

fn read_piece(tid: u32, address: u64, into: &mut [u8]) -> bool {
    let local = libc::iovec { iov_base: into.as_mut_ptr().cast(), iov_len: into.len() };
    let remote = libc::iovec { iov_base: address as *mut libc::c_void, iov_len: into.len() };
    // SAFETY: `local` describes `into`, and the kernel uses the remote address only in the other process.
    let count = unsafe { libc::process_vm_readv(tid as libc::pid_t, &local, 1, &remote, 1, 0) };
    if count >= 0 {
        return count as usize == into.len();
    }
    // SAFETY: errno belongs to this thread.
    let errno = unsafe { *libc::__errno_location() };
    matches!(errno, libc::ENOSYS | libc::EPERM) && peek_piece(tid, address, into)
}

/// Reads word by word. It is used if process_vm_readv is not allowed, as in some containers.
fn peek_piece(tid: u32, address: u64, into: &mut [u8]) -> bool {
    let mut at = address & !7;
    let mut skip = (address % 8) as usize;
    let mut done = 0;
    while done < into.len() {
        let Ok(word) = request::peek(tid, at) else { return false };
        let bytes = &word.to_ne_bytes()[skip..];
        let count = usize::min(bytes.len(), into.len() - done);
        into[done..done + count].copy_from_slice(&bytes[..count]);
        done += count;
        at += 8;
        skip = 0;
    }
    true
}

/// Reads up to the first unreadable page with one call. Returns the number of bytes.
pub fn read_pages(tid: u32, address: u64, into: &mut [u8]) -> usize {
    let mut pieces = [libc::iovec { iov_base: ptr::null_mut(), iov_len: 0 }; PAGES_AT_ONCE];
    let (mut count, mut planned) = (0, 0);
    while planned < into.len() && count < PAGES_AT_ONCE {
        let at = address.wrapping_add(planned as u64);
        // The transfer ends before the first piece that can't be read completely.
        let piece = usize::min(into.len() - planned, (PAGE - at % PAGE) as usize);
        pieces[count] = libc::iovec { iov_base: at as *mut libc::c_void, iov_len: piece };
        (count, planned) = (count + 1, planned + piece);
    }
    let local = libc::iovec { iov_base: into.as_mut_ptr().cast(), iov_len: planned };
    // SAFETY: `local` describes a part of `into`, and the kernel uses the remote addresses only in the other
    // process.
    let read = unsafe {
        libc::process_vm_readv(tid as libc::pid_t, &local, 1, pieces.as_ptr(), count as libc::c_ulong, 0)
    };
    usize::try_from(read).unwrap_or(0)
}

/// Result of reading a string.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Read {
    Whole,
    /// The string is longer than the limit.
    Cut,
    Unreadable,
}

/// Appends the string at `address`, without its NUL, to `into`.
#[inline]
pub fn read_string(tid: u32, address: u64, limit: usize, into: &mut Vec<u8>) -> Read {
    let start = into.len();
    let mut piece = FIRST_PIECE;
    loop {
        let done = into.len() - start;
        let at = address.wrapping_add(done as u64);
        let length = usize::min(piece, (PAGE - at % PAGE) as usize);
        into.resize(start + done + length, 0);
        let read = read_some(tid, at, &mut into[start + done..]);
        if let Some(end) = into[start + done..start + done + read].iter().position(|&byte| byte == 0) {
            into.truncate(start + done + end);
            return Read::Whole;
        }
        into.truncate(start + done + read);
        if read < length {
            into.truncate(start);
            return Read::Unreadable;
        }
        if into.len() - start >= limit {
            into.truncate(start + limit);
            return Read::Cut;
        }
        piece = PAGE as usize;
    }
}

pub fn read_path(tid: u32, address: u64, into: &mut Vec<u8>) -> Read {
    read_string(tid, address, PATH_MAX, into)
}

pub fn read_u64(tid: u32, address: u64) -> Option<u64> {
    let mut bytes = [0; 8];
    read_exact(tid, address, &mut bytes).then(|| u64::from_ne_bytes(bytes))
}
