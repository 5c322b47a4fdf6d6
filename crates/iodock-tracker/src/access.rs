//! The position of an access relative to the previous one through the same open file description.

use iodock_event::{AccessPattern, UNKNOWN};

/// The previous access: its offset, its end, and the gap between it and the access before.
#[derive(Clone, Copy, Debug)]
pub struct LastAccess {
    offset: i64,
    end: i64,
    gap: i64,
}

impl Default for LastAccess {
    fn default() -> Self {
        LastAccess { offset: UNKNOWN, end: UNKNOWN, gap: UNKNOWN }
    }
}

impl LastAccess {
    /// Returns the pattern and the gap (in bytes) of an access of `bytes` at `offset`, both known. The first
    /// condition that holds determines the pattern:
    ///
    /// - *first*: it is the first access through the open file description.
    /// - *repeated*: it begins where the previous access began.
    /// - *consecutive*: it begins where the previous access ended (gap 0).
    /// - *backward*: it ends where the previous access began.
    /// - *strided*: it has the same gap, which is not 0, and the same size as the previous access.
    /// - *sequential*: it begins after the end of the previous access (gap > 0).
    /// - *backward* as well: it begins before the end of the previous access, as that one did.
    /// - *random*: it begins before the end of the previous access.
    ///
    /// An access of no bytes (at the end of the file) has a pattern, but the next access is not compared with
    /// it.
    pub fn classify(&mut self, offset: i64, bytes: i64) -> (AccessPattern, i64) {
        if self.end == UNKNOWN {
            self.advance(offset, bytes, UNKNOWN);
            return (AccessPattern::First, UNKNOWN);
        }
        let gap = offset.saturating_sub(self.end);
        let pattern = if offset == self.offset && self.end > self.offset {
            AccessPattern::Repeated
        } else if gap == 0 {
            AccessPattern::Consecutive
        } else if offset.saturating_add(bytes) == self.offset {
            AccessPattern::Backward
        } else if gap == self.gap && bytes == self.end - self.offset {
            AccessPattern::Strided
        } else if gap > 0 {
            AccessPattern::Sequential
        } else if self.gap != UNKNOWN && self.gap < 0 {
            AccessPattern::Backward
        } else {
            AccessPattern::Random
        };
        if bytes > 0 {
            self.advance(offset, bytes, gap);
        }
        (pattern, gap)
    }

    fn advance(&mut self, offset: i64, bytes: i64, gap: i64) {
        *self = LastAccess { offset, end: offset.saturating_add(bytes), gap };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use AccessPattern::*;

    fn patterns(accesses: &[(i64, i64)]) -> Vec<AccessPattern> {
        let mut last = LastAccess::default();
        accesses.iter().map(|&(offset, bytes)| last.classify(offset, bytes).0).collect()
    }

    #[test]
    fn each_access_pattern_is_recognised() {
        assert_eq!(patterns(&[(0, 10), (10, 10), (20, 5)]), [First, Consecutive, Consecutive]);
        assert_eq!(patterns(&[(0, 10), (100, 10), (200, 10)]), [First, Sequential, Strided]);
        assert_eq!(patterns(&[(0, 10), (100, 10), (200, 11)]), [First, Sequential, Sequential]);
        assert_eq!(patterns(&[(90, 10), (80, 10), (70, 10)]), [First, Backward, Backward]);
        assert_eq!(patterns(&[(90, 10), (50, 10), (30, 5)]), [First, Random, Backward]);
        assert_eq!(patterns(&[(90, 10), (70, 10), (50, 10)]), [First, Random, Strided]);
        assert_eq!(patterns(&[(5, 10), (5, 10), (5, 3)]), [First, Repeated, Repeated]);
        assert_eq!(patterns(&[(0, 10), (10, 0), (10, 4)]), [First, Consecutive, Consecutive]);
    }
}
