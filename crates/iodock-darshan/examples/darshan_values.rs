//! Prints every value of a Darshan log, one per line, for comparison with another reader.

use iodock_darshan::{Access, Counted, Direction, Limits, Log};
use std::fmt::Write as _;
use std::io::{BufWriter, Write};
use std::path::Path;

fn main() {
    let mut out = BufWriter::new(std::io::stdout().lock());
    for path in std::env::args_os().skip(1) {
        match Log::open(Path::new(&path), Limits::default()) {
            Ok(log) => {
                write!(out, "log\t{}\n{}", path.to_string_lossy(), values(&log)).expect("a reader is there");
            }
            Err(error) => eprintln!("error: {error}\nhint: {}", error.fault.hint()),
        }
    }
}

include!("../tests/support/values.rs");
