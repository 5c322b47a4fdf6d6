//! Decides whether the next round must be full. It must be at the start, and when the collector lacks data.

/// Counts requests for full rounds and full rounds that were made. So a round that was already running does
/// not count as the answer to a new request.
#[derive(Debug)]
pub struct Wish {
    wanted: u64,
    made: u64,
    /// Number of the last batch of the last full round.
    sequence: u64,
}

impl Default for Wish {
    /// Requests that the first round be full.
    fn default() -> Self {
        Wish { wanted: 1, made: 0, sequence: 0 }
    }
}

impl Wish {
    /// Begins a round. Returns the number of requests so far: targets whose last full reading is older are
    /// read in full.
    pub fn begin(&self) -> u64 {
        self.wanted
    }

    /// Records that the round that began with `wanted` ended with batch `sequence`.
    pub fn end(&mut self, wanted: u64, sequence: u64) {
        if wanted > self.made {
            (self.made, self.sequence) = (wanted, sequence);
        }
    }

    /// Requests a full round, because the collector, which has stored all batches up to `kept`, lacks data.
    /// Returns `false` if a full round is already waiting to be sent. Otherwise each batch before it would
    /// request another one.
    pub fn ask(&mut self, kept: u64) -> bool {
        if self.wanted == self.made && kept >= self.sequence {
            self.wanted += 1;
        }
        self.wanted > self.made
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_round_in_progress_satisfies_the_request() {
        let mut wish = Wish::default();
        assert!(wish.ask(0));
        let first = wish.begin();
        wish.end(first, 3);
        assert!(!wish.ask(2));
        assert_eq!(wish.begin(), first);
        assert!(wish.ask(3));
        assert!(wish.begin() > first);
        // The second request arrives before its full round is made.
        assert!(wish.ask(9));
        let second = wish.begin();
        wish.end(second, 12);
        assert!(!wish.ask(11));
        assert_eq!(wish.begin(), second);
    }
}
