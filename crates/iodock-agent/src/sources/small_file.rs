//! Reads files of /proc/PID, of which there are thousands in a round.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// Uses one buffer for all files.
pub struct SmallFile(Vec<u8>);

impl Default for SmallFile {
    fn default() -> Self {
        SmallFile(vec![0; 64 << 10])
    }
}

impl SmallFile {
    /// A read that returns less than this returned everything, since the kernel returns up to a page at a
    /// time.
    const SURELY_ALL: usize = 2048;

    /// The content, up to the buffer's size. Errors: the file cannot be opened or read.
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

    /// Empty if it cannot be read, since processes come and go.
    pub fn content(&mut self, path: &Path) -> &[u8] {
        self.read(path).unwrap_or_default()
    }
}
