//! Converts a call to text, for comparison.

use iodock_event::RawCall;

/// Returns all fields of a call except its times. Results that are addresses or process ids are replaced,
/// because they differ between runs.
pub fn fields(raw: &RawCall, path: &str) -> String {
    let result = match raw.call.name().as_str() {
        "mmap" | "fork" | "vfork" | "clone" | "clone3" => 0,
        _ => raw.result,
    };
    // The standard descriptors may refer to a file with the test's own output, which grows.
    let size = if (0..=2).contains(&raw.fd) { 0 } else { raw.stat_size };
    format!(
        "{} fd {} {} requested {} offset {} {} argument {} flags {:x} stat {} {size} result {result} {:?} {} {path}",
        raw.call.name(),
        raw.fd,
        raw.fd2,
        raw.requested,
        raw.offset,
        raw.offset2,
        raw.argument,
        raw.flags,
        raw.stat_type,
        raw.outcome,
        raw.errno.name(),
    )
}
