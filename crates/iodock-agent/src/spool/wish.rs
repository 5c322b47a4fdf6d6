//! Decides whether the next round must be full: at the start, and when the collector lacks data.

/// Requests and full rounds are counted, so that a round that was already running does not answer a new
/// request.
#[derive(Debug)]
pub struct Wish {
    wanted: u64,
    made: u64,
    /// The last batch of the last full round.
    sequence: u64,
}

impl Default for Wish {
    /// The first round is full.
    fn default() -> Self {
        Wish { wanted: 1, made: 0, sequence: 0 }
    }
}

impl Wish {
    /// A round begins. Targets whose last full reading is older than the request are read in full.
    pub fn begin(&self) -> u64 {
        self.wanted
    }

    /// The round that began with `wanted` ended with batch `sequence`.
    pub fn end(&mut self, wanted: u64, sequence: u64) {
        if wanted > self.made {
            (self.made, self.sequence) = (wanted, sequence);
        }
    }

    /// The collector, which has stored all batches up to `kept`, lacks data. If a full round is already on
    /// its way, returns `false`: otherwise each batch of a long backlog would request one.
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
        // Requested again before it is made.
        assert!(wish.ask(9));
        let second = wish.begin();
        wish.end(second, 12);
        assert!(!wish.ask(11));
        assert_eq!(wish.begin(), second);
    }
}
