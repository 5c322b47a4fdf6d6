//! Checks whether this kernel's counts of a process's calls (syscr, syscw) are those of Linux. If not, they
//! are not used.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixDatagram;
use std::path::Path;

/// Boot options of IMA: with them the kernel itself reads the files that programs open, and includes these
/// reads in the programs' counts.
const READS_FILES: [&str; 3] = ["ima_policy=", "ima_tcb", "ima_appraise"];
const POLICY: &str = "/etc/ima/ima-policy";

pub fn are_told() -> bool {
    !reads_files_itself() && counts_as_linux().unwrap_or(false)
}

fn reads_files_itself() -> bool {
    let options = fs::read_to_string("/proc/cmdline").unwrap_or_default();
    READS_FILES.iter().any(|&option| options.contains(option)) || Path::new(POLICY).exists()
}

/// Makes some calls and checks by how much the count grows. A sandbox with its own kernel may count other
/// calls.
fn counts_as_linux() -> io::Result<bool> {
    let (one, other) = UnixDatagram::pair()?;
    let (mut zeros, mut nothing) = (File::open("/dev/zero")?, File::create("/dev/null")?);
    let before = of_this_thread()?;
    // Linux counts the following three calls, although the last one moves nothing. It does not count the two
    // after them.
    let _ = zeros.read(&mut [0; 8])?;
    let _ = nothing.write(&[0; 8])?;
    let _ = zeros.read(&mut [])?;
    // The standard library would send by `write`, so `send` is called directly.
    // SAFETY: the buffer has eight bytes.
    unsafe { libc::send(one.as_raw_fd(), [0u8; 8].as_ptr().cast(), 8, 0) };
    other.recv(&mut [0; 8])?;
    let asking = 1;
    Ok(of_this_thread()? == before + asking + 3)
}

fn of_this_thread() -> io::Result<u64> {
    let mut text = [0; 512];
    let bytes = File::open("/proc/thread-self/io")?.read(&mut text)?;
    let text = String::from_utf8_lossy(&text[..bytes]);
    let number = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|number| number.trim().parse::<u64>().ok()).ok_or(io::ErrorKind::InvalidData)
    };
    Ok(number("syscr:")? + number("syscw:")?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_match_those_of_linux() {
        if of_this_thread().is_ok() {
            assert!(counts_as_linux().expect("numbers"));
        }
    }
}
