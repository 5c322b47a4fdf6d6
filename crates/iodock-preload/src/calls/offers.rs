//! Offers chunks that were read to the threads that filled them, for reuse. Offers are in the session's
//! header; a chunk's number modulo OFFERED is the index of its offer. A thread does not reuse a chunk that is
//! no longer offered, even if it still has it mapped.

use crate::format::{header, OFFERED};
use crate::page::HeaderPage;
use crate::session::Session;
use std::io;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};

pub struct Offers(HeaderPage);

impl Offers {
    /// # Errors
    /// The header can't be mapped.
    pub fn new(session: &Session) -> io::Result<Offers> {
        HeaderPage::of(session).map(Offers)
    }

    fn place(&self, index: u64) -> &AtomicU32 {
        self.0.word(header::OFFERED + 4 * (index as usize % OFFERED))
    }

    /// Offers chunk `index` in place of the previous offer at the same index. If no thread has taken that
    /// chunk, returns its number.
    pub fn offer(&self, index: u64) -> Option<u64> {
        u64::from(self.place(index).swap(index as u32 + 1, SeqCst)).checked_sub(1)
    }

    /// Withdraws all offers.
    pub fn withdraw(&self) {
        (0..OFFERED as u64).for_each(|index| self.place(index).store(0, SeqCst));
    }

    /// Whether chunk `index` is still offered.
    pub fn has(&self, index: u64) -> bool {
        self.place(index).load(SeqCst) == index as u32 + 1
    }
}
