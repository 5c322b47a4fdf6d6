//! Thread ids for systems that number threads within their process (Solaris: process id and lwp).
//!
//! The first lwp of a process gets the process id, as the first thread does on Linux. Other lwps get an id
//! above 2^31, which no system uses for process ids. [`parts`] recovers both numbers from such an id.

/// Solaris limits process ids to 999,999.
const PID_LIMIT: u32 = 1_000_000;
const LWP_BITS: u32 = 11;
const MARK: u32 = 1 << 31;

/// The first id above those that [`thread_id`] returns. Readers number threads from here if their numbers are
/// too large for [`thread_id`].
pub const FIRST_FREE: u32 = MARK | PID_LIMIT << LWP_BITS;

/// Ids above this belong to processes whose id the source does not show.
pub const UNNUMBERED: u32 = 0xff00_0000;

/// Returns the thread id of lwp `lwp` of process `pid`; `None` if the numbers are too large.
pub fn thread_id(pid: u32, lwp: u32) -> Option<u32> {
    match lwp {
        0 | 1 if pid < MARK => Some(pid),
        _ if pid < PID_LIMIT && lwp < 1 << LWP_BITS => Some(MARK | pid << LWP_BITS | lwp),
        _ => None,
    }
}

/// Returns the process id and lwp of an id that [`thread_id`] made. `None` for the first lwp of a process,
/// whose id is the process id.
pub fn parts(tid: u32) -> Option<(u32, u32)> {
    let made = (MARK..FIRST_FREE).contains(&tid);
    made.then_some(((tid & !MARK) >> LWP_BITS, tid & ((1 << LWP_BITS) - 1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thread_numbers_are_decoded_as_encoded() {
        assert_eq!(thread_id(28115, 1), Some(28115));
        assert_eq!(parts(28115), None);
        for (pid, lwp) in [(1, 2), (28115, 7), (999_999, 2047)] {
            assert_eq!(parts(thread_id(pid, lwp).unwrap()), Some((pid, lwp)));
        }
        assert_eq!(thread_id(28115, 2048), None);
        assert_eq!(thread_id(1_000_000, 2), None);
        assert_eq!(parts(FIRST_FREE), None);
    }
}
