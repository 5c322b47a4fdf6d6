//! Reads the files in /proc/PID. A round reads thousands of them.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// Reads small files into one buffer.
pub struct SmallFile(Vec<u8>);

impl Default for SmallFile {
    fn default() -> Self {
        SmallFile(vec![0; 64 << 10])
    }
}

impl SmallFile {
    /// Number of bytes below which a read has certainly returned everything, because the kernel returns up to
    /// a page at a time.
    const SURELY_ALL: usize = 2048;

    /// Returns the content of a file, up to the buffer's size. Fails if the file cannot be opened or read.
    pub fn read(&mut self, path: &Path) -> io::Result<&[u8]> {
        let mut file = File::open(path)?;
        let mut filled = 0;
        loop {
            let read = file.read(&mut self.0[filled..])?;
            filled += read;
            if read < Self::SURELY_ALL {
                return Ok(&self.0[..filled]);
            }
        }
    }

    /// Returns the content of a file. It is empty if the file cannot be read, because its process may have
    /// ended.
    pub fn content(&mut self, path: &Path) -> &[u8] {
        self.read(path).unwrap_or_default()
    }
}
